//! The mathematics of the method: pure functions of numbers, each with the source of its formula.
//!
//! Nothing here depends on a load, a plan or a report.

pub mod arrivals;
pub mod changes;
pub mod over_dispersion;

/// The values in groups of `size`, without the remainder.
pub(crate) fn group<T>(values: &[T], size: usize) -> impl Iterator<Item = &[T]> {
    values.chunks_exact(size.max(1))
}
