//! What makes a response invalid.

/// A head or trailer section with more fields than this is rejected.
pub(crate) const MAX_FIELDS: usize = 1_000;

/// The bytes are not an HTTP/1.x response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;
