//! The few statistics that the tests need, each with the source of its formula.

/// Critical value at 1 % of [`anderson_darling`] for exponential gaps whose mean is estimated (Stephens 1974, as in
/// scipy's table).
pub const ANDERSON_DARLING_1_PERCENT: f64 = 1.959;

/// The Anderson-Darling statistic of gaps against the exponential law with their own mean, corrected for their number.
pub fn anderson_darling(gaps: &[f64]) -> f64 {
    let in_means = sorted_in_means(gaps);
    let n = in_means.len() as f64;
    let terms = in_means.iter().zip(in_means.iter().rev()).enumerate().map(|(index, (low, high))| {
        // ln F(low) + ln (1 - F(high)), F(x) = 1 - exp(-x).
        (2 * index + 1) as f64 * ((-(-low).exp_m1()).max(f64::MIN_POSITIVE).ln() - high)
    });
    (-n - terms.sum::<f64>() / n) * (1.0 + 0.6 / n)
}

/// The largest distance between the distribution of gaps and the exponential law with their own mean.
pub fn kolmogorov_distance(gaps: &[f64]) -> f64 {
    let in_means = sorted_in_means(gaps);
    let n = in_means.len() as f64;
    let distance = |(index, gap): (usize, &f64)| {
        let law = -(-gap).exp_m1();
        (law - index as f64 / n).max((index + 1) as f64 / n - law)
    };
    in_means.iter().enumerate().map(distance).fold(0.0, f64::max)
}

/// Pearson's coefficient of correlation.
pub fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let n = pairs.len() as f64;
    let mean_x = pairs.iter().map(|pair| pair.0).sum::<f64>() / n;
    let mean_y = pairs.iter().map(|pair| pair.1).sum::<f64>() / n;
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        let (dx, dy) = (x - mean_x, y - mean_y);
        (xx, yy, xy) = (xx + dx * dx, yy + dy * dy, xy + dx * dy);
    }
    xy / (xx * yy).sqrt()
}

/// Nearest-rank quantile of ascending values.
pub fn quantile(sorted: &[u64], quantile: f64) -> u64 {
    sorted[loadgen::rank_of(quantile, sorted.len() as u64) as usize - 1]
}

fn sorted_in_means(gaps: &[f64]) -> Vec<f64> {
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let mut in_means: Vec<f64> = gaps.iter().map(|gap| gap / mean).collect();
    in_means.sort_by(f64::total_cmp);
    in_means
}

/// Ten thousand gaps, as many as the method's table of power is for.
fn exponential_gaps(seed: u64) -> Vec<f64> {
    (0..10_000).map(|index| refsrv::random::exponential(seed, index)).collect()
}

#[test]
fn exponential_gaps_pass_and_the_rate_of_false_alarms_is_the_nominal_one() {
    let alarms =
        (0..400).filter(|&seed| anderson_darling(&exponential_gaps(seed)) > ANDERSON_DARLING_1_PERCENT).count();
    // Binomial(400, 0.01): mean 4, standard deviation 2.
    assert!((1..=10).contains(&alarms), "{alarms} of 400");
    let farthest = (0..100).map(|seed| kolmogorov_distance(&exponential_gaps(seed))).fold(0.0, f64::max);
    assert!(farthest < 0.02, "{farthest}");
}

#[test]
fn gaps_that_are_not_exponential_are_found_as_the_table_of_power_says() {
    // Serial sends: no gap below a twentieth of the mean. The table says 12.8 and 0.049.
    let spaced: Vec<f64> = exponential_gaps(1).iter().map(|gap| gap.max(0.05)).collect();
    assert!(anderson_darling(&spaced) > 5.0, "{}", anderson_darling(&spaced));
    assert!((kolmogorov_distance(&spaced) - 0.049).abs() < 0.01, "{}", kolmogorov_distance(&spaced));
    // Even spacing: 4,500 and 0.62 in the table.
    let even = vec![1.0; 10_000];
    assert!(anderson_darling(&even) > 4_000.0 && kolmogorov_distance(&even) > 0.6);
}

#[test]
fn correlation_knows_its_ends() {
    let line: Vec<(f64, f64)> = (0..10).map(|x| (f64::from(x), 3.0 - f64::from(x))).collect();
    assert!((correlation(&line) + 1.0).abs() < 1e-12);
    let cross = [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)];
    assert!(correlation(&cross).abs() < 1e-12);
}
