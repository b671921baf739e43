//! The user trace: the streams that the buffers of all regions are written to, one region after another.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracewing_ctf::model::Uuid;
use tracewing_files::Dir;
use tracewing_streams::{PacketTimes, Stream, TraceDir};
use tracewing_units::{Cpu, Cycles, Tid};

use crate::Error;
use crate::archive::{Archive, Lost, UNWRITTEN, without_file};
use crate::classes::Classes;
use crate::clock::TraceClock;
use crate::firsts::Firsts;
use crate::ids::Ids;
use crate::names::Names;
use crate::output::Output;
use crate::packet_events::encode;
use crate::streams::Streams;
use crate::summary::{LossRange, OverwrittenTotal, StreamSummary};
use crate::writer::{Counted, Writer};

/// The user trace, to which streams are added.
pub struct UserTrace {
    folder: TraceDir,
    recording: Uuid,
    made: u64,
    streams: Streams<Output>,
    /// Streams that no other region may continue.
    closed: Vec<Output>,
    /// Losses of finished regions, by the name of the stream.
    lost: BTreeMap<String, Lost>,
    /// Makes `writer` when the first stream needs it.
    start: Option<StartWriter>,
    writer: Option<Arc<Writer>>,
    /// Classes that had an event.
    seen: Arc<Ids>,
    /// Classes whose events are counted as state.
    of_state: Arc<Ids>,
    firsts: Arc<Firsts>,
    names: Option<Arc<Names>>,
    /// Bytes of packets that were given to the streams since the archive began.
    given: u64,
    /// The streams of the state with which the current archive begins.
    own: Vec<StreamSummary>,
    /// The stream of what the recorder reports during the recording.
    reports: Option<Output>,
}

/// The folder of the trace that follows a rotation.
pub struct NextTrace {
    folder: TraceDir,
    recording: Uuid,
}

impl NextTrace {
    /// The trace in `folder`, whose `index` folder is made here.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(folder: &Dir, recording: Uuid) -> Result<Self, Error> {
        Ok(Self { folder: TraceDir::new(folder)?, recording })
    }
}

type StartWriter = Box<dyn FnOnce() -> std::io::Result<Writer> + Send>;

