//! Every arrival has exactly one outcome, of a plausible kind, with every policy and every server
//! behavior.

use std::thread;

use loadgen::plan::OnBusy;
use loadgen::{LoadPlan, Outcome};
use refsrv::{Config, Fault, FaultPlan, Outcome as Served, Service, When};

use crate::support::{MS, SECOND, Trial, alone, constant, holding, open_loop};

const SCHEDULED: u64 = 150;
const CONNECTIONS: usize = 4;
const MAX_PENDING: usize = 20;

/// Behavior of a server.
#[derive(Clone, Copy, Debug)]
enum Behavior {
    Answers,
    Stalls,
    Resets,
    Truncates,
    NeverAnswers,
}

impl Behavior {
    const ALL: [Self; 5] = [
        Self::Answers,
        Self::Stalls,
        Self::Resets,
        Self::Truncates,
        Self::NeverAnswers,
    ];

    fn config(self) -> Config {
        let third = |fault| Config {
            faults: FaultPlan::none().with(fault, When::every(3)),
            ..holding(MS)
        };
        match self {
            Self::Answers => holding(MS),
            Self::Stalls => Config {
                service: Service::PeriodicStall {
                    base_ns: MS,
                    period_ns: SECOND / 2,
                    stall_ns: 300 * MS,
                    offset_ns: 100 * MS,
                },
                ..Config::default()
            },
            Self::Resets => third(Fault::Reset),
            Self::Truncates => third(Fault::Truncate),
            Self::NeverAnswers => third(Fault::NeverAnswer),
        }
    }

    /// Possible outcomes of requests to such a server, if they are sent.
    fn ends(self) -> &'static [Outcome] {
        match self {
            Self::Answers | Self::Stalls => &[Outcome::Ok],
            // Before any response byte: a reset on a new connection, and the keep-alive race on a
            // kept one.
            Self::Resets => &[Outcome::Ok, Outcome::Reset, Outcome::Stale],
            Self::Truncates => &[Outcome::Ok, Outcome::Reset],
            Self::NeverAnswers => &[Outcome::Ok, Outcome::Timeout, Outcome::Unfinished],
        }
    }
}

/// Possible outcomes of arrivals without a free connection.
fn unsent(policy: OnBusy) -> &'static [Outcome] {
    match policy {
        OnBusy::Grow => &[],
        OnBusy::Queue => &[Outcome::Dropped, Outcome::Unfinished],
        OnBusy::Shed => &[Outcome::Dropped],
    }
}

fn drive(policy: OnBusy, behavior: Behavior) -> Trial {
    Trial::of(behavior.config(), |url| {
        let mut plan = LoadPlan {
            timeout_ns: SECOND,
            ..constant(url, 300.0, SECOND / 2)
        };
        let open = open_loop(&mut plan);
        (open.on_busy, open.max_pending) = (policy, Some(MAX_PENDING));
        open.max_connections = (policy != OnBusy::Grow).then_some(CONNECTIONS);
        plan
    })
}

/// Every [`Trial`] asserts the identity itself.
fn assert_sane(policy: OnBusy, behavior: Behavior, trial: &Trial) {
    let case = format!(
        "{policy:?} at a server that {behavior:?}: {:?}",
        trial.report.outcomes
    );
    assert_eq!(trial.scheduled(), SCHEDULED, "{case}");
    for outcome in Outcome::ALL {
        let may_be = behavior.ends().contains(&outcome) || unsent(policy).contains(&outcome);
        assert!(may_be || trial.count(outcome) == 0, "{outcome:?} in {case}");
    }
    let served = |outcome: Served| {
        trial
            .log
            .iter()
            .filter(|entry| entry.outcome == outcome)
            .count() as u64
    };
    assert_eq!(
        trial.count(Outcome::Ok),
        served(Served::Answered),
        "correct responses at both ends: {case}"
    );
    let broken = trial.count(Outcome::Reset) + trial.count(Outcome::Stale);
    assert_eq!(
        broken,
        served(Served::Reset) + served(Served::Truncated),
        "{case}"
    );
    let lost = trial.count(Outcome::Dropped) + trial.count(Outcome::Unfinished);
    assert!(
        trial.stats.arrivals >= SCHEDULED - lost,
        "what was sent arrived: {case}"
    );
    assert!(
        trial.stats.arrivals <= SCHEDULED - trial.count(Outcome::Dropped),
        "dropped is not sent: {case}"
    );
    // With shedding, an arrival may wait if the generator noticed too late that a connection was
    // idle.
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
    let _alone = alone();
    thread::scope(|scope| {
        for policy in [OnBusy::Grow, OnBusy::Queue, OnBusy::Shed] {
            for behavior in Behavior::ALL {
                scope.spawn(move || assert_sane(policy, behavior, &drive(policy, behavior)));
            }
        }
    });
}
