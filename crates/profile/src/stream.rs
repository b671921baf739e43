//! A data stream, of a CPU or of code that was compiled at run time: collects events into packets and writes
//! them to a file.

use tracewing_consumer::summary::{LossRange, OverwrittenTotal, StreamSummary};
use tracewing_ctf::model::Uuid;
use tracewing_streams::{Error, Gathered, PacketTimes, Stream, TraceDir};
use tracewing_units::{Cpu, Cycles};

/// Size in bytes at which a packet is completed.
const PACKET_SIZE: usize = 256 << 10;
/// The reason that losses are reported with.
const LOSS_REASON: &str = "profile buffer full";

/// A data stream. Its file is created with the first packet.
pub(crate) struct EventStream {
    folder: TraceDir,
    uuid: Uuid,
    name: String,
    /// Differs between the streams of the trace.
    number: u64,
    cpu: Cpu,
    file: Option<Stream>,
    gathered: Gathered,
    events: u64,
    /// Of the events, those that repeat the state at the beginning of a trace which continues another.
    dumped: u64,
    /// Those in the present packet.
    dumping: u64,
    /// The end of the stream in the trace that this one continues.
    continued: Option<Cycles>,
    lost: u64,
    losses: Vec<LossRange>,
}

impl EventStream {
    /// The stream of a CPU.
    pub(crate) fn of_cpu(folder: TraceDir, uuid: Uuid, cpu: Cpu) -> Self {
        Self::new(folder, uuid, format!("cpu_{cpu}"), cpu.0.into(), cpu)
    }

    /// The stream for names of code that was compiled at run time. It is of no CPU, but has to name one.
    pub(crate) fn of_jit(folder: TraceDir, uuid: Uuid) -> Self {
        Self::new(folder, uuid, "jit".to_owned(), u32::MAX.into(), Cpu(0))
    }

    /// The stream that continues this one in another trace.
    pub(crate) fn next(&self, folder: TraceDir, uuid: Uuid) -> Self {
        let new = Self::new(folder, uuid, self.name.clone(), self.number, self.cpu);
        Self { continued: Some(self.end()), ..new }
    }

    fn new(folder: TraceDir, uuid: Uuid, name: String, number: u64, cpu: Cpu) -> Self {
        Self {
            folder,
            uuid,
            name,
            number,
            cpu,
            file: None,
            gathered: Gathered::new(PACKET_SIZE),
            events: 0,
            dumped: 0,
            dumping: 0,
            continued: None,
            lost: 0,
            losses: Vec::new(),
        }
    }

    /// Adds an event; `body` holds its context and payload as in the trace.
    pub(crate) fn event(&mut self, stamp: Cycles, id: u16, body: &[u8]) -> Result<(), Error> {
        self.gathered.append(stamp, id, |out| {
            out.extend_from_slice(body);
            true
        });
        if self.gathered.is_enough() { self.end_packet() } else { Ok(()) }
    }

    /// Records that `count` events are missing between the last event and the next one.
    pub(crate) fn lose(&mut self, count: u64, until: Cycles) -> Result<(), Error> {
        let ended = self.end_packet().and_then(|()| self.begin_continued());
        let last = self.end();
        self.count_lost(count, last, until.max(last));
        ended
    }

    /// Where the first packet of a trace that continues another one is to report a loss: writes an empty
    /// packet before it, since readers take the time of a loss from the packets around it.
    fn begin_continued(&mut self) -> Result<(), Error> {
        match self.continued {
            Some(at) if self.file.is_none() => self.file()?.write_empty(PacketTimes::empty(at, 0, 0)),
            _ => Ok(()),
        }
    }

    fn count_lost(&mut self, count: u64, begin: Cycles, end: Cycles) {
        self.lost = self.lost.saturating_add(count);
        let (stream, reason) = (self.name.clone(), LOSS_REASON.to_owned());
        self.losses.push(LossRange { stream, reason, events: count, begin, end });
    }

