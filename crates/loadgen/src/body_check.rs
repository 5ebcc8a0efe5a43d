//! Whether a body is the right one, found out as it arrives and without keeping it.

use hyper::body::Bytes;

/// What a right body looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedBody {
    /// Any body will do.
    Any,
    /// Exactly these bytes.
    Exactly(Bytes),
}

/// How much of one body was right so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyCheck {
    length: usize,
    is_right: bool,
}

impl BodyCheck {
    pub fn new() -> Self {
        Self { length: 0, is_right: true }
    }

    /// Takes the next part.
    pub fn take(&mut self, expected: &ExpectedBody, part: &[u8]) {
        let (from, to) = (self.length, self.length + part.len());
        self.length = to;
        if let ExpectedBody::Exactly(whole) = expected {
            self.is_right &= whole.get(from..to) == Some(part);
        }
    }

    /// Whether all parts together are the expected body.
    pub fn is_right(&self, expected: &ExpectedBody) -> bool {
        match expected {
            ExpectedBody::Any => true,
            ExpectedBody::Exactly(whole) => self.is_right && whole.len() == self.length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_right(expected: &ExpectedBody, parts: &[&str]) -> bool {
        let mut check = BodyCheck::new();
        parts.iter().for_each(|part| check.take(expected, part.as_bytes()));
        check.is_right(expected)
    }

    #[test]
    fn a_body_is_compared_across_its_parts() {
        let hello = ExpectedBody::Exactly(Bytes::from_static(b"hello"));
        for (parts, right) in [
            (vec!["hello"], true),
            (vec!["he", "", "llo"], true),
            (vec!["hel"], false),
            (vec!["hello", "!"], false),
            (vec!["hellO"], false),
            (vec![], false),
        ] {
            assert_eq!(is_right(&hello, &parts), right, "{parts:?}");
        }
        assert!(is_right(&ExpectedBody::Any, &[]));
    }
}
