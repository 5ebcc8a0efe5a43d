//! How a load's threads wait for their sends; decided once, before it starts.

use rustix::thread::sched_getaffinity;

use crate::pacing::idle_cores::IdleWatch;
use crate::pacing::pacer::{MAX_SPIN_SHARE, Pacer, Spin, SpinReason};
use crate::pacing::rt_budget::RtBudget;
use crate::plan::{LoadModel, LoadPlan};

/// How a load's threads wait, and the idle-core monitor that decides whether they may busy-wait.
pub(crate) struct Pacing {
    spin: Spin,
    /// Every thread waits with a copy of it.
    pub pacer: Pacer,
    idle_watch: Option<IdleWatch>,
}

impl Pacing {
    /// Decides for a plan, and starts to monitor the cores' idle time unless the plan sets the spin
    /// window.
    pub fn of(plan: &LoadPlan) -> Self {
        let thread_rate_per_s = match &plan.load {
            LoadModel::Open(open) => {
                Some(open.profile.peak_rate_per_s() / plan.all_threads() as f64)
            }
            LoadModel::Closed(_) => None,
        };
        let has_spare_core = !plan.shares_cores && has_core_for_each(plan.all_threads());
        let spin = Spin::decide(plan.spin_window_ns, thread_rate_per_s, has_spare_core);
        let idle_watch = (spin.reason == SpinReason::Automatic)
            .then(|| IdleWatch::start(plan.all_threads(), MAX_SPIN_SHARE));
        let idle_time = idle_watch.as_ref().map(IdleWatch::idle_time);
        // On shared cores a real-time thread would take time from the server, as a spin would.
        let pacer = Pacer::new(spin.window_ns)
            .within(idle_time)
            .with_rt_budget(RtBudget::for_generator_threads(has_spare_core));

        Self {
            spin,
            pacer,
            idle_watch,
        }
    }

    /// Stops the monitor; returns the decision and the monitor's CPU time in nanoseconds.
    pub fn end(self) -> (Spin, u64) {
        (self.spin, self.idle_watch.map_or(0, IdleWatch::end))
    }
}

/// Whether each generator thread has a core that it does not take from the server: more cores than
/// threads, or reserved cores.
fn has_core_for_each(threads: usize) -> bool {
    let Ok(allowed) = sched_getaffinity(None) else {
        return false;
    };

    let allowed = allowed.count() as usize;
    let configured = std::fs::read_to_string("/proc/stat").map(|text| {
        text.lines()
            .filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "))
            .count()
    });

    allowed > threads || configured.is_ok_and(|all| allowed < all && allowed >= threads)
}
