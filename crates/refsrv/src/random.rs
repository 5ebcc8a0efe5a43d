//! Random numbers addressed by index: draw `i` of a seed is always the same, in any order.
//!
//! A test can thus compute the hold of request `i` without replaying requests `0..i`. The generator
//! is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014),
//! whose state after `i` steps is `seed + i * GOLDEN`: random access is free.

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Draw `index` of stream `seed`, uniform in the open interval (0, 1).
#[must_use]
pub fn uniform(seed: u64, index: u64) -> f64 {
    // The seed is mixed first: seeds 1 and 2 must not give overlapping streams.
    let state = mix(seed).wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN));
    ((mix(state) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// Draw `index` of stream `seed`, exponential with mean 1.
#[must_use]
pub fn exponential(seed: u64, index: u64) -> f64 {
    -uniform(seed, index).ln()
}

/// Draw `index` of stream `seed`, normal with mean 0 and variance 1 (Box and Muller 1958).
#[must_use]
pub fn normal(seed: u64, index: u64) -> f64 {
    let first = index.wrapping_mul(2);
    let radius = (2.0 * exponential(seed, first)).sqrt();
    radius * (std::f64::consts::TAU * uniform(seed, first.wrapping_add(1))).cos()
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: u64 = 400_000;

    fn mean_and_variance(draw: impl Fn(u64) -> f64) -> (f64, f64) {
        let mean = (0..N).map(&draw).sum::<f64>() / N as f64;
        let variance = (0..N).map(|i| (draw(i) - mean).powi(2)).sum::<f64>() / N as f64;
        (mean, variance)
    }

    #[test]
    fn the_three_distributions_have_their_moments() {
        type Draw = fn(u64, u64) -> f64;
        let cases: [(&str, Draw, f64, f64); 3] = [
            ("uniform", uniform, 0.5, 1.0 / 12.0),
            ("exponential", exponential, 1.0, 1.0),
            ("normal", normal, 0.0, 1.0),
        ];

        for (name, draw, mean, variance) in cases {
            let (got_mean, got_variance) = mean_and_variance(|i| draw(7, i));
            assert!((got_mean - mean).abs() < 0.006, "{name}: mean {got_mean}");
            assert!(
                (got_variance - variance).abs() < 0.02,
                "{name}: variance {got_variance}"
            );
        }
    }

    #[test]
    fn a_draw_depends_on_seed_and_index_only() {
        assert_eq!(uniform(3, 99), uniform(3, 99));
        assert_ne!(uniform(3, 99), uniform(4, 99));
        assert_ne!(uniform(3, 99), uniform(3, 100));
    }

    #[test]
    fn neighbouring_seeds_are_uncorrelated() {
        let product = |i| (uniform(1, i) - 0.5) * (uniform(2, i) - 0.5);
        let covariance = (0..N).map(product).sum::<f64>() / N as f64;
        assert!(
            covariance.abs() * 12.0 < 0.01,
            "correlation {}",
            covariance * 12.0
        );
    }
}
