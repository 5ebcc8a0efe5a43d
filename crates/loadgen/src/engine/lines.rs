//! The connections of one thread. Each line has one connection at a time that takes requests.
//!
//! A connection that takes no more requests leaves its line. It is kept until the exchanges that
//! are still in progress on it have ended; meanwhile the line may open another one.

use std::collections::{HashMap, VecDeque};

use crate::http::connection::Connection;

/// A connection, and how it is used.
pub(crate) struct Link<C> {
    pub connection: C,
    /// The slot whose arrival opens it.
    pub opener: usize,
    /// Whether it is established.
    pub is_ready: bool,
    /// Exchanges in progress on it.
    pub exchanges: usize,
    /// Number of concurrent exchanges that the server allowed at the last check.
    pub allowed: usize,
    /// Whether the peer is known to have closed its side.
    pub is_hung_up: bool,
    /// Whether the reactor has reported an event that is not handled yet, while it was idle.
    pub has_idle_event: bool,
    /// Whether it waits for its turn to be read further.
    pub is_yielding: bool,
    /// Whether it takes no more requests because of the server.
    pub is_servers_end: bool,
}

impl<C: Connection> Link<C> {
    /// Whether it takes no more requests, as far as is known without checking the socket.
    pub fn is_lost(&self) -> bool {
        self.is_ready && (self.is_hung_up || self.connection.is_closed())
    }

    /// Whether a request can be sent now.
    pub fn has_room(&self) -> bool {
        self.is_ready && self.exchanges < self.connection.max_exchanges()
    }
}

/// A sequence of connections, at most one of which takes requests at a time.
pub(crate) struct Line<C> {
    pub link: Option<Link<C>>,
    /// Distinguishes events of this connection from those of the previous one.
    pub generation: u32,
    /// Slots that wait for the connection that another slot opens, or for a stream.
    pub waiting: VecDeque<usize>,
    /// Idle slots for which the server allows no stream.
    pub parked: Vec<usize>,
}

/// All lines of a thread.
pub(crate) struct Lines<C> {
    lines: Vec<Line<C>>,
    /// Connections that have left their line, by token.
    retired: HashMap<u64, Link<C>>,
}

impl<C: Connection> Lines<C> {
    pub fn new() -> Self {
        Self {
            lines: Vec::new(),
            retired: HashMap::new(),
        }
    }

    /// How many lines there are.
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// Adds a line without a connection; returns its number.
    pub fn add(&mut self) -> usize {
        self.lines.push(Line {
            link: None,
            generation: 0,
            waiting: VecDeque::new(),
            parked: Vec::new(),
        });
        self.lines.len() - 1
    }

    /// One of the lines.
    #[inline(always)]
    pub fn line(&mut self, number: usize) -> &mut Line<C> {
        &mut self.lines[number]
    }

    /// The connection that takes the requests of a line.
    #[inline(always)]
    pub fn current(&self, number: usize) -> Option<&Link<C>> {
        self.lines[number].link.as_ref()
    }

    /// The token of the line's latest connection.
    #[inline(always)]
    pub fn token(&self, number: usize) -> u64 {
        token(number, self.lines[number].generation)
    }

    /// Whether another slot of the line can serve an arrival without waiting for a stream, as far
    /// as known.
    #[inline(always)]
    pub fn may_serve(&self, number: usize) -> bool {
        let line = &self.lines[number];
        line.link.as_ref().is_none_or(|link| {
            let busy = link.exchanges + line.waiting.len();
            !link.is_ready || busy < link.connection.max_exchanges() || link.is_lost()
        })
    }

    /// Takes the slot that has waited longest on a line, if it can be served now.
    pub fn next_waiting(&mut self, number: usize) -> Option<usize> {
        let line = &mut self.lines[number];
        let link = line.link.as_ref();
        let is_served = |_: &usize| link.is_none_or(|link| link.has_room() || link.is_lost());
        line.waiting.front().filter(|slot| is_served(slot))?;
        line.waiting.pop_front()
    }

    /// Gives the line a connection that `opener` opens; returns its token.
    pub fn open(&mut self, number: usize, opener: usize, connection: C) -> u64 {
        let line = &mut self.lines[number];
        line.generation = line.generation.wrapping_add(1);
        line.link = Some(Link {
            connection,
            opener,
            is_ready: false,
            exchanges: 0,
            allowed: 0,
            is_hung_up: false,
            has_idle_event: false,
            is_yielding: false,
            is_servers_end: false,
        });
        self.token(number)
    }

    /// A connection that has not ended.
    #[inline(always)]
    pub fn link(&self, token: u64) -> Option<&Link<C>> {
        let (number, generation) = line_of(token);
        let line = &self.lines[number];
        if line.generation == generation && line.link.is_some() {
            return line.link.as_ref();
        }
        self.retired.get(&token)
    }

    /// As [`Self::link`].
    #[inline(always)]
    pub fn link_mut(&mut self, token: u64) -> Option<&mut Link<C>> {
        let (number, generation) = line_of(token);
        let line = &mut self.lines[number];
        if line.generation == generation && line.link.is_some() {
            return line.link.as_mut();
        }
        self.retired.get_mut(&token)
    }

    /// The slowest of the latest responses of all connections.
    pub fn slowest_ns(&self) -> u64 {
        let links = self.lines.iter().filter_map(|line| line.link.as_ref());
        links
            .map(|link| link.connection.stamps(0))
            .map(|stamps| stamps.last_byte_ns.saturating_sub(stamps.write_start_ns))
            .max()
            .unwrap_or(0)
    }

    /// Takes a connection out; `None` if it has ended.
    pub fn take(&mut self, token: u64) -> Option<Link<C>> {
        let (number, generation) = line_of(token);
        let line = &mut self.lines[number];
        if line.generation == generation && line.link.is_some() {
            return line.link.take();
        }
        self.retired.remove(&token)
    }

    /// Removes a connection from its line and keeps it until its last exchange ends; returns
    /// whether it was still on the line.
    pub fn retire(&mut self, token: u64) -> bool {
        let (number, generation) = line_of(token);
        let line = &mut self.lines[number];
        let link = line.link.take_if(|_| line.generation == generation);
        link.is_some_and(|link| self.retired.insert(token, link).is_none())
    }

    /// Whether it has left its line.
    pub fn is_retired(&self, token: u64) -> bool {
        self.retired.contains_key(&token)
    }

    /// Takes all connections out.
    pub fn drain(&mut self) -> impl Iterator<Item = Link<C>> {
        let current = self.lines.iter_mut().filter_map(|line| line.link.take());
        current.chain(self.retired.drain().map(|(_, link)| link))
    }
}

/// A line's number and the generation of its connection, packed into one word.
pub(crate) fn token(line: usize, generation: u32) -> u64 {
    u64::from(generation) << 32 | line as u64
}

/// Unpacks a token.
pub(crate) fn line_of(token: u64) -> (usize, u32) {
    ((token & u64::from(u32::MAX)) as usize, (token >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_holds_both_numbers() {
        for pair in [(0, 0), (7, 1), (4_294_967_294, u32::MAX)] {
            assert_eq!(line_of(token(pair.0, pair.1)), pair);
        }
    }
}
