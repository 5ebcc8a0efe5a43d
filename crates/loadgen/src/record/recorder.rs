//! One thread's record: outcome counts by phase, histograms by interval. Nothing derived is
//! computed here.

mod checkpoints;
mod counts;

use std::collections::BTreeMap;

pub use counts::{Phase, PhaseCounts, Sending, WindowCounts};

use serde::{Deserialize, Serialize};

use crate::base::error::LoadError;
use crate::plan::LoadPlan;
use crate::record::connect_failures::ConnectFailures;
use crate::record::connection_counts::ConnectionCounts;
use crate::record::exchange::{Completion, Outcome, Parts};
use crate::record::flights::Flights;
use crate::record::histogram::LatencyHistogram;
use crate::record::interval::IntervalRecord;
use crate::record::measures::{Measures, Tally};
use crate::record::observations::Observations;
use crate::record::possible_ends::EndCursor;
use crate::record::request_record::RequestRecord;
use crate::record::session_tally::SessionTally;
use crate::record::wrong_responses::WrongResponses;

/// Statuses have three digits.
const STATUS_CODES: usize = 1_000;

/// One thread's record of a run, or that of the whole run after merging.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recorder {
    start_ns: u64,
    measure_from_ns: u64,
    measure_to_ns: u64,
    interval_ns: u64,
    phases: [PhaseCounts; 3],
    tally: Tally,
    intervals: Vec<IntervalRecord>,
    /// Slices that are not packed, and the latest slice with a scheduled send.
    open_intervals: Vec<usize>,
    latest_interval: usize,
    /// The most recently used slice: its start and its index.
    current_interval: (u64, usize),
    packed_at: usize,
    censored: LatencyHistogram,
    /// By status; a map would need a lookup for every response.
    status_codes: Box<[u64]>,
    window: WindowCounts,
    /// Send lag of requests without a correct response; that of the others is in the tally.
    lag_of_failed: LatencyHistogram,
    waited: u64,
    inconsistent: u64,
    observations: Observations,
    /// One for each request of a plan with several; empty for a plan with one.
    requests: Vec<RequestRecord>,
    /// When individual requests were in the system, if requested.
    flights: Option<Flights>,
    /// Before anything at or after this timestamp is counted, it must be decided whether the
    /// measurement continues.
    checkpoint_ns: u64,
    /// Decides this, if the length of the measurement is not fixed.
    #[serde(skip)]
    cursor: Option<EndCursor>,
    /// Connection counts; maintained by the engine.
    pub connections: ConnectionCounts,
    /// Causes of failed connections; maintained by the engine.
    pub connect_failures: ConnectFailures,
    /// The first wrong response of each kind; maintained by the connections.
    pub wrong_responses: WrongResponses,
    /// Sessions, if the plan has any; maintained by their source.
    pub sessions: Option<SessionTally>,
}

impl Recorder {
    /// An empty record of a load that starts at `start_ns`.
    #[must_use]
    pub fn new(plan: &LoadPlan, start_ns: u64) -> Self {
        let (from, to) = plan.measure_window();
        let count = usize::try_from((to - from).div_ceil(plan.interval_ns())).unwrap_or(usize::MAX);
        Self {
            start_ns,
            measure_from_ns: start_ns + from,
            measure_to_ns: start_ns + to,
            interval_ns: plan.interval_ns(),
            phases: [PhaseCounts::default(); 3],
            tally: Tally::default(),
            intervals: vec![IntervalRecord::default(); count],
            open_intervals: Vec::new(),
            latest_interval: 0,
            current_interval: (start_ns + from, 0),
            packed_at: 0,
            censored: LatencyHistogram::new(),
            status_codes: vec![0; STATUS_CODES].into_boxed_slice(),
            window: WindowCounts::default(),
            lag_of_failed: LatencyHistogram::new(),
            waited: 0,
            inconsistent: 0,
            observations: Observations::new(plan, start_ns),
            requests: RequestRecord::for_each(plan),
            flights: Flights::new(plan.keep_flights),
            checkpoint_ns: u64::MAX,
            cursor: None,
            connections: ConnectionCounts::default(),
            connect_failures: ConnectFailures::default(),
            wrong_responses: WrongResponses::default(),
            sessions: None,
        }
    }

    fn phase_of(&self, intended_ns: u64) -> Phase {
        if intended_ns < self.measure_from_ns {
            Phase::Warmup
        } else if intended_ns < self.measure_to_ns {
            Phase::Measure
        } else {
            Phase::Cooldown
        }
    }

