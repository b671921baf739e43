//! How long a row was in each state within a window, to the nanosecond.

use crate::error::{Damage, Damaged, Error};
use crate::index::Index;
use crate::leaf::Span;
use crate::picture::{certain, overlapping};
use crate::row::RowId;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tracewing_timeline::StateId;
use tracewing_units::Duration;

/// States of which a thread is worth its start.
const APIECE: u64 = 1 << 20;

impl Index {
    /// How long a row was in each state between two times, each since the index begins.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn statistics(
        &self,
        row: RowId,
        from: Duration,
        to: Duration,
    ) -> Result<BTreeMap<StateId, Duration>, Error> {
        Ok(Sums::default().of(self, row, from, to)?.into_iter().collect())
    }

    /// The same of several rows, in their order. Where there is much to read, several threads do.
    ///
    /// # Errors
    /// See [`Index::statistics`].
    pub fn statistics_of(
        &self,
        rows: &[RowId],
        from: Duration,
        to: Duration,
    ) -> Result<Vec<Vec<(StateId, Duration)>>, Error> {
        let counts: Vec<u64> = rows.iter().map(|row| self.count(*row, from, to)).collect();
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        self.by_threads(rows, &counts, (from, to), threads(&counts, processors))
    }

    /// The same; `counts` are those of the rows.
    pub(crate) fn by_threads(
        &self,
        rows: &[RowId],
        counts: &[u64],
        (from, to): (Duration, Duration),
        threads: usize,
    ) -> Result<Vec<Vec<(StateId, Duration)>>, Error> {
        // What takes longest comes first: no thread ends long after the others.
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_unstable_by_key(|at| Reverse(counts[*at]));
        let next = AtomicUsize::new(0);
        let work = || {
            let (mut sums, mut found) = (Sums::default(), Vec::new());
            while let Some(at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                // After an error there is no answer: the other threads need not find theirs.
                let sums = sums.of(self, rows[*at], from, to);
                found.push((*at, sums.inspect_err(|_| next.store(order.len(), Ordering::Relaxed))?));
            }
            Ok::<_, Error>(found)
        };
        let found = thread::scope(|scope| {
            // Without others, this one does all.
            let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
            let others: Vec<_> = (1..threads).filter_map(start).collect();
            let own = work();
            let join = |other: thread::ScopedJoinHandle<'_, _>| {
                other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            std::iter::once(own).chain(others.into_iter().map(join)).collect::<Result<Vec<_>, Error>>()
        })?;
        let mut all = vec![Vec::new(); rows.len()];
        found.into_iter().flatten().for_each(|(at, sums)| all[at] = sums);
        Ok(all)
    }
}

/// How many threads read rows with so many states: no more than there are rows or processors.
fn threads(counts: &[u64], processors: usize) -> usize {
    let worth = usize::try_from(counts.iter().sum::<u64>() / APIECE).unwrap_or(usize::MAX);
    worth.min(processors).min(counts.len()).max(1)
}

/// How long a row was in each state; its memory is used again for the next row.
#[derive(Default)]
struct Sums {
    room: Vec<u8>,
    /// By state: zero where nothing has been added.
    all: Vec<Duration>,
    /// The states that have been added.
    seen: Vec<StateId>,
}

impl Sums {
    fn of(
        &mut self,
        index: &Index,
        row: RowId,
        from: Duration,
        to: Duration,
    ) -> Result<Vec<(StateId, Duration)>, Error> {
        let row = index.row(row);
        self.all.resize(index.tail().states.len(), Duration::ZERO);
        let Self { room, all, seen } = self;
        let mut add = |state: StateId, ns: Duration| {
            let sum = all.get_mut(state.0 as usize).ok_or(Damaged(Damage::NoState))?;
            if sum.is_zero() {
                seen.push(state);
            }
            *sum += ns;
            Ok::<_, Damaged>(())
        };
        for entry in overlapping(&row.leaves, from, to) {
            if from <= entry.from && entry.to <= to && entry.from >= row.doubted {
                index.sums(entry, room, &mut add)?;
                continue;
            }
            for span in index.leaf(entry, room)?.1 {
                for Span { state, from: begin, to: end } in certain(index, row, span?)?.into_iter().flatten()
                {
                    let ns = end.min(to) - begin.max(from);
                    if !ns.is_zero() {
                        add(state, ns)?;
                    }
                }
            }
        }
        seen.sort_unstable();
        seen.dedup();
        Ok(seen.drain(..).map(|state| (state, std::mem::take(&mut all[state.0 as usize]))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{APIECE, threads};

    #[test]
    fn threads_are_as_many_as_their_work_is_worth() {
        let found = |counts: &[u64]| threads(counts, 4);
        assert_eq!([found(&[]), found(&[0, 0]), found(&[APIECE]), found(&[2 * APIECE - 1, 0])], [1; 4]);
        assert_eq!([found(&[APIECE; 2]), found(&[APIECE; 3]), found(&[APIECE; 9])], [2, 3, 4]);
        assert_eq!(found(&[9 * APIECE]), 1, "one row is read by one thread");
    }
}
