//! Run-queue wait of the calling thread: time in which it was runnable but not running.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::base::clock::NS_PER_MS;

/// Maximum age of a reading. All waits since the latest reading are attributed to a stall, so this
/// bounds the time before the stall whose waits are wrongly included.
const MAX_AGE_NS: u64 = 100 * NS_PER_MS;

/// The waits of one thread since the latest reading.
pub(crate) struct RunQueueWaits {
    /// The thread's `schedstat`; `None` if the kernel has none.
    file: Option<File>,
    waited_ns: u64,
    read_at_ns: u64,
}

impl RunQueueWaits {
    /// The waits of the calling thread from now on.
    pub fn of_this_thread(now_ns: u64) -> Self {
        let file = File::open("/proc/thread-self/schedstat").ok();
        let waited_ns = file.as_ref().and_then(read).unwrap_or(0);
        Self {
            file,
            waited_ns,
            read_at_ns: now_ns,
        }
    }

    /// Reads again if the latest reading is old.
    pub fn refresh(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.read_at_ns) > MAX_AGE_NS {
            self.take(now_ns);
        }
    }

    /// How long the thread waited since the latest reading.
    pub fn take(&mut self, now_ns: u64) -> u64 {
        self.read_at_ns = now_ns;
        let Some(waited_ns) = self.file.as_ref().and_then(read) else {
            return 0;
        };
        let since_ns = waited_ns.saturating_sub(self.waited_ns);
        self.waited_ns = waited_ns;
        since_ns
    }
}

/// The second field of `schedstat`, in nanoseconds.
fn read(file: &File) -> Option<u64> {
    let mut text = [0; 64];
    let length = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Total run-queue wait of the calling thread; `None` if the kernel does not report it.
pub(crate) fn run_queue_wait_ns() -> Option<u64> {
    read(&File::open("/proc/thread-self/schedstat").ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_since_the_latest_reading() {
        let mut waits = RunQueueWaits::of_this_thread(0);
        let first_ns = waits.take(1);
        waits.refresh(2);
        assert_eq!(waits.read_at_ns, 1, "the reading is recent");
        waits.refresh(2 + MAX_AGE_NS);
        assert_eq!(waits.read_at_ns, 2 + MAX_AGE_NS);
        // Waits already taken are not counted again.
        let total_ns = run_queue_wait_ns().unwrap_or(0);
        assert!(first_ns <= total_ns && waits.waited_ns <= total_ns);
    }

    #[test]
    fn a_thread_without_schedstat_reports_no_wait() {
        let mut waits = RunQueueWaits {
            file: None,
            waited_ns: 0,
            read_at_ns: 0,
        };
        assert_eq!(waits.take(5), 0);
    }
}