    /// Whether an arrival with this scheduled send belongs to the measurement.
    pub(crate) fn is_measured(&self, intended_ns: u64) -> bool {
        self.phase_of(intended_ns) == Phase::Measure
    }

    /// Index in `intervals` of a timestamp in the measure phase, usually the same as for the
    /// previous one.
    fn interval_of(&mut self, intended_ns: u64) -> Option<usize> {
        let (from_ns, index) = self.current_interval;
        if intended_ns >= from_ns
            && intended_ns - from_ns < self.interval_ns
            && intended_ns < self.measure_to_ns
        {
            return Some(index);
        }

        if self.phase_of(intended_ns) != Phase::Measure {
            return None;
        }

        let index =
            usize::try_from((intended_ns - self.measure_from_ns) / self.interval_ns).ok()?;
        if index >= self.intervals.len() {
            return None;
        }

        self.current_interval = (
            self.measure_from_ns + index as u64 * self.interval_ns,
            index,
        );
        Some(index)
    }

    fn is_in_window(&self, timestamp_ns: u64) -> bool {
        (self.measure_from_ns..self.measure_to_ns).contains(&timestamp_ns)
    }

    /// Whether a step is due before anything at this timestamp is counted.
    pub(crate) fn is_at_checkpoint(&self, timestamp_ns: u64) -> bool {
        timestamp_ns >= self.checkpoint_ns
    }

    /// Counts an arrival. Called once for each, before anything can happen to it.
    pub fn scheduled(&mut self, intended_ns: u64) {
        if self.is_at_checkpoint(intended_ns) {
            self.pass_checkpoints(intended_ns);
        }

        self.phases[self.phase_of(intended_ns) as usize].scheduled += 1;
        if let Some(index) = self.interval_of(intended_ns) {
            self.intervals[index].scheduled += 1;
            self.latest_interval = self.latest_interval.max(index);
        }
    }

    /// Counts the end of an arrival. Called once for each.
    pub(crate) fn ended(&mut self, completion: &Completion) {
        if self.is_at_checkpoint(completion.ended_ns) {
            self.pass_checkpoints(completion.ended_ns);
        }

        let outcome = completion.outcome;
        let phase = self.phase_of(completion.arrival.intended_ns);
        self.connections.reused += u64::from(completion.is_on_kept_connection());
        self.phases[phase as usize].outcomes[outcome as usize] += 1;
        self.count_in_window(completion);
        if phase != Phase::Measure {
            return self.observations.ended(completion, None);
        }

        let has_waited = completion.arrival.waited_for_capacity && completion.pool_wait_ns() > 0;
        self.waited += u64::from(has_waited);
        if let Some(count) = completion
            .status
            .and_then(|status| self.status_codes.get_mut(usize::from(status)))
        {
            *count += 1;
        }

        if outcome.is_censored() {
            self.censored.record(completion.elapsed_ns());
        }

        let parts = if outcome == Outcome::Ok {
            completion.parts()
        } else {
            None
        };
        self.inconsistent += u64::from(outcome == Outcome::Ok && parts.is_none());

        debug_assert!(
            outcome != Outcome::Ok || parts.is_some(),
            "timestamps out of order: {completion:?}"
        );

        if let Some(flights) = &mut self.flights {
            flights.record(completion, parts.as_ref());
        }

        if let Some(request) = self.requests.get_mut(completion.arrival.request as usize) {
            request.count(parts.as_ref());
        }

        match &parts {
            Some(parts) => self.tally.record(parts, completion.stamps.receive_delay_ns),
            None => completion
                .send_lag_ns()
                .into_iter()
                .for_each(|lag_ns| self.lag_of_failed.record(lag_ns)),
        }

        self.observations
            .ended(completion, parts.as_ref().map(|parts| parts.response_ns));
        self.ended_in_interval(completion, parts.as_ref());
    }

    fn ended_in_interval(&mut self, completion: &Completion, parts: Option<&Parts>) {
        let Some(index) = self.interval_of(completion.arrival.intended_ns) else {
            return;
        };

        let interval = &mut self.intervals[index];
        interval.sent += u64::from(completion.stamps.write_start_ns != 0);
        match completion.outcome {
            Outcome::Ok => interval.ok += 1,
            _ => interval.failed += 1,
        }
        if parts.is_some_and(|parts| interval.record(parts.response_ns)) {
            self.open_intervals.push(index);
        }

        if self.packed_at < self.latest_interval {
            self.pack_intervals();
        }
    }

