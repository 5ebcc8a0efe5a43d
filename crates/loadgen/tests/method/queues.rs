//! F3 and F6 to F9: heavy tails, and queues whose response times theory knows.
//!
//! A queue is judged twice. Once against the same queue in virtual time, fed with the very schedule and the very
//! holds of the load: there is no sampling error, so a bias of a fraction of a millisecond shows (tier V). Once
//! against theory, within four standard errors of a load of this length (tier T): that the schedule and the holds
//! are what their names say.

use loadgen::plan::Arrivals;
use loadgen::{LoadPlan, Outcome, Schedule};
use refsrv::{Config, FaultPlan, Service, VirtualQueue};

use crate::long_ns;
use crate::statistics::quantile;
use crate::support::{MS, SECOND, Timing, Trial, assert_encloses, floor_ns, judge, open_loop, slot_top};

const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Requests for which the method states tier T's tolerances.
const STATED_REQUESTS: f64 = 600_000.0;

/// Tier T at [`QUANTILES`] for this utilisation and [`STATED_REQUESTS`].
fn stated_tolerance(utilisation: f64) -> [f64; 4] {
    if utilisation <= 0.5 { [0.014, 0.018, 0.033, 0.077] } else { [0.038, 0.051, 0.095, 0.21] }
}

/// A queue and what theory says of it.
struct Queue {
    service: Service,
    servers: usize,
    rate_per_s: f64,
    arrivals: Arrivals,
    utilisation: f64,
    /// Response times at [`QUANTILES`] by theory, in milliseconds.
    theory_ms: [f64; 4],
}

impl Queue {
    fn config(&self) -> Config {
        Config { service: self.service.clone(), servers: Some(self.servers), ..Config::default() }
    }

    fn plan(&self, url: &str) -> LoadPlan {
        let mut plan = LoadPlan { seed: 23, ..LoadPlan::open(url, self.rate_per_s, long_ns()) };
        open_loop(&mut plan).arrivals = self.arrivals;
        plan
    }

    /// Response times of the planned load if every instant were met exactly, ascending.
    fn in_virtual_time(&self, mut plan: LoadPlan) -> Vec<u64> {
        let mut queue = VirtualQueue::new(self.service.clone(), Some(self.servers), FaultPlan::none(), 0);
        let (seed, phases) = (plan.seed, plan.phases.clone());
        let schedule = Schedule::new(open_loop(&mut plan), seed, &phases);
        let mut response_ns: Vec<u64> =
            schedule.map(|offset_ns| queue.arrive(offset_ns).0.finish_ns - offset_ns).collect();
        response_ns.sort_unstable();
        response_ns
    }

    fn judge(&self) {
        judge(1, |timing| {
            let trial = timing.trial(self.config(), |url| self.plan(url));
            let counts = (trial.count(Outcome::Ok), trial.log.len() as u64);
            assert_eq!(counts, (trial.scheduled(), trial.scheduled()), "{:?}", trial.report.outcomes);
            assert_encloses(&trial.report.measures().service, &trial.times_in_server());
            let expected = self.in_virtual_time(trial.report.plan.clone());
            assert_eq!(expected.len() as u64, trial.scheduled());
            self.expect_virtual_time(timing, &trial, &expected);
            self.expect_theory(timing, &trial);
        });
    }

