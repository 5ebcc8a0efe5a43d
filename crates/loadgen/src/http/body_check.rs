//! Checks a body as it arrives. Only a regular expression needs it buffered.

use std::fmt::{self, Display, Formatter};

use hyper::body::Bytes;
use regex::bytes::Regex;
use sha2::{Digest, Sha256};

/// Regular expressions and captures see only this many bytes from the beginning of a body.
pub(crate) const KEPT_BODY_BYTES: usize = 1024 * 1024;

/// A connection whose last body was longer than this releases its buffer.
const KEPT_CAPACITY_BYTES: usize = 64 * 1024;

/// What a correct body looks like: all given conditions must hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExpectedBody {
    /// Exactly these bytes.
    pub exact: Option<Bytes>,
    /// This length.
    pub length: Option<u64>,
    /// This hash.
    pub sha256: Option<[u8; 32]>,
    /// Matches somewhere in its first [`KEPT_BODY_BYTES`].
    pub regex: Option<Regex>,
    /// Whether the body is kept even if no condition needs it.
    pub is_kept: bool,
}

/// The beginning of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept<'a> {
    pub bytes: &'a [u8],
    /// Whether the body is longer.
    pub is_cut: bool,
}

/// Why a body is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    Length { received: u64, expected: u64 },
    Content,
    Hash,
    Pattern,
}

impl Display for Mismatch {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { received, expected } => {
                write!(formatter, "body of {received} bytes instead of {expected}")
            }
            Self::Content => formatter.write_str("body differs from the expected one"),
            Self::Hash => formatter.write_str("SHA-256 of the body differs from the expected one"),
            Self::Pattern => formatter.write_str("body does not match the expected pattern"),
        }
    }
}

/// Progress of the check of one body.
#[derive(Debug)]
pub(crate) struct BodyCheck {
    length: u64,
    is_correct: bool,
    seen: Option<Box<Seen>>,
}

/// The state of the hash, and the bytes kept of a body.
#[derive(Debug, Default)]
struct Seen {
    hash: Sha256,
    kept: Vec<u8>,
}

impl BodyCheck {
    pub fn new() -> Self {
        Self {
            length: 0,
            is_correct: true,
            seen: None,
        }
    }

    /// Resets the check for the next body, and keeps the buffer.
    pub fn reset(&mut self) {
        self.length = 0;
        self.is_correct = true;
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
            self.is_correct &= whole.get(from..from + part.len()) == Some(part);
        }
        if expected.sha256.is_some() {
            self.seen.get_or_insert_default().hash.update(part);
        }

