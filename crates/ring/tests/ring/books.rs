//! The writers' own accounts, in memory that outlives them, and the balance that must come out in the end.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use tracewing_abi::event::{EXTENDED_HEADER, HEADER};
use tracewing_abi::region::Mode;

use crate::collector::{Collector, Gap};
use crate::emitter::Emitter;
use crate::events::{compact, plan};
use crate::machine::Shared;

/// Most writers in a run.
pub const WRITERS: usize = 48;
/// Most events of a writer.
pub const EVENTS: u32 = 1 << 16;

/// A writer's own account. Only the writer changes it.
pub struct Book {
    /// The writer's id, 0 while unused.
    pub writer: AtomicU32,
    begun: AtomicU32,
    ended: AtomicU32,
    lost: [AtomicU64; EVENTS as usize / 64],
}

/// The accounts of a run.
pub struct Books(Shared<[Book; WRITERS]>);

/// Totals of a run, or of many.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Events that writers tried to emit.
    pub emitted: u64,
    /// Events read.
    pub read: u64,
    /// Events that the buffers counted as lost.
    pub lost: u64,
    /// Sub-buffers overwritten unread.
    pub sub_buffers: u64,
    /// Events in them.
    pub overwritten: u64,
    /// Stretches that dead processes left unfinished.
    pub unfinished: u64,
    /// Processes killed.
    pub kills: u64,
    /// Processes stopped for a while.
    pub stops: u64,
    /// Readers replaced by new ones.
    pub restarts: u64,
    /// Snapshots taken.
    pub snapshots: u64,
}

impl Totals {
    /// The columns of a table of totals.
    pub fn columns(&self) -> [(&'static str, u64); 10] {
        [
            ("emitted", self.emitted),
            ("read", self.read),
            ("lost", self.lost),
            ("overwritten", self.overwritten),
            ("sub-buffers", self.sub_buffers),
            ("unfinished", self.unfinished),
            ("kills", self.kills),
            ("stops", self.stops),
            ("restarts", self.restarts),
            ("snapshots", self.snapshots),
        ]
    }
}

impl std::ops::AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.emitted += other.emitted;
        self.read += other.read;
        self.lost += other.lost;
        self.sub_buffers += other.sub_buffers;
        self.overwritten += other.overwritten;
        self.unfinished += other.unfinished;
        self.kills += other.kills;
        self.stops += other.stops;
        self.restarts += other.restarts;
        self.snapshots += other.snapshots;
    }
}

impl Book {
    /// Emits the writer's next event, unless it has emitted [`EVENTS`].
    pub fn emit(&self, emitter: &Emitter, buffer: usize) -> bool {
        let counter = self.begun.load(Relaxed);
        if counter == EVENTS {
            return false;
        }
        self.begun.store(counter + 1, Relaxed);
        if emitter.emit(self.writer.load(Relaxed), counter, buffer).is_err() {
            self.lost[counter as usize / 64].fetch_or(1 << (counter % 64), Relaxed);
        }
        self.ended.store(counter + 1, Relaxed);
        true
    }

    /// Events that the writer has finished, written or lost.
    pub fn ended(&self) -> u32 {
        self.ended.load(Relaxed)
    }

    /// Whether the writer was informed that this event is lost.
    pub fn is_lost(&self, counter: u32) -> bool {
        self.lost[counter as usize / 64].load(Relaxed) >> (counter % 64) & 1 == 1
    }
}

/// Events that were never read.
#[derive(Debug, Default)]
struct Unread {
    events: u64,
    /// Bytes, if all had the compact form.
    bytes: u64,
}

impl Books {
    pub fn new() -> Self {
        // SAFETY: atomics, for which zero will do.
        Self(unsafe { Shared::zeroed() })
    }

    /// Opens account number `index` for `writer`.
    pub fn open(&self, index: usize, writer: u32) -> &Book {
        self.0[index].writer.store(writer, Relaxed);
        &self.0[index]
    }

    pub fn all(&self) -> impl Iterator<Item = &Book> {
        self.0.iter().filter(|book| book.writer.load(Relaxed) != 0)
    }

    pub fn of(&self, writer: u32) -> Option<&Book> {
        self.all().find(|book| book.writer.load(Relaxed) == writer)
    }

    /// Checks that every gap was lost.
    ///
    /// # Panics
    /// A missing event was not lost.
    pub fn explain(&self, gaps: impl Iterator<Item = Gap>) {
        for gap in gaps {
            let book = self.of(gap.writer).expect("a writer without an account");
            let is_explained = (gap.from..gap.to).all(|counter| book.is_lost(counter));
            assert!(is_explained, "neither read nor lost nor overwritten: {gap:?}");
        }
    }

    /// Compares the writers' accounts with what `collector` read and with what the buffers counted. `killed`:
    /// how many writers were killed; each may have been about to count a loss or to note one. In protocols
    /// `Smp` and `Local` a killed writer hides events after its own: at most `hidden` bytes.
    ///
    /// # Panics
    /// The account does not balance.
    pub fn balance(&self, collector: &Collector, killed: u64, hidden: u64) -> Totals {
        let (mut emitted, mut noted, mut unread) = (0, 0, Unread::default());
        for book in self.all() {
            let writer = book.writer.load(Relaxed);
            let (begun, ended) = (book.begun.load(Relaxed), book.ended());
            emitted += u64::from(begun);
            for counter in 0..begun {
                let (was_read, was_lost) = (collector.has(writer, counter), book.is_lost(counter));
                assert!(!(was_read && was_lost), "event {counter} of writer {writer:#x} was read and lost");
                noted += u64::from(was_lost);
                if !was_read && !was_lost && counter < ended {
                    unread.events += 1;
                    unread.bytes += compact(plan(writer, counter).len) as u64;
                } else if counter >= ended {
                    assert!(killed > 0, "writer {writer:#x} has not ended");
                }
            }
        }
        let lost = collector.lost();
        assert!((noted..=noted + killed).contains(&lost), "{lost} counted as lost, writers noted {noted}");
        if hidden == 0 {
            self.explain(collector.gaps());
        }
        let overwritten = collector.overwritten();
        if collector.mode() == Mode::Discard {
            assert!(unread.bytes <= hidden, "{unread:?} of {emitted} vanished, {hidden} bytes unfinished");
        } else {
            // How many of them had the extended form is unknown.
            let most = unread.bytes + unread.events * (EXTENDED_HEADER - HEADER) as u64;
            let found = overwritten.bytes + hidden;
            assert!(found >= unread.bytes, "{overwritten:?}, {hidden} hidden, but {unread:?}");
            let is_exact = collector.restarts() == 0;
            assert!(!is_exact || overwritten.bytes <= most, "{overwritten:?}, but {unread:?}");
            assert!(unread.events <= hidden || overwritten.sub_buffers > 0);
        }
        Totals {
            emitted,
            read: collector.read,
            lost,
            sub_buffers: overwritten.sub_buffers,
            overwritten: unread.events,
            restarts: collector.restarts(),
            ..Totals::default()
        }
    }
}
