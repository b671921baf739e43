//! Numbers that the super-trace gives itself: unlike those of the system and of programs, they are never
//! given again.

/// How many LWPs the super-trace had before this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct LwpSerial(pub usize);

/// How many user threads the super-trace had before this one; no LWP's serial number, and no number that
/// programs give.
///
/// ```compile_fail,E0308
/// # use tracewing_trace::super_trace::{LwpSerial, TaskSerial};
/// let lwp: LwpSerial = TaskSerial(1);
/// ```
///
/// ```compile_fail,E0308
/// # use tracewing_trace::super_trace::TaskSerial;
/// # use tracewing_units::Task;
/// let is_first = TaskSerial(0) == Task(0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct TaskSerial(pub usize);

/// A number of the super-trace's own, which counts from 0.
pub trait Serial: Copy {
    /// The number as an index into a table.
    fn index(self) -> usize;
}

impl Serial for LwpSerial {
    #[inline]
    fn index(self) -> usize {
        self.0
    }
}

impl Serial for TaskSerial {
    #[inline]
    fn index(self) -> usize {
        self.0
    }
}
