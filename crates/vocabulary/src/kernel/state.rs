//! `prev_state` of `sched_switch`: what a thread does after it has left a CPU.

use crate::field::{FieldKind, Fields, Recorded};

/// The state of a thread that leaves a CPU: a bit of `TASK_REPORT` (`include/linux/sched.h`), 0 where it
/// could have gone on and has to leave on its way back into its program, more than all those bits where it
/// was preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskState(pub i64);

impl TaskState {
    /// It could have gone on.
    pub const RUNNING: Self = Self(0);
    /// It was preempted, in the kernel or in its program.
    pub const PREEMPTED: Self = Self(0x100);
    /// It sleeps, and takes signals.
    pub const SLEEPING: Self = Self(1);
    /// It has ended.
    pub const DEAD: Self = Self(0x10);

    /// The bits of `TASK_REPORT`.
    const REPORTED: i64 = 0xff;
    /// `EXIT_DEAD` and `EXIT_ZOMBIE`.
    const ENDED: i64 = 0x30;

    /// Whether it could have gone on.
    #[inline]
    pub const fn goes_on(self) -> bool {
        self.0 == 0 || self.is_preempted()
    }

    /// Whether it was preempted.
    #[inline]
    pub const fn is_preempted(self) -> bool {
        self.0 > Self::REPORTED
    }

    /// Whether it has ended.
    #[inline]
    pub const fn is_dead(self) -> bool {
        self.0 & Self::ENDED != 0
    }

    /// The letters that `ps` and perf have for it: `R` could have gone on, `R+` was preempted, `S` sleeps,
    /// `D` sleeps and takes no signals, and so on.
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
