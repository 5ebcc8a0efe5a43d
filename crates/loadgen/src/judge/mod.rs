//! Judges a load from its record: how well the figures are known, and whether they can be trusted.

pub(crate) mod budget;
pub(crate) mod derived;
pub(crate) mod offered;
pub(crate) mod precision;
pub(crate) mod stationarity;
pub(crate) mod stopping_rule;
pub(crate) mod uncertainty;
pub(crate) mod verdict;
