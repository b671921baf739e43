//! How long a row was in each state within a window, to the nanosecond.

use crate::error::Error;
use crate::index::Index;
use crate::leaf::Span;
use crate::picture::{certain, overlapping};
use crate::row::RowId;
use std::collections::BTreeMap;
use tracewing_timeline::StateId;
use tracewing_units::Duration;

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
        let row = self.row(row);
        let mut sums = BTreeMap::new();
        let mut room = Vec::new();
        for entry in overlapping(&row.leaves, from, to) {
            let (all, spans) = self.leaf(entry, &mut room)?;
            if from <= entry.from && entry.to <= to && entry.from >= row.doubted {
                for (state, ns) in all {
                    add(&mut sums, state, ns);
                }
                continue;
            }
            for span in spans {
                for Span { state, from: begin, to: end } in certain(self, row, span?)?.into_iter().flatten() {
                    let ns = end.min(to) - begin.max(from);
                    if !ns.is_zero() {
                        add(&mut sums, state, ns);
                    }
                }
            }
        }
        Ok(sums)
    }
}

fn add(sums: &mut BTreeMap<StateId, Duration>, state: StateId, ns: Duration) {
    *sums.entry(state).or_default() += ns;
}
