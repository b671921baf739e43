//! Whether the kernel records a thread's system calls.
//!
//! ftrace records no system calls of 32-bit programs, and none made by `int 0x80`, and no event reports which
//! kind a program is. But if a program's calls are recorded, its first return to its own code is the recorded
//! end of the call that executed it; and a program that touches a page above 4 GiB is not a 32-bit one. Until
//! either has been seen, user code that runs may not stay there until the next recorded call. A 64-bit
//! program that uses `int 0x80` has calls of both kinds: its threads reveal that by sleeping outside of any
//! recorded call.

/// What is known of a thread's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Calls {
    pub(super) now: Now,
    /// Whether calls of the programs that it had before are missing.
    pub(super) before: bool,
}

/// What is known of the calls of its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Now {
    /// No event has shown anything about them.
    #[default]
    Unknown,
    Recorded,
    /// The program has run, and no event shows that they are recorded.
    Missing,
    /// An event shows that the program makes calls that are not, whatever others show.
    Hidden,
}

impl Calls {
    /// An event shows that calls are recorded, and always were since it has its program.
    pub(super) fn confirm(&mut self) {
        if self.now != Now::Hidden {
            self.now = Now::Recorded;
        }
    }

    /// An event shows that it has made a call that is not recorded.
    pub(super) fn hide(&mut self) {
        self.now = Now::Hidden;
    }

    /// Whether it stays in its program, after a sign that it is there, until the next call begins.
    pub(super) fn are_recorded(self) -> bool {
        self.now == Now::Recorded
    }

    /// The LWP runs user code. Returns whether it certainly continues to do so until the next call begins.
    pub(super) fn run(&mut self) -> bool {
        if self.now == Now::Unknown {
            self.now = Now::Missing;
        }
        self.are_recorded()
    }

    /// It has another program.
    pub(super) fn execute(&mut self) {
        *self = Self { now: Now::Unknown, before: self.are_missing() };
    }

    /// It may have another program, as events are missing.
    pub(super) fn doubt(&mut self) {
        if self.now == Now::Recorded {
            self.now = Now::Unknown;
        }
    }

    /// A new thread has its creator's program, and has not run it yet.
    pub(super) fn of_child(self) -> Self {
        let now = if self.now == Now::Missing { Now::Unknown } else { self.now };
        Self { now, before: false }
    }

    /// Whether calls are missing, of this program or of one before.
    pub(super) fn are_missing(self) -> bool {
        self.before || matches!(self.now, Now::Missing | Now::Hidden)
    }
}
