//! Decodes a recording on a thread of its own, ahead of the thread that follows the state.
//!
//! Batches of activities go through a channel of bounded size; their memory goes back and is used again. What
//! they lack are the events themselves, except for what a reader takes from them on the decoding thread. The
//! order of everything is that of one thread.

use super::activity::{Activity, Kind};
use super::adapter::Adapter;
use crate::Error;
use crate::append;
use crate::merge::event::{EventRef, Message};
use crate::merge::messages::Merge;
use crate::open::recording::Recording;
use crate::stream::cursor::Lost;
use crate::threads::start;
use crate::time::range::TimeRange;
use packed::{Packed, Small};
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
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
    /// How the recording ends, if it does after them.
    end: Option<Result<(), Error>>,
}

impl<R> Default for Batch<R> {
    fn default() -> Self {
        let (messages, reads, texts, whole, lengths, lost, names) = Default::default();
        Batch { messages, reads, texts, whole, lengths, lost, names, bytes: 0, end: None }
    }
}

/// The batches of a recording.
#[derive(Debug)]
pub struct Batches<R = ()> {
    batches: Receiver<Batch<R>>,
    empty: Sender<Batch<R>>,
}

impl<R: Send> Batches<R> {
    /// Has `then` take the batches of a recording, which another thread decodes until they are dropped;
    /// `None` if the system refuses that thread. `read` gets each event there, and what it takes from it
    /// comes with the event.
    pub fn with<T>(
        recording: &Recording,
        read: impl FnMut(&EventRef<'_>) -> Option<R> + Send,
        then: impl FnOnce(Option<Batches<R>>) -> T,
    ) -> T {
        Self::by(Builder::new, recording, read, then)
    }

    fn by<T>(
        new: fn() -> Builder,
        recording: &Recording,
        mut read: impl FnMut(&EventRef<'_>) -> Option<R> + Send,
        then: impl FnOnce(Option<Batches<R>>) -> T,
    ) -> T {
        let (send, batches) = mpsc::sync_channel(WAITING);
        let (empty, back) = mpsc::channel();
        thread::scope(|scope| {
            let started = start(scope, new, [move || decode(recording, &mut read, &send, &back)]);
            then((started > 0).then_some(Batches { batches, empty }))
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
    recording: &Recording,
    read: &mut impl FnMut(&EventRef<'_>) -> Option<R>,
    send: &SyncSender<Batch<R>>,
    back: &Receiver<Batch<R>>,
) {
    let mut merge = Merge::new(recording, TimeRange::ALL);
    let (mut adapter, mut names) = (Adapter::default(), 0);
    loop {
        let mut batch = back.try_recv().unwrap_or_default();
        batch.fill(recording, &mut merge, &mut adapter, read);
        batch.names = adapter.names()[names..].to_vec();
        names = adapter.names().len();
        let is_last = batch.end.is_some();
        // If the receiver is gone, nothing more is needed.
        if send.send(batch).is_err() || is_last {
            return;
        }
    }
}

impl<R> Batch<R> {
    fn fill(
        &mut self,
        recording: &Recording,
        merge: &mut Merge<'_>,
        adapter: &mut Adapter,
        read: &mut impl FnMut(&EventRef<'_>) -> Option<R>,
    ) {
        self.messages.clear();
        self.reads.clear();
        self.texts.clear();
        self.whole.clear();
        self.lengths.clear();
        self.lost.clear();
        let result = merge.for_each(|message| {
            match message {
                Message::Event(event) => self.event(&event, adapter, read),
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
            Ok(ControlFlow::Continue(())) => Some(Ok(())),
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
