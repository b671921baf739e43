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
//! Buckets without any state are left out. A group's share is that of the time of all its members that live
//! then.

use super::ask::{ALL_CPUS, Refusal, parsed, refused, row};
use crate::recording::Ready;
use crate::reply::Reply;
use serde::Deserialize;
use tracewing_index::{Bucket, CLASSES, RowId, RowKind, Window};
use tracewing_units::Duration;

/// Most buckets of a row.
const MOST_BUCKETS: u32 = 4096;
/// Most rows of an answer, members of groups included.
const MOST_ROWS: usize = 1024;
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
struct Run {
    first: u32,
    count: u32,
    state: u32,
    shares: [u8; CLASSES],
    changes: u16,
}

pub(super) fn answer(ready: &Ready, body: &[u8]) -> Result<Reply, Refusal> {
    let asked: Asked = parsed(body)?;
    let end =
        asked.first.checked_add(u64::from(asked.count)).filter(|end| *end <= u64::MAX >> asked.shift.min(63));
    if asked.shift > 62 || end.is_none() || asked.count == 0 {
        return Err(refused("there is no such window"));
    }
    let members = asked.rows.iter().map(|number| members(ready, *number)).collect::<Result<Vec<_>, _>>()?;
    let rows: usize = members.iter().map(Vec::len).sum();
    if asked.count > MOST_BUCKETS || rows > MOST_ROWS || rows * asked.count as usize > MOST {
        return Err(refused("too many rows or buckets"));
    }
    let window = Window { shift: asked.shift, first: asked.first, count: asked.count };
    let mut out = Vec::new();
    for (number, members) in asked.rows.iter().zip(members) {
        let runs = match &members[..] {
            [one] if one.0 == *number => runs(ready.index.picture(*one, window)?, window),
            _ => group(ready, &members, window)?,
        };
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&(runs.len() as u32).to_le_bytes());
        runs.iter().for_each(|run| run.write(&mut out));
    }
    Ok(Reply::bytes(out))
}

/// The rows whose states are those of a row: itself, or the threads of a process, or all CPUs.
fn members(ready: &Ready, number: u32) -> Result<Vec<RowId>, Refusal> {
    if number == ALL_CPUS {
        return Ok(ready.cpus.clone());
    }
    let id = row(&ready.index, number)?;
    let is_thread = |id: &RowId| matches!(ready.index.row(*id).kind, RowKind::Thread(_));
    Ok(match ready.index.row(id).kind {
        RowKind::Process(_) => ready.members[id.0 as usize].iter().copied().filter(is_thread).collect(),
        _ => vec![id],
    })
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

fn group(ready: &Ready, members: &[RowId], window: Window) -> Result<Vec<Run>, Refusal> {
    let count = window.count as usize;
    let (mut times, mut living) = (vec![[Duration::ZERO; CLASSES]; count], vec![0_u64; count]);
    let mut changes = vec![0_u64; count];
    for id in members {
        let row = ready.index.row(*id);
        let bucket = |time: Duration| {
            (time.as_ns() >> window.shift).saturating_sub(window.first).min(count as u64) as usize
        };
        if row.has_states() {
            let last = bucket((row.end - Duration::from_ns(1)).max(row.begin));
            living[bucket(row.begin)..(last + 1).min(count)].iter_mut().for_each(|living| *living += 1);
        }
        for Bucket { number, content } in ready.index.picture(*id, window)? {
            let at = (number - window.first) as usize;
            times[at].iter_mut().zip(content.times).for_each(|(sum, ns)| *sum += ns);
            changes[at] = changes[at].saturating_add(content.changes);
        }
    }
    let mut runs = Vec::new();
    for (at, times) in times.iter().enumerate().filter(|(_, times)| times.iter().any(|time| !time.is_zero()))
    {
        let length = u128::from(living[at].max(1)) << window.shift;
        let changes = changes[at].min(u64::from(u16::MAX)) as u16;
        let shares = shares(times, length);
        push(&mut runs, Run { first: at as u32, count: 1, state: NO_STATE, shares, changes });
    }
    Ok(runs)
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
