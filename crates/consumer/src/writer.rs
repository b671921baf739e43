//! Packets on their way to the disk: a bounded queue and the thread that empties it.
//!
//! Whoever drains buffers must not wait for the disk: a file system that stalls for 50 ms, as they do now and
//! then, would overfill buffers that hold a few milliseconds of a busy program's events. So packets are
//! copied out of the buffers into blocks of memory, at most [`MOST_BYTES`] of them, and written by a thread
//! of their own. When the blocks are used up, packets stay in the buffers, and what does not fit there is
//! lost and counted as ever.
//!
//! A packet that cannot be written is a loss that its stream learns of later
//! ([`QueuedStream::take_unwritten`]); packets behind it in the same stream are not tried any more, so that
//! the stream has no gap.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use tracewing_streams::{PacketTimes, Stream};

use crate::Error;

/// Bytes of packets that wait to be written, at most: 30 ms of the fastest program, a second of a busy
/// kernel.
const MOST_BYTES: usize = 64 << 20;
/// Blocks that are kept when nothing waits.
const SPARE_BLOCKS: usize = 8;

/// Locks; a thread that panicked meanwhile has left nothing half done.
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
    /// There is a packet, or there will be no more.
    pushed: Condvar,
    /// A packet is done with.
    done: Condvar,
}

#[derive(Default)]
struct State {
    packets: VecDeque<Packet>,
    /// Of `packets`, and of the one that is being written.
    bytes: usize,
    /// That one included.
    unfinished: usize,
    blocks: Vec<Vec<u8>>,
    is_over: bool,
}

struct Packet {
    stream: Arc<QueuedStream>,
    events: Vec<u8>,
    count: u64,
    times: PacketTimes,
}

/// A stream whose packets go through the queue.
pub(crate) struct QueuedStream {
    /// Locked by the thread while it writes, by nobody else.
    file: Mutex<Stream>,
    written: Mutex<Written>,
}

/// What has been written of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub(crate) events: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Begin of the first packet, cycles.
    pub(crate) begin: u64,
}

/// What has become of a stream's packets.
#[derive(Default)]
struct Written {
    tally: Tally,
    /// Events of packets that could not be written and that nobody has asked for yet.
    unwritten: u64,
    /// Why.
    error: Option<Error>,
}

impl Tally {
    /// Of a stream in which there are so many events.
    pub(crate) fn of(stream: &Stream, events: u64) -> Self {
        Self { events, packets: stream.packets(), bytes: stream.bytes(), begin: stream.begin() }
    }
}

impl Writer {
    /// Starts the thread, which calls `prepare` first and keeps what it gives.
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

    /// Whether a packet of `len` bytes can be pushed now. It can when nothing waits, however long it is.
    pub(crate) fn has_room(&self, len: usize) -> bool {
        lock(&self.queue.state).has_room(len)
    }

    /// Waits until it can.
    pub(crate) fn wait_for_room(&self, len: usize) {
        let state = lock(&self.queue.state);
        let full = |state: &mut State| !state.has_room(len);
        drop(self.queue.done.wait_while(state, full).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until nothing waits.
    pub(crate) fn sync(&self) {
        let state = lock(&self.queue.state);
        let busy = |state: &mut State| state.unfinished > 0;
        drop(self.queue.done.wait_while(state, busy).unwrap_or_else(PoisonError::into_inner));
    }

    /// Memory for the events of a packet, empty.
    pub(crate) fn block(&self) -> Vec<u8> {
        lock(&self.queue.state).blocks.pop().unwrap_or_default()
    }

    /// Has a packet of `count` events written, behind all that were pushed before.
    pub(crate) fn push(&self, stream: &Arc<QueuedStream>, events: Vec<u8>, count: u64, times: PacketTimes) {
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
            written.unwritten += packet.count;
            return;
        }
        let mut file = lock(&self.file);
        let result = file.write(&packet.events, packet.times);
        let mut written = lock(&self.written);
        match result {
            Ok(()) => written.tally.events += packet.count,
            Err(error) => {
                written.unwritten += packet.count;
                written.error = Some(error.into());
            }
        }
        let Tally { events, .. } = written.tally;
        written.tally = Tally::of(&file, events);
    }

    /// What is written by now.
    pub(crate) fn tally(&self) -> Tally {
        lock(&self.written).tally
    }

    /// Events that could not be written, of which this has not told before.
    pub(crate) fn take_unwritten(&self) -> u64 {
        std::mem::take(&mut lock(&self.written).unwritten)
    }

    /// # Errors
    /// A packet could not be written; the same each time.
    pub(crate) fn check(&self) -> Result<(), Error> {
        lock(&self.written).error.as_ref().map_or(Ok(()), |error| Err(error.again()))
    }
}

#[cfg(test)]
mod tests;
