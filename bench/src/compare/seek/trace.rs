//! A trace of any size in tracewing's own layout, with LTTng's index files: events of 28 bytes, 100 ns apart
//! in each stream.

use crate::compare::layout::trace_class;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use tracewing_ctf::index::{self, Entry};
use tracewing_ctf::model::{FieldClass, StructureClass, TraceClass};
use tracewing_ctf::tsdl;
use tracewing_ctf::write::{PACKET_HEADER_SIZE, PacketHeader, USER_EVENT_HEADER_SIZE};
use tracewing_units::{Cpu, Cycles};

const UUID: [u8; 16] = *b"bench seek trace";
/// Bytes of an event: header, thread id, two numbers.
const EVENT: usize = USER_EVENT_HEADER_SIZE + 4 + 16;
/// Nanoseconds between two events of a stream.
const DISTANCE: u64 = 100;

pub struct Made {
    pub packets: u64,
    pub events: u64,
    /// From the beginning of each stream to its end.
    pub nanoseconds: u64,
}

/// Writes a trace of about `bytes` bytes with this number of streams and packets of this size.
pub fn make(folder: &Path, bytes: u64, streams: u32, packet: u32) -> Result<Made> {
    std::fs::create_dir_all(folder.join("index")).context("cannot make the trace")?;
    std::fs::write(folder.join("metadata"), tsdl::print(&class()))?;
    let events = (packet as usize - PACKET_HEADER_SIZE) / EVENT;
    let packets = (bytes / u64::from(streams) / u64::from(packet)).max(1);
    for cpu in 0..streams {
        stream(folder, cpu, packets, events)?;
    }
    let packets_all = packets * u64::from(streams);
    let nanoseconds = packets * events as u64 * DISTANCE;
    Ok(Made { packets: packets_all, events: packets_all * events as u64, nanoseconds })
}

fn stream(folder: &Path, cpu: u32, packets: u64, events: usize) -> Result<()> {
    let name = format!("channel_{cpu}");
    let mut data = File::create(folder.join(&name))?;
    let mut entries = index::encode_header().to_vec();
    let size = (PACKET_HEADER_SIZE + events * EVENT) as u64;
    let mut bytes = vec![0; size as usize];
    let mut stamp = u64::from(cpu);
    for seq in 0..packets {
        let begin = Cycles(stamp);
        for event in bytes[PACKET_HEADER_SIZE..].chunks_exact_mut(EVENT) {
            event[..4].copy_from_slice(&(stamp as u32).to_le_bytes());
            event[6..8].copy_from_slice(&(EVENT as u16).to_le_bytes());
            event[12..20].copy_from_slice(&stamp.to_le_bytes());
            stamp += DISTANCE;
        }
        let end = Cycles(stamp - DISTANCE);
        let header = PacketHeader {
            uuid: UUID,
            stream_id: 0,
            stream_instance_id: cpu.into(),
            begin,
            end,
            content_bytes: size,
            packet_bytes: size,
            seq,
            discarded: 0,
            cpu: Cpu(cpu),
        };
        bytes[..PACKET_HEADER_SIZE].copy_from_slice(&header.encode());
        data.write_all(&bytes).context("cannot write the trace")?;
        entries.extend(index::encode_entry(&Entry {
            offset: seq * size,
            packet_bits: size * 8,
            content_bits: size * 8,
            begin,
            end,
            stream_instance_id: Some(cpu.into()),
            seq: Some(seq),
            ..Entry::default()
        }));
    }
    std::fs::write(folder.join("index").join(name + ".idx"), entries)?;
    // What is not on the disk yet cannot be forgotten.
    Ok(data.sync_all()?)
}

fn class() -> TraceClass {
    let payload =
        StructureClass::new().with("time", FieldClass::unsigned(64)).with("zero", FieldClass::unsigned(64));
    trace_class(UUID, vec![("bench:event", payload)])
}

/// Has the system forget what it holds of the trace's files.
pub fn forget(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            forget(&path)?;
        } else {
            rustix::fs::fadvise(File::open(path)?, 0, None, rustix::fs::Advice::DontNeed)?;
        }
    }
    Ok(())
}
