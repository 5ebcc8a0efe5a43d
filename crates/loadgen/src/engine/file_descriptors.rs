//! A private file descriptor table for a generator thread.
//!
//! While threads share one table, the kernel takes a socket reference at the start and end of each
//! call, in case another thread closes it meanwhile, and threads that open connections contend for
//! the table. A private table avoids both. File descriptors must not be passed between such a
//! thread and any other.

use std::fs;
use std::io;
use std::os::fd::RawFd;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::close;

/// Standard input, output and error, which stay open.
const STANDARD: RawFd = 3;

/// Gives the calling thread a private table that contains only the standard descriptors. Returns
/// whether this succeeded: some sandboxes forbid it, and system calls then merely take longer.
pub(crate) fn use_private_table() -> bool {
    if open_file_descriptors().is_err() || unshare(CloneFlags::CLONE_FILES).is_err() {
        return false;
    }

    // Copies of other threads' file descriptors would keep them open: a peer would not notice when
    // they are closed.
    for fd in open_file_descriptors().unwrap_or_default() {
        // This fails for the descriptor of the listing, which is already closed.
        let _ = close(fd);
    }

    true
}

/// The calling thread's file descriptors except the standard ones, including the one used for
/// listing.
fn open_file_descriptors() -> io::Result<Vec<RawFd>> {
    let entries = fs::read_dir("/proc/thread-self/fd")?.flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(numbers.filter(|number| *number >= STANDARD).collect())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn a_private_table_does_not_keep_files_of_other_threads_open() {
        let (mut near, far) = UnixStream::pair().expect("pair");
        near.set_nonblocking(true).expect("nonblocking");
        let (sender, received) = channel();
        let (ends, end) = channel::<()>();
        let thread = thread::spawn(move || {
            let is_private = use_private_table();
            sender
                .send((is_private, open_file_descriptors().expect("proc")))
                .expect("listener");
            let _ = end.recv();
        });
        let (is_private, open) = received.recv().expect("thread");
        drop(far);
        if is_private {
            assert_eq!(open.len(), 1, "{open:?}");
            assert_eq!(near.read(&mut [0; 8]).expect("the end of the stream"), 0);
        }

        drop(ends);
        thread.join().expect("no panic");
    }

    #[test]
    fn files_of_other_threads_stay_open() {
        let (mut near, mut far) = UnixStream::pair().expect("pair");
        thread::spawn(use_private_table).join().expect("no panic");
        far.write_all(b"x").expect("write");
        assert_eq!(near.read(&mut [0; 8]).expect("open"), 1);
    }
}
