//! `losses`: where events are missing in a window, as a picture needs it; `lost`: the same places one by one.
//! Of a recording with few losses, `state` has all.

use super::ask::{Refusal, parsed, refused};
use super::state::{Loss, loss};
use crate::recording::Ready;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use tracewing_index::LossMark;
use tracewing_units::Duration;

/// Most places of a picture: if there are more, its buckets are longer.
const MOST_SEEN: usize = 10_000;
/// Most places of a list.
const MOST_LISTED: usize = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    from: Duration,
    to: Duration,
    /// The exponent of a bucket's length: that of a pixel.
    shift: u32,
}

#[derive(Debug, Serialize)]
struct Seen {
    losses: Vec<Merged>,
}

/// Losses of one kind that lie in the same buckets.
#[derive(Debug, Serialize)]
struct Merged {
    #[serde(flatten)]
    loss: Loss,
    /// How many losses they are.
    places: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    first: usize,
    most: usize,
}

#[derive(Debug, Serialize)]
struct List {
    count: usize,
    losses: Vec<Loss>,
}

pub(super) fn seen(ready: &Ready, body: &[u8]) -> Result<Reply, Refusal> {
    let Window { from, to, shift } = parsed(body)?;
    if from > to || shift > 62 {
        return Err(refused("there is no such window"));
    }
    let merge = |shift| merged(ready.losses(), (from, to), shift);
    let found = (shift..=62).map(merge).find(|found| found.len() <= MOST_SEEN);
    let losses = found.unwrap_or_default();
    let one = |(mark, places): &(LossMark, u64)| Merged { loss: loss(mark), places: *places };
    Ok(Reply::json(&Seen { losses: losses.iter().map(one).collect() }))
}

pub(super) fn list(ready: &Ready, body: &[u8]) -> Result<Reply, Refusal> {
    let Part { first, most } = parsed(body)?;
    if most > MOST_LISTED {
        return Err(refused("too many losses"));
    }
    let all = ready.losses();
    let some = all.iter().skip(first).take(most).map(loss).collect();
    Ok(Reply::json(&List { count: all.len(), losses: some }))
}

/// The losses that touch a window, by time. Those of one kind and CPU are one if one begins in the bucket in
/// which another one ends. Each has the number of losses that it is.
fn merged(losses: &[LossMark], (from, to): (Duration, Duration), shift: u32) -> Vec<(LossMark, u64)> {
    let bucket = |time: Duration| time.as_ns() >> shift;
    let mut found: Vec<(LossMark, u64)> = Vec::new();
    let mut last: HashMap<_, usize> = HashMap::new();
    for loss in losses.iter().filter(|loss| loss.from <= to && loss.to >= from) {
        let known = last.get(&(loss.scope, loss.cpu)).and_then(|place| found.get_mut(*place));
        match known.filter(|(known, _)| bucket(loss.from) <= bucket(known.to)) {
            Some((known, places)) => {
                known.to = known.to.max(loss.to);
                known.events = known.events.zip(loss.events).map(|(one, other)| one.saturating_add(other));
                *places += 1;
            }
            None => {
                last.insert((loss.scope, loss.cpu), found.len());
                found.push((*loss, 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Duration, LossMark, merged};
    use tracewing_units::Cpu;

    fn mark(cpu: u32, from: u64, to: u64, events: Option<u64>) -> LossMark {
        let [from, to] = [from, to].map(Duration::from_ns);
        LossMark { scope: 0, cpu: Some(Cpu(cpu)), from, to, events }
    }

    #[test]
    fn every_loss_is_in_the_picture_and_none_where_there_is_none() {
        // The last ones lie far after the others.
        let far = 1 << 40;
        let at = |number: u64| number * 1000 + if number < 2990 { 0 } else { far };
        let all: Vec<LossMark> =
            (0..3000).map(|n| mark(n as u32 % 2, at(n), at(n) + 10, (n != 7).then_some(2))).collect();
        let window = (Duration::ZERO, Duration::from_ns(2 * far));
        for shift in [0, 12, 20, 40, 62] {
            let found = merged(&all, window, shift);
            assert_eq!(found.iter().map(|(_, places)| places).sum::<u64>(), 3000, "{shift}");
            let covers = |(one, _): &(LossMark, u64), loss: &LossMark| {
                one.cpu == loss.cpu && one.from <= loss.from && loss.to <= one.to
            };
            assert!(all.iter().all(|loss| found.iter().any(|one| covers(one, loss))), "{shift}");
            assert!(found.is_sorted_by_key(|(one, _)| one.from));
            assert!(if shift == 0 { found.len() == 3000 } else { found.len() < 1600 }, "{}", found.len());
            // No time between two of a CPU that is longer than a bucket.
            let longest = |cpu| {
                let own = |loss: &&LossMark| loss.cpu == Some(Cpu(cpu));
                let gaps = all.iter().filter(own).zip(all.iter().filter(own).skip(1));
                let filled = gaps.filter(|(one, next)| {
                    found.iter().any(|found| covers(found, one) && covers(found, next))
                });
                filled.map(|(one, next)| (next.from - one.to).as_ns()).max().unwrap_or(0)
            };
            assert!([0, 1].into_iter().all(|cpu| longest(cpu) <= 1 << shift), "{shift}");
            assert!(shift == 0 || longest(0) > 0);
        }
        // Only those of the window; a sum of which a part is unknown is unknown.
        let some = merged(&all, (Duration::from_ns(far), Duration::from_ns(2 * far)), 12);
        assert_eq!(some.iter().map(|(_, places)| places).sum::<u64>(), 10);
        assert_eq!(some.iter().map(|(one, _)| one.events.unwrap()).sum::<u64>(), 20);
        let first = merged(&all, (Duration::ZERO, Duration::from_ns(20_000)), 40);
        let sums: Vec<_> = first.iter().map(|(one, places)| (one.events, *places)).collect();
        assert_eq!(sums, [(Some(22), 11), (None, 10)]);
    }
}