impl UserTrace {
    /// The trace in `folder`, whose `index` folder is made here.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(folder: &Dir, recording: Uuid) -> Result<Self, Error> {
        let (seen, of_state) = (Arc::new(Ids::new()), Arc::new(Ids::new()));
        Ok(Self {
            folder: TraceDir::new(folder)?,
            recording,
            made: 0,
            streams: Streams::new(),
            closed: Vec::new(),
            lost: BTreeMap::new(),
            start: None,
            writer: None,
            seen,
            of_state,
            firsts: Arc::default(),
            names: None,
            given: 0,
            own: Vec::new(),
            reports: None,
        })
    }

    /// Closes the files of all streams that no region uses, and directs all further packets to the next
    /// trace. [`Drain::rotate`](crate::drain::Drain::rotate) closes those of a region.
    pub fn rotate(&mut self, next: NextTrace) -> Archive {
        let mut archive = Archive::new(std::mem::take(&mut self.lost));
        for mut output in std::mem::take(&mut self.closed) {
            archive.close(output.close());
        }
        self.streams.idle_mut().for_each(|output| archive.close(output.close()));
        self.own.drain(..).for_each(|stream| archive.add_stream(Some(stream)));
        self.reports.iter_mut().for_each(|output| archive.close(output.close()));
        (self.folder, self.recording) = (next.folder, next.recording);
        (self.made, self.given) = (0, 0);
        archive
    }

    /// Writes the recorder's own events of the class with this id, each with its thread and payload: the
    /// state at the beginning of the archive.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_state(
        &mut self,
        name: &str,
        id: u16,
        at: Cycles,
        own: impl Iterator<Item = (Tid, Vec<u8>)>,
    ) -> Result<(), Error> {
        let (bytes, events) = encode(at, id, own);
        if events == 0 {
            return Ok(());
        }
        let mut stream = self.stream(name, Cpu(0))?;
        stream.write(&bytes, PacketTimes::empty(at, 0, 0))?;
        self.own.push(StreamSummary {
            state_events: events,
            packets: stream.packets(),
            bytes: stream.bytes(),
            begin: Some(stream.begin()),
            ..StreamSummary::without_file(name, Cpu(0), 0, OverwrittenTotal::default())
        });
        Ok(())
    }

    /// Appends events of the recorder's own to a stream of this name, all with this time: of the class with
    /// this id, each with its thread and payload. Returns `false`, and writes nothing, while the queue to the
    /// disk has no room.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn report(&mut self, name: &str, id: u16, at: Cycles, own: &[(Tid, Vec<u8>)]) -> Result<bool, Error> {
        let (bytes, count) = encode(at, id, own.iter().map(|(tid, payload)| (*tid, payload.as_slice())));
        if !self.has_room(bytes.len()) {
            return Ok(false);
        }
        let mut output = self.reports.take().unwrap_or_else(|| self.output(name, Cpu(0), at));
        let opened = if output.is_open() { Ok(()) } else { self.open(&mut output) };
        self.count_given(bytes.len());
        let times = PacketTimes::empty(at, 0, 0);
        let written = opened.and_then(|()| output.append(bytes, Counted::events(count), times));
        self.reports = Some(output);
        written.map(|()| true)
    }

    /// Streams that no region uses.
    fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.streams.idle().chain(&self.closed).chain(&self.reports)
    }

    /// Bytes that were given to the streams of the current archive.
    pub fn given(&self) -> u64 {
        self.given
    }

    pub(crate) fn count_given(&mut self, bytes: usize) {
        self.given += bytes as u64;
    }

    /// Lets a separate thread write, through a queue in memory, so that buffers are drained even while the
    /// disk stalls. The thread starts with the first stream; it first calls `prepare` and keeps the result.
    ///
    /// Not for buffers that must survive this process: the content of the queue does not.
    pub fn write_in_background<G>(mut self, prepare: impl FnOnce() -> G + Send + 'static) -> Self {
        self.start = Some(Box::new(|| Writer::start(prepare)));
        self
    }

    /// Counts the events of classes that only repeat the state as `state_events`, not as `events`.
    pub fn with_state_of(mut self, classes: &Classes) -> Self {
        self.of_state = classes.of_state().clone();
        self
    }

    /// Reads names of threads of other processes.
    pub fn with_names(mut self, names: Arc<Names>) -> Self {
        self.names = Some(names);
        self
    }

    /// The source of thread names, if any.
    pub fn names(&self) -> Option<&Names> {
        self.names.as_deref()
    }

    /// Identity of the recording.
    pub fn recording(&self) -> Uuid {
        self.recording
    }

    /// The decisions about first events of classes.
    pub fn firsts(&self) -> &Arc<Firsts> {
        &self.firsts
    }

    /// Whether an event of the class with this id was seen.
    pub fn has_seen(&self, id: u16) -> bool {
        self.seen.has(id)
    }

    pub(crate) fn stream(&mut self, name: &str, cpu: Cpu) -> Result<Stream, Error> {
        let stream = Stream::create(&self.folder, name, self.recording, self.made, cpu)?;
        self.made += 1;
        Ok(stream)
    }

    /// A stream for a buffer whose first packet does not begin before `begin`: a new one, or one that another
    /// region has finished.
    pub(crate) fn output(&mut self, label: &str, cpu: Cpu, begin: Cycles) -> Output {
        if let Some(mut output) = self.streams.take(label, cpu, begin, Output::end) {
            output.begin_region();
            return output;
        }
        let ids = (self.seen.clone(), self.of_state.clone());
        Output::new(self.streams.name(label, cpu), cpu, ids, self.firsts.clone(), self.names.clone())
    }

    /// Makes the file of a stream that has none.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn open(&mut self, output: &mut Output) -> Result<(), Error> {
        let stream = self.stream(output.name(), output.cpu())?;
        if let Some(start) = self.start.take() {
            // Without a thread, writing waits for the disk.
            self.writer = start().ok().map(Arc::new);
        }
        output.open(stream, self.writer.clone());
        Ok(())
    }

    /// A region has finished a stream, which another one may continue if `can_continue`.
    pub(crate) fn give_back(&mut self, label: &str, output: Output, can_continue: bool) {
        match can_continue {
            true => self.streams.give_back(label, output.cpu(), output),
            false => self.closed.push(output),
        }
    }

    /// Adds the losses of a finished region to a stream.
    pub(crate) fn lose(&mut self, stream: &str, lost: &Lost) {
        if !lost.is_nothing() {
            self.lost.entry(stream.to_owned()).or_insert_with(|| Lost::none(lost.cpu)).add(lost);
        }
    }

    /// A summary of each stream of the finished regions in the current archive: those that have files, and
    /// those that lost everything.
    pub fn summary(&self) -> Vec<StreamSummary> {
        let mut lost = self.lost.clone();
        let outputs = self.outputs().filter(|output| output.is_open());
        let mut all: Vec<StreamSummary> = outputs
            .filter_map(|output| {
                let Lost { events, is_unknown, overwritten, .. } =
                    lost.remove(output.name()).unwrap_or_else(|| Lost::none(output.cpu()));
                Some(StreamSummary { is_lost_unknown: is_unknown, ..output.summary(events, overwritten)? })
            })
            .collect();
        all.extend(lost.iter().map(|(name, lost)| without_file(name, lost)));
        all.extend_from_slice(&self.own);
        all.sort_by(|one, other| (one.cpu, &one.name).cmp(&(other.cpu, &other.name)));
        all
    }

    /// Waits until the finished regions are written; returns what could not be written, and why.
    pub fn settle(&mut self, clock: &TraceClock) -> (Vec<LossRange>, Result<(), Error>) {
        let (mut losses, mut result) = (Vec::new(), Ok(()));
        for output in self.streams.idle().chain(&self.closed).chain(&self.reports) {
            let events = output.settle();
            result = result.and_then(|()| output.check());
            if events > 0 {
                let (stream, reason) = (output.name().to_owned(), UNWRITTEN.to_owned());
                losses.push(LossRange { stream, reason, events, begin: output.end(), end: clock.now() });
                let none = || Lost::none(output.cpu());
                let lost = self.lost.entry(output.name().to_owned()).or_insert_with(none);
                lost.events = lost.events.saturating_add(events);
            }
        }
        (losses, result)
    }

    /// Whether a packet of `len` bytes can be written now, without waiting.
    pub fn has_room(&self, len: usize) -> bool {
        self.writer.as_ref().is_none_or(|writer| writer.has_room(len))
    }

    /// Waits until a packet of `len` bytes can be written.
    pub fn wait_for_room(&self, len: usize) {
        if let Some(writer) = &self.writer {
            writer.wait_for_room(len);
        }
    }
}
