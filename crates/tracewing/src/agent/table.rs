//! The ids of the program's classes, and what the classes are, in memory where `tracewing recover` finds them
//! in a core dump (layout: `tracewing_abi::class_table`). Written once, when the ids are known; the event
//! path does not use it.

use core::ptr::NonNull;

use tracewing_abi::class_table::{ENTRY, HEADER, NAME, Writer};

use super::{control, system};
use crate::declaration::encoded_size;

/// The table of a recording, there until this is dropped.
pub(crate) struct ClassTable {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: a private mapping, which is only accessed to unmap it.
unsafe impl Send for ClassTable {}

impl ClassTable {
    /// The classes to which this recording has given ids so far. `None` where the system has no memory for
    /// it: the program is recorded without the table.
    pub(crate) fn new(slot: usize, recording: &[u8; 16]) -> Option<Self> {
        let mut classes: Vec<_> =
            control::granted(slot).into_iter().map(|(id, class)| (id, class.description())).collect();
        classes.sort_unstable_by_key(|(id, _)| *id);
        let size = classes.iter().fold(HEADER, |size, (_, class)| size + ENTRY + encoded_size(class));
        let this = Self { base: system::map_named(NAME, size)?, size };
        // SAFETY: just mapped, readable and writable, and not known elsewhere.
        let memory = unsafe { core::slice::from_raw_parts_mut(this.base.as_ptr(), size) };
        let mut writer = Writer::new(memory, recording).ok()?;
        for (id, class) in classes {
            writer.push(id, class).ok()?;
        }
        Some(this)
    }

    /// Leaves the table there for good.
    pub(crate) fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for ClassTable {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`.
        unsafe { system::unmap(self.base, self.size) };
    }
}