        if expected.regex.is_some() || expected.is_kept {
            let kept = &mut self.seen.get_or_insert_default().kept;
            let room = KEPT_BODY_BYTES - kept.len();
            kept.extend_from_slice(&part[..part.len().min(room)]);
        }
    }

    /// Whether all parts together are the expected body.
    #[inline(always)]
    pub fn is_correct(&self, expected: &ExpectedBody) -> bool {
        self.mismatch(expected).is_none()
    }

    /// Why all parts together are not the expected body.
    #[inline(always)]
    pub fn mismatch(&self, expected: &ExpectedBody) -> Option<Mismatch> {
        let length = expected.exact.as_ref().map(|whole| whole.len() as u64);
        for length in [length, expected.length].into_iter().flatten() {
            if length != self.length {
                return Some(Mismatch::Length {
                    received: self.length,
                    expected: length,
                });
            }
        }
        if !self.is_correct {
            return Some(Mismatch::Content);
        }

        let is_other_hash = |hash: &[u8; 32]| *hash != self.hash();
        if expected.sha256.as_ref().is_some_and(is_other_hash) {
            return Some(Mismatch::Hash);
        }
        let is_unmatched = |regex: &Regex| !regex.is_match(self.kept().bytes);
        let pattern = expected.regex.as_ref();
        pattern
            .is_some_and(is_unmatched)
            .then_some(Mismatch::Pattern)
    }

    /// What was kept of the body, if a pattern or captures need it.
    pub fn kept(&self) -> Kept<'_> {
        let bytes = self.seen.as_ref().map_or(&[][..], |seen| &seen.kept);
        Kept {
            bytes,
            is_cut: self.length > bytes.len() as u64,
        }
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

    fn is_correct(expected: &ExpectedBody, parts: &[&str]) -> bool {
        let mut check = BodyCheck::new();
        // The previous body must not matter.
        check.take(expected, b"another body, and a longer one");
        check.reset();
        parts
            .iter()
            .for_each(|part| check.take(expected, part.as_bytes()));

        check.is_correct(expected)
    }

    fn matching(pattern: &str) -> ExpectedBody {
        ExpectedBody {
            regex: Some(Regex::new(pattern).expect("a pattern")),
            ..ExpectedBody::default()
        }
    }

    #[test]
    fn a_body_is_checked_across_its_parts() {
        let exact = ExpectedBody {
            exact: Some(Bytes::from_static(b"hello")),
            ..ExpectedBody::default()
        };
        let hash = ExpectedBody {
            sha256: Some(Sha256::digest("hello").into()),
            ..ExpectedBody::default()
        };

        for expected in [exact, hash, matching("^hello$")] {
            for (parts, expected_result) in [
                (vec!["hello"], true),
                (vec!["he", "", "llo"], true),
                (vec!["hel"], false),
                (vec!["hello", "!"], false),
                (vec!["hellO"], false),
                (vec![], false),
            ] {
                assert_eq!(
                    is_correct(&expected, &parts),
                    expected_result,
                    "{parts:?} by {expected:?}"
                );
            }
        }

        assert!(is_correct(&ExpectedBody::default(), &[]));
    }

    #[test]
    fn a_length_is_counted_and_an_empty_body_has_a_hash() {
        let length = ExpectedBody {
            length: Some(5),
            ..ExpectedBody::default()
        };
        assert!(is_correct(&length, &["wor", "ld"]));
        assert!(!is_correct(&length, &["worl"]));
        assert!(!is_correct(&length, &["worlds"]));

        let empty = ExpectedBody {
            sha256: Some(Sha256::digest("").into()),
            ..ExpectedBody::default()
        };
        assert!(is_correct(&empty, &[]));
    }

    #[test]
    fn a_wrong_body_has_a_reason() {
        let exact = ExpectedBody {
            exact: Some(Bytes::from_static(b"hello")),
            ..ExpectedBody::default()
        };
        let hash = ExpectedBody {
            sha256: Some(Sha256::digest("hello").into()),
            ..ExpectedBody::default()
        };
        for (expected, reason) in [
            (&exact, "body differs from the expected one"),
            (&hash, "SHA-256 of the body differs from the expected one"),
            (
                &matching("^hello$"),
                "body does not match the expected pattern",
            ),
        ] {
            let mut check = BodyCheck::new();
            check.take(expected, b"jello");
            let mismatch = check.mismatch(expected).expect("a wrong body");
            assert_eq!(mismatch.to_string(), reason);
        }

        let mut check = BodyCheck::new();
        check.take(&exact, b"hell");
        let mismatch = check.mismatch(&exact).expect("a short body");
        assert_eq!(mismatch.to_string(), "body of 4 bytes instead of 5");
    }

    #[test]
    fn all_given_conditions_must_hold() {
        let both = ExpectedBody {
            length: Some(5),
            ..matching("l+o")
        };
        assert!(is_correct(&both, &["hello"]));
        assert!(!is_correct(&both, &["hello!"]));
        assert!(!is_correct(&both, &["world"]));
    }

    #[test]
    fn an_expression_keeps_no_more_than_the_limit() {
        let expected = matching("needle");
        let hay = vec![b'-'; KEPT_BODY_BYTES - 3];
        let mut check = BodyCheck::new();
        check.take(&expected, &hay);
        check.take(&expected, b"needle");

        assert!(!check.is_correct(&expected), "it extends beyond the limit");
        assert_eq!(check.kept().bytes.len(), KEPT_BODY_BYTES);
        assert!(check.kept().is_cut);

        check.reset();
        assert!(
            check
                .seen
                .as_ref()
                .is_some_and(|seen| seen.kept.capacity() <= KEPT_CAPACITY_BYTES)
        );
    }
}
