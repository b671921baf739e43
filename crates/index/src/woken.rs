//! What woke a thread or a task.

use crate::error::Error;
use crate::index::Index;
use crate::picture::overlapping;
use crate::row::RowId;
use crate::wakes::Waker;
use tracewing_units::Duration;

impl Index {
    /// What woke a thread or a task at a time: of several the first. `None` if no event reports a wake then.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn woken(&self, row: RowId, at: Duration) -> Result<Option<&Waker>, Error> {
        let mut room = Vec::new();
        let mut found = None;
        for entry in overlapping(&self.row(row).wakes, at, at + Duration::from_ns(1)) {
            self.wakes(entry, &mut room, |time, waker| {
                if time == at && found.is_none() {
                    found = Some(waker);
                }
            })?;
        }
        Ok(found)
    }
}
