//! Decodes a recording on a thread of its own, ahead of the thread that follows the state.
//!
//! Batches of activities go through a channel of bounded size; their memory goes back and is used again. What
//! they lack are the events themselves, except for what a reader takes from them on the decoding thread. The
//! order of everything is that of one thread.

use super::activity::{Activity, Kind};
use super::adapter::Adapter;
use super::checkpoint::{Pause, Pauses};
use crate::Error;
use crate::append;
use crate::merge::event::{EventRef, Message};
use crate::merge::messages::Merge;
use crate::open::recording::Recording;
use crate::stream::cursor::Lost;
use crate::threads::start;
use packed::{Packed, Small};
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};
use tracewing_units::Timestamp;

mod packed;

/// Messages of a batch, at most, and bytes of their texts.
const MESSAGES: usize = 1 << 11;
const TEXTS: usize = 1 << 20;

/// How many batches may wait.
const WAITING: usize = 4;

/// A message of the merged streams, without the event's own bytes; `R` is what a reader takes from them.
#[derive(Debug)]
pub enum Decoded<'a, R = ()> {
    /// An event.
    Event {
        /// What the super-trace needs of it ([`Adapter::activity`]).
        activity: Option<Activity<'a>>,
        /// When it was, whether or not it has an activity.
        time: Option<Timestamp>,
        /// Its stream's place in [`Recording::streams`].
        stream: usize,
        /// What the reader has taken from it.
        read: Option<&'a mut R>,
    },
    /// A loss in the stream of this place.
    Lost(Lost, usize),
}

/// Messages that follow each other.
#[derive(Debug)]
pub struct Batch<R = ()> {
    messages: Vec<Packed>,
    /// What was read of the events, in their order.
    reads: Vec<R>,
    /// The texts of the activities, one after the other.
    texts: Vec<u8>,
    /// The activities that are stored whole, without their texts, and the lengths of these.
    whole: Vec<Activity<'static>>,
    lengths: Vec<u32>,
    lost: Vec<Lost>,
    /// The names that they use, if no batch before does.
    names: Vec<String>,
    /// Bytes of the packets that were begun.
    bytes: u64,
    /// Where the merge pauses after them.
    pause: Option<Pause>,
    /// How the recording ends, if it does after them.
    end: Option<Result<(), Error>>,
}

/// What is decoded: a merge and what makes activities of its events, which may have begun before.
#[derive(Debug)]
pub struct Ahead<'r> {
    recording: &'r Recording,
    /// Gives what is to come.
    pub merge: Merge<'r>,
    /// Its names are known.
    pub adapter: Adapter,
    /// Where it pauses.
    pub pauses: Pauses,
}

impl<'r> Ahead<'r> {
    /// All of a recording.
    pub fn all(recording: &'r Recording, pauses: Pauses) -> Self {
        let merge = pauses.merge(recording);
        Self { recording, merge, adapter: Adapter::default(), pauses }
    }

    /// What a merge of a recording has left.
    pub fn rest(recording: &'r Recording, merge: Merge<'r>, adapter: Adapter) -> Self {
        Self { recording, merge, adapter, pauses: Pauses::none() }
    }
}

impl<R> Default for Batch<R> {
    fn default() -> Self {
        let (messages, reads, texts, whole, lengths, lost, names) = Default::default();
        Batch { messages, reads, texts, whole, lengths, lost, names, bytes: 0, pause: None, end: None }
    }
}

/// The batches of a recording.
#[derive(Debug)]
pub struct Batches<R = ()> {
    batches: Receiver<Batch<R>>,
    empty: Sender<Batch<R>>,
}

