//! `rows`: what rows did in each bucket of a window.
//!
//! The answer is a sequence of little-endian records. For each row that was asked for: its number and the
//! number of its runs, 4 bytes each; then the runs, of 28 bytes:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | first bucket, counted from that of the window |
//! | 4 | how many buckets: all of them have the same content |
//! | 4 | the longest state that touches it; [`NO_STATE`] for groups |
//! | 14 | the share of the bucket's time in each class, in 255ths; a class that occurs has at least 1 |
//! | 2 | how many states begin in it, at most 65535 |
//!
//! Of a counter, 12 of the 14 bytes are its least, its greatest and its last value in the bucket as
//! single-precision numbers, and the state is [`NO_STATE`].
//!
//! Buckets without any state are left out, and so are rows that have got another number. A group's share is
//! that of the time of all its members that live then. Where very many live in a narrow window, the answer
//! has the shares of longer buckets.

use super::ask::{ALL_CPUS, Refusal, parsed, refused, row};
use crate::recording::Ready;
use crate::reply::Reply;
use serde::Deserialize;
use tracewing_index::{Bucket, CLASSES, Content, RowId, RowKind, Values, Window};
use tracewing_units::Duration;

/// Most buckets of a row.
const MOST_BUCKETS: u32 = 4096;
/// Most rows of an answer.
const MOST_ROWS: usize = 1024;
/// Most members of groups that are read for an answer.
const MOST_MEMBERS: usize = 4096;
/// The same while the recording or its index is made.
const MOST_GROWING: usize = 16_384;
/// Groups of fewer members are always summed, whatever others need. The index has no summary of them.
const SMALL: usize = 64;
/// Most buckets of all rows.
const MOST: usize = 1 << 20;
const NO_STATE: u32 = u32::MAX;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    shift: u32,
    first: u64,
    count: u32,
    rows: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    first: u32,
    count: u32,
    state: u32,
    shares: [u8; CLASSES],
    changes: u16,
}

pub(super) fn answer(ready: &Ready, body: &[u8]) -> Result<Reply, Refusal> {
    let asked: Asked = parsed(body)?;
    let window = window(asked.shift, asked.first, asked.count)?;
    let rows = asked.rows.len();
    if rows > MOST_ROWS || rows * asked.count as usize > MOST {
        return Err(refused("too many rows or buckets"));
    }
    // Of a recording that grows, nothing is made ahead for groups.
    let mut left = if ready.grows.is_some() { MOST_GROWING } else { MOST_MEMBERS };
    let mut out = Vec::new();
    for number in asked.rows.into_iter().filter(|number| !ready.is_gone(*number)) {
        // What cannot be summed is left out; the other rows are drawn.
        if let Some(runs) = drawn(ready, number, window, &mut left)? {
            out.extend(record(number, &runs));
        }
    }
    Ok(Reply::bytes(out))
}

/// What a row did, or those that it stands for.
fn drawn(ready: &Ready, number: u32, window: Window, left: &mut usize) -> Result<Option<Vec<Run>>, Refusal> {
    if let Some(names) = ready.names(number) {
        let names: Vec<u32> = names.iter().map(|name| name.0).collect();
        return groups(ready, &names, window, left);
    }
    if number == ALL_CPUS {
        return groups(ready, &[number], window, left);
    }
    let id = row(&ready.index, number)?;
    match ready.index.row(id).kind {
        RowKind::Process(_) | RowKind::Tasks(_) => groups(ready, &[number], window, left),
        RowKind::Counter(_) => {
            let values = ready.index.values(id, window)?.into_iter();
            let values = values.map(|(at, Values { least, most, last, changes, .. })| {
                (at, [least, most, last].map(|value| value as f32), changes)
            });
            Ok(Some(counter(values, window)))
        }
        _ => Ok(Some(runs(ready.index.picture(id, window)?, window))),
    }
}

/// A window, if it makes sense and is not too wide.
pub(super) fn window(shift: u32, first: u64, count: u32) -> Result<Window, Refusal> {
    let end = first.checked_add(u64::from(count)).filter(|end| *end <= u64::MAX >> shift.min(63));
    if shift > 62 || end.is_none() || count == 0 {
        return Err(refused("there is no such window"));
    }
    if count > MOST_BUCKETS {
        return Err(refused("too many rows or buckets"));
    }
    Ok(Window { shift, first, count })
}

