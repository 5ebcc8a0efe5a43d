//! The first incorrect response of each kind, as received: counts alone do not show what a server
//! sent.

use serde::{Deserialize, Serialize};

use crate::record::exchange::Outcome;

/// Maximum number of kinds to keep; further kinds are only counted.
const MAX_KINDS: usize = 8;

/// How much of a response is kept: usual heads, and more of the body than is quoted.
pub(crate) const KEPT_BYTES: usize = 2_048;

/// The beginning of an incorrect response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WrongResponse {
    pub outcome: Outcome,
    /// `None` if its head could not be read.
    pub status: Option<u16>,
    /// Why its head or body was rejected; `None` if its status was.
    pub reason: Option<String>,
    /// At most [`KEPT_BYTES`] of it.
    pub bytes: Vec<u8>,
}

/// One response for each outcome and status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WrongResponses(Vec<WrongResponse>);

impl WrongResponses {
    /// Whether a response is incorrect and the first of its kind.
    #[inline(always)]
    pub fn wants(&self, outcome: Outcome, status: Option<u16>) -> bool {
        matches!(outcome, Outcome::HttpStatus | Outcome::BadBody) && self.is_new(outcome, status)
    }

    fn is_new(&self, outcome: Outcome, status: Option<u16>) -> bool {
        let is_kept = |one: &WrongResponse| one.outcome == outcome && one.status == status;
        self.0.len() < MAX_KINDS && !self.0.iter().any(is_kept)
    }

    /// Keeps a response that [`Self::wants`] selected.
    pub fn keep(&mut self, response: WrongResponse) {
        self.0.push(response);
    }

    /// Adds another thread's responses of kinds that are new.
    pub fn add(&mut self, other: &Self) {
        for response in &other.0 {
            if self.is_new(response.outcome, response.status) {
                self.keep(response.clone());
            }
        }
    }

    /// All kept responses.
    pub fn all(&self) -> &[WrongResponse] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(outcome: Outcome, status: u16, text: &str) -> WrongResponse {
        WrongResponse {
            outcome,
            status: Some(status),
            reason: None,
            bytes: text.into(),
        }
    }

    #[test]
    fn the_first_of_each_kind_is_kept() {
        let mut mine = WrongResponses::default();
        assert!(!mine.wants(Outcome::Ok, Some(200)));
        assert!(!mine.wants(Outcome::Reset, None));
        assert!(mine.wants(Outcome::HttpStatus, Some(500)));
        mine.keep(response(Outcome::HttpStatus, 500, "first"));
        assert!(!mine.wants(Outcome::HttpStatus, Some(500)));

        let mut theirs = WrongResponses::default();
        theirs.keep(response(Outcome::HttpStatus, 500, "second"));
        theirs.keep(response(Outcome::BadBody, 200, "other"));
        mine.add(&theirs);

        let texts: Vec<&[u8]> = mine.all().iter().map(|one| &one.bytes[..]).collect();
        assert_eq!(texts, [&b"first"[..], &b"other"[..]]);
    }

    #[test]
    fn their_number_is_bounded() {
        let mut all = WrongResponses::default();
        for status in 500..600 {
            if all.wants(Outcome::HttpStatus, Some(status)) {
                all.keep(response(Outcome::HttpStatus, status, ""));
            }
        }

        assert_eq!(all.all().len(), MAX_KINDS);
    }
}