    /// Writes the packet unless it is empty. Events that cannot be written are counted as lost.
    pub(crate) fn end_packet(&mut self) -> Result<(), Error> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let result = self.write();
        let (_, PacketTimes { begin, end, .. }) = self.gathered.packet(self.lost);
        let (events, dumped) = (self.gathered.clear(), std::mem::take(&mut self.dumping));
        match &result {
            Ok(()) => {
                self.events += events - dumped;
                self.dumped += dumped;
            }
            Err(_) => self.count_lost(events - dumped, begin, end),
        }
        result
    }

    fn write(&mut self) -> Result<(), Error> {
        self.file()?;
        let (events, times) = self.gathered.packet(self.lost);
        self.file.as_mut().map_or(Ok(()), |file| file.write(events, times))
    }

    /// Its file, which it creates.
    fn file(&mut self) -> Result<&mut Stream, Error> {
        match &mut self.file {
            Some(file) => Ok(file),
            none => {
                Ok(none.insert(Stream::create(&self.folder, &self.name, self.uuid, self.number, self.cpu)?))
            }
        }
    }

    /// Writes the remaining events, and the losses after the last event.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        let ended = self.end_packet();
        let (lost, at) = (self.lost, self.end());
        match &mut self.file {
            Some(file) if file.lost() < lost => ended.and(file.write_empty(PacketTimes::empty(at, lost, 0))),
            _ => ended,
        }
    }

    /// The next event is of a state dump that repeats what earlier traces have.
    pub(crate) fn next_is_dumped(&mut self) {
        self.dumping += 1;
    }

    /// The time of the last event, or of the last loss.
    pub(crate) fn end(&self) -> Cycles {
        let lost = self.losses.last().map_or(Cycles::ZERO, |loss| loss.end);
        lost.max(self.gathered.last()).max(self.continued.unwrap_or(Cycles::ZERO))
    }

    pub(crate) fn losses(&self) -> &[LossRange] {
        &self.losses
    }

    pub(crate) fn summary(&self) -> StreamSummary {
        StreamSummary {
            events: self.events,
            state_events: self.dumped,
            packets: self.file.as_ref().map_or(0, Stream::packets),
            bytes: self.file.as_ref().map_or(0, Stream::bytes),
            ..StreamSummary::without_file(&self.name, self.cpu, self.lost, OverwrittenTotal::default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tracewing_ctf::write::PACKET_HEADER_SIZE;
    use tracewing_files::Dir;

    fn trace(folder: &std::path::Path) -> TraceDir {
        TraceDir::new(&Dir::create(folder).unwrap().0).unwrap()
    }

    fn discarded(packet: &[u8]) -> u64 {
        u64::from_le_bytes(packet[72..80].try_into().unwrap())
    }

    #[test]
    fn what_is_lost_stands_between_two_packets() {
        let folder = tempfile::tempdir().unwrap();
        let mut stream = EventStream::of_cpu(trace(folder.path()), [1; 16], Cpu(3));
        stream.event(Cycles(100), 0, b"a").unwrap();
        stream.event(Cycles(90), 0, b"b").unwrap();
        stream.lose(5, Cycles(150)).unwrap();
        stream.event(Cycles(200 + (1 << 33)), 0, b"c").unwrap();
        stream.event(Cycles(200 + (1 << 34)), 1, b"d").unwrap();
        stream.finish().unwrap();
        let summary = stream.summary();
        assert_eq!((summary.events, summary.lost, summary.packets), (4, 5, 2));
        let ranges: Vec<_> =
            stream.losses().iter().map(|loss| (loss.begin.0, loss.end.0, loss.events)).collect();
        assert_eq!(ranges, [(100, 150, 5)]);
        let bytes = fs::read(folder.path().join("cpu_3")).unwrap();
        let second = PACKET_HEADER_SIZE + 2 * 7;
        assert_eq!((discarded(&bytes), discarded(&bytes[second..])), (0, 5));
        assert_eq!(bytes.len(), second + PACKET_HEADER_SIZE + 7 + 17);
    }

    #[test]
    fn a_loss_at_the_begin_of_the_next_trace_is_after_the_end_of_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut stream = EventStream::of_cpu(trace(&folder.path().join("a")), [1; 16], Cpu(0));
        stream.event(Cycles(100), 0, b"a").unwrap();
        stream.finish().unwrap();
        let mut next = stream.next(trace(&folder.path().join("b")), [2; 16]);
        next.lose(5, Cycles(150)).unwrap();
        next.event(Cycles(150), 0, b"b").unwrap();
        next.finish().unwrap();
        assert_eq!(
            next.losses().iter().map(|loss| (loss.begin.0, loss.end.0)).collect::<Vec<_>>(),
            [(100, 150)]
        );
        let bytes = fs::read(folder.path().join("b/cpu_0")).unwrap();
        assert_eq!((discarded(&bytes), discarded(&bytes[PACKET_HEADER_SIZE..])), (0, 5));
        assert_eq!((next.summary().packets, next.summary().events, next.summary().lost), (2, 1, 5));
    }

    #[test]
    fn events_of_a_state_dump_are_counted_apart() {
        let folder = tempfile::tempdir().unwrap();
        let mut stream = EventStream::of_cpu(trace(folder.path()), [1; 16], Cpu(0));
        for number in 0..3 {
            stream.next_is_dumped();
            stream.event(Cycles(100 + number), 0, b"a").unwrap();
        }
        stream.event(Cycles(200), 0, b"b").unwrap();
        stream.finish().unwrap();
        assert_eq!((stream.summary().events, stream.summary().state_events), (1, 3));
    }

    #[test]
    fn a_loss_at_the_end_is_reported_by_an_empty_packet() {
        let folder = tempfile::tempdir().unwrap();
        let mut stream = EventStream::of_cpu(trace(folder.path()), [1; 16], Cpu(0));
        stream.event(Cycles(100), 0, b"a").unwrap();
        stream.lose(5, Cycles(150)).unwrap();
        stream.finish().unwrap();
        assert_eq!((stream.summary().packets, stream.summary().lost), (2, 5));
    }
}
