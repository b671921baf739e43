//! Traces to read, in tracewing's own layout: two streams of events that are 100 ns apart in each. Always the
//! same bytes.

use crate::compare::layout::trace_class;
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use tracewing_ctf::model::{
    Encoding, EnumerationClass, FieldClass, IntegerClass, StructureClass, TraceClass,
};
use tracewing_ctf::tsdl;
use tracewing_ctf::write::{PACKET_HEADER_SIZE, PacketHeader, USER_EVENT_HEADER_SIZE};
use tracewing_units::{Cpu, Cycles};
use tracewing_vocabulary::kernel;

const UUID: [u8; 16] = *b"bench read trace";
const STREAMS: u32 = 2;
/// Bytes of a packet.
const PACKET: usize = 256 << 10;
/// Nanoseconds between two events of a stream.
const DISTANCE: u64 = 100;

/// What a trace is made of.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Switches of threads, system calls, and pairs of numbers, in turn
    Mix,
    /// Pairs of numbers
    Pairs,
    /// Strings, sequences and enumerations
    Texts,
}

/// What `bench make` accepts.
#[derive(clap::Args)]
pub struct Options {
    kind: Kind,
    events: u64,
    folder: PathBuf,
}

/// Makes a trace for a test.
pub fn run(options: &Options) -> Result<()> {
    make(&options.folder, options.kind, options.events)
}

/// Writes a trace of so many events.
pub fn make(folder: &Path, kind: Kind, events: u64) -> Result<()> {
    std::fs::create_dir_all(folder).context("cannot make the trace")?;
    std::fs::write(folder.join("metadata"), tsdl::print(&class(kind)))?;
    for cpu in 0..STREAMS {
        let share = events / u64::from(STREAMS) + u64::from(u64::from(cpu) < events % u64::from(STREAMS));
        stream(folder, kind, cpu, share).context("cannot write the trace")?;
    }
    Ok(())
}

fn stream(folder: &Path, kind: Kind, cpu: u32, events: u64) -> Result<()> {
    let mut file = File::create(folder.join(format!("channel_{cpu}")))?;
    let mut packet = vec![0; PACKET_HEADER_SIZE];
    let (mut stamp, mut begin, mut seq) = (u64::from(cpu), u64::from(cpu), 0);
    for number in 0..events {
        let start = packet.len();
        let id = if kind == Kind::Mix { (number % 3) as u16 } else { 0 };
        packet.extend((stamp as u32).to_le_bytes());
        packet.extend(id.to_le_bytes());
        packet.extend([0; 2]);
        packet.extend((1000 + (number / 1000 % 7) as i32).to_le_bytes());
        payload(kind, id, number, &mut packet);
        let length = (packet.len() - start) as u16;
        packet[start + USER_EVENT_HEADER_SIZE - 2..][..2].copy_from_slice(&length.to_le_bytes());
        if packet.len() > PACKET - 256 || number + 1 == events {
            let header = PacketHeader {
                uuid: UUID,
                stream_id: 0,
                stream_instance_id: cpu.into(),
                begin: Cycles(begin),
                end: Cycles(stamp),
                content_bytes: packet.len() as u64,
                packet_bytes: packet.len() as u64,
                seq,
                discarded: 0,
                cpu: Cpu(cpu),
            };
            packet[..PACKET_HEADER_SIZE].copy_from_slice(&header.encode());
            file.write_all(&packet)?;
            packet.truncate(PACKET_HEADER_SIZE);
            (begin, seq) = (stamp, seq + 1);
        }
        stamp += DISTANCE;
    }
    Ok(())
}

fn payload(kind: Kind, id: u16, number: u64, bytes: &mut Vec<u8>) {
    // Neither all small nor all large.
    let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match (kind, id) {
        (Kind::Texts, _) => {
            let text = &"a request of some customer for a thing"[..(random >> 59) as usize + 4];
            bytes.extend(text.as_bytes());
            bytes.push(0);
            let length = (random >> 40 & 7) as u8;
            bytes.push(length);
            (0..length).for_each(|element| bytes.extend((random as u32 >> element).to_le_bytes()));
            bytes.push((random >> 30 & 3) as u8);
        }
        (Kind::Mix, 0) => {
            for side in 0..2_u32 {
                let mut comm = *b"worker-0\0\0\0\0\0\0\0\0";
                comm[7] += ((random >> (60 + side)) & 7) as u8;
                bytes.extend(comm);
                bytes.extend(((random >> (40 + side)) as i32 & 0xffff).to_le_bytes());
                bytes.extend((20 + side as i32).to_le_bytes());
            }
            bytes.extend((random >> 62).to_le_bytes());
        }
        (Kind::Mix, 1) => (0..6).for_each(|argument| bytes.extend((random >> (argument * 10)).to_le_bytes())),
        _ => {
            bytes.extend(number.to_le_bytes());
            bytes.extend(random.to_le_bytes());
        }
    }
}

fn class(kind: Kind) -> TraceClass {
    let number = || FieldClass::unsigned(64);
    let pair = StructureClass::new().with("first", number()).with("second", number());
    let classes = match kind {
        Kind::Pairs => vec![("bench:pair", pair)],
        Kind::Mix => {
            vec![
                (kernel::Switch::NAME, switch()),
                ("syscall_entry_mmap", system_call()),
                ("bench:pair", pair),
            ]
        }
        Kind::Texts => vec![("bench:text", texts())],
    };
    trace_class(UUID, classes)
}

fn switch() -> StructureClass {
    let comm = || FieldClass::array(IntegerClass::unsigned(8).with_encoding(Encoding::Utf8), 16);
    let number = || FieldClass::signed(32);
    StructureClass::new()
        .with(kernel::Switch::prev_comm.name, comm())
        .with(kernel::Switch::prev_tid.name, number())
        .with("prev_prio", number())
        .with(kernel::Switch::next_comm.name, comm())
        .with(kernel::Switch::next_tid.name, number())
        .with("next_prio", number())
        .with(kernel::Switch::prev_state.name, FieldClass::signed(64))
}

fn system_call() -> StructureClass {
    let names = ["addr", "len", "prot", "flags", "fd", "offset"];
    names.into_iter().fold(StructureClass::new(), |call, name| call.with(name, FieldClass::unsigned(64)))
}

fn texts() -> StructureClass {
    let state = EnumerationClass::new(IntegerClass::unsigned(8))
        .with("new", 0, 0)
        .with("open", 1, 2)
        .with("done", 3, 3);
    StructureClass::new()
        .with("text", FieldClass::string())
        .with("count", FieldClass::unsigned(8))
        .with("sizes", FieldClass::sequence(FieldClass::unsigned(32), "count"))
        .with("state", state)
}