    /// Packs finished slices, except the one before the latest, whose last responses are still
    /// outstanding.
    fn pack_intervals(&mut self) {
        self.packed_at = self.latest_interval;
        let intervals = &mut self.intervals;
        let latest = self.latest_interval;
        self.open_intervals.retain(|index| {
            let is_over = index + 1 < latest;
            if is_over {
                intervals[*index].pack();
            }
            !is_over
        });
    }

    fn count_in_window(&mut self, completion: &Completion) {
        self.window.sent += u64::from(self.is_in_window(completion.stamps.write_start_ns));
        if completion.outcome.is_answered() && self.is_in_window(completion.ended_ns) {
            self.window.answered += 1;
            self.window.ok += u64::from(completion.outcome == Outcome::Ok);
        }
    }

    /// Adds another thread's record of the same load.
    pub fn merge(&mut self, other: &Self) {
        self.phases
            .iter_mut()
            .zip(&other.phases)
            .for_each(|(mine, theirs)| mine.add(theirs));
        self.tally.add(&other.tally);
        self.intervals
            .iter_mut()
            .zip(&other.intervals)
            .for_each(|(mine, theirs)| mine.add(theirs));
        self.censored.add(&other.censored);
        self.status_codes
            .iter_mut()
            .zip(&other.status_codes)
            .for_each(|(mine, theirs)| *mine += theirs);
        self.window.add(&other.window);
        self.lag_of_failed.add(&other.lag_of_failed);
        self.waited += other.waited;
        self.inconsistent += other.inconsistent;
        self.observations.add(&other.observations);
        self.requests
            .iter_mut()
            .zip(&other.requests)
            .for_each(|(mine, theirs)| mine.add(theirs));
        if let Some((mine, theirs)) = self.flights.as_mut().zip(other.flights.as_ref()) {
            mine.add(theirs);
        }

        self.connections.add(&other.connections);
        self.connect_failures.add(&other.connect_failures);
        self.wrong_responses.add(&other.wrong_responses);

        if let Some(theirs) = &other.sessions {
            self.sessions.get_or_insert_default().add(theirs);
        }
    }

    /// Checks that every arrival of every phase has exactly one outcome.
    ///
    /// # Errors
    /// [`LoadError::Conservation`] naming the phase in which the counts differ.
    pub fn check_conservation(&self) -> Result<(), LoadError> {
        for phase in Phase::ALL {
            let counts = &self.phases[phase as usize];
            let (scheduled, accounted) = (counts.scheduled, counts.accounted());
            if scheduled != accounted {
                return Err(LoadError::Conservation {
                    phase: phase.name(),
                    scheduled,
                    accounted,
                });
            }
        }
        Ok(())
    }

    /// Counts of one phase.
    #[must_use]
    pub fn phase(&self, phase: Phase) -> &PhaseCounts {
        &self.phases[phase as usize]
    }

    /// The slices of the first `measured_ns` of the measure phase, each with its start and length.
    pub fn intervals(&self, measured_ns: u64) -> impl Iterator<Item = (u64, u64, &IntervalRecord)> {
        let from = self.measure_from_ns;
        let step = self.interval_ns;
        self.intervals
            .iter()
            .enumerate()
            .map_while(move |(index, record)| {
                let begins_ns = index as u64 * step;
                let length_ns = step.min(measured_ns.checked_sub(begins_ns)?);
                (length_ns > 0).then_some((from + begins_ns, length_ns, record))
            })
    }

    /// Latency measures of the correct responses of the measure phase.
    #[must_use]
    pub fn measures(&self) -> Measures {
        let mut response = LatencyHistogram::new();
        self.intervals
            .iter()
            .for_each(|slice| response.add(&slice.response()));
        self.tally.measures(response)
    }

    /// Number of correct responses of the measure phase with a kernel timestamp.
    #[must_use]
    pub fn receive_delays(&self) -> u64 {
        self.tally.receive_delays()
    }

    /// Elapsed times of the requests of the measure phase that the generator stopped waiting for.
    #[must_use]
    pub fn censored(&self) -> &LatencyHistogram {
        &self.censored
    }

