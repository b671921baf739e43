//! Headers of the packets of a stream: each continues the previous one in time, number and losses.

use tracewing_ctf::index::Entry;
use tracewing_ctf::model::Uuid;
use tracewing_ctf::write::{PACKET_HEADER_SIZE, PacketHeader};
use tracewing_units::{Cpu, Cycles};

/// The id of a trace's only data stream class.
const STREAM_CLASS: u64 = 0;

/// Times and losses of a packet.
#[derive(Debug, Clone, Copy)]
pub struct PacketTimes {
    /// Lower bound of its events' times.
    pub begin: Cycles,
    /// Upper bound of its events' times.
    pub end: Cycles,
    /// Events lost in the stream so far, cumulative.
    pub lost: u64,
    /// Packets that are missing because their sub-buffers were overwritten; cumulative. Readers see the
    /// packet's number jump, and report that.
    pub skipped: u64,
}

impl PacketTimes {
    /// Times of a packet without events, at one moment.
    pub fn empty(at: Cycles, lost: u64, skipped: u64) -> Self {
        Self { begin: at, end: at, lost, skipped }
    }
}

/// Totals of a stream's packets so far.
#[derive(Debug, Clone)]
pub struct Packets {
    uuid: Uuid,
    instance: u64,
    cpu: Cpu,
    /// Number of packets, and their bytes.
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Begin of the first packet and end of the last one.
    pub(crate) begin: Cycles,
    pub(crate) end: Cycles,
    pub(crate) lost: u64,
    pub(crate) skipped: u64,
}

impl Packets {
    /// No packets yet, for stream `instance` of the trace `uuid`.
    pub fn new(uuid: Uuid, instance: u64, cpu: Cpu) -> Self {
        let (begin, end) = (Cycles::ZERO, Cycles::ZERO);
        Self { uuid, instance, cpu, count: 0, bytes: 0, begin, end, lost: 0, skipped: 0 }
    }

    /// Header and index entry of the next packet, with `events` bytes of events. Times and the loss count are
    /// raised to the previous packet's if they are below it.
    pub fn next(&self, events: usize, times: PacketTimes) -> (PacketHeader, Entry) {
        let size = (PACKET_HEADER_SIZE + events) as u64;
        let begin = times.begin.max(self.end);
        let header = PacketHeader {
            uuid: self.uuid,
            stream_id: STREAM_CLASS as u32,
            stream_instance_id: self.instance,
            begin,
            end: times.end.max(begin),
            content_bytes: size,
            packet_bytes: size,
            seq: self.count.wrapping_add(times.skipped.max(self.skipped)),
            discarded: times.lost.max(self.lost),
            cpu: self.cpu,
        };
        let entry = Entry {
            offset: self.bytes,
            packet_bits: size * 8,
            content_bits: size * 8,
            begin,
            end: header.end,
            discarded: header.discarded,
            stream_id: STREAM_CLASS,
            stream_instance_id: Some(self.instance),
            seq: Some(header.seq),
        };
        (header, entry)
    }

    /// Counts the packet with this header as written.
    pub fn add(&mut self, header: &PacketHeader) {
        if self.count == 0 {
            self.begin = header.begin;
        }
        self.skipped = header.seq.wrapping_sub(self.count);
        self.count += 1;
        self.bytes += header.packet_bytes;
        (self.end, self.lost) = (header.end, header.discarded);
    }

    /// CPU of the stream.
    pub fn cpu(&self) -> Cpu {
        self.cpu
    }
}
