//! What is measured of right answers.

use crate::exchange::Parts;
use crate::histogram::LatencyHistogram;

/// What is measured of right answers, one histogram each.
#[derive(Clone, Debug, Default)]
pub struct Measures {
    /// Intended send to last byte.
    pub response: LatencyHistogram,
    /// Actual send to last byte.
    pub service: LatencyHistogram,
    /// The generator's own lateness.
    pub send_lag: LatencyHistogram,
    /// Wait for a connection, where connections are capped.
    pub pool_wait: LatencyHistogram,
    /// Connecting, for requests that opened a connection.
    pub connect: LatencyHistogram,
    /// Actual send to first byte.
    pub first_byte: LatencyHistogram,
    /// How much later than the kernel we had the last byte, where the kernel said.
    pub receive_delay: LatencyHistogram,
    /// Response time without the generator's own lateness: for the verdict only, never a result.
    pub response_without_lag: LatencyHistogram,
}

impl Measures {
    pub(crate) fn record(&mut self, parts: &Parts, receive_delay_ns: Option<u64>) {
        self.response.record(parts.response_ns);
        self.service.record(parts.service_ns);
        self.send_lag.record(parts.send_lag_ns);
        self.pool_wait.record(parts.pool_wait_ns);
        self.first_byte.record(parts.first_byte_ns);
        self.response_without_lag.record(parts.response_ns - parts.send_lag_ns);
        if let Some(connect_ns) = parts.connect_ns {
            self.connect.record(connect_ns);
        }
        if let Some(receive_delay_ns) = receive_delay_ns {
            self.receive_delay.record(receive_delay_ns);
        }
    }

    /// Adds another record's counts to this one's.
    pub fn add(&mut self, other: &Self) {
        self.response.add(&other.response);
        self.service.add(&other.service);
        self.send_lag.add(&other.send_lag);
        self.pool_wait.add(&other.pool_wait);
        self.connect.add(&other.connect);
        self.first_byte.add(&other.first_byte);
        self.receive_delay.add(&other.receive_delay);
        self.response_without_lag.add(&other.response_without_lag);
    }
}
