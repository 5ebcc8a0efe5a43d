//! Random numbers from one seed: separate streams, and numbers by index.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Separate random streams from one seed, so that adding a consumer does not change the numbers of
/// another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    Gaps,
    Split,
    IdleChoice(usize),
    ThinkTime(usize),
    Requests,
    Placeholders,
    UserRequests(usize),
}

pub(crate) fn generator(seed: u64, stream: Stream) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(match stream {
        Stream::Gaps => 1,
        Stream::Split => 2,
        Stream::Requests => 3,
        Stream::Placeholders => 4,
        Stream::IdleChoice(thread) => 1_000 + thread as u64,
        Stream::ThinkTime(thread) => 1_000_000 + thread as u64,
        Stream::UserRequests(thread) => 2_000_000 + thread as u64,
    });
    random
}

/// An exponential variate with this mean, by inversion.
pub(crate) fn exponential(random: &mut ChaCha8Rng, mean: f64) -> f64 {
    // `random()` lies in [0, 1), so the argument of the logarithm lies in (0, 1].
    -(1.0 - random.random::<f64>()).ln() * mean
}

/// SplitMix64 at an index: a stream of random numbers with random access.
pub(crate) fn scatter(key: u64, place: u64) -> u64 {
    let mut point = key.wrapping_add(place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    point = (point ^ (point >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    point = (point ^ (point >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    point ^ (point >> 31)
}
