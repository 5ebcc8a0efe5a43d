//! F3 and F6 to F9: heavy tails, and queues with known response time distributions.
//!
//! Each queue is tested twice. First against the same queue in virtual time, with the load's own
//! schedule and holds: without sampling error, a bias of a fraction of a millisecond shows (tier
//! V). Then against theory, within four standard deviations of loads of this length with other
//! random draws (tier T): the schedule and the holds have the stated distributions.

use loadgen::plan::Arrivals;
use loadgen::{LoadPlan, Outcome, Schedule};
use refsrv::{Config, FaultPlan, KnownQueue, Service, VirtualQueue};

use crate::long_ns;
use crate::statistics::{mean_and_deviation, quantile};
use crate::support::{
    MS, SECOND, Timing, Trial, assert_encloses, floor_ns, judge, open_loop, slot_top,
};

const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// This many loads in virtual time determine the standard deviation of a quantile from theory.
const OTHER_DRAWS: u64 = 40;

/// A queue with a known response time distribution, whose servers are busy for this share of the
/// time.
struct Queue {
    known: KnownQueue,
    utilisation: f64,
}

impl Queue {
    fn servers(&self) -> usize {
        if let KnownQueue::Mmc { servers } = self.known {
            servers as usize
        } else {
            1
        }
    }

    /// The mean hold: longer with several servers, so that any host can send the load.
    fn mean_ns(&self) -> u64 {
        if self.servers() == 1 { 2 * MS } else { 4 * MS }
    }

    fn service(&self, seed: u64) -> Service {
        match self.known {
            KnownQueue::Md1 => Service::Constant {
                hold_ns: self.mean_ns(),
            },
            KnownQueue::Mmc { .. } | KnownQueue::Dm1 => Service::Exponential {
                mean_ns: self.mean_ns(),
                seed,
            },
        }
    }

    fn config(&self) -> Config {
        Config {
            service: self.service(HOLDS_SEED),
            servers: Some(self.servers()),
            ..Config::default()
        }
    }

    fn plan(&self, url: &str) -> LoadPlan {
        let rate_per_s =
            self.utilisation * self.servers() as f64 * SECOND as f64 / self.mean_ns() as f64;
        let mut plan = LoadPlan {
            seed: 23,
            ..LoadPlan::open(url, rate_per_s, long_ns())
        };
        open_loop(&mut plan).arrivals = if self.known == KnownQueue::Dm1 {
            Arrivals::Constant
        } else {
            Arrivals::Poisson
        };
        plan
    }

    /// Response times of the planned load without any lateness, ascending.
    fn in_virtual_time(&self, mut plan: LoadPlan, holds_seed: u64) -> Vec<u64> {
        let mut queue = VirtualQueue::new(
            self.service(holds_seed),
            Some(self.servers()),
            FaultPlan::none(),
            0,
        );
        let (seed, phases) = (plan.seed, plan.phases.clone());
        let schedule = Schedule::new(open_loop(&mut plan), seed, &phases);
        let mut response_ns: Vec<u64> = schedule
            .map(|offset_ns| queue.arrive(offset_ns).0.finish_ns - offset_ns)
            .collect();
        response_ns.sort_unstable();
        response_ns
    }

    fn judge(&self) {
        judge(1, |timing| {
            let trial = timing.trial(self.config(), |url| self.plan(url));
            let counts = (trial.count(Outcome::Ok), trial.log.len() as u64);
            assert_eq!(
                counts,
                (trial.scheduled(), trial.scheduled()),
                "{:?}",
                trial.report.outcomes
            );
            assert_encloses(&trial.report.measures().service, &trial.times_in_server());
            let expected = self.in_virtual_time(trial.report.plan.clone(), HOLDS_SEED);
            assert_eq!(expected.len() as u64, trial.scheduled());
            self.expect_virtual_time(timing, &trial, &expected);
            self.expect_theory(timing, &trial);
        });
    }

    fn expect_virtual_time(&self, timing: &mut Timing, trial: &Trial, expected: &[u64]) {
        for share in QUANTILES {
            let expected_ns = quantile(expected, share);
            // Two arrivals within microseconds of each other may swap places and holds.
            let least_ns = expected_ns - expected_ns / 100;
            let found_ns = trial.report.measures().response.quantile_ns(share);
            timing.within(
                &format!("p{} against virtual time", share * 100.0),
                found_ns,
                least_ns,
                expected_ns + floor_ns(share),
            );
        }
    }

