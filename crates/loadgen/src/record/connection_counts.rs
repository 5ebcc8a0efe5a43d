//! The number of connections and their lifetimes.

use serde::{Deserialize, Serialize};

/// Connection counts of one thread.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ConnectionCounts {
    /// Connections opened.
    pub opened: u64,
    /// Requests sent over a kept connection, whatever their outcome.
    pub reused: u64,
    /// Connections that the server closed, announced or not.
    pub closed_by_server: u64,
    /// Maximum number of connections open at once.
    pub peak: u64,
    /// Minimum number of requests sent on a closed connection.
    pub fewest_requests: Option<u64>,
    /// Maximum number of requests sent on a closed connection.
    pub most_requests: Option<u64>,
    /// Minimum number of concurrent streams that the server allowed on a connection, if fewer than
    /// planned.
    pub fewest_streams: Option<usize>,
}

impl ConnectionCounts {
    /// Counts the end of a connection that carried `requests`.
    pub(crate) fn ended(&mut self, requests: u64) {
        self.fewest_requests = Some(
            self.fewest_requests
                .map_or(requests, |fewest| fewest.min(requests)),
        );
        self.most_requests = Some(
            self.most_requests
                .map_or(requests, |most| most.max(requests)),
        );
    }

    /// Counts that the server allows fewer streams on a connection than planned.
    pub(crate) fn note_limit(&mut self, streams: usize) {
        let fewest = self.fewest_streams.unwrap_or(streams);
        self.fewest_streams = Some(fewest.min(streams));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.opened += other.opened;
        self.reused += other.reused;
        self.closed_by_server += other.closed_by_server;
        // Threads peak at different times, so the sum is an upper bound of the true peak.
        self.peak += other.peak;

        if let Some(streams) = other.fewest_streams {
            self.note_limit(streams);
        }
        for requests in [other.fewest_requests, other.most_requests]
            .into_iter()
            .flatten()
        {
            self.ended(requests);
        }
    }
}
