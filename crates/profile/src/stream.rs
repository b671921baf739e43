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
    /// Of the events, those that repeat the state at the begin of a trace which continues another one.
    dumped: u64,
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
        let ended = self.end_packet();
        let last = self.gathered.last();
        self.count_lost(count, last, until.max(last));
        ended
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
        let events = self.gathered.clear();
        match &result {
            Ok(()) => self.events += events,
            Err(_) => self.count_lost(events, begin, end),
        }
        result
    }

    fn write(&mut self) -> Result<(), Error> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = Stream::create(&self.folder, &self.name, self.uuid, self.number, self.cpu)?;
                self.file.insert(file)
            }
        };
        let (events, times) = self.gathered.packet(self.lost);
        file.write(events, times)
    }

    /// Writes the remaining events, and the losses after the last event.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        let ended = self.end_packet();
        let (lost, at) =
            (self.lost, self.losses.last().map_or(Cycles::ZERO, |loss| loss.end).max(self.gathered.last()));
        match &mut self.file {
            Some(file) if file.lost() < lost => ended.and(file.write_empty(PacketTimes::empty(at, lost, 0))),
            _ => ended,
        }
    }

    /// Counts an event of a state dump that repeats what earlier traces say.
    pub(crate) fn count_dumped(&mut self) {
        self.dumped += 1;
    }

    /// The stamp of the last event.
    pub(crate) fn last(&self) -> Cycles {
        self.gathered.last()
    }

    pub(crate) fn losses(&self) -> &[LossRange] {
        &self.losses
    }

    pub(crate) fn summary(&self) -> StreamSummary {
        StreamSummary {
            events: self.events.saturating_sub(self.dumped),
            state_events: self.dumped.min(self.events),
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
    fn a_loss_at_the_end_is_reported_by_an_empty_packet() {
        let folder = tempfile::tempdir().unwrap();
        let mut stream = EventStream::of_cpu(trace(folder.path()), [1; 16], Cpu(0));
        stream.event(Cycles(100), 0, b"a").unwrap();
        stream.lose(5, Cycles(150)).unwrap();
        stream.finish().unwrap();
        assert_eq!((stream.summary().packets, stream.summary().lost), (2, 5));
    }
}
