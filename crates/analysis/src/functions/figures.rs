//! Times, and how far they are from each other.

use tracewing_units::Duration;

/// Count, sum, extremes and spread of some durations.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    /// Number of durations.
    pub count: u64,
    /// All of them together.
    pub sum_ns: Duration,
    /// The shortest duration; 0 without any.
    pub min_ns: Duration,
    /// The longest duration; 0 without any.
    pub max_ns: Duration,
    mean: f64,
    /// Sum of squared distances from the mean (Welford, *Note on a Method …*, 1962).
    squares: f64,
}

impl Figures {
    pub(super) fn add(&mut self, ns: Duration) {
        self.merge(&Figures {
            count: 1,
            sum_ns: ns,
            min_ns: ns,
            max_ns: ns,
            mean: ns.as_ns() as f64,
            squares: 0.0,
        });
    }

    /// Adds the other's times (Chan, Golub and LeVeque, *Updating Formulae …*, 1979).
    pub(super) fn merge(&mut self, other: &Figures) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        let (count, more) = (self.count as f64, other.count as f64);
        let distance = other.mean - self.mean;
        self.mean += distance * more / (count + more);
        self.squares += other.squares + distance * distance * count * more / (count + more);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
    }

    /// The average, if there is any.
    pub fn mean_ns(&self) -> Option<Duration> {
        self.sum_ns.mean(self.count)
    }

    /// The standard deviation, ns, if there is any.
    pub fn deviation_ns(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_ns((self.squares / self.count as f64).sqrt().round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(ns: u64) -> Duration {
        Duration::from_ns(ns)
    }

    fn lengths(of: &Figures) -> [Duration; 3] {
        [of.sum_ns, of.min_ns, of.max_ns]
    }

    fn of(times: &[u64]) -> Figures {
        let mut figures = Figures::default();
        times.iter().for_each(|ns| figures.add(Duration::from_ns(*ns)));
        figures
    }

    #[test]
    fn figures_are_those_of_all_times() {
        let all = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((all.count, lengths(&all)), (8, [40, 2, 9].map(ns)));
        assert_eq!((all.mean_ns(), all.deviation_ns()), (Some(ns(5)), Some(ns(2))));
        assert_eq!((of(&[]).mean_ns(), of(&[]).deviation_ns()), (None, None));
        let far = 1_000_000_000_000;
        assert_eq!(of(&[far + 4, far, far + 4, far]).deviation_ns(), Some(ns(2)));
    }

    #[test]
    fn parts_make_the_whole() {
        let mut parts = of(&[2, 4, 4]);
        parts.merge(&of(&[]));
        parts.merge(&of(&[4, 5, 5, 7, 9]));
        let whole = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((parts.count, lengths(&parts)), (8, [40, 2, 9].map(ns)));
        assert_eq!(parts.deviation_ns(), whole.deviation_ns());
    }
}
