//! Open loop: arrivals follow a schedule, whatever the server does.

use std::sync::Arc;

use crate::arrivals::draw::Draw;
use crate::arrivals::schedule::Share;
use crate::arrivals::source::{Due, Next, Source};
use crate::record::exchange::Completion;
use crate::record::possible_ends::Ends;

/// The share of a schedule that one thread sends.
pub(crate) struct OpenSource {
    offsets_ns: Share,
    draw: Draw,
    start_ns: u64,
    next_ns: Option<u64>,
    /// When the load may end before its schedule does.
    ends: Option<Arc<Ends>>,
}

impl OpenSource {
    pub fn new(mut offsets_ns: Share, draw: Draw, start_ns: u64, ends: Option<Arc<Ends>>) -> Self {
        let next_ns = offsets_ns.next().map(|offset_ns| start_ns + offset_ns);
        Self {
            offsets_ns,
            draw,
            start_ns,
            next_ns,
            ends,
        }
    }
}

impl Source for OpenSource {
    fn next_due_ns(&self) -> Option<u64> {
        let is_sent = |due_ns: &u64| {
            self.ends
                .as_ref()
                .is_none_or(|ends| *due_ns < ends.load_end_ns())
        };
        self.next_ns.filter(is_sent)
    }

    fn take_due(&mut self) -> Option<Due> {
        let intended_ns = self.next_ns?;
        let request = self.draw.pick(self.offsets_ns.place());
        self.next_ns = self
            .offsets_ns
            .next()
            .map(|offset_ns| self.start_ns + offset_ns);

        Some(Due {
            intended_ns,
            request,
            slot: None,
        })
    }

    fn after(&mut self, _slot: usize, _ended: &Completion) -> Next {
        Next::Free
    }

    fn is_exhausted(&self, _now_ns: u64) -> bool {
        self.next_due_ns().is_none()
    }
}
