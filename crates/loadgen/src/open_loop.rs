//! Open loop: walks the schedule and hands each arrival to a lane at its instant. No arrival is skipped silently.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::arrivals::{Share, Stream, generator};
use crate::connection::Connection;
use crate::exchange::{Arrival, Completion, Outcome};
use crate::lane::{Lane, Next, Shared, Source};
use crate::pacer::{Pacer, Waited};
use crate::plan::OnBusy;
use crate::recorder::Recorder;

/// How one thread treats arrivals that find every connection busy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BusyPolicy {
    pub on_busy: OnBusy,
    pub max_lanes: usize,
    pub max_pending: usize,
}

/// Idle lanes and waiting arrivals of one thread.
pub(crate) struct OpenSource {
    policy: BusyPolicy,
    idle: RefCell<Vec<Rc<Lane>>>,
    pending_ns: RefCell<VecDeque<u64>>,
    random: RefCell<ChaCha8Rng>,
}

impl OpenSource {
    pub fn new(policy: BusyPolicy, seed: u64, thread: usize) -> Self {
        let random = RefCell::new(generator(seed, Stream::IdleChoice(thread)));
        Self { policy, idle: RefCell::default(), pending_ns: RefCell::default(), random }
    }

    /// A uniformly random idle lane: any fixed order would lock into phase with the server's workers.
    fn take_idle(&self) -> Option<Rc<Lane>> {
        let mut idle = self.idle.borrow_mut();
        match idle.len() {
            0 => None,
            count => Some(idle.swap_remove(self.random.borrow_mut().random_range(0..count))),
        }
    }
}

impl Source for OpenSource {
    fn after(&self, lane: &Rc<Lane>, ended: &Completion, _recorder: &mut Recorder) -> Next {
        match self.pending_ns.borrow_mut().pop_front() {
            Some(intended_ns) => {
                let eligible_ns = ended.ended_ns.max(intended_ns);
                Next::Serve(Arrival { intended_ns, eligible_ns })
            }
            None => {
                self.idle.borrow_mut().push(Rc::clone(lane));
                Next::Wait
            }
        }
    }

    fn has_waiting(&self) -> bool {
        !self.pending_ns.borrow().is_empty()
    }

    fn take_waiting(&self) -> Vec<u64> {
        self.pending_ns.borrow_mut().drain(..).collect()
    }
}

/// Sends the thread's share of the schedule; returns when the last arrival has been handed over.
pub(crate) async fn drive<C: Connection + 'static>(
    shared: &Rc<Shared<OpenSource>>,
    share: Share,
    start_ns: u64,
    pacer: &mut Pacer,
) {
    for offset_ns in share {
        let intended_ns = start_ns + offset_ns;
        if pacer.wait_until(intended_ns).await == Waited::Stopped {
            return;
        }
        shared.recorder.borrow_mut().scheduled(intended_ns);
        dispatch::<C>(shared, intended_ns);
    }
}

fn dispatch<C: Connection + 'static>(shared: &Rc<Shared<OpenSource>>, intended_ns: u64) {
    let source = &shared.source;
    let arrival = Arrival { intended_ns, eligible_ns: intended_ns };
    if let Some(lane) = source.take_idle() {
        lane.hand_over(arrival);
    } else if shared.lane_count() < source.policy.max_lanes {
        shared.spawn_lane::<C>().hand_over(arrival);
    } else {
        let mut pending_ns = source.pending_ns.borrow_mut();
        let is_shed = source.policy.on_busy == OnBusy::Shed || pending_ns.len() >= source.policy.max_pending;
        if is_shed {
            shared.ended_unserved(intended_ns, Outcome::Dropped);
        } else {
            pending_ns.push_back(intended_ns);
        }
    }
}
