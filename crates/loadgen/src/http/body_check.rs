//! Whether a body is the right one, found out as it arrives. Only a regular expression needs it
//! kept.

use hyper::body::Bytes;
use regex::bytes::Regex;
use sha2::{Digest, Sha256};

/// A regular expression looks at this much of a body from its beginning, and at no more.
const MATCHED_BYTES: usize = 1024 * 1024;

/// A connection whose last body was longer than this gives its memory back.
const KEPT_CAPACITY_BYTES: usize = 64 * 1024;

/// What a right body looks like: all that is given must hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExpectedBody {
    /// Exactly these bytes.
    pub exact: Option<Bytes>,
    /// As many bytes.
    pub length: Option<u64>,
    /// This hash.
    pub sha256: Option<[u8; 32]>,
    /// Somewhere in its first [`MATCHED_BYTES`].
    pub regex: Option<Regex>,
}

/// How much of one body was right so far.
#[derive(Debug)]
pub(crate) struct BodyCheck {
    length: u64,
    is_right: bool,
    seen: Option<Box<Seen>>,
}

/// What hash and regular expression need of a body.
#[derive(Debug, Default)]
struct Seen {
    hash: Sha256,
    kept: Vec<u8>,
}

impl BodyCheck {
    pub fn new() -> Self {
        Self {
            length: 0,
            is_right: true,
            seen: None,
        }
    }

    /// Forgets the body before, and keeps its memory for the next.
    pub fn reset(&mut self) {
        (self.length, self.is_right) = (0, true);
        if let Some(seen) = &mut self.seen {
            seen.hash.reset();
            seen.kept.clear();
            seen.kept.shrink_to(KEPT_CAPACITY_BYTES);
        }
    }

    /// Takes the next part.
    pub fn take(&mut self, expected: &ExpectedBody, part: &[u8]) {
        let from = self.length as usize;
        self.length += part.len() as u64;
        if let Some(whole) = &expected.exact {
            self.is_right &= whole.get(from..from + part.len()) == Some(part);
        }
        if expected.sha256.is_some() {
            self.seen.get_or_insert_default().hash.update(part);
        }
        if expected.regex.is_some() {
            let kept = &mut self.seen.get_or_insert_default().kept;
            let room = MATCHED_BYTES - kept.len();
            kept.extend_from_slice(&part[..part.len().min(room)]);
        }
    }

    /// Whether all parts together are the expected body.
    pub fn is_right(&self, expected: &ExpectedBody) -> bool {
        let length = expected.exact.as_ref().map(|whole| whole.len() as u64);
        self.is_right
            && length.is_none_or(|length| length == self.length)
            && expected.length.is_none_or(|length| length == self.length)
            && expected
                .sha256
                .as_ref()
                .is_none_or(|hash| *hash == self.hash())
            && expected
                .regex
                .as_ref()
                .is_none_or(|regex| regex.is_match(self.kept()))
    }

    fn kept(&self) -> &[u8] {
        self.seen.as_ref().map_or(&[][..], |seen| &seen.kept)
    }

    fn hash(&self) -> [u8; 32] {
        self.seen
            .as_ref()
            .map_or_else(Sha256::new, |seen| seen.hash.clone())
            .finalize()
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_right(expected: &ExpectedBody, parts: &[&str]) -> bool {
        let mut check = BodyCheck::new();
        // What was seen of the body before must not matter.
        check.take(expected, b"another body, and a longer one");
        check.reset();
        parts
            .iter()
            .for_each(|part| check.take(expected, part.as_bytes()));
        check.is_right(expected)
    }

    fn matching(pattern: &str) -> ExpectedBody {
        ExpectedBody {
            regex: Some(Regex::new(pattern).expect("a pattern")),
            ..ExpectedBody::default()
        }
    }

    #[test]
    fn a_body_is_judged_across_its_parts() {
        let exact = ExpectedBody {
            exact: Some(Bytes::from_static(b"hello")),
            ..ExpectedBody::default()
        };
        let hash = ExpectedBody {
            sha256: Some(Sha256::digest("hello").into()),
            ..ExpectedBody::default()
        };
        for expected in [exact, hash, matching("^hello$")] {
            for (parts, right) in [
                (vec!["hello"], true),
                (vec!["he", "", "llo"], true),
                (vec!["hel"], false),
                (vec!["hello", "!"], false),
                (vec!["hellO"], false),
                (vec![], false),
            ] {
                assert_eq!(
                    is_right(&expected, &parts),
                    right,
                    "{parts:?} by {expected:?}"
                );
            }
        }
        assert!(is_right(&ExpectedBody::default(), &[]));
    }

    #[test]
    fn a_length_is_counted_and_an_empty_body_has_a_hash() {
        let length = ExpectedBody {
            length: Some(5),
            ..ExpectedBody::default()
        };
        assert!(is_right(&length, &["wor", "ld"]));
        assert!(!is_right(&length, &["worl"]));
        assert!(!is_right(&length, &["worlds"]));
        let empty = ExpectedBody {
            sha256: Some(Sha256::digest("").into()),
            ..ExpectedBody::default()
        };
        assert!(is_right(&empty, &[]));
    }

    #[test]
    fn all_that_is_given_must_hold() {
        let both = ExpectedBody {
            length: Some(5),
            ..matching("l+o")
        };
        assert!(is_right(&both, &["hello"]));
        assert!(!is_right(&both, &["hello!"]));
        assert!(!is_right(&both, &["world"]));
    }

    #[test]
    fn an_expression_keeps_no_more_than_its_bound() {
        let expected = matching("needle");
        let hay = vec![b'-'; MATCHED_BYTES - 3];
        let mut check = BodyCheck::new();
        check.take(&expected, &hay);
        check.take(&expected, b"needle");
        assert!(!check.is_right(&expected), "it lies across the bound");
        assert_eq!(check.kept().len(), MATCHED_BYTES);
        check.reset();
        assert!(
            check
                .seen
                .as_ref()
                .is_some_and(|seen| seen.kept.capacity() <= KEPT_CAPACITY_BYTES)
        );
    }
}
