//! Every arrival has exactly one outcome, and a possible one, with every `--on-busy` policy and
//! every server behavior.

use std::thread;

use loadgen::plan::OnBusy;
use loadgen::{LoadPlan, Outcome};
use refsrv::{Config, Fault, FaultPlan, Outcome as ServerOutcome, Service, When};

use crate::support::{MS, SECOND, Trial, constant_hold, constant_rate, lock_host, open_loop};

const SCHEDULED: u64 = 150;
const CONNECTIONS: usize = 4;
const MAX_PENDING: usize = 20;

#[derive(Clone, Copy, Debug)]
enum Behavior {
    Responds,
    Stalls,
    Resets,
    Truncates,
    NeverResponds,
}

impl Behavior {
    const ALL: [Self; 5] = [
        Self::Responds,
        Self::Stalls,
        Self::Resets,
        Self::Truncates,
        Self::NeverResponds,
    ];

    fn config(self) -> Config {
        let with_every_third = |fault| Config {
            faults: FaultPlan::none().with(fault, When::every(3)),
            ..constant_hold(MS)
        };
        match self {
            Self::Responds => constant_hold(MS),
            Self::Stalls => Config {
                service: Service::PeriodicStall {
                    base_ns: MS,
                    period_ns: SECOND / 2,
                    stall_ns: 300 * MS,
                    offset_ns: 100 * MS,
                },
                ..Config::default()
            },
            Self::Resets => with_every_third(Fault::Reset),
            Self::Truncates => with_every_third(Fault::Truncate),
            Self::NeverResponds => with_every_third(Fault::NeverAnswer),
        }
    }

    /// Possible outcomes of the requests that are sent to such a server.
    fn possible_outcomes(self) -> &'static [Outcome] {
        match self {
            Self::Responds | Self::Stalls => &[Outcome::Ok],
            // Without a response byte, a reset is `Reset` on a new connection, and `Stale` on a
            // reused one.
            Self::Resets => &[Outcome::Ok, Outcome::Reset, Outcome::Stale],
            Self::Truncates => &[Outcome::Ok, Outcome::Reset],
            Self::NeverResponds => &[Outcome::Ok, Outcome::Timeout, Outcome::Unfinished],
        }
    }
}

/// Possible outcomes of arrivals without a free connection.
fn unsent_outcomes(policy: OnBusy) -> &'static [Outcome] {
    match policy {
        OnBusy::Grow => &[],
        OnBusy::Queue => &[Outcome::Dropped, Outcome::Unfinished],
        OnBusy::Shed => &[Outcome::Dropped],
    }
}

fn run_load(policy: OnBusy, behavior: Behavior) -> Trial {
    Trial::of(behavior.config(), |url| {
        let mut plan = LoadPlan {
            timeout_ns: SECOND,
            ..constant_rate(url, 300.0, SECOND / 2)
        };
        let open = open_loop(&mut plan);
        (open.on_busy, open.max_pending) = (policy, Some(MAX_PENDING));
        open.max_connections = (policy != OnBusy::Grow).then_some(CONNECTIONS);
        plan
    })
}

/// [`Trial`] asserts that the outcomes add up.
fn assert_possible_outcomes(policy: OnBusy, behavior: Behavior, trial: &Trial) {
    let case = format!(
        "{policy:?}, server {behavior:?}: {:?}",
        trial.report.outcomes
    );
    assert_eq!(trial.scheduled(), SCHEDULED, "{case}");

    for outcome in Outcome::ALL {
        let is_possible = behavior.possible_outcomes().contains(&outcome)
            || unsent_outcomes(policy).contains(&outcome);
        assert!(
            is_possible || trial.count(outcome) == 0,
            "{outcome:?} in {case}"
        );
    }

    let server_count = |outcome: ServerOutcome| {
        trial
            .log
            .iter()
            .filter(|entry| entry.outcome == outcome)
            .count() as u64
    };

    assert_eq!(
        trial.count(Outcome::Ok),
        server_count(ServerOutcome::Answered),
        "client and server count the same responses: {case}"
    );

    let resets = trial.count(Outcome::Reset) + trial.count(Outcome::Stale);
    assert_eq!(
        resets,
        server_count(ServerOutcome::Reset) + server_count(ServerOutcome::Truncated),
        "{case}"
    );

    let may_be_unsent = trial.count(Outcome::Dropped) + trial.count(Outcome::Unfinished);
    assert!(
        trial.stats.arrivals >= SCHEDULED - may_be_unsent,
        "every request that was sent arrived: {case}"
    );
    assert!(
        trial.stats.arrivals <= SCHEDULED - trial.count(Outcome::Dropped),
        "no dropped request was sent: {case}"
    );

    // With shedding, an arrival may wait if the generator noticed an idle connection too late.
    if policy == OnBusy::Grow {
        assert_eq!(
            trial.report.measures().pool_wait.max_ns(),
            Some(0),
            "no request waits: {case}"
        );
    }

    if policy != OnBusy::Grow {
        assert!(
            trial.report.connections.peak <= CONNECTIONS as u64,
            "{case}"
        );
    }
}

#[test]
fn every_arrival_has_one_outcome_under_every_policy_and_server_behavior() {
    let _host = lock_host();
    thread::scope(|scope| {
        for policy in [OnBusy::Grow, OnBusy::Queue, OnBusy::Shed] {
            for behavior in Behavior::ALL {
                scope.spawn(move || {
                    assert_possible_outcomes(policy, behavior, &run_load(policy, behavior))
                });
            }
        }
    });
}