    /// Count of each status in the measure phase.
    #[must_use]
    pub fn status_codes(&self) -> BTreeMap<usize, u64> {
        let counts = self.status_codes.iter().copied().enumerate();
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// The results of the measure phase for each of the plan's several requests.
    #[must_use]
    pub fn requests(&self) -> &[RequestRecord] {
        &self.requests
    }

    /// When individual requests of the measure phase were in the system; `None` if none were kept.
    #[must_use]
    pub fn flights(&self) -> Option<&Flights> {
        self.flights.as_ref()
    }

    /// Statistics of the sends of the measure phase.
    #[must_use]
    pub fn sending(&self) -> Sending {
        let mut lag = self.tally.send_lag().clone();
        lag.add(&self.lag_of_failed);
        Sending {
            lag,
            waited: self.waited,
        }
    }

    /// How much of the measure phase had passed at `now_ns`.
    #[must_use]
    pub fn measured_ns(&self, now_ns: u64) -> u64 {
        now_ns
            .min(self.measure_to_ns)
            .saturating_sub(self.measure_from_ns)
    }

    /// Events inside the measurement window.
    #[must_use]
    pub fn window(&self) -> WindowCounts {
        self.window
    }

    /// Correct responses with contradictory timestamps: always 0, unless there is a defect.
    #[must_use]
    pub fn inconsistent(&self) -> u64 {
        self.inconsistent
    }

    /// The basis of the load's self-checks.
    pub(crate) fn observations(&self) -> &Observations {
        &self.observations
    }

    /// When the measurement begins and ends, as far as decided.
    pub(crate) fn measure_window_ns(&self) -> (u64, u64) {
        (self.measure_from_ns, self.measure_to_ns)
    }

    /// When the load began.
    #[must_use]
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::NS_PER_S;
    use crate::plan::{LoadPlan, Phases};
    use crate::record::exchange::{Arrival, Stamps};

    fn plan() -> LoadPlan {
        let mut plan = LoadPlan::open("http://127.0.0.1/", 1.0, 3 * NS_PER_S);
        plan.phases = Phases {
            warmup_ns: NS_PER_S,
            cooldown_ns: NS_PER_S,
            ..plan.phases
        };
        plan
    }

    fn ended(intended_ns: u64, outcome: Outcome) -> Completion {
        let stamps = Stamps {
            write_start_ns: intended_ns + 10,
            first_byte_ns: intended_ns + 100,
            last_byte_ns: intended_ns + 200,
            ..Stamps::default()
        };
        let arrival = Arrival::unqueued(intended_ns, 0);
        Completion {
            arrival,
            stamps,
            outcome,
            status: Some(200),
            ended_ns: intended_ns + 200,
        }
    }

    #[test]
    fn phases_are_distinguished_by_intended_time() {
        let mut recorder = Recorder::new(&plan(), 0);
        for second in 0..5 {
            recorder.scheduled(second * NS_PER_S);
            recorder.ended(&ended(second * NS_PER_S, Outcome::Ok));
        }

        let counts = Phase::ALL.map(|phase| recorder.phase(phase).of(Outcome::Ok));
        assert_eq!(counts, [1, 3, 1]);
        assert_eq!(recorder.measures().response.count(), 3);
        assert_eq!(recorder.window().ok, 3);

        recorder
            .check_conservation()
            .expect("each arrival has one outcome");
    }

    #[test]
    fn a_lost_arrival_is_an_error() {
        let mut recorder = Recorder::new(&plan(), 0);
        recorder.scheduled(NS_PER_S);
        let error = recorder
            .check_conservation()
            .expect_err("one arrival has no outcome");
        assert!(error.to_string().contains("measure"), "{error}");
    }

    #[test]
    fn failures_enter_no_latency_histogram() {
        let mut recorder = Recorder::new(&plan(), 0);
        for outcome in Outcome::ALL {
            recorder.scheduled(NS_PER_S);
            recorder.ended(&ended(NS_PER_S, outcome));
        }

        assert_eq!(recorder.measures().response.count(), 1);
        assert_eq!(recorder.censored().count(), 3);
        assert_eq!(recorder.phase(Phase::Measure).accounted(), 11);
    }

    #[test]
    fn merging_adds_threads() {
        let mut whole = Recorder::new(&plan(), 0);
        for _ in 0..4 {
            let mut part = Recorder::new(&plan(), 0);
            part.scheduled(2 * NS_PER_S);
            part.ended(&ended(2 * NS_PER_S, Outcome::Ok));
            part.connections.ended(3);
            whole.merge(&part);
        }

        let sizes: Vec<u64> = whole
            .intervals(3 * NS_PER_S)
            .map(|(_, _, record)| record.ok)
            .collect();
        assert_eq!(sizes, [0, 4, 0]);
        assert_eq!(whole.connections.most_requests, Some(3));
    }
}
