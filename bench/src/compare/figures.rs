//! Medians, spreads and percentiles of repeated measurements.

/// One figure per round, in the order of the rounds.
#[derive(Clone, Debug, Default)]
pub struct Rounds(pub Vec<f64>);

impl Rounds {
    /// The median over the rounds; NaN without any.
    pub fn median(&self) -> f64 {
        median(&self.0)
    }

    /// The smallest and the largest.
    pub fn range(&self) -> (f64, f64) {
        let smallest = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (smallest, largest)
    }

    /// The 95 % confidence interval of the median: ranks of the sorted rounds by the binomial distribution,
    /// which assumes nothing about the distribution of the figures. With few rounds, from the least to the
    /// greatest.
    pub fn interval(&self) -> (f64, f64) {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len() as f64;
        // Half the width of the distribution's middle 95 %, in ranks.
        let width = 1.96 * count.sqrt() / 2.0;
        let below = (count / 2.0 - width).floor().max(0.0) as usize;
        let rank = |rank: usize| sorted.get(rank).copied().unwrap_or(f64::NAN);
        (rank(below.saturating_sub(1)), rank(sorted.len().saturating_sub(below.max(1))))
    }

    /// Divides round by round, so that what changed on the machine from one round to the next cancels out.
    pub fn ratio_to(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(mine, theirs)| mine / theirs).collect())
    }

    /// Every figure times a factor.
    pub fn times(&self, factor: f64) -> Self {
        Self(self.0.iter().map(|figure| figure * factor).collect())
    }
}

/// The middle value, or the mean of the two in the middle; NaN without any.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// The smallest of sorted samples that is not below a share of them, between 0 and 1; 0 without any.
pub fn percentile(sorted: &[u32], share: f64) -> u32 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).or(sorted.last()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_no_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let slow = Rounds(vec![10.0, 40.0, 30.0]);
        let fast = Rounds(vec![5.0, 10.0, 10.0]);
        assert_eq!(slow.ratio_to(&fast).0, [2.0, 4.0, 3.0]);
        assert_eq!(slow.ratio_to(&fast).median(), 3.0);
        assert_eq!(slow.range(), (10.0, 40.0));
    }

    #[test]
    fn an_interval_has_its_ranks_around_the_median() {
        let rounds = |count: u32| Rounds((1..=count).map(f64::from).collect());
        // Tables of the binomial distribution: the 40th and the 61st of 100, the 1st and the 6th of 6.
        assert_eq!(rounds(100).interval(), (40.0, 61.0));
        assert_eq!(rounds(6).interval(), (1.0, 6.0));
        assert_eq!(rounds(1).interval(), (1.0, 1.0));
    }

    #[test]
    fn a_percentile_is_the_sample_that_so_many_do_not_exceed() {
        let samples: Vec<u32> = (1..=1000).collect();
        assert_eq!(percentile(&samples, 0.5), 500);
        assert_eq!(percentile(&samples, 0.999), 999);
        assert_eq!(percentile(&samples, 0.9999), 1000);
        assert_eq!((percentile(&samples, 1.0), percentile(&[], 0.5)), (1000, 0));
    }
}
