//! A piecewise linear rate and the inverse of its integral Λ(t).
//!
//! Applying the inverse of Λ to the points of a process of rate 1 gives a process of the offered
//! rate: a Poisson process remains a Poisson process (time-change theorem), and evenly spaced
//! points remain evenly spaced in Λ. Each piece is solved in closed form from its own start, so
//! errors do not accumulate.

use crate::base::clock::NS_PER_S;

/// An interval with a linearly changing rate.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start_ns: u64,
    length_ns: u64,
    from_per_s: f64,
    to_per_s: f64,
}

impl Piece {
    fn length_s(&self) -> f64 {
        self.length_ns as f64 / NS_PER_S as f64
    }

    fn slope(&self) -> f64 {
        (self.to_per_s - self.from_per_s) / self.length_s()
    }

    /// Rate at an offset from the start of the load within the piece.
    fn rate_at(&self, offset_ns: u64) -> f64 {
        self.from_per_s + self.slope() * ((offset_ns - self.start_ns) as f64 / NS_PER_S as f64)
    }

    /// Arrivals from the start of the piece until `time_ns` later.
    fn arrivals_within(&self, time_ns: u64) -> f64 {
        let time_s = time_ns as f64 / NS_PER_S as f64;
        (self.from_per_s + self.slope() * time_s / 2.0) * time_s
    }

    /// The offset at which this many arrivals of the piece are due.
    fn offset_ns(&self, arrivals: f64) -> u64 {
        // The root of slope/2·t² + from·t = arrivals, in a form without cancellation or division by
        // a zero slope.
        let root = (self.from_per_s.powi(2) + 2.0 * self.slope() * arrivals)
            .max(0.0)
            .sqrt();
        let time_ns = 2.0 * arrivals * NS_PER_S as f64 / (self.from_per_s + root);
        // 0/0 at the start of a ramp from 0, before the first arrival.
        self.start_ns
            + if time_ns.is_nan() {
                0
            } else {
                time_ns.round() as u64
            }
    }
}

/// The rate over a whole load.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateCurve {
    pieces: Vec<Piece>,
    length_ns: u64,
}

impl RateCurve {
    /// Appends a piece of `length_ns` with a linear change from one rate to another.
    #[must_use]
    pub fn then(mut self, length_ns: u64, from_per_s: f64, to_per_s: f64) -> Self {
        if length_ns > 0 {
            self.pieces.push(Piece {
                start_ns: self.length_ns,
                length_ns,
                from_per_s,
                to_per_s,
            });
            self.length_ns += length_ns;
        }
        self
    }

    /// Arrivals from the start of the load until `offset_ns`: Λ.
    pub fn arrivals_until(&self, offset_ns: u64) -> f64 {
        let within = |piece: &Piece| {
            piece.arrivals_within(
                offset_ns
                    .saturating_sub(piece.start_ns)
                    .min(piece.length_ns),
            )
        };
        self.pieces.iter().map(within).sum()
    }

