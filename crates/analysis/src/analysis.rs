//! What an analysis is: it takes events and changes of the super-trace's state, each as one value.

use tracewing_trace::EventRef;
use tracewing_trace::super_trace::{Change, Fold, Located, Name, Part, Scope, Seen};
use tracewing_units::{Cpu, Pid, Tid, Timestamp};

/// An analysis of the super-trace: of events, and of the states of LWPs and user threads ([`Fold`]).
///
/// For each event it first gets the event itself ([`Input::Event`]), then the changes that it causes
/// ([`Fold::change`]).
pub trait Analysis: Fold {
    /// Whether it takes [`Input::Event`] or [`Input::Explained`]; otherwise the places of events need not be
    /// found, and another thread may decode them.
    const EVENTS: bool = true;

    /// Whether it takes [`Input::LeftOutEvent`].
    const LEFT_OUT_EVENTS: bool = false;

    /// Whether it needs earlier events, completed intervals and losses before [`Input::Begins`], because its
    /// own state depends on them.
    const BEFORE: bool = false;

    /// Whether it takes [`Input::Earlier`].
    const EARLIER: bool = false;

    /// Whether what it gives of a time depends on what was before only by the super-trace's state, by names,
    /// by [`Input::Dumped`], and by what it [takes](Self::take). Then a run that has a checkpoint continues
    /// from there; of an analysis that needs what was [before](Self::BEFORE), only if the filter chooses
    /// nothing but a time.
    const CONTINUES: bool = false;

    /// Whether it uses a change immediately, not at the end of the thread that it is about: then it gets no
    /// changes of threads for which it is not known yet whether the filter lets them through.
    const AT_ONCE: bool = false;

    /// Names of events that mean something only together, in groups: a filter may tear them apart
    /// ([`Ran::torn`](crate::Ran::torn)).
    const TOGETHER: &[&[&str]] = &[];

    /// Fields that have one value in all events that belong together.
    const SAME: &[&str] = &[];

    /// Whether it needs no more input, for instance because its output cannot be written. Called from time to
    /// time.
    fn is_done(&self) -> bool {
        false
    }

    /// What it knows of the events so far that analyses of later ones have to know, for a checkpoint; without
    /// parts that take more than `room` bytes.
    fn parts(&mut self, room: u64) -> Vec<Part> {
        let _ = room;
        Vec::new()
    }

    /// Whether what it [takes](Self::take) is there, as far as that is known before it is read: a checkpoint
    /// without it is not read.
    fn can_take(&self, parts: &[Part]) -> bool {
        let _ = parts;
        true
    }

    /// Takes what was known at the checkpoint from which it is to continue; false if it is not there: then it
    /// gets all events.
    fn take(&mut self, parts: &[Part]) -> bool {
        let _ = parts;
        true
    }

    /// Takes a checkpoint of a run that makes them: all up to a time has come.
    fn checkpoint(&mut self, until: Timestamp, bytes: Vec<u8>) {
        let _ = (until, bytes);
    }

    /// Takes what is no change of the state.
    fn input(&mut self, input: Input<'_>);
}

/// An analysis that needs of an event only its place and what can be read from it without the place, and
/// nothing from before [`Input::Begins`] but earlier events. So another thread can decode and read events.
pub trait ReadApart: Analysis {
    /// Reads events, all in their order.
    type Reader: Default + Send;
    /// What was read of an event.
    type Read: Send;

    /// Reads an event on the thread that decodes it; `None` if its place is enough.
    fn read(reader: &mut Self::Reader, event: &EventRef<'_>) -> Option<Self::Read>;

    /// Takes an event in place of [`Input::Event`]; what was read of it is not needed afterwards.
    fn located(&mut self, read: Option<&mut Self::Read>, at: &Located<'_>);

    /// Takes an event in place of [`Input::Earlier`].
    fn located_earlier(&mut self, read: Option<&mut Self::Read>, at: &Located<'_>);
}

/// What an analysis gets besides the changes that the filter lets through.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// The recording says that it follows some LWPs only: before all else.
    FollowsSome,
    /// The analysed range begins: with the first event, or at the time that the user requested. Only names,
    /// and what [`Analysis::BEFORE`] requests, come before.
    Begins {
        /// In nanoseconds on the recording's clock.
        time: Timestamp,
    },
    /// The text of a name that is used from now on.
    Name {
        /// Stands for the text in all later inputs.
        name: Name,
        /// Borrowed for this call; an analysis that needs it later keeps a copy
        /// ([`Names`](crate::Names)).
        text: &'a str,
    },
    /// An event of any thread, whether or not the filter lets it through, from the recording's beginning on:
    /// for those that explain others. Only with [`Analysis::EVENTS`].
    Explained(&'a EventRef<'a>),
    /// An event before [`Input::Begins`], whether or not the filter lets it through: for those that explain
    /// later ones, with their process.
    Earlier(&'a Seen<'a>),
    /// An event that the filter lets through.
    Event(&'a Seen<'a>),
    /// An event that the filter leaves out.
    LeftOutEvent(&'a Seen<'a>),
    /// A state dump names a living thread, or one that has ended since. Of dumps before a checkpoint, only
    /// the first and the last name of each process are repeated.
    Dumped {
        /// Its thread id when the dump was written.
        tid: Tid,
        /// The process that it belonged to then.
        process: Pid,
        /// As the kernel stores it: at most 15 bytes, not necessarily UTF-8.
        name: &'a [u8],
    },
    /// A change that the filter leaves out.
    LeftOut(Change<'a>),
    /// Events are missing from now on, some or all.
    Lost(&'a Loss),
    /// From now on, no events of programs are missing that were reported as lost.
    LossOver {
        /// In nanoseconds on the recording's clock.
        time: Timestamp,
    },
}

/// Events that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Whether events of the kernel, of programs, or samples are missing.
    pub scope: Scope,
    /// The CPU whose buffer was full, if the stream declares it.
    pub cpu: Option<Cpu>,
    /// After this time, in nanoseconds on the recording's clock.
    pub from: Timestamp,
    /// Before this time, in nanoseconds on the recording's clock.
    pub to: Timestamp,
    /// Number of events; `None` if unknown, as for whole packets.
    pub events: Option<u64>,
    /// Whether they are of threads of which the recording has nothing at that time, so that no other thread's
    /// events are missing.
    pub is_of_others: bool,
    /// Whether they happened on CPUs that the filter leaves out: they are not counted as lost, but states may
    /// have changed unseen.
    pub is_elsewhere: bool,
    /// Whether nothing is missing, but stamps of a stream go back: in which order its events happened is
    /// unknown.
    pub is_of_order: bool,
}

impl Loss {
    /// Whether events of programs may be missing between others of the same thread.
    pub fn tears_programs(&self) -> bool {
        self.scope == Scope::User && !self.is_of_others
    }
}
