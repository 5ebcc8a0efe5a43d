//! Stationarity of a series: a test for a drifting level, and a search for level changes.

/// A segment between two changes has at least this many values.
pub const MIN_SEGMENT: usize = 5;

/// Critical value of [`kpss`] at 1 % (Kwiatkowski, Phillips, Schmidt and Shin 1992, table 1, level
/// stationarity).
pub const KPSS_1_PERCENT: f64 = 0.739;

/// The minimum gain of a change, in variances times the logarithm of the length.
const PENALTY: f64 = 3.0;

/// One in this many steps between neighbours is considered a change and excluded from their
/// variance.
const STEPS_TO_ONE_CHANGE: usize = 20;

/// Upper bound of the estimated autocorrelation of neighbours. An estimate from a few dozen steps
/// is so imprecise that a larger one would hide changes.
const MAX_AUTOCORRELATION: f64 = 0.5;

/// The statistic of Kwiatkowski, Phillips, Schmidt and Shin: its null hypothesis is a constant
/// level, so failing to reject it is no proof of a trend. Long-run variance by Newey and West with
/// `4 (n / 100)^(1/4)` lags.
#[must_use]
pub fn kpss(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let deviations = differences_from_mean(values);
    let lags = (4.0 * (n / 100.0).powf(0.25)) as usize;
    let covariance = |lag: usize| {
        deviations
            .iter()
            .zip(deviations.iter().skip(lag))
            .map(|(early, late)| early * late)
            .sum::<f64>()
            / n
    };
    let weighted = |lag: usize| (1.0 - lag as f64 / (lags + 1) as f64) * covariance(lag);
    let long_run = covariance(0) + 2.0 * (1..=lags).map(weighted).sum::<f64>();
    let sums = deviations.iter().scan(0.0, |sum, value| {
        *sum += value;
        Some(*sum)
    });

    if long_run > 0.0 {
        sums.map(|sum| sum * sum).sum::<f64>() / (n * n * long_run)
    } else {
        0.0
    }
}

/// Indices at which the level of a series changes, ascending: each starts a new segment of
/// [`MIN_SEGMENT`] values or more. Binary segmentation, with three times the logarithm of the
/// length as the penalty (Killick, Fearnhead and Eckley 2012 discuss such penalties). The variance
/// is that of neighbouring differences, which a change hardly affects, increased if neighbours are
/// correlated.
#[must_use]
pub fn changes(values: &[f64]) -> Vec<usize> {
    let min_gain = PENALTY * (values.len().max(1) as f64).ln() * long_run_variance(values);
    let mut changes_at = Vec::new();
    let mut segments = vec![(0, values.len())];

    while let Some((begin, end)) = segments.pop() {
        if let Some((at, _)) = best_split(&values[begin..end]).filter(|(_, gain)| *gain > min_gain)
        {
            changes_at.push(begin + at);
            segments.extend([(begin, begin + at), (begin + at, end)]);
        }
    }

    changes_at.sort_unstable();
    changes_at
}

/// The split that minimises the sum of squares, and the reduction; `None` if there are too few
/// values.
fn best_split(values: &[f64]) -> Option<(usize, f64)> {
    let all: f64 = values.iter().sum();
    let (mut left, mut best): (f64, Option<(usize, f64)>) = (0.0, None);

    for (at, value) in values.iter().enumerate() {
        if at.min(values.len() - at) >= MIN_SEGMENT {
            let (before, after) = (at as f64, (values.len() - at) as f64);
            // Sum of squares about one mean, minus the sum about two.
            let gain =
                before * after / (before + after) * (left / before - (all - left) / after).powi(2);
            if best.is_none_or(|(_, most)| gain > most) {
                best = Some((at, gain));
            }
        }
        left += value;
    }

    best
}

