//! How a copy of tracewing that comes into a recorded process later, with a plug-in, finds the recorders of
//! the copies that are there already: each names, in the note by which recorders find it
//! ([`crate::attach`]), a function that lists the ways to its recorders.

use crate::message::join::Join;

/// The function: writes as many ways as there are, and as there is room for, and returns their number. It may
/// be called from the constructors of another object: it allocates nothing, waits for nothing, and makes no
/// system call.
pub type Ways = unsafe extern "C" fn(ways: *mut Way, room: usize) -> usize;

/// A way to a recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Way {
    /// Its recording: several copies may each have a door to one recorder.
    pub recording: [u8; 16],
    /// Device and inode of the door, which its number may not mean any more: the program may have closed it.
    pub device: u64,
    /// Inode of the door, compared together with `device`.
    pub inode: u64,
    /// Number of a door ([`crate::message::door`]), which stays its owner's; negative where there is a path.
    pub door: i32,
    /// Bytes of the path.
    pub len: u32,
    /// Path of the recorder's socket.
    pub path: [u8; Join::LONGEST_PATH + 1],
}

impl Way {
    /// No way.
    pub const NONE: Self =
        Self { recording: [0; 16], device: 0, inode: 0, door: -1, len: 0, path: [0; Join::LONGEST_PATH + 1] };

    /// The path, if it is one.
    pub fn path(&self) -> Option<&[u8]> {
        let len = usize::try_from(self.len).ok()?;
        (self.door < 0 && len > 0).then(|| self.path.get(..len))?
    }
}