impl<R: Send> Batches<R> {
    /// Has `then` take the batches of what is to come, which another thread decodes until they are dropped;
    /// if the system refuses that thread, it gets back what was to be decoded. `read` gets each event there,
    /// and what it takes from it comes with the event.
    pub fn with<T>(
        ahead: Ahead<'_>,
        read: impl FnMut(&EventRef<'_>) -> Option<R> + Send,
        then: impl FnOnce(Result<Batches<R>, Ahead<'_>>) -> T,
    ) -> T {
        Self::by(Builder::new, ahead, read, then)
    }

    fn by<T>(
        new: fn() -> Builder,
        ahead: Ahead<'_>,
        mut read: impl FnMut(&EventRef<'_>) -> Option<R> + Send,
        then: impl FnOnce(Result<Batches<R>, Ahead<'_>>) -> T,
    ) -> T {
        let (send, batches) = mpsc::sync_channel(WAITING);
        let (empty, back) = mpsc::channel();
        let waiting = Mutex::new(Some(ahead));
        let taken = &|| waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread::scope(|scope| {
            let work = move || {
                if let Some(ahead) = taken() {
                    decode(ahead, &mut read, &send, &back);
                }
            };
            let started = start(scope, new, [work]);
            let refused = if started > 0 { None } else { taken() };
            then(refused.map_or(Ok(Batches { batches, empty }), Err))
        })
    }

    /// The next batch; the last one has an end.
    pub fn take(&mut self) -> Option<Batch<R>> {
        self.batches.recv().ok()
    }

    /// Takes back the memory of one that is not needed any more.
    pub fn give_back(&mut self, batch: Batch<R>) {
        // Where the recording has ended, nothing more is decoded.
        let _ = self.empty.send(batch);
    }
}

fn decode<R>(
    mut ahead: Ahead<'_>,
    read: &mut impl FnMut(&EventRef<'_>) -> Option<R>,
    send: &SyncSender<Batch<R>>,
    back: &Receiver<Batch<R>>,
) {
    let mut names = ahead.adapter.names().len();
    loop {
        let mut batch = back.try_recv().unwrap_or_default();
        batch.fill(&mut ahead, read);
        batch.names = ahead.adapter.names()[names..].to_vec();
        names = ahead.adapter.names().len();
        let is_last = batch.end.is_some();
        // If the receiver is gone, nothing more is needed.
        if send.send(batch).is_err() || is_last {
            return;
        }
    }
}

impl<R> Batch<R> {
    fn fill(&mut self, ahead: &mut Ahead<'_>, read: &mut impl FnMut(&EventRef<'_>) -> Option<R>) {
        self.messages.clear();
        self.reads.clear();
        self.texts.clear();
        self.whole.clear();
        self.lengths.clear();
        self.lost.clear();
        self.pause = None;
        let Ahead { recording, merge, adapter, pauses } = ahead;
        let result = merge.for_each(|message| {
            match message {
                Message::Event(event) => {
                    pauses.event(&event);
                    self.event(&event, adapter, read);
                }
                Message::Lost(lost, _, stream) => {
                    let stream = recording.streams().iter().position(|other| std::ptr::eq(other, stream));
                    self.lost.push(*lost);
                    self.messages.push(Packed::lost(stream.unwrap_or(0) as u32));
                }
            }
            match self.messages.len() < MESSAGES && self.texts.len() < TEXTS {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        self.end = match result {
            Ok(ControlFlow::Break(())) => None,
            Ok(ControlFlow::Continue(())) => {
                self.pause = pauses.pass(recording, merge, adapter);
                self.pause.is_none().then_some(Ok(()))
            }
            Err(error) => Some(Err(error)),
        };
        self.bytes = merge.bytes();
    }

    #[inline(always)]
    fn event(
        &mut self,
        event: &EventRef<'_>,
        adapter: &mut Adapter,
        read: &mut impl FnMut(&EventRef<'_>) -> Option<R>,
    ) {
        let stream = event.stream_index() as u32;
        match adapter.activity(event) {
            Some(activity) => self.pack(&activity, stream),
            None => self.messages.push(Packed::other(event.stamp().map(|stamp| stamp.time), stream)),
        }
        if let (Some(read), Some(message)) = (read(event), self.messages.last_mut()) {
            message.mark_read();
            self.reads.push(read);
        }
    }

    /// Names that are used from this batch on, in the order of their numbers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Bytes of the packets that were begun up to its end.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the merge pauses after this batch, if it does.
    pub fn pause(&mut self) -> Option<Pause> {
        self.pause.take()
    }

    /// How the recording ends, if it does after this batch.
    pub fn end(&mut self) -> Option<Result<(), Error>> {
        self.end.take()
    }

    /// Shows the messages in order to `each`, until that ends it.
    #[inline]
    pub fn try_for_each<B>(
        &mut self,
        mut each: impl FnMut(Decoded<'_, R>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let (mut whole, mut lost, mut reads) = (self.whole.iter(), self.lost.iter(), self.reads.iter_mut());
        let (mut texts, mut lengths) = (self.texts.as_slice(), self.lengths.iter());
        for message in &self.messages {
            let (stream, time) = (message.stream(), message.time);
            let read = if message.has_read() { reads.next() } else { None };
            let kind = match message.kind {
                Small::Other { has_time } => {
                    let time = has_time.then_some(time);
                    each(Decoded::Event { activity: None, time, stream, read })?;
                    continue;
                }
                Small::Lost => {
                    if let Some(lost) = lost.next() {
                        each(Decoded::Lost(*lost, stream))?;
                    }
                    continue;
                }
                Small::Whole => {
                    let Some(&Activity { cpu, tid, process, context, kind, .. }) = whole.next() else {
                        continue;
                    };
                    let kind = kind.map_texts(|_| {
                        let length = lengths.next().map_or(0, |length| *length as usize);
                        first(&mut texts, length)
                    });
                    let activity = Activity { time, cpu, tid, process, context, kind };
                    each(Decoded::Event { activity: Some(activity), time: Some(time), stream, read })?;
                    continue;
                }
                kind => kind.unpack(|length| first(&mut texts, length.into())),
            };
            let activity = Some(message.head(kind));
            each(Decoded::Event { activity, time: Some(time), stream, read })?;
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn pack(&mut self, activity: &Activity<'_>, stream: u32) {
        if let Some(packed) = Packed::of(activity, stream) {
            match activity.kind {
                Kind::Switch { prev_name, next_name, .. } => {
                    append::text(&mut self.texts, prev_name);
                    append::text(&mut self.texts, next_name);
                }
                Kind::Waking { name, .. } | Kind::Wakeup { name, .. } => append::text(&mut self.texts, name),
                _ => {}
            }
            self.messages.push(packed);
        } else {
            self.pack_whole(activity, stream);
        }
    }

    #[inline(never)]
    fn pack_whole(&mut self, activity: &Activity<'_>, stream: u32) {
        let &Activity { time, cpu, tid, process, context, kind } = activity;
        let kind = kind.map_texts(|text| {
            append::text(&mut self.texts, text);
            self.lengths.push(text.len() as u32);
            &[]
        });
        self.whole.push(Activity { time, cpu, tid, process, context, kind });
        self.messages.push(Packed::whole(time, stream));
    }
}

/// Takes the first bytes of a text.
#[inline]
fn first<'t>(texts: &mut &'t [u8], length: usize) -> &'t [u8] {
    let (text, rest) = texts.split_at_checked(length).unwrap_or_default();
    *texts = rest;
    text
}

#[cfg(test)]
mod tests;