    /// Lowest and highest rate within `[from_ns, to_ns]`; `None` for an empty range.
    pub fn range_within(&self, from_ns: u64, to_ns: u64) -> Option<(f64, f64)> {
        let ends = |piece: &Piece| {
            let first_ns = from_ns.max(piece.start_ns);
            let last_ns = to_ns.min(piece.start_ns + piece.length_ns);
            (first_ns < last_ns).then(|| [piece.rate_at(first_ns), piece.rate_at(last_ns)])
        };
        let rates = self.pieces.iter().filter_map(ends).flatten();
        rates
            .map(|rate| (rate, rate))
            .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    /// The inverse of Λ, for ascending arguments.
    pub fn walk(&self) -> Walk {
        Walk {
            pieces: self.pieces.clone().into_iter(),
            current: None,
            behind: 0.0,
        }
    }
}

/// The inverse of Λ for ascending numbers of arrivals.
#[derive(Debug)]
pub(crate) struct Walk {
    pieces: std::vec::IntoIter<Piece>,
    current: Option<Piece>,
    /// Arrivals of the pieces before the current one.
    behind: f64,
}

impl Walk {
    /// The offset from the start of the load at which this many arrivals are due; `None` after the
    /// end of the curve.
    pub fn offset_ns(&mut self, arrivals: f64) -> Option<u64> {
        loop {
            let piece = match self.current {
                Some(piece) => piece,
                None => *self.current.insert(self.pieces.next()?),
            };
            let of_piece = piece.arrivals_within(piece.length_ns);
            if arrivals - self.behind < of_piece {
                return Some(piece.offset_ns(arrivals - self.behind));
            }
            self.behind += of_piece;
            self.current = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = NS_PER_S;

    fn offsets_ns(curve: &RateCurve, arrivals: &[f64]) -> Vec<Option<u64>> {
        let mut walk = curve.walk();
        arrivals
            .iter()
            .map(|&arrivals| walk.offset_ns(arrivals))
            .collect()
    }

    #[test]
    fn a_ramp_is_solved_in_closed_form() {
        // Λ = 100 t + 5 t²: after 1, 4 and 10 s there were 105, 480 and 1,500 arrivals.
        let up = RateCurve::default().then(10 * S, 100.0, 200.0);
        assert_eq!(
            offsets_ns(&up, &[0.0, 105.0, 480.0]),
            [Some(0), Some(S), Some(4 * S)]
        );
        assert_eq!(offsets_ns(&up, &[1_500.0]), [None], "the end is outside");
        // Λ = 200 t − 5 t².
        let down = RateCurve::default().then(10 * S, 200.0, 100.0);
        assert_eq!(
            offsets_ns(&down, &[0.0, 195.0, 720.0]),
            [Some(0), Some(S), Some(4 * S)]
        );
    }

    #[test]
    fn a_ramp_can_begin_or_end_at_zero() {
        // Λ = 50 t², then 100 t − 50 t².
        let curve = RateCurve::default().then(S, 0.0, 100.0).then(S, 100.0, 0.0);
        let half_ns = S / 2;
        assert_eq!(
            offsets_ns(&curve, &[0.0, 12.5, 50.0, 87.5, 99.999_999, 100.0]),
            [
                Some(0),
                Some(half_ns),
                Some(S),
                Some(S + half_ns),
                Some(1_999_858_579),
                None
            ]
        );
    }

    #[test]
    fn steps_are_contiguous_and_pauses_are_skipped() {
        let curve = RateCurve::default()
            .then(2 * S, 10.0, 10.0)
            .then(3 * S, 0.0, 0.0)
            .then(S, 4.0, 4.0);
        assert_eq!(
            offsets_ns(&curve, &[0.0, 19.0, 20.0, 21.0, 23.0, 24.0]),
            [
                Some(0),
                Some(1_900_000_000),
                Some(5 * S),
                Some(5_250_000_000),
                Some(5_750_000_000),
                None
            ]
        );
        assert_eq!(
            [0, S, 2 * S, 4 * S, 6 * S].map(|ns| curve.arrivals_until(ns)),
            [0.0, 10.0, 20.0, 20.0, 24.0]
        );
    }

    #[test]
    fn the_inverse_inverts_the_integral() {
        let curve = RateCurve::default()
            .then(3 * S, 7.0, 7.0)
            .then(10 * S, 7.0, 1_234.5)
            .then(2 * S, 50.0, 3.0);
        let mut walk = curve.walk();
        for offset_ns in (0..15 * S).step_by(9_999_991) {
            let back_ns = walk
                .offset_ns(curve.arrivals_until(offset_ns))
                .expect("within the load");
            assert!(
                back_ns.abs_diff(offset_ns) <= 1,
                "{offset_ns} ns came back as {back_ns}"
            );
        }
    }

    #[test]
    fn the_range_is_restricted_to_the_window() {
        let curve = RateCurve::default()
            .then(S, 10.0, 10.0)
            .then(10 * S, 10.0, 110.0)
            .then(S, 500.0, 500.0);
        assert_eq!(curve.range_within(0, 12 * S), Some((10.0, 500.0)));
        assert_eq!(curve.range_within(2 * S, 3 * S), Some((20.0, 30.0)));
        assert_eq!(curve.range_within(0, S), Some((10.0, 10.0)));
        assert_eq!(curve.range_within(S, S), None);
    }
}
