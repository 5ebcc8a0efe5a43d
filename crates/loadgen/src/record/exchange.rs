//! What happened to one request: its outcome, its timestamps, and the exact split of its response
//! time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a scheduled request ended. Exclusive and complete: every arrival has exactly one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// An accepted status and a correct body.
    Ok,
    /// A complete response with a status that is not accepted.
    HttpStatus,
    /// A complete response with an unexpected body, or a response that is not HTTP or unsolicited.
    BadBody,
    /// The connection was reset or closed after a response byte, or on a fresh connection, or its
    /// TLS handshake failed.
    Reset,
    /// A kept connection was reset or closed before any response byte: the keep-alive race. Not
    /// retried.
    Stale,
    /// Nothing was listening, or the connection was refused.
    Refused,
    /// The connection was not established within the timeout.
    ConnectTimeout,
    /// The request was sent, or waited for a stream of its connection, but its response was not
    /// complete within the timeout.
    Timeout,
    /// Never sent: every connection was busy and the policy was to shed it, the queue was full, or
    /// the deadline passed while it waited.
    Dropped,
    /// Still in the system when the drain ended or the run was stopped.
    Unfinished,
    /// The generator ran out of a resource (file descriptors, ports, memory), or a captured value
    /// made a URL too long for a library. The run is invalid.
    ClientError,
}

impl Outcome {
    /// Every outcome, in the order of the report.
    pub const ALL: [Self; 11] = [
        Self::Ok,
        Self::HttpStatus,
        Self::BadBody,
        Self::Reset,
        Self::Stale,
        Self::Refused,
        Self::ConnectTimeout,
        Self::Timeout,
        Self::Dropped,
        Self::Unfinished,
        Self::ClientError,
    ];

    /// Whether the response might still have arrived after the generator stopped waiting: the
    /// elapsed time is a lower bound of the response time. A dropped arrival was never sent, so it
    /// is a plain failure.
    #[must_use]
    pub fn is_censored(self) -> bool {
        matches!(
            self,
            Self::ConnectTimeout | Self::Timeout | Self::Unfinished
        )
    }

    /// Whether a complete HTTP response arrived, correct or not.
    #[must_use]
    pub fn is_answered(self) -> bool {
        matches!(self, Self::Ok | Self::HttpStatus | Self::BadBody)
    }
}

/// An arrival to be served: its scheduled send time, and the time from which it could have been
/// sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// When it should have been sent.
    pub intended_ns: u64,
    /// When it would have started to wait for a slot if handled on time: the scheduled send, or a
    /// later time up to which a slot was idle.
    pub waits_from_ns: u64,
    /// When a connection slot became free for it; the scheduled send unless it was queued.
    pub eligible_ns: u64,
    /// Which of the target's requests it sends.
    pub request: u32,
    /// Its place, or that of its session, among all of the load.
    pub place: u64,
    /// Whether it waited because all permitted connections and streams were busy, rather than only
    /// for a connection that another arrival was opening.
    pub waited_for_capacity: bool,
}

impl Arrival {
    /// An arrival that need not wait for a slot.
    pub fn unqueued(intended_ns: u64, request: u32) -> Self {
        Self {
            intended_ns,
            waits_from_ns: intended_ns,
            eligible_ns: intended_ns,
            request,
            place: 0,
            waited_for_capacity: false,
        }
    }

    /// Sets its place.
    pub fn at(self, place: u64) -> Self {
        Self { place, ..self }
    }

    /// An arrival that got its slot at `freed_ns`, after waiting for one since `waits_from_ns`.
    pub fn queued(intended_ns: u64, waits_from_ns: u64, freed_ns: u64, request: u32) -> Self {
        let eligible_ns = freed_ns.max(intended_ns);
        Self {
            intended_ns,
            waits_from_ns: waits_from_ns.clamp(intended_ns, eligible_ns),
            eligible_ns,
            request,
            place: 0,
            waited_for_capacity: true,
        }
    }

    /// Adds a wait in its slot from `since_ns` to `until_ns`: for a connection that another arrival
    /// opened, for a stream, or for the server to read more. This is not the generator's delay.
    pub fn wait_again(&mut self, since_ns: u64, until_ns: u64) {
        let waited_ns = self.eligible_ns.saturating_sub(self.waits_from_ns)
            + until_ns.saturating_sub(since_ns.max(self.eligible_ns));
        self.eligible_ns = self.eligible_ns.max(until_ns);
        self.waits_from_ns = self.eligible_ns.saturating_sub(waited_ns);
    }

