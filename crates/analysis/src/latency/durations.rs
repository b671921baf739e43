//! How durations are distributed: mean, deviation, quantiles, and a histogram on a logarithmic scale.

use hdrhistogram::Histogram;
use serde::Serialize;
use tracewing_units::Duration;

/// Maximum number of durations that are kept (32 MiB); quantiles of more come from a histogram.
const KEPT: usize = 1 << 22;

/// Significant digits of quantiles out of a histogram.
const DIGITS: u8 = 3;

/// How far these can be off.
const ERROR: f64 = 0.001;

/// What is said of many durations; means are in nanoseconds.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub struct Distribution {
    /// How many there are.
    pub count: u64,
    /// The shortest duration; 0 without any.
    pub min_ns: Duration,
    /// Arithmetic mean, in nanoseconds.
    #[serde(rename = "avg_ns")]
    pub mean_ns: f64,
    /// Standard deviation from the mean, of all durations that there are.
    #[serde(rename = "stdev_ns")]
    pub deviation_ns: f64,
    /// The median: half of the periods are at most as long. Like the following, it is the shortest period for
    /// which that holds.
    pub p50_ns: Duration,
    /// 90 % are at most as long.
    pub p90_ns: Duration,
    /// 99 % are at most as long.
    pub p99_ns: Duration,
    /// 99.9 % are at most as long.
    pub p999_ns: Duration,
    /// The longest duration; 0 without any.
    pub max_ns: Duration,
    /// How far a quantile can be off, as a part of itself: 0 where each duration is kept.
    pub quantile_error: f64,
    /// By length, from the first that has any to the last.
    pub histogram: Vec<Bar>,
}

/// How many durations have about the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// At least this long.
    pub from_ns: Duration,
    /// And shorter than this; the last possible bar has no end.
    pub to_ns: Option<Duration>,
    /// Number of durations in this bar.
    pub count: u64,
}

/// Durations as they come.
#[derive(Debug)]
pub struct Durations {
    all: All,
    /// How many are kept one by one.
    kept: usize,
    count: u64,
    min: Duration,
    max: Duration,
    /// Welford's mean and sum of squared differences from it.
    mean: f64,
    squares: f64,
    /// Number of durations in each [`bar`].
    bars: Vec<u64>,
}

#[derive(Debug)]
enum All {
    Each(Vec<Duration>),
    Rounded(Box<Histogram<u64>>),
}

impl Default for Durations {
    fn default() -> Self {
        Self::keeping(KEPT)
    }
}

impl Durations {
    /// Of more than `kept`, quantiles come from a histogram.
    pub fn keeping(kept: usize) -> Self {
        let (all, bars) = (All::Each(Vec::new()), Vec::new());
        Self { all, kept, count: 0, min: Duration::ZERO, max: Duration::ZERO, mean: 0.0, squares: 0.0, bars }
    }

    /// One more.
    pub fn add(&mut self, ns: Duration) {
        self.min = if self.count == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.count += 1;
        let from_mean = ns.as_ns() as f64 - self.mean;
        self.mean += from_mean / self.count as f64;
        self.squares += from_mean * (ns.as_ns() as f64 - self.mean);
        let bar = bar(ns);
        if self.bars.len() <= bar {
            self.bars.resize(bar + 1, 0);
        }
        self.bars[bar] += 1;
        match &mut self.all {
            All::Each(each) if each.len() < self.kept => each.push(ns),
            All::Each(each) => {
                let each = std::mem::take(each);
                self.all = All::Rounded(Box::new(rounded(each.into_iter().chain([ns]))));
            }
            All::Rounded(histogram) => histogram.saturating_record(ns.as_ns()),
        }
    }

    /// What is said of all of them.
    pub fn finish(self) -> Distribution {
        if self.count == 0 {
            return Distribution::default();
        }
        let first = self.bars.iter().position(|count| *count > 0).unwrap_or(0);
        let bars = self.bars.iter().enumerate().skip(first);
        let histogram =
            bars.map(|(bar, count)| Bar { from_ns: edge(bar), to_ns: upper(bar), count: *count }).collect();
        let (quantiles, quantile_error) = match self.all {
            All::Each(mut each) => {
                each.sort_unstable();
                // The shortest period that this many thousandths do not exceed.
                let of = |thousandths: usize| {
                    let rank = (each.len() * thousandths).div_ceil(1000).max(1);
                    each.get(rank - 1).copied().unwrap_or_default()
                };
                ([of(500), of(900), of(990), of(999)], 0.0)
            }
            All::Rounded(histogram) => {
                let of = |quantile| Duration::from_ns(histogram.value_at_quantile(quantile));
                ([of(0.5), of(0.9), of(0.99), of(0.999)], ERROR)
            }
        };
        let [p50_ns, p90_ns, p99_ns, p999_ns] = quantiles;
        Distribution {
            count: self.count,
            min_ns: self.min,
            mean_ns: self.mean,
            deviation_ns: (self.squares / self.count as f64).max(0.0).sqrt(),
            p50_ns,
            p90_ns,
            p99_ns,
            p999_ns,
            max_ns: self.max,
            quantile_error,
            histogram,
        }
    }
}

