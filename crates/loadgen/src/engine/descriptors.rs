//! A table of file descriptors for a thread of its own.
//!
//! While threads share one table, the kernel counts a reference to the socket at the begin and at
//! the end of each call, in case another thread closes it meanwhile, and threads that open
//! connections wait for each other. A table that only one thread has needs neither. Other threads
//! must not be given file descriptors of such a thread, nor it theirs.

use std::fs;
use std::io;
use std::os::fd::RawFd;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::close;

/// Standard input, output and error, which stay open.
const STANDARD: RawFd = 3;

/// Gives the calling thread a table of its own, with nothing in it but the standard ones. Whether
/// it has one: some sandboxes refuse it, which costs time and nothing else.
pub(crate) fn have_own_table() -> bool {
    if open_descriptors().is_err() || unshare(CloneFlags::CLONE_FILES).is_err() {
        return false;
    }
    // Copies of what others have open would keep it open: a peer would not learn that they have
    // closed it.
    for descriptor in open_descriptors().unwrap_or_default() {
        // The one that listed them is closed already.
        let _ = close(descriptor);
    }
    true
}

/// The calling thread's file descriptors but for the standard ones; the one that lists them is
/// among
/// them.
fn open_descriptors() -> io::Result<Vec<RawFd>> {
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
    fn a_thread_with_a_table_of_its_own_keeps_nothing_of_others_open() {
        let (mut near, far) = UnixStream::pair().expect("pair");
        near.set_nonblocking(true).expect("nonblocking");
        let (tells, told) = channel();
        let (ends, end) = channel::<()>();
        let thread = thread::spawn(move || {
            let has_own = have_own_table();
            tells
                .send((has_own, open_descriptors().expect("proc")))
                .expect("listener");
            let _ = end.recv();
        });
        let (has_own, left) = told.recv().expect("thread");
        drop(far);
        if has_own {
            assert_eq!(left.len(), 1, "{left:?}");
            assert_eq!(near.read(&mut [0; 8]).expect("the end of the stream"), 0);
        }
        drop(ends);
        thread.join().expect("no panic");
    }

    #[test]
    fn what_the_others_have_open_stays_open() {
        let (mut near, mut far) = UnixStream::pair().expect("pair");
        thread::spawn(have_own_table).join().expect("no panic");
        far.write_all(b"x").expect("write");
        assert_eq!(near.read(&mut [0; 8]).expect("open"), 1);
    }
}