    /// How late the arrival was handled. While a slot was still idle, it waited for the generator
    /// and not for a slot.
    pub fn overlooked_ns(&self) -> u64 {
        self.waits_from_ns.saturating_sub(self.intended_ns)
    }
}

/// Timestamps of one request, all on `CLOCK_MONOTONIC`; 0 if the request did not get that far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// Before `connect()`, if this request opened its connection.
    pub connect_start_ns: u64,
    /// The connection was usable.
    pub connect_ready_ns: u64,
    /// Immediately before the first write of the request to the socket.
    pub write_start_ns: u64,
    /// When the first byte of the response arrived; source as for `last_byte_ns`.
    pub first_byte_ns: u64,
    /// When the response was complete: the kernel timestamp, or else the time after the read that
    /// completed it.
    pub last_byte_ns: u64,
    /// Delay from the kernel timestamp to the generator's read; `None` without a kernel timestamp.
    pub receive_delay_ns: Option<u64>,
}

/// A completed request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub arrival: Arrival,
    pub stamps: Stamps,
    pub outcome: Outcome,
    pub status: Option<u16>,
    /// When the outcome was known: the last byte, the failure, or for a timeout the time of expiry.
    pub ended_ns: u64,
}

/// The exact integer split of a response time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub response_ns: u64,
    pub pool_wait_ns: u64,
    pub send_lag_ns: u64,
    pub connect_ns: Option<u64>,
    pub first_byte_ns: u64,
    pub service_ns: u64,
}

impl Completion {
    /// Splits the response time of a completed request: `response = pool wait + send lag + connect
    /// + time to first byte + transfer`, exactly.
    ///
    /// `None` if a timestamp is missing or out of order, which no request with a response can have.
    pub fn parts(&self) -> Option<Parts> {
        let arrival = &self.arrival;
        let stamps = &self.stamps;
        let pool_wait_ns = arrival.eligible_ns.checked_sub(arrival.waits_from_ns)?;
        let connect_ns = match stamps.connect_start_ns {
            0 => None,
            start_ns => Some(stamps.connect_ready_ns.checked_sub(start_ns)?),
        };
        let to_write_ns = stamps.write_start_ns.checked_sub(arrival.eligible_ns)?;
        let send_lag_ns =
            to_write_ns.checked_sub(connect_ns.unwrap_or(0))? + arrival.overlooked_ns();
        let first_byte_ns = stamps.first_byte_ns.checked_sub(stamps.write_start_ns)?;
        let transfer_ns = stamps.last_byte_ns.checked_sub(stamps.first_byte_ns)?;
        let response_ns = stamps.last_byte_ns.checked_sub(arrival.intended_ns)?;
        let sum_ns =
            pool_wait_ns + send_lag_ns + connect_ns.unwrap_or(0) + first_byte_ns + transfer_ns;

        (sum_ns == response_ns).then_some(Parts {
            response_ns,
            pool_wait_ns,
            send_lag_ns,
            connect_ns,
            first_byte_ns,
            service_ns: first_byte_ns + transfer_ns,
        })
    }

    /// Whether the request was sent, and over a connection that an earlier one had opened.
    pub fn is_on_kept_connection(&self) -> bool {
        self.stamps.write_start_ns != 0 && self.stamps.connect_start_ns == 0
    }

    /// Wait for a connection slot; for an arrival that never got one, the wait until its end.
    pub fn pool_wait_ns(&self) -> u64 {
        self.arrival
            .eligible_ns
            .saturating_sub(self.arrival.waits_from_ns)
    }

    /// The generator's own delay: until the arrival started to wait for a slot, and from when the
    /// request could have been sent to its first write, excluding connecting. For an arrival
    /// dropped in a slot at its deadline, the delay until then. `None` if it never got a slot, or
    /// if connecting failed.
    pub fn send_lag_ns(&self) -> Option<u64> {
        Some(self.slot_lag_ns()? + self.arrival.overlooked_ns())
    }

