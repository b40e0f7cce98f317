//! Two sets of runs compared: the difference of means, and how sure it is.
//!
//! Welch's unequal-variances *t*-interval (B. L. Welch, Biometrika 34, 1947) at 95 %, with the degrees of
//! freedom of Welch and Satterthwaite. One run per side gives no interval.

/// A quantity in two sets of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Mean of the runs before.
    pub before: f64,
    /// Mean of the runs after.
    pub after: f64,
    /// 95 % confidence interval of `after - before`, if both sides have at least two runs.
    pub interval: Option<(f64, f64)>,
}

impl Comparison {
    /// Compares two sets, each of at least one value.
    pub fn of(before: &[f64], after: &[f64]) -> Comparison {
        let (first, second) = (Moments::of(before), Moments::of(after));
        let difference = second.mean - first.mean;
        let errors = first.error.zip(second.error).filter(|(a, b)| a + b > 0.0);
        let interval = match errors {
            Some((a, b)) => {
                let freedom =
                    (a + b) * (a + b) / (a * a / (first.count - 1.0) + b * b / (second.count - 1.0));
                let half = t_quantile(freedom) * (a + b).sqrt();
                Some((difference - half, difference + half))
            }
            // Equal values leave no doubt.
            None => first.error.zip(second.error).map(|_| (difference, difference)),
        };
        Comparison { before: first.mean, after: second.mean, interval }
    }

    /// The difference of the means.
    pub fn difference(&self) -> f64 {
        self.after - self.before
    }

    /// The growth as a fraction of the mean before; `None` if only that mean is zero.
    pub fn growth(&self) -> Option<f64> {
        match (self.difference(), self.before) {
            (0.0, _) => Some(0.0),
            (_, 0.0) => None,
            (difference, before) => Some(difference / before),
        }
    }

    /// Whether zero is outside the interval; `None` without one.
    pub fn is_certain(&self) -> Option<bool> {
        self.interval.map(|(low, high)| low > 0.0 || high < 0.0)
    }

    /// Whether it has grown by more than this part: the mean, and not by chance as far as that is known.
    pub fn has_grown_over(&self, part: f64) -> bool {
        self.difference() > part * self.before && self.is_certain().unwrap_or(true)
    }
}

struct Moments {
    count: f64,
    mean: f64,
    /// Variance of the mean.
    error: Option<f64>,
}

impl Moments {
    fn of(values: &[f64]) -> Moments {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count.max(1.0);
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        Moments { count, mean, error: (values.len() > 1).then(|| squares / (count - 1.0) / count) }
    }
}

/// The 97.5 % quantile of Student's *t* distribution: a table up to 30 degrees of freedom, taken at
/// the next lower number of them, which is on the safe side; beyond, the first terms of its expansion.
fn t_quantile(freedom: f64) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    let row = freedom.max(1.0).floor() as usize;
    TABLE.get(row - 1).copied().unwrap_or(1.96 + 2.372 / freedom + 2.82 / (freedom * freedom))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_welch() {
        // Means 11 and 16, both with variance 2.5 and 5 values: t(8) × 1 = 2.306.
        let before = [9.0, 10.0, 11.0, 12.0, 13.0];
        let after = before.map(|value| value + 5.0);
        let comparison = Comparison::of(&before, &after);
        let (low, high) = comparison.interval.unwrap();
        assert!((low - 2.694).abs() < 1e-9 && (high - 7.306).abs() < 1e-9, "{low} {high}");
        assert_eq!(comparison.is_certain(), Some(true));
        assert!(comparison.has_grown_over(0.4) && !comparison.has_grown_over(0.5));
    }

    #[test]
    fn chance_is_no_growth() {
        let comparison = Comparison::of(&[8.0, 12.0], &[9.0, 13.0]);
        assert_eq!(comparison.growth(), Some(0.1));
        assert_eq!(comparison.is_certain(), Some(false));
        assert!(!comparison.has_grown_over(0.05));
        assert!(
            Comparison::of(&[10.0], &[11.0]).has_grown_over(0.05),
            "without an interval the mean decides"
        );
        assert_eq!(Comparison::of(&[3.0, 3.0], &[3.0, 3.0]).interval, Some((0.0, 0.0)));
        assert!((t_quantile(60.0) - 2.000).abs() < 2e-3 && (t_quantile(1e9) - 1.96).abs() < 1e-3);
    }
}
