//! Whether the kernel records a thread's system calls.
//!
//! ftrace records none of those that 32-bit programs make, nor those of `int 0x80`, and no event says of
//! which kind a program is. But a program whose calls are recorded returns to its own code for the first time
//! by the end of the call that has executed it; and where a page above 4 GiB is touched, it is none of 32
//! bits. So long as neither has been seen, running code of the program is no sign that it stays there until
//! the next recorded call. A 64-bit program that uses `int 0x80` has calls of both kinds: a thread of it
//! shows that when it sleeps outside of any recorded call.

/// What is known of a thread's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Calls {
    now: Now,
    /// Whether calls of the programs that it had before are missing.
    before: bool,
}

/// What is known of the calls of its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Now {
    /// Nothing.
    #[default]
    Unknown,
    /// They are recorded.
    Recorded,
    /// The program has run, and no event shows that they are recorded.
    Missing,
    /// An event shows that the program makes calls that are not, whatever others show.
    Hidden,
}

impl Calls {
    /// An event shows that calls are recorded, and always were since it has its program.
    pub fn confirm(&mut self) {
        if self.now != Now::Hidden {
            self.now = Now::Recorded;
        }
    }

    /// An event shows that it has made a call that is not recorded.
    pub fn hide(&mut self) {
        self.now = Now::Hidden;
    }

    /// Whether it stays in its program, after a sign that it is there, until the next call begins.
    pub fn are_recorded(self) -> bool {
        self.now == Now::Recorded
    }

    /// It runs its program's code. Whether that goes on until the next call begins.
    pub fn run(&mut self) -> bool {
        if self.now == Now::Unknown {
            self.now = Now::Missing;
        }
        self.are_recorded()
    }

    /// It has another program.
    pub fn execute(&mut self) {
        *self = Self { now: Now::Unknown, before: self.are_missing() };
    }

    /// It may have another program, as events are missing.
    pub fn doubt(&mut self) {
        if self.now == Now::Recorded {
            self.now = Now::Unknown;
        }
    }

    /// A new thread has its creator's program, and has not run it yet.
    pub fn of_child(self) -> Self {
        let now = if self.now == Now::Missing { Now::Unknown } else { self.now };
        Self { now, before: false }
    }

    /// Whether calls are missing, of this program or of one before.
    pub fn are_missing(self) -> bool {
        self.before || matches!(self.now, Now::Missing | Now::Hidden)
    }
}