    /// The part of the send lag since the arrival had a slot.
    pub fn slot_lag_ns(&self) -> Option<u64> {
        let stamps = &self.stamps;
        if stamps.write_start_ns != 0 {
            let connect_ns = stamps
                .connect_ready_ns
                .saturating_sub(stamps.connect_start_ns);
            return stamps
                .write_start_ns
                .checked_sub(self.arrival.eligible_ns)?
                .checked_sub(connect_ns);
        }

        let is_caught = self.outcome == Outcome::Dropped && stamps.connect_start_ns == 0;
        if is_caught {
            self.ended_ns.checked_sub(self.arrival.eligible_ns)
        } else {
            None
        }
    }

    /// When its slot was free for another arrival. An arrival that was dropped in its slot before
    /// connecting never used it.
    pub fn freed_ns(&self) -> u64 {
        let is_unused = self.outcome == Outcome::Dropped && self.stamps.connect_start_ns == 0;
        if is_unused {
            self.arrival.eligible_ns
        } else {
            self.ended_ns
        }
    }

    /// Time from the scheduled send to the end, whatever the outcome.
    pub fn elapsed_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.arrival.intended_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion() -> Completion {
        Completion {
            arrival: Arrival::queued(1_000, 1_000, 1_300, 0),
            stamps: Stamps {
                connect_start_ns: 1_310,
                connect_ready_ns: 1_350,
                write_start_ns: 1_360,
                first_byte_ns: 2_000,
                last_byte_ns: 2_500,
                receive_delay_ns: None,
            },
            outcome: Outcome::Ok,
            status: Some(200),
            ended_ns: 2_500,
        }
    }

    #[test]
    fn the_parts_add_up_exactly() {
        let parts = completion().parts().expect("complete");
        let expected = Parts {
            response_ns: 1_500,
            pool_wait_ns: 300,
            send_lag_ns: 20,
            connect_ns: Some(40),
            first_byte_ns: 640,
            service_ns: 1_140,
        };

        assert_eq!(parts, expected);
    }

    #[test]
    fn a_kept_connection_has_no_connect_time() {
        let mut completion = completion();
        completion.stamps.connect_start_ns = 0;
        completion.stamps.connect_ready_ns = 0;
        let parts = completion.parts().expect("complete");
        assert_eq!((parts.connect_ns, parts.send_lag_ns), (None, 60));
    }

    #[test]
    fn the_time_until_a_late_arrival_waits_for_a_slot_counts_as_send_lag() {
        let late = |waits_from_ns| Completion {
            arrival: Arrival::queued(1_000, waits_from_ns, 1_300, 0),
            ..completion()
        };
        for (waits_from_ns, pool_wait_ns, send_lag_ns) in
            [(900, 300, 20), (1_100, 200, 120), (1_400, 0, 320)]
        {
            let parts = late(waits_from_ns).parts().expect("complete");
            assert_eq!(
                (parts.pool_wait_ns, parts.send_lag_ns, parts.response_ns),
                (pool_wait_ns, send_lag_ns, 1_500)
            );
            assert_eq!(late(waits_from_ns).send_lag_ns(), Some(send_lag_ns));
            assert_eq!(late(waits_from_ns).pool_wait_ns(), pool_wait_ns);
        }
    }

    #[test]
    fn a_second_wait_in_the_slot_is_added_to_the_first() {
        let mut arrival = Arrival::queued(1_000, 1_050, 1_300, 0);
        arrival.wait_again(1_310, 1_340);
        let waited = Completion {
            arrival,
            stamps: Stamps {
                connect_start_ns: 0,
                connect_ready_ns: 0,
                ..completion().stamps
            },
            ..completion()
        };
        let parts = waited.parts().expect("complete");
        assert_eq!(
            (parts.pool_wait_ns, parts.send_lag_ns, parts.response_ns),
            (250 + 30, 50 + 10 + 20, 1_500)
        );
    }

    #[test]
    fn an_arrival_dropped_before_connecting_never_used_its_slot() {
        let connecting = Completion {
            outcome: Outcome::Dropped,
            ..completion()
        };
        let unused = Completion {
            stamps: Stamps::default(),
            ..connecting
        };

        assert_eq!(
            [completion(), connecting, unused].map(|one| one.freed_ns()),
            [2_500, 2_500, 1_300]
        );
    }

    #[test]
    fn timestamps_out_of_order_have_no_parts() {
        let mut completion = completion();
        completion.stamps.write_start_ns = 900;
        assert_eq!(completion.parts(), None);
    }

    #[test]
    fn outcomes_are_listed_once_each() {
        for (index, outcome) in Outcome::ALL.iter().enumerate() {
            assert_eq!(*outcome as usize, index);
        }
    }
}