/// What a row did.
pub(super) fn record(number: u32, runs: &[Run]) -> Vec<u8> {
    let mut out = [number, runs.len() as u32].map(u32::to_le_bytes).as_flattened().to_vec();
    runs.iter().for_each(|run| run.write(&mut out));
    out
}

impl Run {
    fn write(&self, out: &mut Vec<u8>) {
        for number in [self.first, self.count, self.state] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.shares);
        out.extend_from_slice(&self.changes.to_le_bytes());
    }
}

fn runs(buckets: Vec<Bucket>, window: Window) -> Vec<Run> {
    let mut runs = Vec::new();
    for Bucket { number, content } in buckets {
        let state = content.longest.map_or(NO_STATE, |(state, _)| state.0);
        let shares = shares(&content.times, 1 << window.shift);
        let changes = content.changes.min(u64::from(u16::MAX)) as u16;
        let first = (number - window.first) as u32;
        push(&mut runs, Run { first, count: 1, state, shares, changes });
    }
    runs
}

/// The runs of a counter: of buckets, the least, the greatest and the last value, and how many begin in it.
pub(super) fn counter(buckets: impl Iterator<Item = (u64, [f32; 3], u64)>, window: Window) -> Vec<Run> {
    let mut runs = Vec::new();
    for (number, values, changes) in buckets {
        let mut shares = [0; CLASSES];
        shares[..12].copy_from_slice(values.map(f32::to_le_bytes).as_flattened());
        let (first, changes) = ((number - window.first) as u32, changes.min(u64::from(u16::MAX)) as u16);
        push(&mut runs, Run { first, count: 1, state: NO_STATE, shares, changes });
    }
    runs
}

/// Adds a run of one bucket, or extends the last.
fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last)
            if last.first + last.count == run.first
                && (last.state, last.shares, last.changes) == (run.state, run.shares, run.changes) =>
        {
            last.count += 1;
        }
        _ => runs.push(run),
    }
}

/// What the members of groups did together; `left` is how many members of large groups may be read. `None` if
/// there are more, and no summary of them.
fn groups(
    ready: &Ready,
    numbers: &[u32],
    window: Window,
    left: &mut usize,
) -> Result<Option<Vec<Run>>, Refusal> {
    let (mut more, mut shift) = (*left, window.shift);
    for number in numbers {
        let Some(finest) = finest(ready, *number, window, &mut more) else { return Ok(None) };
        shift = shift.max(finest);
    }
    if shift > window.shift {
        // Longer buckets, each drawn as wide as it is.
        let (by, end) = (shift - window.shift, window.first + u64::from(window.count));
        let first = window.first >> by;
        let longer = Window { shift, first, count: (((end - 1) >> by) - first + 1) as u32 };
        return Ok(groups(ready, numbers, longer, left)?.map(|runs| cut(runs, longer, window)));
    }
    *left = more;
    let (mut sums, mut living) = (Sums::new(window), vec![0; window.count as usize]);
    for number in numbers {
        let Some(members) = ready.drawn(*number) else { continue };
        living.iter_mut().zip(members.living(window)).for_each(|(sum, count)| *sum += count);
        let row = Some(RowId(*number)).filter(|_| *number != ALL_CPUS);
        match row.map(|row| ready.index.group(row, window)).transpose()?.flatten() {
            Some(buckets) => sums.add(buckets),
            None => {
                let (from, to) = window.times();
                for id in members.between(from, to) {
                    sums.add(ready.index.picture(id, window)?);
                }
            }
        }
    }
    Ok(Some(together(sums.buckets(), &living, window)))
}

/// The length of the shortest buckets in which a group can be drawn in a window, as a power of two; `None` if
/// there are none.
fn finest(ready: &Ready, number: u32, window: Window, left: &mut usize) -> Option<u32> {
    let row = Some(RowId(number)).filter(|_| number != ALL_CPUS);
    let finest = row.and_then(|row| ready.index.finest_of_group(row));
    if finest.is_some_and(|finest| finest <= window.shift) {
        return Some(window.shift);
    }
    let (from, to) = window.times();
    let count = ready.drawn(number).map_or(0, |members| members.count(from, to));
    match count < SMALL || count <= *left {
        true => {
            *left -= if count < SMALL { 0 } else { count };
            Some(window.shift)
        }
        false => finest,
    }
}

