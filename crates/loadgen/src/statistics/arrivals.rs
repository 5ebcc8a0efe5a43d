//! Three tests whether the timestamps of sends or arrivals follow a Poisson process.

/// The Anderson-Darling statistic of gaps against the exponential distribution with their own mean,
/// corrected for their number (Stephens 1974). Its critical values are 1.321 at 5 % and 1.959 at 1
/// %. It detects ticks, serial sends and stalls; it cannot detect independent delays of less than
/// half a gap, after which a Poisson process is still one.
#[must_use]
pub fn anderson_darling(gaps: &[f64]) -> f64 {
    let in_means = sorted_in_means(gaps);
    let n = in_means.len() as f64;
    let terms =
        in_means
            .iter()
            .zip(in_means.iter().rev())
            .enumerate()
            .map(|(index, (low, high))| {
                // ln F(low) + ln (1 - F(high)), F(x) = 1 - exp(-x).
                (2 * index + 1) as f64 * ((-(-low).exp_m1()).max(f64::MIN_POSITIVE).ln() - high)
            });

    (-n - terms.sum::<f64>() / n) * (1.0 + 0.6 / n)
}

/// The Kolmogorov distance between the distribution of gaps and the exponential distribution with
/// their own mean.
#[must_use]
pub fn kolmogorov_distance(gaps: &[f64]) -> f64 {
    let in_means = sorted_in_means(gaps);
    let n = in_means.len() as f64;
    let distance = |(index, gap): (usize, &f64)| {
        let law = -(-gap).exp_m1();
        (law - index as f64 / n).max((index + 1) as f64 / n - law)
    };

    in_means
        .iter()
        .enumerate()
        .map(distance)
        .fold(0.0, f64::max)
}

/// How far the index of dispersion (variance by mean, 1 for a Poisson process) of the number of
/// timestamps per window of this length is from 1, in units of its standard error. `None` with
/// fewer than ten windows, or with fewer than one timestamp per window.
#[must_use]
pub fn dispersion_deviation(sorted_timestamps_ns: &[u64], window_ns: u64) -> Option<f64> {
    let (first_ns, last_ns) = (
        *sorted_timestamps_ns.first()?,
        *sorted_timestamps_ns.last()?,
    );
    let windows = ((last_ns - first_ns) / window_ns.max(1)) as usize;
    if windows < 10 || sorted_timestamps_ns.len() < windows {
        return None;
    }

    let mut counts = vec![0.0_f64; windows];
    for timestamp_ns in sorted_timestamps_ns {
        if let Some(count) = counts.get_mut(((timestamp_ns - first_ns) / window_ns) as usize) {
            *count += 1.0;
        }
    }

    let mean = counts.iter().sum::<f64>() / windows as f64;
    let degrees = (windows - 1) as f64;
    let variance = counts
        .iter()
        .map(|count| (count - mean).powi(2))
        .sum::<f64>()
        / degrees;

    Some((variance / mean - 1.0).abs() / (2.0 / degrees).sqrt())
}

fn sorted_in_means(gaps: &[f64]) -> Vec<f64> {
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let mut in_means: Vec<f64> = gaps.iter().map(|gap| gap / mean).collect();
    in_means.sort_by(f64::total_cmp);
    in_means
}

/// Gaps between ascending timestamps.
#[must_use]
pub fn gaps(sorted_timestamps_ns: &[u64]) -> Vec<f64> {
    sorted_timestamps_ns
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRITICAL_1_PERCENT: f64 = 1.959;

    /// Ten thousand gaps, as in the power table of the method.
    fn exponential_gaps(seed: u64) -> Vec<f64> {
        (0..10_000)
            .map(|index| refsrv::random::exponential(seed, index))
            .collect()
    }

    fn timestamps_ns(gaps: &[f64]) -> Vec<u64> {
        let sum = |at: &mut f64, gap: &f64| {
            *at += gap * 1e6;
            Some(*at as u64)
        };
        gaps.iter().scan(0.0, sum).collect()
    }

    #[test]
    fn exponential_gaps_pass_with_the_nominal_rate_of_false_alarms() {
        let alarms = (0..400)
            .filter(|&seed| anderson_darling(&exponential_gaps(seed)) > CRITICAL_1_PERCENT)
            .count();
        // Binomial(400, 0.01): mean 4, standard deviation 2.
        assert!((1..=10).contains(&alarms), "{alarms} of 400");

        let largest = (0..100)
            .map(|seed| kolmogorov_distance(&exponential_gaps(seed)))
            .fold(0.0, f64::max);
        assert!(largest < 0.02, "{largest}");

        for window_ns in [10_000_000, 100_000_000] {
            let deviations = (0..100).map(|seed| {
                dispersion_deviation(&timestamps_ns(&exponential_gaps(seed)), window_ns)
            });
            let outside = deviations
                .flatten()
                .filter(|deviation| *deviation > 4.0)
                .count();
            assert!(outside <= 2, "{outside} of 100 at {window_ns}");
        }
    }

    #[test]
    fn non_exponential_gaps_are_detected_with_the_tabulated_statistics() {
        // Serial sends: no gap below a twentieth of the mean. The table says 12.8 and 0.049.
        let spaced: Vec<f64> = exponential_gaps(1)
            .iter()
            .map(|gap| gap.max(0.05))
            .collect();
        assert!(
            anderson_darling(&spaced) > 5.0,
            "{}",
            anderson_darling(&spaced)
        );
        assert!(
            (kolmogorov_distance(&spaced) - 0.049).abs() < 0.01,
            "{}",
            kolmogorov_distance(&spaced)
        );

        // Even spacing: 4,500 and 0.62 in the table.
        let even = vec![1.0; 10_000];
        assert!(anderson_darling(&even) > 4_000.0 && kolmogorov_distance(&even) > 0.6);
    }

    #[test]
    fn bursts_and_even_spacing_deviate_in_dispersion() {
        let even = timestamps_ns(&vec![1.0; 10_000]);
        assert!(
            dispersion_deviation(&even, 100_000_000) > Some(4.0),
            "no variation"
        );

        let bursts: Vec<f64> = exponential_gaps(2)
            .iter()
            .zip(0..)
            .map(|(gap, index)| gap * f64::from(1 + index / 500 % 2))
            .collect();
        assert!(dispersion_deviation(&timestamps_ns(&bursts), 100_000_000) > Some(4.0));
        assert_eq!(dispersion_deviation(&even[..50], 100_000_000), None);
    }
}
