//! F20: content and precision of a histogram with three digits.
//!
//! A Python test reads the serialized bytes with another implementation of the format.

use hdrhistogram::serialization::{Serializer as _, V2Serializer};
use loadgen::LatencyHistogram;

use crate::support::{MS, SECOND};

const HOUR_NS: u64 = 3_600 * SECOND;

#[test]
fn f20_the_counts_for_one_nanosecond_to_one_hour_take_264_kib() {
    let counts = hdrhistogram::Histogram::<u64>::new_with_bounds(1, HOUR_NS, 3).unwrap();
    assert_eq!(counts.distinct_values() * size_of::<u64>(), 270_336);
}

#[test]
fn f20_values_up_to_an_hour_are_rounded_up_by_at_most_one_part_in_1024() {
    let mut value_ns = 1_u64;
    while value_ns <= HOUR_NS {
        for value_ns in [
            value_ns - 1,
            value_ns,
            value_ns + 1,
            value_ns + value_ns / 3,
        ] {
            let mut histogram = LatencyHistogram::new();
            histogram.record(value_ns);
            // The maximum is stored exactly, so it must not be the tested value.
            histogram.record(2 * HOUR_NS);
            let reported_ns = histogram.at_rank_ns(1).unwrap();
            assert!(
                reported_ns >= value_ns,
                "{value_ns} is reported as {reported_ns}"
            );
            assert!(
                (reported_ns - value_ns) * 1_024 <= value_ns,
                "{value_ns} is reported as {reported_ns}"
            );
        }
        value_ns += value_ns / 7 + 1;
    }
}

#[test]
fn f20_a_pause_recorded_as_one_sample_is_invisible_in_uncorrected_quantiles() {
    // A closed loop: for 100 s, one request of 1 ms every 10 ms; then a pause of 100 s, recorded as
    // one sample.
    let mut histogram = LatencyHistogram::new();
    (0..10_000).for_each(|_| histogram.record(MS));
    histogram.record(100 * SECOND);

    assert!(histogram.quantile_ns(0.9999).unwrap() <= MS + MS / 1_024);
    assert_eq!(histogram.max_ns(), Some(100 * SECOND));

    let bytes = histogram.to_hdr_v2().unwrap();
    let read = LatencyHistogram::from_hdr_v2(&bytes).unwrap();
    assert_eq!(
        read.buckets(),
        histogram.buckets(),
        "the buckets survive serialization"
    );
}

#[test]
fn f20_the_same_pause_makes_up_half_the_samples_of_a_corrected_histogram() {
    let mut corrected = hdrhistogram::Histogram::<u64>::new_with_bounds(1, HOUR_NS, 3).unwrap();
    (0..10_000).for_each(|_| corrected.record(MS).unwrap());
    corrected.record_correct(100 * SECOND, 10 * MS).unwrap();
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(&corrected, &mut bytes)
        .unwrap();

    let read = LatencyHistogram::from_hdr_v2(&bytes).unwrap();
    assert_eq!(
        read.count(),
        20_000,
        "one added sample per 10 ms of the pause"
    );

    let quantile_ns = |share: f64| read.quantile_ns(share).unwrap();
    assert!(quantile_ns(0.5) <= MS + MS / 1_024, "{}", quantile_ns(0.5));
    assert!(quantile_ns(0.501) >= 10 * MS, "{}", quantile_ns(0.501));
    // The samples of the pause fall evenly from 100 s to 10 ms and are half of all samples, so p75
    // is 50 s.
    assert!(
        quantile_ns(0.75).abs_diff(50 * SECOND) <= SECOND / 10,
        "{}",
        quantile_ns(0.75)
    );
}