/// Runs of a window as those of one with shorter buckets.
fn cut(runs: Vec<Run>, longer: Window, window: Window) -> Vec<Run> {
    let (by, end) = (longer.shift - window.shift, window.first + u64::from(window.count));
    let mut found = Vec::new();
    for run in runs {
        let first = longer.first + u64::from(run.first);
        let [from, to] = [first, first + u64::from(run.count)].map(|at| (at << by).clamp(window.first, end));
        if from < to {
            let (first, count) = ((from - window.first) as u32, (to - from) as u32);
            found.push(Run { first, count, ..run });
        }
    }
    found
}

/// What members did, added up.
struct Sums {
    window: Window,
    /// By bucket: its times by class, and its changes.
    sums: Vec<([Duration; CLASSES], u64)>,
}

impl Sums {
    fn new(window: Window) -> Self {
        Sums { window, sums: vec![([Duration::ZERO; CLASSES], 0); window.count as usize] }
    }

    fn add(&mut self, buckets: Vec<Bucket>) {
        for Bucket { number, content } in buckets {
            let (times, changes) = &mut self.sums[(number - self.window.first) as usize];
            times.iter_mut().zip(content.times).for_each(|(sum, ns)| *sum += ns);
            *changes = changes.saturating_add(content.changes);
        }
    }

    /// Those that have any state.
    fn buckets(self) -> Vec<Bucket> {
        let bucket = |(number, (times, changes))| Bucket {
            number,
            content: Content { times, changes, longest: None },
        };
        let has_states = |bucket: &Bucket| bucket.content.times.iter().any(|time| !time.is_zero());
        (self.window.first..).zip(self.sums).map(bucket).filter(has_states).collect()
    }
}

/// Runs of a group of which so many members live.
fn together(buckets: Vec<Bucket>, living: &[u64], window: Window) -> Vec<Run> {
    let mut runs = Vec::new();
    for Bucket { number, content } in buckets {
        let first = (number - window.first) as u32;
        let length = u128::from(living[first as usize].max(1)) << window.shift;
        let changes = content.changes.min(u64::from(u16::MAX)) as u16;
        let shares = shares(&content.times, length);
        push(&mut runs, Run { first, count: 1, state: NO_STATE, shares, changes });
    }
    runs
}

/// Times of a bucket in 255ths of its length. What is there has at least one; together they have at most 255.
fn shares(times: &[Duration; CLASSES], length: u128) -> [u8; CLASSES] {
    let share = |time: Duration| match time.as_ns() {
        0 => 0,
        ns => ((u128::from(ns) * 255 + length / 2) / length).clamp(1, 255) as u8,
    };
    let mut shares = times.map(share);
    let mut over = shares.iter().map(|share| u32::from(*share)).sum::<u32>().saturating_sub(255);
    while over > 0 {
        let largest = shares.iter_mut().max().filter(|share| **share > 1);
        let Some(largest) = largest else { break };
        *largest -= 1;
        over -= 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_buckets_are_drawn_as_wide_as_they_are() {
        let run =
            |first, count, changes| Run { first, count, state: NO_STATE, shares: [0; CLASSES], changes };
        // Buckets 5 and 6 of 8 ns are 20 to 27 of 2 ns: the window begins in the first, and ends in the
        // second.
        let longer = Window { shift: 3, first: 5, count: 2 };
        let window = Window { shift: 1, first: 21, count: 5 };
        let found = cut(vec![run(0, 1, 1), run(1, 1, 2)], longer, window);
        assert_eq!(found, [run(0, 3, 1), run(3, 2, 2)]);
        assert_eq!(cut(vec![run(0, 2, 3)], longer, window), [run(0, 5, 3)]);
    }

    #[test]
    fn shares_are_times_and_nothing_is_lost() {
        let shares = |some: [u64; 10]| {
            let mut times = [Duration::ZERO; CLASSES];
            times.iter_mut().zip(some).for_each(|(time, ns)| *time = Duration::from_ns(ns));
            shares(&times, 1 << 40)
        };
        assert_eq!(shares([0, 1 << 40, 0, 0, 0, 0, 0, 0, 0, 0])[1], 255);
        let some = shares([1, (1 << 40) - 2, 0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(some[..10], [1, 253, 0, 0, 0, 0, 0, 1, 0, 0]);
        let half = shares([0, 1 << 39, 0, 0, 0, 0, 0, 1 << 39, 0, 0]);
        assert_eq!(u32::from(half[1]) + u32::from(half[7]), 255);
    }
}