fn rounded(durations: impl Iterator<Item = Duration>) -> Histogram<u64> {
    let all = Histogram::new_with_bounds(1, u64::MAX, DIGITS);
    let mut histogram = all.expect("the bounds and digits are such as it can have");
    durations.for_each(|ns| histogram.saturating_record(ns.as_ns()));
    histogram
}

/// The bar of a duration. Bars begin at 0, 1, 2, 5, 10, 20, 50, … ns.
fn bar(ns: Duration) -> usize {
    let Some(decade) = ns.as_ns().checked_ilog10() else { return 0 };
    let first = ns.as_ns() / 10_u64.pow(decade);
    3 * decade as usize
        + match first {
            ..2 => 1,
            2..5 => 2,
            5.. => 3,
        }
}

/// Where a bar begins.
fn edge(bar: usize) -> Duration {
    let Some(place) = bar.checked_sub(1) else { return Duration::ZERO };
    Duration::from_ns([1, 2, 5][place % 3] * 10_u64.pow((place / 3) as u32))
}

/// Where the next one begins.
fn upper(bar: usize) -> Option<Duration> {
    (bar < self::bar(Duration::MAX)).then(|| edge(bar + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn figures_are_those_of_a_naive_computation(
            all in prop::collection::vec(prop_oneof![0..100_u64, 0..1_u64 << 40], 1..300),
        ) {
            let mut all: Vec<_> = all.into_iter().map(Duration::from_ns).collect();
            let mut durations = Durations::default();
            all.iter().for_each(|ns| durations.add(*ns));
            let measured = durations.finish();
            all.sort_unstable();
            // The first one that at least this many thousandths of all do not exceed.
            let quantile = |thousandths: usize| {
                let enough = |ns: &&Duration| {
                    all.iter().filter(|other| other <= ns).count() * 1000 >= thousandths * all.len()
                };
                all.iter().find(enough).copied()
            };
            let count = all.len() as f64;
            let mean = all.iter().map(|ns| ns.as_ns() as f64).sum::<f64>() / count;
            let variance = all.iter().map(|ns| (ns.as_ns() as f64 - mean).powi(2)).sum::<f64>() / count;
            prop_assert!((measured.mean_ns - mean).abs() <= mean * 1e-9);
            prop_assert!((measured.deviation_ns - variance.sqrt()).abs() <= variance.sqrt() * 1e-6 + 1e-6);
            let quantiles = [measured.p50_ns, measured.p90_ns, measured.p99_ns, measured.p999_ns, measured.max_ns];
            prop_assert_eq!(quantiles.map(Some), [500, 900, 990, 999, 1000].map(quantile));
            prop_assert_eq!((measured.count, Some(&measured.min_ns)), (all.len() as u64, all.first()));
            for Bar { from_ns, to_ns, count } in measured.histogram {
                let within = |ns: &&Duration| **ns >= from_ns && to_ns.is_none_or(|to| **ns < to);
                prop_assert_eq!(all.iter().filter(within).count() as u64, count);
            }
        }
    }

    #[test]
    fn each_duration_lies_between_the_edges_of_its_bar() {
        let powers = (0..64).map(|bit| 1_u64 << bit);
        for ns in
            powers.flat_map(|ns| [ns - 1, ns, ns + 1, ns / 2 * 3]).chain([u64::MAX, 4, 5, 9, 10, 49, 50])
        {
            let ns = Duration::from_ns(ns);
            let bar = bar(ns);
            assert!(edge(bar) <= ns && upper(bar).is_none_or(|upper| ns < upper), "{ns:?} in {bar}");
        }
    }

    #[test]
    fn many_durations_are_rounded_by_no_more_than_is_said() {
        let durations = |count: u64| {
            let mut durations = Durations::keeping(20_000);
            (0..count).for_each(|index| durations.add(Duration::from_ns(index * 7919 % 1_000_003 * 1000)));
            durations.finish()
        };
        let (exact, rounded) = (durations(20_000), durations(20_001));
        assert_eq!((exact.quantile_error, rounded.quantile_error), (0.0, ERROR));
        let quantiles =
            |of: &Distribution| [of.min_ns, of.p50_ns, of.p90_ns, of.p99_ns, of.p999_ns, of.max_ns];
        for (exact, rounded) in quantiles(&exact).into_iter().zip(quantiles(&rounded)) {
            let [exact, rounded] = [exact, rounded].map(|ns| ns.as_ns() as f64);
            assert!(exact - rounded <= exact * 0.001 + 1.0, "{exact} {rounded}");
        }
        assert_eq!(exact.histogram.iter().map(|bar| bar.count).sum::<u64>(), 20_000);
    }
}
