//! F20: the content and the precision of a histogram with three digits.
//!
//! A Python test proves, with another implementation of the format, that other programs can read
//! its bytes.

use hdrhistogram::serialization::{Serializer as _, V2Serializer};
use loadgen::LatencyHistogram;

use crate::support::{MS, SECOND};

const HOUR_NS: u64 = 3_600 * SECOND;

#[test]
fn f20_an_hour_to_the_nanosecond_takes_264_kib_of_counts() {
    let counts = hdrhistogram::Histogram::<u64>::new_with_bounds(1, HOUR_NS, 3).unwrap();
    assert_eq!(counts.distinct_values() * size_of::<u64>(), 270_336);
}

#[test]
fn f20_no_value_up_to_an_hour_is_shown_more_than_one_part_in_1024_too_high_or_at_all_too_low() {
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
            // The exact maximum would hide the slot.
            histogram.record(2 * HOUR_NS);
            let shown_ns = histogram.at_rank_ns(1).unwrap();
            assert!(shown_ns >= value_ns, "{value_ns} is shown as {shown_ns}");
            assert!(
                (shown_ns - value_ns) * 1_024 <= value_ns,
                "{value_ns} is shown as {shown_ns}"
            );
        }
        value_ns += value_ns / 7 + 1;
    }
}

#[test]
fn f20_a_pause_that_is_one_sample_hides_in_uncorrected_quantiles() {
    // One request at a time for 100 s, 1 ms each in steps of 10 ms; then a pause of 100 s, recorded
    // as one sample.
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
        "reading returns what was written"
    );
}

#[test]
fn f20_the_same_pause_fills_half_of_a_histogram_that_another_tool_corrected() {
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
        "one sample for each step of the pause"
    );
    let at = |share: f64| read.quantile_ns(share).unwrap();
    assert!(at(0.5) <= MS + MS / 1_024, "{}", at(0.5));
    assert!(at(0.501) >= 10 * MS, "{}", at(0.501));
    // The corrected samples of the pause fall evenly from 100 s to 10 ms and are half of all
    // samples, so p75 is 50 s.
    assert!(
        at(0.75).abs_diff(50 * SECOND) <= SECOND / 10,
        "{}",
        at(0.75)
    );
}