    fn expect_virtual_time(&self, timing: &mut Timing, trial: &Trial, expected: &[u64]) {
        for share in QUANTILES {
            let expected_ns = quantile(expected, share);
            // Two arrivals within microseconds of each other may change places, and with them their holds.
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
        let sampling = (STATED_REQUESTS / trial.scheduled() as f64).sqrt();
        for ((share, theory_ms), stated) in
            QUANTILES.into_iter().zip(self.theory_ms).zip(stated_tolerance(self.utilisation))
        {
            let theory_ns = theory_ms * MS as f64;
            let tolerance_ns = theory_ns * stated * sampling;
            timing.about(
                &format!("p{} against theory", share * 100.0),
                trial.report.measures().response.quantile_ns(share),
                (theory_ns - tolerance_ns).max(0.0) as u64,
                (theory_ns + tolerance_ns) as u64 + floor_ns(share),
            );
        }
    }
}

/// Quantiles of an exponential distribution of this mean.
fn exponential_ms(mean_ms: f64) -> [f64; 4] {
    QUANTILES.map(|share| -(1.0 - share).ln() * mean_ms)
}

fn exponential_service(mean_ns: u64) -> Service {
    Service::Exponential { mean_ns, seed: 41 }
}

fn mm1(utilisation: f64) {
    Queue {
        service: exponential_service(2 * MS),
        servers: 1,
        rate_per_s: utilisation * 500.0,
        arrivals: Arrivals::Poisson,
        utilisation,
        theory_ms: exponential_ms(2.0 / (1.0 - utilisation)),
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f6_mm1_half_loaded() {
    mm1(0.5);
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f6_mm1_at_four_fifths() {
    mm1(0.8);
}

fn md1(utilisation: f64, in_services: [f64; 4]) {
    Queue {
        service: Service::Constant { hold_ns: 2 * MS },
        servers: 1,
        rate_per_s: utilisation * 500.0,
        arrivals: Arrivals::Poisson,
        utilisation,
        theory_ms: in_services.map(|services| services * 2.0),
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f7_md1_half_loaded() {
    md1(0.5, [1.0, 2.5157, 4.3363, 6.1684]);
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f7_md1_at_four_fifths() {
    md1(0.8, [2.2759, 6.0115, 11.356, 16.700]);
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f8_dm1_at_four_fifths_waits_half_as_long_as_mm1() {
    let (utilisation, sigma) = (0.8_f64, 0.6286_f64);
    assert!((sigma - (-(1.0 - sigma) / utilisation).exp()).abs() < 1e-4, "sigma solves its equation");
    Queue {
        service: exponential_service(2 * MS),
        servers: 1,
        rate_per_s: utilisation * 500.0,
        arrivals: Arrivals::Constant,
        utilisation,
        theory_ms: exponential_ms(2.0 / (1.0 - sigma)),
    }
    .judge();
}

fn mm4(utilisation: f64, in_services: [f64; 4]) {
    Queue {
        service: exponential_service(4 * MS),
        servers: 4,
        rate_per_s: utilisation * 1_000.0,
        arrivals: Arrivals::Poisson,
        utilisation,
        theory_ms: in_services.map(|services| services * 4.0),
    }
    .judge();
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f9_mm4_half_loaded() {
    mm4(0.5, [0.783, 2.450, 4.764, 7.068]);
}

#[test]
#[ignore = "60 s of load: make test-long"]
fn f9_mm4_at_four_fifths() {
    mm4(0.8, [1.346, 3.776, 6.893, 9.880]);
}

/// The longest hold of a heavy tail.
const LONGEST_NS: u64 = 60 * SECOND;

/// Every quantile that the client shows is that of the times inside the server, of the same requests.
fn a_heavy_tail_is_measured(service: &Service) {
    judge(1, |timing| {
        let config = Config { service: service.clone(), ..Config::default() };
        let trial = timing.trial(config, |url| LoadPlan {
            timeout_ns: LONGEST_NS + 5 * SECOND,
            ..LoadPlan::open(url, 1_000.0, long_ns())
        });
        assert_eq!(trial.count(Outcome::Ok), trial.scheduled(), "{:?}", trial.report.outcomes);
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
        // Nothing is clipped: the longest of all is there, and it is kept exactly.
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
    a_heavy_tail_is_measured(&Service::Pareto { alpha: 1.5, min_ns: MS, max_ns: LONGEST_NS, seed: 5 });
}

#[test]
#[ignore = "60 s of load and the longest answer: make test-long"]
fn f3_a_lognormal_tail_is_measured_to_its_end() {
    a_heavy_tail_is_measured(&Service::Lognormal { median_ns: MS, sigma: 1.5, seed: 5 });
}
