//! Values of a numeric field of all events of a name, as a counter: each value holds until the next event, or
//! until events are missing.
//!
//! Memory is bounded: of very many values, neighbours are joined, and the least, the greatest and the last of
//! them are kept.

use crate::events::{literal, plain};
use crate::passes::{Pass, Passes, Work};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use tracewing_ctf::decode::Value;
use tracewing_ctf::model::Scope;
use tracewing_index::{Index, Window};
use tracewing_trace::{EventRef, Filter, Recording};
use tracewing_units::{Duration, Timestamp};

/// Most points of a series, an even number: 16 MiB. When there are more, each two become one.
const POINTS: usize = 1 << 19;
/// Values that are published together.
const BATCH: usize = 1 << 12;
/// What a loss of samples says ([`tracewing_index::LossMark::scope`]): other events are not affected.
const SAMPLES: u8 = 2;

/// The series of a recording.
pub(crate) type AllSeries = Passes<Series>;

/// A field of events.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) event: String,
    pub(crate) scope: Scope,
    pub(crate) name: String,
}

#[derive(Debug)]
pub(crate) struct Series {
    field: Field,
    /// Times at which events begin to be missing, in order: what a value is after one is unknown.
    lost: Vec<Duration>,
    found: Mutex<Found>,
}

/// What was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    points: Vec<Point>,
    /// Values of each point but the last.
    each: u64,
    most_points: usize,
    pub(crate) count: u64,
    /// Up to when all are found.
    pub(crate) until: Duration,
    pub(crate) is_done: bool,
    /// Why not all were found.
    pub(crate) failure: Option<String>,
}

/// Values of some time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// When the first of them begins to hold.
    pub(crate) from: Duration,
    pub(crate) least: f64,
    pub(crate) most: f64,
    pub(crate) last: f64,
}

impl AllSeries {
    /// Starts to read the values of a field; gives the number of the series, or why there is none.
    pub(crate) fn read(
        &self,
        recording: &Arc<Recording>,
        index: &Index,
        field: Field,
    ) -> Result<u64, String> {
        let tail = index.tail();
        let losses = tail.losses.iter().filter(|loss| loss.scope != SAMPLES);
        let mut lost: Vec<Duration> = losses.map(|loss| loss.from).collect();
        lost.sort_unstable();
        let (recording, begin, length) = (recording.clone(), tail.begin, tail.length);
        let series = Series { field, lost, found: Mutex::new(Found::new(POINTS)) };
        self.start(series, move |pass| run(pass, &recording, begin).map(|()| length))
    }
}

impl Work for Series {
    /// How long the recording is.
    type Done = Duration;
    const NAMES: [&'static str; 2] = ["counter", "counters"];
    const KEPT: usize = 8;

    fn ends(&self, done: Result<Duration, String>) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        // Clocks may go back a little.
        found.points.sort_by_key(|point| point.from);
        found.is_done = true;
        match done {
            Ok(length) => found.until = found.until.max(length),
            Err(why) => found.failure = Some(why),
        }
    }
}

fn run(series: &Pass<Series>, recording: &Recording, begin: Timestamp) -> Result<(), String> {
    let Field { event, scope, name } = &series.field;
    let filter = Filter { events: vec![literal(event)], ..Filter::default() };
    let mut batch = Vec::with_capacity(BATCH);
    let ended = plain(recording, &filter, &mut |_| series.goes_on(), &mut |event, time| {
        batch.extend(number(event, *scope, name).map(|value| (time - begin, value)));
        if batch.len() >= BATCH {
            series.publish(&mut batch);
        }
        ControlFlow::Continue(())
    });
    series.publish(&mut batch);
    ended
}

/// The number in a field; those that are none, or infinite, are no values.
fn number(event: &EventRef<'_>, scope: Scope, name: &str) -> Option<f64> {
    let value = match event.decoded().field(scope, name)? {
        Value::Unsigned(number, _) | Value::UnsignedEnumeration(number, _) => number as f64,
        Value::Signed(number, _) | Value::SignedEnumeration(number, _) => number as f64,
        Value::Boolean(is_true) => f64::from(u8::from(is_true)),
        other => other.real()?,
    };
    value.is_finite().then_some(value)
}

impl Series {
    /// What was found so far.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&Found) -> T) -> T {
        look(&self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn publish(&self, batch: &mut Vec<(Duration, f64)>) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        batch.drain(..).for_each(|(at, value)| found.add(at, value));
    }

    /// The points of a window of time, with their ends; `each` may break.
    pub(crate) fn each(
        &self,
        (from, to): (Duration, Duration),
        mut each: impl FnMut(Point, Duration) -> ControlFlow<()>,
    ) {
        self.with(|found| {
            let first = found.points.partition_point(|point| point.from <= from).saturating_sub(1);
            let mut next = self.lost.partition_point(|at| *at <= found.begin_of(first));
            for (at, point) in found.points.iter().enumerate().skip(first) {
                if point.from >= to {
                    break;
                }
                while self.lost.get(next).is_some_and(|lost| *lost <= point.from) {
                    next += 1;
                }
                // One that another replaces at once is seen, too.
                let end = found.begin_of(at + 1).max(point.from + Duration::from_ns(1));
                let end = self.lost.get(next).map_or(end, |lost| end.min(*lost));
                if end > from && each(*point, end).is_break() {
                    break;
                }
            }
        });
    }

