//! The part of a load that one generator process runs: its threads, one record per thread.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use serde::{Deserialize, Serialize};

use crate::base::error::LoadError;
use crate::base::stop::StopToken;
use crate::engine::run::PreparedLoad;
use crate::engine::thread::{ThreadPlan, ThreadRecord, ThreadResult, run_thread};
use crate::judge::stopping_rule;
use crate::pacing::decision::Pacing;
use crate::pacing::pacer::Spin;
use crate::plan::portion::Portion;
use crate::record::possible_ends::{EndCursor, Ends};

/// What one generator contributes to a load. Parts are added before anything is derived.
#[derive(Serialize, Deserialize)]
pub(crate) struct Part {
    pub spin: Spin,
    /// CPU time of the idle-core monitor.
    pub watch_cpu_ns: u64,
    pub records: Vec<ThreadRecord>,
}

impl Part {
    /// Runs a portion of the load from `start_ns` on, in as many threads as the plan has for each
    /// process. The possible `ends` are those of a load without a fixed length.
    pub fn run(
        load: &PreparedLoad,
        portion: Portion,
        (start_ns, ends): (u64, Option<&Arc<Ends>>),
        stop: &StopToken,
    ) -> Result<Self, LoadError> {
        let plan = &load.plan;
        let pacing = Pacing::of(plan);
        let (sender, snapshots) = mpsc::channel();
        let threads = (0..plan.threads).map(|thread| {
            let portion = portion.of_thread(thread, plan.threads);
            ThreadPlan {
                plan: plan.clone(),
                target: load.target.clone(),
                portion,
                max_connections: portion.of(load.max_connections),
                pacer: pacing.pacer.clone(),
                start_ns,
                progress: load.progress.clone(),
                cursor: ends.map(|ends| {
                    // Without a target precision, no thread reads snapshots.
                    let sender = plan.precision.is_some().then(|| sender.clone());
                    EndCursor::new(Arc::clone(ends), sender)
                }),
            }
        });
        let threads: Vec<ThreadPlan> = threads.collect();
        drop(sender);

        let records = run_threads(threads, stop, || {
            if let Some((precision, ends)) = plan.precision.as_ref().zip(ends) {
                stopping_rule::apply(precision, ends, plan.threads, &snapshots);
            }
        })?;
        let (spin, watch_cpu_ns) = pacing.end();

        Ok(Self {
            spin,
            watch_cpu_ns,
            records,
        })
    }

    /// Adds another generator's part. All generators of a load wait in the same way.
    pub fn add(&mut self, other: Self) {
        self.watch_cpu_ns += other.watch_cpu_ns;
        self.records.extend(other.records);
    }
}

/// Runs all threads to their end, and `meanwhile` alongside them.
fn run_threads(
    plans: Vec<ThreadPlan>,
    stop: &StopToken,
    meanwhile: impl FnOnce(),
) -> Result<Vec<ThreadRecord>, LoadError> {
    let spawn = |plan: ThreadPlan| {
        let stop = stop.clone();
        thread::Builder::new()
            .name(format!("loadgen-{}", plan.portion.index))
            .spawn(move || {
                let unless_done = StopUnlessDone(Some(&stop));
                let record = run_thread(&plan, &stop)?;
                unless_done.done();
                Ok(record)
            })
            .map_err(|source| LoadError::System {
                action: "start a thread",
                source,
            })
    };
    let handles: Vec<_> = plans.into_iter().map(spawn).collect();
    if handles.iter().any(Result::is_err) {
        stop.stop();
    }

    meanwhile();
    // Join all before returning the first failure: no thread may outlive the run.
    let results: Vec<ThreadResult> = handles
        .into_iter()
        .map(|handle| handle?.join().map_err(|_| LoadError::ThreadPanicked)?)
        .collect();

    results.into_iter().collect()
}

/// Stops all threads if one fails or panics: the results of the others will not be reported.
struct StopUnlessDone<'a>(Option<&'a StopToken>);

impl StopUnlessDone<'_> {
    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for StopUnlessDone<'_> {
    fn drop(&mut self) {
        if let Some(stop) = self.0 {
            stop.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_thread_stops_the_others_and_a_finished_one_does_not() {
        let stop = StopToken::new();
        StopUnlessDone(Some(&stop)).done();

        assert!(!stop.is_stopped());

        let failing = || -> Result<(), LoadError> {
            let _unless_done = StopUnlessDone(Some(&stop));
            Err(LoadError::ThreadPanicked)
        };
        failing().expect_err("a failure");

        assert!(stop.is_stopped());
    }
}