    fn expect_theory(&self, timing: &mut Timing, trial: &Trial) {
        let plan = &trial.report.plan;
        let others: Vec<Vec<u64>> = (0..OTHER_DRAWS)
            .map(|seed| {
                self.in_virtual_time(
                    LoadPlan {
                        seed: 1_000 + seed,
                        ..plan.clone()
                    },
                    2_000 + seed,
                )
            })
            .collect();
        for share in QUANTILES {
            let of_others: Vec<f64> = others
                .iter()
                .map(|sorted| quantile(sorted, share) as f64)
                .collect();
            let tolerance_ns = 4.0 * mean_and_deviation(&of_others).1;
            let theory_ns =
                self.known.response_quantile(self.utilisation, share) * self.mean_ns() as f64;
            timing.about(
                &format!("p{} against theory", share * 100.0),
                trial.report.measures().response.quantile_ns(share),
                (theory_ns - tolerance_ns).max(0.0) as u64,
                (theory_ns + tolerance_ns) as u64 + floor_ns(share),
            );
        }
    }
}

/// The holds of the server under test.
const HOLDS_SEED: u64 = 41;

#[test]
#[ignore = "60 s of load: make test-long"]
fn f6_mm1_half_loaded() {
    Queue {
        known: KnownQueue::Mmc { servers: 1 },
        utilisation: 0.5,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f6_mm1_at_four_fifths() {
    Queue {
        known: KnownQueue::Mmc { servers: 1 },
        utilisation: 0.8,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f7_md1_half_loaded() {
    Queue {
        known: KnownQueue::Md1,
        utilisation: 0.5,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f7_md1_at_seven_tenths() {
    Queue {
        known: KnownQueue::Md1,
        utilisation: 0.7,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f7_md1_at_four_fifths() {
    Queue {
        known: KnownQueue::Md1,
        utilisation: 0.8,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f7_md1_at_nine_tenths() {
    Queue {
        known: KnownQueue::Md1,
        utilisation: 0.9,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f7_md1_at_nineteen_twentieths() {
    Queue {
        known: KnownQueue::Md1,
        utilisation: 0.95,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f8_dm1_half_loaded() {
    Queue {
        known: KnownQueue::Dm1,
        utilisation: 0.5,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f8_dm1_at_seven_tenths() {
    Queue {
        known: KnownQueue::Dm1,
        utilisation: 0.7,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f8_dm1_at_four_fifths_waits_half_as_long_as_mm1() {
    Queue {
        known: KnownQueue::Dm1,
        utilisation: 0.8,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f8_dm1_at_nine_tenths() {
    Queue {
        known: KnownQueue::Dm1,
        utilisation: 0.9,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f9_mm4_half_loaded() {
    Queue {
        known: KnownQueue::Mmc { servers: 4 },
        utilisation: 0.5,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f9_mm4_at_seven_tenths() {
    Queue {
        known: KnownQueue::Mmc { servers: 4 },
        utilisation: 0.7,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f9_mm4_at_four_fifths() {
    Queue {
        known: KnownQueue::Mmc { servers: 4 },
        utilisation: 0.8,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f9_mm4_at_nine_tenths() {
    Queue {
        known: KnownQueue::Mmc { servers: 4 },
        utilisation: 0.9,
    }
    .judge();
}

/// The longest hold of a heavy tail.
const MAX_HOLD_NS: u64 = 60 * SECOND;

/// Every quantile of the client matches that of the times within the server, for the same requests.
fn a_heavy_tail_is_measured(service: &Service) {
    judge(1, |timing| {
        let config = Config {
            service: service.clone(),
            ..Config::default()
        };
        let trial = timing.trial(config, |url| LoadPlan {
            timeout_ns: MAX_HOLD_NS + 5 * SECOND,
            ..LoadPlan::open(url, 1_000.0, long_ns())
        });
        assert_eq!(
            trial.count(Outcome::Ok),
            trial.scheduled(),
            "{:?}",
            trial.report.outcomes
        );
        let inner = trial.times_in_server();
        let measures = trial.report.measures();
        assert_encloses(&measures.service, &inner);
        for share in [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999] {
            let inner_ns = quantile(&inner, share);
            let what = format!("p{} of what the server took", share * 100.0);
            timing.within(
                &what,
                measures.response.quantile_ns(share),
                inner_ns,
                slot_top(inner_ns) + floor_ns(share),
            );
        }
        // Nothing is truncated: the maximum is present and exact.
        let longest_ns = *inner.last().unwrap();
        timing.within(
            "the longest",
            measures.service.max_ns(),
            longest_ns,
            longest_ns + floor_ns(1.0) + longest_ns / 1_024,
        );
    });
}

#[test]
#[ignore = "60 s of load and the longest answer: make test-long"]
fn f3_a_pareto_tail_is_measured_to_its_end() {
    a_heavy_tail_is_measured(&Service::Pareto {
        alpha: 1.5,
        min_ns: MS,
        max_ns: MAX_HOLD_NS,
        seed: 5,
    });
}

#[test]
#[ignore = "60 s of load and the longest answer: make test-long"]
fn f3_a_lognormal_tail_is_measured_to_its_end() {
    a_heavy_tail_is_measured(&Service::Lognormal {
        median_ns: MS,
        sigma: 1.5,
        seed: 5,
    });
}
