//! Latency measures of correct responses.

use serde::{Deserialize, Serialize};

use crate::record::exchange::Parts;
use crate::record::histogram::LatencyHistogram;

/// Latency measures of correct responses, one histogram each.
#[derive(Clone, Debug, Default)]
pub struct Measures {
    /// Scheduled send to last byte.
    pub response: LatencyHistogram,
    /// Actual send to last byte.
    pub service: LatencyHistogram,
    /// The generator's own send delay.
    pub send_lag: LatencyHistogram,
    /// Wait for a connection, if connections are capped.
    pub pool_wait: LatencyHistogram,
    /// Connecting, for requests that opened a connection.
    pub connect: LatencyHistogram,
    /// Actual send to first byte.
    pub first_byte: LatencyHistogram,
    /// First to last byte.
    pub transfer: LatencyHistogram,
    /// Delay from the kernel timestamp of the last byte, if there was one, to the generator's read.
    pub receive_delay: LatencyHistogram,
    /// Response time minus the generator's send lag: for the verdict only, never a result.
    pub response_without_lag: LatencyHistogram,
}

impl Measures {
    /// Adds another record's counts to this one's.
    pub fn add(&mut self, other: &Self) {
        self.response.add(&other.response);
        self.service.add(&other.service);
        self.send_lag.add(&other.send_lag);
        self.pool_wait.add(&other.pool_wait);
        self.connect.add(&other.connect);
        self.first_byte.add(&other.first_byte);
        self.transfer.add(&other.transfer);
        self.receive_delay.add(&other.receive_delay);
        self.response_without_lag.add(&other.response_without_lag);
    }
}

/// The measures while a load runs, with as few histogram entries per response as possible, because
/// each entry costs generator time. Response times are not included: the intervals record them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Responses that arrived in one piece, to requests that waited for neither a slot nor a
    /// connection: service time, time to first byte and response time without send lag are equal.
    plain: LatencyHistogram,
    service: LatencyHistogram,
    first_byte: LatencyHistogram,
    transfer: LatencyHistogram,
    send_lag: LatencyHistogram,
    did_not_wait: u64,
    pool_wait: LatencyHistogram,
    connect: LatencyHistogram,
    receive_delay: LatencyHistogram,
    response_without_lag: LatencyHistogram,
}

impl Tally {
    pub fn record(&mut self, parts: &Parts, receive_delay_ns: Option<u64>) {
        let without_lag_ns = parts.response_ns - parts.send_lag_ns;
        // The parts add up exactly, so there was nothing else: no wait, no connecting, no transfer.
        if parts.first_byte_ns == without_lag_ns {
            self.plain.record(without_lag_ns);
        } else {
            self.service.record(parts.service_ns);
            self.first_byte.record(parts.first_byte_ns);
            self.transfer.record(parts.service_ns - parts.first_byte_ns);
            self.response_without_lag.record(without_lag_ns);
        }

        self.send_lag.record(parts.send_lag_ns);
        if parts.pool_wait_ns == 0 {
            self.did_not_wait += 1;
        } else {
            self.pool_wait.record(parts.pool_wait_ns);
        }

        if let Some(connect_ns) = parts.connect_ns {
            self.connect.record(connect_ns);
        }
        if let Some(receive_delay_ns) = receive_delay_ns {
            self.receive_delay.record(receive_delay_ns);
        }
    }

    /// Adds another thread's measures.
    pub fn add(&mut self, other: &Self) {
        self.plain.add(&other.plain);
        self.service.add(&other.service);
        self.first_byte.add(&other.first_byte);
        self.transfer.add(&other.transfer);
        self.send_lag.add(&other.send_lag);
        self.did_not_wait += other.did_not_wait;
        self.pool_wait.add(&other.pool_wait);
        self.connect.add(&other.connect);
        self.receive_delay.add(&other.receive_delay);
        self.response_without_lag.add(&other.response_without_lag);
    }

    /// The generator's send lag of correct responses.
    pub fn send_lag(&self) -> &LatencyHistogram {
        &self.send_lag
    }

    /// Number of correct responses with a kernel timestamp.
    pub fn receive_delays(&self) -> u64 {
        self.receive_delay.count()
    }

    /// The complete measures, given the response times of the slices.
    pub fn measures(&self, response: LatencyHistogram) -> Measures {
        let mut measures = Measures {
            response,
            service: self.service.clone(),
            send_lag: self.send_lag.clone(),
            pool_wait: self.pool_wait.clone(),
            connect: self.connect.clone(),
            first_byte: self.first_byte.clone(),
            transfer: self.transfer.clone(),
            receive_delay: self.receive_delay.clone(),
            response_without_lag: self.response_without_lag.clone(),
        };
        for measure in [
            &mut measures.service,
            &mut measures.first_byte,
            &mut measures.response_without_lag,
        ] {
            measure.add(&self.plain);
        }

        measures.transfer.record_many(0, self.plain.count());
        measures.pool_wait.record_many(0, self.did_not_wait);
        measures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_response_counts_in_each_of_its_measures() {
        let (mut tally, mut other) = (Tally::default(), Tally::default());
        let whole = Parts {
            response_ns: 700,
            pool_wait_ns: 0,
            send_lag_ns: 100,
            connect_ns: None,
            first_byte_ns: 600,
            service_ns: 600,
        };
        tally.record(&whole, Some(9));
        let in_pieces = Parts {
            response_ns: 1_000,
            pool_wait_ns: 250,
            connect_ns: Some(150),
            first_byte_ns: 300,
            service_ns: 500,
            ..whole
        };
        other.record(&in_pieces, None);
        tally.add(&other);
        let measures = tally.measures(LatencyHistogram::new());
        let extremes = |histogram: &LatencyHistogram| {
            (histogram.count(), histogram.min_ns(), histogram.max_ns())
        };

        assert_eq!(extremes(&measures.service), (2, Some(500), Some(600)));
        assert_eq!(extremes(&measures.first_byte), (2, Some(300), Some(600)));
        assert_eq!(extremes(&measures.transfer), (2, Some(0), Some(200)));
        assert_eq!(extremes(&measures.send_lag), (2, Some(100), Some(100)));
        assert_eq!(extremes(&measures.pool_wait), (2, Some(0), Some(250)));
        assert_eq!(extremes(&measures.connect), (1, Some(150), Some(150)));
        assert_eq!(extremes(&measures.receive_delay), (1, Some(9), Some(9)));
        assert_eq!(
            extremes(&measures.response_without_lag),
            (2, Some(600), Some(900))
        );
    }
}
