//! Files that the user names: opened without waiting for anyone, and read up to a limit.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, fcntl_setfl, open as open_file};
use rustix::io::Errno;

/// Larger texts and bodies are refused, because they are kept in memory.
pub(crate) const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Longer lines of recordings are refused.
const MAX_LINE_BYTES: usize = 1024 * 1024;

/// The first byte of a pipe, if it was read while opening it, and the rest.
type Opened = io::Chain<io::Cursor<Vec<u8>>, File>;

/// How long a named pipe may have no writer.
const MAX_WRITER_WAIT: Duration = Duration::from_secs(2);
const WRITER_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Reads a file or a pipe of at most `max_bytes`.
///
/// # Errors
/// A sentence that names the file and the reason.
pub fn read_file(path: &Path, max_bytes: usize) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let cannot_read = |error: io::Error| format!("cannot read {shown}: {error}");
    let opened = open(path).map_err(cannot_read)?;
    read_all(opened, max_bytes)
        .map_err(cannot_read)?
        .ok_or_else(|| format!("{shown} is larger than {} MiB", max_bytes >> 20))
}

/// Everything up to the end; `None` if that is more than `max_bytes`.
pub(crate) fn read_all(input: impl Read, max_bytes: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    input.take(max_bytes as u64 + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= max_bytes).then_some(bytes))
}

/// Replaces `line` with the next line; returns whether there is one.
pub(crate) fn read_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    input
        .take(MAX_LINE_BYTES as u64 + 1)
        .read_until(b'\n', line)?;
    if line.len() > MAX_LINE_BYTES {
        return Err(io::Error::other("a line is longer than 1 MiB"));
    }
    Ok(!line.is_empty())
}

/// Opens a file or a pipe. Devices may be endless, and some wait for input.
pub(crate) fn open(path: &Path) -> io::Result<Opened> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut file = File::from(open_file(path, flags, Mode::empty())?);
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    if !(kind.is_file() || kind.is_fifo()) {
        return Err(io::Error::other("not a file or a pipe"));
    }

    let first = if kind.is_fifo() {
        first_byte(&mut file)?
    } else {
        Vec::new()
    };
    fcntl_setfl(&file, OFlags::empty())?;
    Ok(io::Cursor::new(first).chain(file))
}

/// The first byte of a non-blocking pipe; none as soon as it has a writer that has not written yet.
fn first_byte(pipe: &mut File) -> io::Result<Vec<u8>> {
    let since = Instant::now();
    let mut byte = [0];
    while since.elapsed() < MAX_WRITER_WAIT {
        match pipe.read(&mut byte) {
            // No program has opened the pipe to write to it.
            Ok(0) => sleep(WRITER_CHECK_INTERVAL),
            Ok(_) => return Ok(byte.to_vec()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("no program writes to this pipe"))
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write as _};
    use std::path::PathBuf;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    /// A named pipe, removed at the end.
    struct Pipe(PathBuf);

    impl Pipe {
        fn new(name: &str) -> Self {
            let file = format!("loadgen-pipe-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(file);
            mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
            Self(path)
        }
    }

    impl Drop for Pipe {
        fn drop(&mut self) {
            std::fs::remove_file(&self.0).expect("removed");
        }
    }

    #[test]
    fn a_pipe_without_a_writer_is_an_error() {
        let pipe = Pipe::new("idle");
        let since = Instant::now();
        let message = read_file(&pipe.0, 10).expect_err("no writer");
        assert!(
            message.ends_with("no program writes to this pipe"),
            "{message}"
        );
        assert!(since.elapsed() < 2 * MAX_WRITER_WAIT);
    }

    #[test]
    fn a_pipe_is_read_to_its_end_even_if_the_writer_is_late_and_slow() {
        let pipe = Pipe::new("slow");
        let path = pipe.0.clone();
        let writer = std::thread::spawn(move || {
            sleep(20 * WRITER_CHECK_INTERVAL);
            let mut file = File::options().write(true).open(path).expect("a reader");
            for part in ["GET", " ", "/"] {
                sleep(20 * WRITER_CHECK_INTERVAL);
                file.write_all(part.as_bytes()).expect("written");
            }
        });
        assert_eq!(read_file(&pipe.0, 10), Ok(b"GET /".to_vec()));
        writer.join().expect("the writer");
    }

    #[test]
    fn devices_directories_and_huge_files_are_refused() {
        let huge = std::env::temp_dir().join(format!("loadgen-huge-{}", std::process::id()));
        let file = File::create(&huge).expect("a file");
        file.set_len(10 << 30).expect("a sparse file");
        for (path, expected) in [
            (
                Path::new("/dev/zero"),
                "cannot read /dev/zero: not a file or a pipe",
            ),
            (Path::new("/"), "cannot read /: Is a directory"),
            (&huge, "is larger than 64 MiB"),
        ] {
            let message = read_file(path, MAX_BYTES).expect_err(expected);
            assert!(message.contains(expected), "{message}");
        }
        std::fs::remove_file(&huge).expect("removed");
    }

    #[test]
    fn the_length_of_a_line_is_limited() {
        let mut line = Vec::new();
        let mut input = BufReader::new(&b"a\nb"[..]);
        for expected in [&b"a\n"[..], b"b"] {
            assert!(read_line(&mut input, &mut line).expect("a line"));
            assert_eq!(line, expected);
        }
        assert!(!read_line(&mut input, &mut line).expect("the end"));
        let mut endless = BufReader::new(io::repeat(b'a'));
        assert!(read_line(&mut endless, &mut line).is_err());
    }
}
