//! `prev_state` of `sched_switch`: the state of a thread after it has left a CPU.

use crate::field::{FieldKind, Fields, Recorded};

/// The state of a thread that leaves a CPU: a bit of `TASK_REPORT` (`include/linux/sched.h`); 0 if it could
/// have continued but has to leave before it returns to user mode; more than all those bits if it was
/// preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskState(pub i64);

impl TaskState {
    /// The thread could have continued.
    pub const RUNNING: Self = Self(0);
    /// The thread was preempted, in the kernel or in user mode.
    pub const PREEMPTED: Self = Self(0x100);
    /// The thread sleeps; a signal wakes it.
    pub const SLEEPING: Self = Self(1);
    /// The thread sleeps; no signal wakes it.
    pub const UNINTERRUPTIBLE: Self = Self(2);
    /// The thread has ended.
    pub const DEAD: Self = Self(0x10);

    /// The bits of `TASK_REPORT`.
    const REPORTED: i64 = 0xff;
    /// `EXIT_DEAD` and `EXIT_ZOMBIE`.
    const ENDED: i64 = 0x30;

    /// Whether the thread could have continued.
    #[inline]
    pub const fn could_continue(self) -> bool {
        self.0 == 0 || self.is_preempted()
    }

    /// Whether the thread was preempted.
    #[inline]
    const fn is_preempted(self) -> bool {
        self.0 > Self::REPORTED
    }

    /// Whether the thread has ended.
    #[inline]
    pub const fn is_dead(self) -> bool {
        self.0 & Self::ENDED != 0
    }

    /// The letters of `ps` and perf for the state: `R` could have continued, `R+` was preempted, `S` sleeps,
    /// `D` sleeps without accepting signals, and so on.
    pub const fn letters(self) -> &'static str {
        const LETTERS: [&str; 8] = ["S", "D", "T", "t", "X", "Z", "P", "I"];
        match self.0 {
            0 => "R",
            state if self.is_preempted() || state & Self::REPORTED == 0 => "R+",
            state => LETTERS[(state & Self::REPORTED).trailing_zeros() as usize],
        }
    }
}

impl<'e> Recorded<'e> for TaskState {
    type Read = Self;
    const KIND: FieldKind = FieldKind::Signed(64);

    #[inline(always)]
    fn read(fields: &impl Fields<'e>, place: usize) -> Option<Self> {
        fields.integer(place).map(Self)
    }
}
