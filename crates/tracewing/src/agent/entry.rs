//! What a recorder has a borrowed thread of the running process do (`tracewing_abi::attach`): no more than is
//! needed for a thread of the agent's to do the rest. `errno` stays.

use tracewing_abi::attach::Saved;

use super::{neighbours, reach, system};

tracewing_abi::attach_entry!(entry, attach, system::time_since_boot, neighbours::ways);

/// By which other modules refer to the entry.
pub(super) static ENTRY: &dyn Sync = &KEPT;

/// The address of the word of a door, or a negative error number.
extern "C" fn attach(_: *const Saved, recorder: i64) -> i64 {
    let recorder = i32::try_from(recorder).unwrap_or(0);
    system::keeping_errno(|| reach::open_door(recorder))
        .map_or_else(|error| -i64::from(error), |address| address as i64)
}
