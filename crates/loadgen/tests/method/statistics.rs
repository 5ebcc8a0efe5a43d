//! Statistics for the tests.

/// Pearson's correlation coefficient.
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

/// Mean and standard deviation of a sample.
pub fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / (n - 1.0);
    (mean, variance.sqrt())
}

#[test]
fn mean_and_deviation_of_three_numbers() {
    assert_eq!(mean_and_deviation(&[1.0, 2.0, 3.0]), (2.0, 1.0));
}

#[test]
fn correlation_is_minus_one_on_a_falling_line_and_zero_on_a_cross() {
    let line: Vec<(f64, f64)> = (0..10)
        .map(|x| (f64::from(x), 3.0 - f64::from(x)))
        .collect();
    assert!((correlation(&line) + 1.0).abs() < 1e-12);
    let cross = [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)];
    assert!(correlation(&cross).abs() < 1e-12);
}
