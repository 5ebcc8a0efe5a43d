//! What no answer may be.

/// More fields than this in a head, or in a trailer section, are refused.
pub(crate) const MAX_FIELDS: usize = 100;

/// The bytes are not an HTTP/1.x answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;
