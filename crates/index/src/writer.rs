//! Where blocks are made: on the thread that reads the recording, or on another one, to which additions are
//! handed over in batches.

use crate::blocks::{Addition, Blocks};
use crate::body::Body;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, Scope};
use tracewing_units::Timestamp;

/// Additions in a batch: 64 KiB.
const BATCH: usize = 1 << 11;
/// How many batches may wait.
const WAITING: usize = 8;

/// What comes next.
struct Batch {
    additions: Vec<Addition>,
    /// What follows these.
    checkpoint: Option<(Timestamp, Vec<u8>)>,
}

/// Makes blocks.
pub(crate) struct Writer<'w>(State<'w>);

enum State<'w> {
    Here(Blocks<'w>),
    Apart(Apart<'w>),
    /// Only in between.
    Moves,
}

/// Another thread makes them.
struct Apart<'w> {
    batch: Vec<Addition>,
    send: SyncSender<Batch>,
    /// Batches that have been used.
    empty: Receiver<Vec<Addition>>,
    /// The blocks, when no batch can come any more.
    back: Receiver<Blocks<'w>>,
    has_failed: bool,
}

impl<'w> Writer<'w> {
    pub(crate) fn new(body: Body<'w>) -> Self {
        Writer(State::Here(Blocks::new(body)))
    }

    /// Those blocks are made by this thread.
    pub(crate) fn of(blocks: Blocks<'w>) -> Self {
        Writer(State::Here(blocks))
    }

    /// Has another thread make blocks from now on, if the system does not refuse it.
    pub(crate) fn move_apart<'s>(&mut self, scope: &'s Scope<'s, '_>, new: fn() -> Builder)
    where
        'w: 's,
    {
        let (send, batches) = sync_channel::<Batch>(WAITING);
        let (give_back, empty) = channel();
        let (take, blocks) = channel::<Blocks<'w>>();
        let (finish, back) = channel();
        let work = move || {
            let Ok(mut blocks) = blocks.recv() else { return };
            for Batch { mut additions, checkpoint } in batches {
                additions.drain(..).for_each(|addition| blocks.add(addition));
                checkpoint.into_iter().for_each(|(until, bytes)| blocks.body.checkpoint(until, &bytes));
                // Whatever follows would be written to nowhere; the other thread sees that it cannot send.
                if blocks.body.has_failed() {
                    break;
                }
                // Where nothing more comes, the memory is not needed.
                let _ = give_back.send(additions);
            }
            let _ = finish.send(blocks);
        };
        if new().spawn_scoped(scope, work).is_err() {
            return;
        }
        let batch = Vec::with_capacity(BATCH);
        match std::mem::replace(&mut self.0, State::Moves) {
            State::Here(here) => {
                let _ = take.send(here);
                self.0 = State::Apart(Apart { batch, send, empty, back, has_failed: false });
            }
            state => self.0 = state,
        }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, addition: Addition) {
        match &mut self.0 {
            State::Apart(apart) => {
                apart.batch.push(addition);
                if apart.batch.len() == BATCH {
                    apart.hand_over(None);
                }
            }
            State::Here(blocks) => blocks.add(addition),
            State::Moves => {}
        }
    }

    /// Writes a checkpoint after all that was added.
    #[cold]
    pub(crate) fn checkpoint(&mut self, until: Timestamp, bytes: Vec<u8>) {
        match &mut self.0 {
            State::Apart(apart) => apart.hand_over(Some((until, bytes))),
            State::Here(blocks) => blocks.body.checkpoint(until, &bytes),
            State::Moves => {}
        }
    }

    /// The blocks, which this thread makes from now on.
    pub(crate) fn here(&mut self) -> &mut Blocks<'w> {
        if let State::Apart(_) = self.0 {
            let blocks = std::mem::replace(&mut self.0, State::Moves).taken();
            self.0 = State::Here(blocks);
        }
        match &mut self.0 {
            State::Here(blocks) => blocks,
            State::Apart(_) | State::Moves => unreachable!("they were taken back just now"),
        }
    }

    /// The blocks, when all has been added.
    pub(crate) fn into_blocks(self) -> Blocks<'w> {
        self.0.taken()
    }

    /// Whether what was added cannot be written.
    pub(crate) fn has_failed(&self) -> bool {
        match &self.0 {
            State::Here(blocks) => blocks.body.has_failed(),
            State::Apart(apart) => apart.has_failed,
            State::Moves => false,
        }
    }
}

impl<'w> State<'w> {
    fn taken(self) -> Blocks<'w> {
        match self {
            State::Here(blocks) => blocks,
            State::Apart(mut apart) => {
                apart.hand_over(None);
                drop(apart.send);
                apart.back.recv().expect("the thread gives them back unless it panics")
            }
            State::Moves => unreachable!("blocks move only within a function"),
        }
    }
}

impl Apart<'_> {
    #[cold]
    fn hand_over(&mut self, checkpoint: Option<(Timestamp, Vec<u8>)>) {
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        let additions = std::mem::replace(&mut self.batch, next);
        self.has_failed |= self.send.send(Batch { additions, checkpoint }).is_err();
    }
}
