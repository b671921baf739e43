//! The states of a row one by one, each with its beginning and end.

use crate::error::Error;
use crate::index::Index;
use crate::leaf::Span;
use crate::picture::{certain, overlapping};
use crate::row::{Entry, RowId};
use std::ops::ControlFlow;
use tracewing_timeline::StateId;
use tracewing_units::Duration;

impl Index {
    /// Passes on the states of a row that have a part between two times, whole and in the order of time,
    /// until `each` breaks.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn spans(
        &self,
        row: RowId,
        from: Duration,
        to: Duration,
        mut each: impl FnMut(Span) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let row = self.row(row);
        let mut room = Vec::new();
        for entry in overlapping(&row.leaves, from, to) {
            for span in self.leaf(entry, &mut room)?.1 {
                for span in certain(self, row, span?)?.into_iter().flatten() {
                    if span.from < to && span.to > from && each(span).is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// How many states [`Index::spans`] reads at most for this window: those that its blocks have.
    pub fn count(&self, row: RowId, from: Duration, to: Duration) -> u64 {
        overlapping(&self.row(row).leaves, from, to).iter().map(|entry| u64::from(entry.count)).sum()
    }

    /// The state of a row at a time; `None` where nothing is known of it.
    ///
    /// # Errors
    /// See [`Index::spans`].
    pub fn at(&self, row: RowId, time: Duration) -> Result<Option<Span>, Error> {
        self.after(row, time, time + Duration::from_ns(1))
    }

    /// The first state of a row that ends after `time` and begins before `to`.
    ///
    /// # Errors
    /// See [`Index::spans`].
    pub fn after(&self, row: RowId, time: Duration, to: Duration) -> Result<Option<Span>, Error> {
        let mut found = None;
        self.spans(row, time, to, |span| {
            found = Some(span);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// The first time after `time` at which a row begins to be in a state.
    ///
    /// # Errors
    /// See [`Index::spans`].
    pub fn next_of(&self, row: RowId, state: StateId, time: Duration) -> Result<Option<Span>, Error> {
        for entry in overlapping(&self.row(row).leaves, time, Duration::MAX) {
            let mut found = None;
            self.kin(row, entry, state, |span| {
                if span.from >= time && found.is_none() {
                    found = Some(span);
                }
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The last time that a row began to be in a state before `time`.
    ///
    /// # Errors
    /// See [`Index::spans`].
    pub fn last_of(&self, row: RowId, state: StateId, time: Duration) -> Result<Option<Span>, Error> {
        for entry in overlapping(&self.row(row).leaves, Duration::ZERO, time).iter().rev() {
            let mut found = None;
            self.kin(row, entry, state, |span| {
                if span.from < time {
                    found = Some(span);
                }
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The spans of a block in one state. Of a block without it, only the sums are read.
    fn kin(
        &self,
        row: RowId,
        entry: &Entry,
        state: StateId,
        mut each: impl FnMut(Span),
    ) -> Result<(), Error> {
        let row = self.row(row);
        let mut room = Vec::new();
        let (sums, spans) = self.leaf(entry, &mut room)?;
        if entry.from >= row.doubted && sums.iter().all(|(other, _)| *other != state) {
            return Ok(());
        }
        for span in spans {
            certain(self, row, span?)?
                .into_iter()
                .flatten()
                .filter(|span| span.state == state)
                .for_each(&mut each);
        }
        Ok(())
    }

    /// The last state of a row that begins before `time`.
    ///
    /// # Errors
    /// See [`Index::spans`].
    pub fn before(&self, row: RowId, time: Duration) -> Result<Option<Span>, Error> {
        let Some(entry) = overlapping(&self.row(row).leaves, Duration::ZERO, time).last() else {
            return Ok(None);
        };
        let mut found = None;
        self.spans(row, entry.from, time, |span| {
            found = Some(span);
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }
}
