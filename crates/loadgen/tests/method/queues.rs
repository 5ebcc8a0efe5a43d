//! F3 and F6 to F9: heavy tails, and queues with known response time distributions.
//!
//! Each queue is compared with two references. The first is the same queue in virtual time, with
//! the schedule and the holds of the load: without sampling error, a bias of a fraction of a
//! millisecond is visible. The second is theory, within four standard deviations of loads of the
//! same length with other random draws, which shows that schedule and holds have the stated
//! distributions.

use loadgen::plan::Arrivals;
use loadgen::{LoadPlan, Outcome, Schedule};
use refsrv::{Config, FaultPlan, KnownQueue, Service, VirtualQueue};

use crate::long_ns;
use crate::statistics::{mean_and_deviation, quantile};
use crate::support::{
    MS, SECOND, Timing, Trial, assert_encloses, bucket_top, judge, noise_floor_ns, open_loop,
};

const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// Number of loads in virtual time that give the standard deviation of a quantile.
const SIMULATIONS: u64 = 40;

/// A queue with a known response time distribution at this utilization.
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

    /// Mean hold, longer with several servers to keep the rate low enough for any host.
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

    /// Response times of the planned load in virtual time, ascending.
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
            let trial = timing.run_trial(self.config(), |url| self.plan(url));
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
            // Two requests due within microseconds may arrive in reverse order and swap their
            // holds.
            let min_ns = expected_ns - expected_ns / 100;

            let measured_ns = trial.report.measures().response.quantile_ns(share);
            timing.assert_min_expect_max(
                &format!("p{} against virtual time", share * 100.0),
                measured_ns,
                min_ns,
                expected_ns + noise_floor_ns(share),
            );
        }
    }

    fn expect_theory(&self, timing: &mut Timing, trial: &Trial) {
        let plan = &trial.report.plan;
        let simulations: Vec<Vec<u64>> = (0..SIMULATIONS)
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
            let simulated: Vec<f64> = simulations
                .iter()
                .map(|sorted| quantile(sorted, share) as f64)
                .collect();
            let tolerance_ns = 4.0 * mean_and_deviation(&simulated).1;

            let theory_ns =
                self.known.response_quantile(self.utilisation, share) * self.mean_ns() as f64;
            timing.expect_range(
                &format!("p{} against theory", share * 100.0),
                trial.report.measures().response.quantile_ns(share),
                (theory_ns - tolerance_ns).max(0.0) as u64,
                (theory_ns + tolerance_ns) as u64 + noise_floor_ns(share),
            );
        }
    }
}

/// The holds of the server under test.
const HOLDS_SEED: u64 = 41;

#[test]
#[ignore = "60 s of load: make test-long"]
fn f6_mm1_at_50_percent_utilization() {
    Queue {
        known: KnownQueue::Mmc { servers: 1 },
        utilisation: 0.5,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f6_mm1_at_80_percent_utilization() {
    Queue {
        known: KnownQueue::Mmc { servers: 1 },
        utilisation: 0.8,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f7_md1_at_50_percent_utilization() {
    Queue {
        known: KnownQueue::Md1,
        utilisation: 0.5,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f7_md1_at_70_percent_utilization() {
    Queue {
        known: KnownQueue::Md1,
        utilisation: 0.7,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f7_md1_at_80_percent_utilization() {
    Queue {
        known: KnownQueue::Md1,
        utilisation: 0.8,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f7_md1_at_90_percent_utilization() {
    Queue {
        known: KnownQueue::Md1,
        utilisation: 0.9,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f7_md1_at_95_percent_utilization() {
    Queue {
        known: KnownQueue::Md1,
        utilisation: 0.95,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f8_dm1_at_50_percent_utilization() {
    Queue {
        known: KnownQueue::Dm1,
        utilisation: 0.5,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f8_dm1_at_70_percent_utilization() {
    Queue {
        known: KnownQueue::Dm1,
        utilisation: 0.7,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f8_dm1_at_80_percent_utilization() {
    Queue {
        known: KnownQueue::Dm1,
        utilisation: 0.8,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f8_dm1_at_90_percent_utilization() {
    Queue {
        known: KnownQueue::Dm1,
        utilisation: 0.9,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f9_mm4_at_50_percent_utilization() {
    Queue {
        known: KnownQueue::Mmc { servers: 4 },
        utilisation: 0.5,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f9_mm4_at_70_percent_utilization() {
    Queue {
        known: KnownQueue::Mmc { servers: 4 },
        utilisation: 0.7,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f9_mm4_at_80_percent_utilization() {
    Queue {
        known: KnownQueue::Mmc { servers: 4 },
        utilisation: 0.8,
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f9_mm4_at_90_percent_utilization() {
    Queue {
        known: KnownQueue::Mmc { servers: 4 },
        utilisation: 0.9,
    }
    .judge();
}

/// The longest hold of a heavy tail.
const MAX_HOLD_NS: u64 = 60 * SECOND;

/// Asserts that every quantile at the client matches that of the times within the server.
fn assert_heavy_tail_measured(service: &Service) {
    judge(1, |timing| {
        let config = Config {
            service: service.clone(),
            ..Config::default()
        };
        let trial = timing.run_trial(config, |url| LoadPlan {
            timeout_ns: MAX_HOLD_NS + 5 * SECOND,
            ..LoadPlan::open(url, 1_000.0, long_ns())
        });

        assert_eq!(
            trial.count(Outcome::Ok),
            trial.scheduled(),
            "{:?}",
            trial.report.outcomes
        );

        let in_server = trial.times_in_server();
        let measures = trial.report.measures();
        assert_encloses(&measures.service, &in_server);

        for share in [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999] {
            let in_server_ns = quantile(&in_server, share);
            let what = format!("response p{}", share * 100.0);
            timing.assert_min_expect_max(
                &what,
                measures.response.quantile_ns(share),
                in_server_ns,
                bucket_top(in_server_ns) + noise_floor_ns(share),
            );
        }

        // Nothing is clipped: the maximum is exact.
        let longest_ns = *in_server.last().unwrap();
        timing.assert_min_expect_max(
            "longest service time",
            measures.service.max_ns(),
            longest_ns,
            longest_ns + noise_floor_ns(1.0) + longest_ns / 1_024,
        );
    });
}

#[test]
#[ignore = "60 s of load and the longest response: make test-long"]
fn f3_a_pareto_tail_is_not_clipped() {
    assert_heavy_tail_measured(&Service::Pareto {
        alpha: 1.5,
        min_ns: MS,
        max_ns: MAX_HOLD_NS,
        seed: 5,
    });
}

#[test]
#[ignore = "60 s of load and the longest response: make test-long"]
fn f3_a_lognormal_tail_is_not_clipped() {
    assert_heavy_tail_measured(&Service::Lognormal {
        median_ns: MS,
        sigma: 1.5,
        seed: 5,
    });
}
