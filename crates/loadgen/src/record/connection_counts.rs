//! How many connections there were, and how long they lived.

/// Life of the connections of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionCounts {
    /// Connections made.
    pub opened: u64,
    /// Requests sent over a kept connection, whatever became of them.
    pub reused: u64,
    /// Connections that the server ended, with or without saying so.
    pub closed_by_server: u64,
    /// Most connections at once.
    pub peak: u64,
    /// Requests sent on the connection that had fewest, of those that ended.
    pub fewest_requests: Option<u64>,
    /// Requests sent on the connection that had most.
    pub most_requests: Option<u64>,
}

impl ConnectionCounts {
    /// Notes the end of a connection that has carried `requests`.
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

    pub(crate) fn add(&mut self, other: &Self) {
        self.opened += other.opened;
        self.reused += other.reused;
        self.closed_by_server += other.closed_by_server;
        // Threads peak at their own instants, so the sum is an upper bound of the true peak.
        self.peak += other.peak;
        for requests in [other.fewest_requests, other.most_requests]
            .into_iter()
            .flatten()
        {
            self.ended(requests);
        }
    }
}
