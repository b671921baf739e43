//! Packets in flight to the disk: a bounded queue and the thread that empties it.
//!
//! The thread that drains buffers must not wait for the disk: file systems occasionally stall for 50 ms, and
//! buffers that hold a few milliseconds of a busy program's events would overflow. So packets are copied out
//! of the buffers into blocks of memory, at most [`MOST_BYTES`] of them, and written by a separate thread.
//! When the blocks are used up, packets stay in the buffers, and events that do not fit there are lost and
//! counted as usual.
//!
//! A packet that cannot be written is a loss that its stream learns about later
//! ([`QueuedStream::take_unwritten`]). Later packets of the same stream are not written, so that the stream
//! has no gap.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use tracewing_streams::{PacketTimes, Stream};

use crate::Error;
use tracewing_units::Cycles;

/// Maximum bytes of packets that wait to be written: 30 ms of the fastest program, a second of a busy kernel.
const MOST_BYTES: usize = 64 << 20;
/// Number of blocks that are kept while the queue is empty.
const SPARE_BLOCKS: usize = 8;

/// Locks a mutex. A thread that panicked while holding it has left nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The queue and its thread, which ends when this is dropped, with everything written.
pub(crate) struct Writer {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    /// Signalled when a packet was pushed, or the queue is closed.
    pushed: Condvar,
    /// Signalled when a packet was written.
    done: Condvar,
}

#[derive(Default)]
struct State {
    packets: VecDeque<Packet>,
    /// Bytes of `packets`, and of the packet that is being written.
    bytes: usize,
    /// Number of packets, including the one that is being written.
    unfinished: usize,
    blocks: Vec<Vec<u8>>,
    is_over: bool,
}

struct Packet {
    stream: Arc<QueuedStream>,
    events: Vec<u8>,
    count: Counted,
    times: PacketTimes,
}

/// A stream whose packets go through the queue.
pub(crate) struct QueuedStream {
    /// Locked only by the thread, while it writes.
    file: Mutex<Stream>,
    written: Mutex<Written>,
}

/// Number of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counted {
    pub(crate) events: u64,
    /// Those that only repeat the state, which `events` does not include.
    pub(crate) state: u64,
}

impl Counted {
    /// So many events, none of which is state.
    pub(crate) fn events(events: u64) -> Self {
        Self { events, state: 0 }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.events += other.events;
        self.state += other.state;
    }
}

/// Totals of what has been written of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub(crate) count: Counted,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Beginning of the first packet.
    pub(crate) begin: Cycles,
}

/// State of a stream's packets.
#[derive(Default)]
struct Written {
    tally: Tally,
    /// Packets that were taken out of the queue, written or not.
    finished: u64,
    /// Events of packets that could not be written and have not been reported yet, without state.
    unwritten: u64,
    /// Why they could not be written.
    error: Option<Error>,
}

impl Tally {
    /// Totals of a stream that contains so many events.
    pub(crate) fn of(stream: &Stream, count: Counted) -> Self {
        Self { count, packets: stream.packets(), bytes: stream.bytes(), begin: stream.begin() }
    }
}

impl Writer {
    /// Starts the thread, which first calls `prepare` and keeps the result.
    pub(crate) fn start<G>(prepare: impl FnOnce() -> G + Send + 'static) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let of_thread = queue.clone();
        let work = move || {
            let _prepared = prepare();
            of_thread.write_until_over();
        };
        let thread = Builder::new().name("tracewing-write".to_owned()).spawn(work)?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Whether a packet of `len` bytes can be pushed now. An empty queue accepts any length.
    pub(crate) fn has_room(&self, len: usize) -> bool {
        lock(&self.queue.state).has_room(len)
    }

    /// Waits until a packet of `len` bytes can be pushed.
    pub(crate) fn wait_for_room(&self, len: usize) {
        let state = lock(&self.queue.state);
        let full = |state: &mut State| !state.has_room(len);
        drop(self.queue.done.wait_while(state, full).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until the queue is empty.
    pub(crate) fn sync(&self) {
        let state = lock(&self.queue.state);
        let busy = |state: &mut State| state.unfinished > 0;
        drop(self.queue.done.wait_while(state, busy).unwrap_or_else(PoisonError::into_inner));
    }

    /// An empty block for the events of a packet.
    pub(crate) fn block(&self) -> Vec<u8> {
        lock(&self.queue.state).blocks.pop().unwrap_or_default()
    }

    /// Queues a packet of `count` events after all earlier ones.
    pub(crate) fn push(
        &self,
        stream: &Arc<QueuedStream>,
        events: Vec<u8>,
        count: Counted,
        times: PacketTimes,
    ) {
        let mut state = lock(&self.queue.state);
        state.bytes += events.len();
        state.unfinished += 1;
        state.packets.push_back(Packet { stream: stream.clone(), events, count, times });
        drop(state);
        self.queue.pushed.notify_one();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        lock(&self.queue.state).is_over = true;
        self.queue.pushed.notify_one();
        // A panic of the thread has been printed already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl State {
    fn has_room(&self, len: usize) -> bool {
        self.unfinished == 0 || self.bytes.saturating_add(len) <= MOST_BYTES
    }
}

impl Queue {
    fn write_until_over(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(packet) = state.packets.pop_front() {
                drop(state);
                packet.stream.write(&packet);
                state = lock(&self.state);
                state.finished(packet.events);
                self.done.notify_all();
            } else if state.is_over {
                return;
            } else {
                state = self.pushed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl State {
    fn finished(&mut self, mut block: Vec<u8>) {
        self.bytes -= block.len();
        self.unfinished -= 1;
        block.clear();
        self.blocks.push(block);
        if self.unfinished == 0 {
            self.blocks.truncate(SPARE_BLOCKS);
        }
    }
}

impl QueuedStream {
    pub(crate) fn new(stream: Stream) -> Arc<Self> {
        Arc::new(Self { file: Mutex::new(stream), written: Mutex::default() })
    }

    fn write(&self, packet: &Packet) {
        if let written @ Written { error: Some(_), .. } = &mut *lock(&self.written) {
            written.unwritten += packet.count.events;
            written.finished += 1;
            return;
        }
        let mut file = lock(&self.file);
        let result = file.write(&packet.events, packet.times);
        let mut written = lock(&self.written);
        written.finished += 1;
        match result {
            Ok(()) => written.tally.count.add(packet.count),
            Err(error) => {
                written.unwritten += packet.count.events;
                written.error = Some(error.into());
            }
        }
        let Tally { count, .. } = written.tally;
        written.tally = Tally::of(&file, count);
    }

    /// What has been written so far.
    pub(crate) fn tally(&self) -> Tally {
        lock(&self.written).tally
    }

    /// Number of packets that are no longer in the queue, whether they could be written or not.
    pub(crate) fn finished(&self) -> u64 {
        lock(&self.written).finished
    }

    /// Takes the number of events that could not be written since the last call.
    pub(crate) fn take_unwritten(&self) -> u64 {
        std::mem::take(&mut lock(&self.written).unwritten)
    }

    /// # Errors
    /// A packet could not be written; stays the same once it has failed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        lock(&self.written).error.as_ref().map_or(Ok(()), |error| Err(error.again()))
    }
}

#[cfg(test)]
mod tests;