    /// The least, the greatest and the last value of each bucket of a window that has any, and how many begin
    /// in it.
    pub(crate) fn buckets(&self, window: Window) -> Vec<(u64, [f64; 3], u64)> {
        let (from, to) = window.times();
        let mut found: Vec<(u64, [f64; 3], u64)> = Vec::new();
        self.each((from, to), |point, end| {
            let bucket = |time: Duration| time.as_ns() >> window.shift;
            let [first, last] = [point.from.max(from), end.min(to) - Duration::from_ns(1)].map(bucket);
            for number in first..=last {
                if found.last().is_none_or(|(last, ..)| *last < number) {
                    found.push((number, [point.least, point.most, point.last], 0));
                }
                let Some((_, [least, most, last], begun)) = found.last_mut() else { continue };
                (*least, *most, *last) = (least.min(point.least), most.max(point.most), point.last);
                *begun += u64::from(bucket(point.from) == number);
            }
            ControlFlow::Continue(())
        });
        found
    }
}

impl Found {
    fn new(most_points: usize) -> Self {
        let (points, count, until) = (Vec::new(), 0, Duration::ZERO);
        Found { points, each: 1, most_points, count, until, is_done: false, failure: None }
    }

    fn add(&mut self, from: Duration, value: f64) {
        let point = Point { from, least: value, most: value, last: value };
        let is_new = self.count.is_multiple_of(self.each);
        match self.points.last_mut().filter(|_| !is_new) {
            Some(last) => last.join(point),
            None => self.points.push(point),
        }
        (self.count, self.until) = (self.count + 1, self.until.max(from));
        if self.points.len() == self.most_points && self.count.is_multiple_of(self.each) {
            let mut joined = Vec::with_capacity(self.most_points);
            for two in self.points.chunks(2) {
                let mut point = two[0];
                two[1..].iter().for_each(|other| point.join(*other));
                joined.push(point);
            }
            (self.points, self.each) = (joined, self.each * 2);
        }
    }

    /// When a point begins; after the last one, up to when all are found.
    fn begin_of(&self, at: usize) -> Duration {
        self.points.get(at).map_or(self.until, |point| point.from)
    }

    /// Whether each point is one value.
    pub(crate) fn is_whole(&self) -> bool {
        self.each == 1
    }

    /// The least and the greatest value of all.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let ranges = self.points.iter().map(|point| (point.least, point.most));
        ranges.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }
}

impl Point {
    fn join(&mut self, next: Point) {
        self.least = self.least.min(next.least);
        (self.most, self.last) = (self.most.max(next.most), next.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[(u64, f64)], lost: &[u64], until: u64, most_points: usize) -> Series {
        let mut found = Found::new(most_points);
        values.iter().for_each(|(at, value)| found.add(Duration::from_ns(*at), *value));
        let field = Field { event: "e".to_owned(), scope: Scope::Payload, name: "n".to_owned() };
        let lost = lost.iter().map(|at| Duration::from_ns(*at)).collect();
        let series = Series { field, lost, found: Mutex::new(found) };
        series.ends(Ok(Duration::from_ns(until)));
        series
    }

    #[test]
    fn a_value_holds_until_the_next_one_or_a_loss() {
        let series = series(&[(10, 1.0), (20, -4.0), (20, 7.0), (50, 2.5)], &[40, 45, 60], 100, 64);
        let all = |from: u64, to: u64| {
            let mut found = Vec::new();
            series.each((Duration::from_ns(from), Duration::from_ns(to)), |point, end| {
                found.push((point.from.as_ns(), point.last, end.as_ns()));
                ControlFlow::Continue(())
            });
            found
        };
        let whole = [(10, 1.0, 20), (20, -4.0, 21), (20, 7.0, 40), (50, 2.5, 60)];
        assert_eq!(all(0, 1000), whole);
        assert_eq!(all(30, 45), whole[2..3]);
        assert_eq!(all(42, 50), []);
        assert_eq!(all(55, 56), whole[3..]);
    }

    #[test]
    fn buckets_have_the_least_the_greatest_and_the_last_value() {
        let series = series(&[(10, 1.0), (20, -4.0), (20, 7.0), (50, 2.5)], &[40], 60, 64);
        let window = Window { shift: 4, first: 0, count: 4 };
        let expected = [
            (0, [1.0, 1.0, 1.0], 1),
            (1, [-4.0, 7.0, 7.0], 2),
            (2, [7.0, 7.0, 7.0], 0),
            (3, [2.5, 2.5, 2.5], 1),
        ];
        assert_eq!(series.buckets(window), expected);
        assert_eq!(series.buckets(Window { shift: 4, first: 2, count: 1 }), expected[2..3]);
    }

    #[test]
    fn of_very_many_values_nothing_is_averaged() {
        let values: Vec<(u64, f64)> = (0..1000).map(|at| (at * 10, ((at * 7919) % 1000) as f64)).collect();
        let [few, all] = [16, 4096].map(|most| series(&values, &[], 10_000, most));
        assert!(few.with(|found| found.points.len() <= 16 && !found.is_whole() && found.count == 1000));
        assert_eq!(few.with(Found::range), Some((0.0, 999.0)));
        // Each point has the values that begin in its time.
        few.each((Duration::ZERO, Duration::from_ns(10_000)), |point, end| {
            let inside = values.iter().filter(|(at, _)| (point.from.as_ns()..end.as_ns()).contains(at));
            let inside: Vec<f64> = inside.map(|(_, value)| *value).collect();
            let least = inside.iter().copied().reduce(f64::min).unwrap();
            let most = inside.iter().copied().reduce(f64::max).unwrap();
            assert_eq!((point.least, point.most), (least, most));
            assert_eq!(point.last, inside[inside.len() - 1]);
            ControlFlow::Continue(())
        });
        let window = Window { shift: 6, first: 0, count: 200 };
        assert_eq!(all.buckets(window).iter().map(|(.., begun)| begun).sum::<u64>(), 1000);
    }
}