/// Variance per value of a mean of many values. If neighbours have the correlation `r`, the steps
/// between them have the variance `2 v (1 - r)` and the correlation `-(1 - r) / 2` with each other;
/// the mean has `v (1 + r) / (1 - r)`. The largest steps are changes rather than variance.
fn long_run_variance(values: &[f64]) -> f64 {
    let steps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mut sizes: Vec<f64> = steps.iter().map(|step| step.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let kept = sizes.len() - sizes.len().div_ceil(STEPS_TO_ONE_CHANGE);
    let Some(&largest) = sizes[..kept].last() else {
        return 0.0;
    };

    let mean_of = |terms: &mut dyn Iterator<Item = (f64, f64)>| {
        let (sum, count) = terms
            .filter(|(left, right)| left.abs().max(right.abs()) <= largest)
            .fold((0.0, 0.0), |(sum, count), (left, right)| {
                (sum + left * right, count + 1.0)
            });
        if count > 0.0 { sum / count } else { 0.0 }
    };
    let square = mean_of(&mut steps.iter().map(|step| (*step, *step)));
    let product = mean_of(&mut steps.windows(2).map(|pair| (pair[0], pair[1])));
    if square == 0.0 {
        return 0.0;
    }

    let correlation = (1.0 + 2.0 * product / square).clamp(0.0, MAX_AUTOCORRELATION);
    square / (2.0 * (1.0 - correlation)) * (1.0 + correlation) / (1.0 - correlation)
}

/// How much larger the mean of the last third is than that of the first.
#[must_use]
pub fn drift(values: &[f64]) -> f64 {
    let third = (values.len() / 3).max(1);
    mean(&values[values.len() - third..]) - mean(&values[..third])
}

/// The median slope between any two values, per step (Theil 1950, Sen 1968): robust against short
/// bumps.
#[must_use]
pub fn median_slope(values: &[f64]) -> f64 {
    let slopes = |early: usize| {
        (early + 1..values.len())
            .map(move |late| (values[late] - values[early]) / (late - early) as f64)
    };
    median((0..values.len()).flat_map(slopes).collect())
}

/// The median; 0 if there are no values.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n => (values[(n - 1) / 2] + values[n / 2]) / 2.0,
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn differences_from_mean(values: &[f64]) -> Vec<f64> {
    let mean = mean(values);
    values.iter().map(|value| value - mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u64, length: u64) -> Vec<f64> {
        (0..length)
            .map(|index| refsrv::random::normal(seed, index))
            .collect()
    }

    /// Each value plus this share of the previous result (an AR(1) process).
    fn autoregressive(share: f64, values: &[f64]) -> Vec<f64> {
        let next = |before: &mut f64, value: &f64| {
            *before = share * *before + value;
            Some(*before)
        };
        values.iter().scan(0.0, next).collect()
    }

    #[test]
    fn a_constant_level_is_rejected_once_in_a_hundred() {
        let rejected = (0..1_000)
            .filter(|&seed| kpss(&noise(seed, 60)) > KPSS_1_PERCENT)
            .count();
        // Binomial(1000, 0.01) has the standard deviation 3; with so few values the test rejects
        // less often than its level.
        assert!(rejected <= 19, "{rejected}");

        let walks = (0..100)
            .filter(|&seed| kpss(&autoregressive(1.0, &noise(seed, 60))) > KPSS_1_PERCENT)
            .count();
        assert!(walks > 50, "{walks} of 100 random walks were detected");
        assert_eq!(kpss(&[1.0; 20]), 0.0);
    }

    #[test]
    fn noise_has_no_change_and_a_step_is_located() {
        let (mut false_alarms, mut correlated_alarms) = (0, 0);
        for seed in 0..300 {
            false_alarms += usize::from(!changes(&noise(seed, 60)).is_empty());
            correlated_alarms +=
                usize::from(!changes(&autoregressive(0.5, &noise(seed, 60))).is_empty());
            let step: Vec<f64> = noise(seed, 60)
                .iter()
                .zip(0..)
                .map(|(value, at)| value + if at < 20 { 6.0 } else { 0.0 })
                .collect();
            let changes_at = changes(&step);
            assert!(
                changes_at.iter().any(|at| at.abs_diff(20) <= 1),
                "{changes_at:?}"
            );
        }

        // 36 times a chi-square's tail beyond 3 ln 60 = 12.3, in effect some 2 %.
        assert!(false_alarms <= 15, "{false_alarms} of 300");
        assert!(correlated_alarms <= 30, "{correlated_alarms} of 300");
    }

    #[test]
    fn a_segment_of_minimum_length_is_detected_at_either_end() {
        let step = |at: usize| -> Vec<f64> {
            noise(3, 40)
                .iter()
                .enumerate()
                .map(|(index, value)| value / 10.0 + f64::from(u8::from(index < at)))
                .collect()
        };
        assert_eq!(changes(&step(5)), [5]);
        assert_eq!(changes(&step(35)), [35]);
        assert_eq!(changes(&[0.0; 9]), [0_usize; 0], "too few");
    }

    #[test]
    fn a_short_bump_hardly_changes_the_median_slope() {
        let mut line: Vec<f64> = (0..30).map(|at| f64::from(at) * 0.5).collect();
        assert!((median_slope(&line) - 0.5).abs() < 1e-12);

        (20..24).for_each(|at| line[at] += 100.0);
        assert!(
            (median_slope(&line) - 0.5).abs() < 0.05,
            "{}",
            median_slope(&line)
        );
        assert!((drift(&[1.0, 1.0, 5.0, 9.0, 2.0, 2.0]) - 1.0).abs() < 1e-12);
        assert_eq!(
            (
                median(vec![]),
                median(vec![3.0, 1.0, 2.0]),
                median(vec![1.0, 2.0])
            ),
            (0.0, 2.0, 1.5)
        );
    }
}
