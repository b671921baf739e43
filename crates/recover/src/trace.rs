//! The buffers in a process's memory as CTF traces, for `tracewing list` or any other reader.
//!
//! Events of classes that the program did not know (other processes write to the same buffers), and events
//! whose payload does not fit their class, become events named `?` with the class's id, the payload's length
//! and its bytes in hexadecimal.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use tracewing_abi::event::{LOCATED, SITE, is_located};
use tracewing_abi::first::{self, Key};
use tracewing_abi::message::{ClassesWriter, MAX_MESSAGE, decode_classes};
use tracewing_abi::region::{self, Clock};
use tracewing_abi::schema::{Class, ClassView, Field, Level, Scalar, Shape};
use tracewing_consumer::classes::Classes as TraceClasses;
use tracewing_ctf::model::{ClockClass, ClockOrigin};
use tracewing_files::Dir;
use tracewing_programs::image::AddressSpace;
use tracewing_streams::{PacketTimes, Stream, TraceDir};
use tracewing_units::{Cpu, Cycles};

use crate::buffer::{Buffer, Damage, DamageCause, SubBuffer};
use crate::classes::{Classes, First};
use crate::mappings::candidates;
use crate::payload;
use crate::region::Region;
use crate::{Error, Event};

/// Name of the recorder's shared memory for buffers (`tracewing_consumer::memory`), in a process's mappings.
const MEMORY_NAME: &str = "/memfd:tracewing ";

/// The result of a recovery.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Events in the trace.
    pub events: u64,
    /// Number of events named `?`, by the id of their class.
    pub unknown: BTreeMap<u16, u64>,
    /// Messages for the user about what could not be read.
    pub damages: Vec<String>,
}

/// Writes all events in a memory's buffers into traces below `folder`, one per recording. There is usually
/// one; a program that was recorded several times may have the buffers of earlier recordings.
///
/// # Errors
/// The memory has no buffers ([`Error::NoRegion`], [`Error::NoReadableRegion`], [`Error::NotDumped`]), or a
/// file cannot be written.
pub fn write_trace(space: &dyn AddressSpace, folder: &Path) -> Result<Recovered, Error> {
    let mut recovered = Recovered::default();
    let mut recordings: BTreeMap<[u8; 16], Vec<Region<'_>>> = BTreeMap::new();
    let (mut faults, mut is_left_out) = (Vec::new(), false);
    for mapping in candidates(space) {
        let Some(magic) = space.word(mapping.start) else {
            let name = mapping.name.as_deref().unwrap_or_default();
            is_left_out |= name.starts_with(MEMORY_NAME);
            continue;
        };
        if magic != region::MAGIC {
            continue;
        }
        match Region::open(space, mapping.start, mapping.size) {
            Ok(region) => recordings.entry(region.recording()).or_default().push(region),
            Err(fault) => faults.push((mapping.start, fault)),
        }
    }
    if recordings.is_empty() {
        return Err(match faults.pop() {
            Some((address, fault)) => Error::NoReadableRegion { address, fault },
            None if is_left_out => Error::NotDumped,
            None => Error::NoRegion,
        });
    }
    recovered.damages.extend(faults.iter().map(|(address, fault)| format!("at {address:#x}: {fault}")));
    let (parent, _) = Dir::create(folder).map_err(tracewing_consumer::Error::folder(folder))?;
    for (number, (recording, regions)) in recordings.iter().enumerate() {
        let name = number.to_string();
        let made = parent.make(&name).map_err(Error::file("create", &folder.join(&name)))?;
        let mut classes = Classes::find(space, *recording);
        for region in regions {
            region.cpus().filter_map(|cpu| region.buffer(cpu)).for_each(|buffer| classes.learn(&buffer));
        }
        let mut trace = Trace::create(&made, *recording, &regions[0], &classes, &mut recovered)?;
        for buffer in regions.iter().flat_map(|region| region.cpus().map(|cpu| region.buffer(cpu))) {
            match buffer {
                Some(buffer) => {
                    let name = format!("buffer{}_{}", trace.streams, buffer.cpu());
                    trace.add(&buffer, name, Part::All)?;
                }
                None => trace.damaged("a buffer is not in the memory that was kept".to_owned()),
            }
        }
    }
    Ok(recovered)
}

/// The part of a buffer to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    /// The events that its reader has not released.
    Unreleased,
}

/// A stream that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub name: String,
    pub cpu: Cpu,
    pub events: u64,
    pub packets: u64,
    pub bytes: u64,
    pub lost: u64,
}

/// A trace that is being written.
pub(crate) struct Trace<'a> {
    folder: TraceDir,
    uuid: [u8; 16],
    clock: ClockClass,
    /// By the program's class id: the trace's id, and the layout of the payload.
    classes: HashMap<u16, (u16, ClassView<'a>)>,
    /// The same by key, for first events, which use this id.
    by_key: HashMap<Key, (u16, ClassView<'a>)>,
    first: Option<u16>,
    /// The trace's id of the class `?`.
    unknown: u16,
    streams: u64,
    /// CPU, number and beginning of each sub-buffer so far. A program that records itself has its region
    /// mapped twice.
    seen: HashSet<(Cpu, u64, Cycles)>,
    recovered: &'a mut Recovered,
}

impl<'a> Trace<'a> {
    pub(crate) fn create(
        folder: &Dir,
        uuid: [u8; 16],
        region: &Region<'_>,
        known: &'a Classes,
        recovered: &'a mut Recovered,
    ) -> Result<Self, Error> {
        let clock = clock_class(region);
        let has_sites = known.iter().any(|(id, _)| is_located(id));
        let mut classes = TraceClasses::new(&[folder], uuid, clock.clone())?.with_sites(has_sites);
        let unknown = unknown_class();
        let descriptions = known.iter().map(|(_, description)| description).chain([unknown.as_slice()]);
        let registered = classes.register(descriptions)?;
        recovered.damages.extend(registered.refused);
        let described = classes.register(known.described().map(|(_, description)| description))?;
        recovered.damages.extend(described.refused);
        let with_ids = known.iter().zip(&registered.ids);
        let with_ids = with_ids.map(|((_, description), id)| ((first::key(description), description), id));
        let by_key =
            with_ids.chain(known.described().zip(&described.ids)).filter_map(|((key, description), id)| {
                let view = ClassView::decode(description).ok()?;
                (*id != 0).then_some((key, (*id, view)))
            });
        let by_id = known.iter().zip(&registered.ids).filter_map(|((id, description), registered_id)| {
            let view = ClassView::decode(description).ok()?;
            (*registered_id != 0).then_some((id, (*registered_id, view)))
        });
        Ok(Self {
            folder: TraceDir::new(folder)?,
            uuid,
            clock,
            classes: by_id.collect(),
            by_key: by_key.collect(),
            first: known.first(),
            unknown: registered.ids.last().copied().unwrap_or_default(),
            streams: 0,
            seen: HashSet::new(),
            recovered,
        })
    }

    /// Notes a message about what could not be read.
    pub(crate) fn damaged(&mut self, what: String) {
        self.recovered.damages.push(what);
    }

    /// Adds a CPU's buffer as a stream, if it contains events.
    pub(crate) fn add(
        &mut self,
        buffer: &Buffer<'_>,
        name: String,
        part: Part,
    ) -> Result<Option<Written>, Error> {
        let (mut stream, mut first, mut packets) = (None, None, 0);
        let (mut end, mut lost) = (Cycles::ZERO, 0);
        let events_before = self.recovered.events;
        for read in buffer.sub_buffers() {
            let (sequence, begin, damage) = match &read {
                Ok(sub_buffer) => (sub_buffer.sequence, sub_buffer.begin, sub_buffer.damage),
                Err(damage) => (damage.sequence, Cycles::MAX, Some(*damage)),
            };
            if !self.seen.insert((buffer.cpu(), sequence, begin)) {
                continue;
            }
            self.recovered.damages.extend(damage.as_ref().map(Damage::to_string));
            let Ok(mut sub_buffer) = read else { continue };
            if self.is_beyond_time(buffer.cpu(), &sub_buffer) {
                continue;
            }
            if part == Part::Unreleased {
                buffer.drop_released(&mut sub_buffer);
            }
            if sub_buffer.bytes.is_empty() {
                continue;
            }
            let stream = match &mut stream {
                Some(stream) => stream,
                none => none.insert(self.stream(&name, buffer.cpu())?),
            };
            let first = *first.get_or_insert(sub_buffer.sequence);
            let before = buffer.geometry().distance(first, sub_buffer.sequence).unsigned_abs();
            let events = self.translated(&sub_buffer);
            let times = PacketTimes {
                begin: sub_buffer.begin,
                end: sub_buffer.end,
                lost: sub_buffer.lost,
                skipped: before.saturating_sub(packets),
            };
            stream.write(&events, times)?;
            (packets, end, lost) = (packets + 1, sub_buffer.end, sub_buffer.lost);
        }
        let Some(mut stream) = stream else { return Ok(None) };
        if buffer.lost() > lost {
            stream.write_empty(PacketTimes { begin: end, end, lost: buffer.lost(), skipped: 0 })?;
        }
        Ok(Some(Written {
            name,
            cpu: buffer.cpu(),
            events: self.recovered.events - events_before,
            packets: stream.packets(),
            bytes: stream.bytes(),
            lost: stream.lost(),
        }))
    }

    /// Whether a trace cannot say the time of a sub-buffer, which is noted.
    fn is_beyond_time(&mut self, cpu: Cpu, sub_buffer: &SubBuffer) -> bool {
        let is_beyond = self.clock.time(sub_buffer.end).is_none();
        if is_beyond {
            let (sequence, bytes) = (sub_buffer.sequence, sub_buffer.bytes.len());
            let cause = DamageCause::LateTime;
            self.recovered.damages.push(Damage { cpu, sequence, bytes, cause }.to_string());
        }
        is_beyond
    }

    fn stream(&mut self, name: &str, cpu: Cpu) -> Result<Stream, Error> {
        let stream = Stream::create(&self.folder, name, self.uuid, self.streams, cpu)?;
        self.streams += 1;
        Ok(stream)
    }

    /// The events of a sub-buffer with the trace's ids.
    fn translated(&mut self, sub_buffer: &SubBuffer) -> Vec<u8> {
        let mut out = Vec::with_capacity(sub_buffer.bytes.len());
        for event in sub_buffer.events() {
            let (start, mut payload) = (out.len(), &sub_buffer.bytes[event.payload()..event.at + event.len]);
            let site;
            (site, payload) = match payload.split_at_checked(SITE).filter(|_| is_located(event.id)) {
                Some(parts) => parts,
                None => (&[0; SITE][..], payload),
            };
            let first = First::of(payload).filter(|_| Some(event.id) == self.first);
            let known = match &first {
                Some(first) if first.is_description => continue,
                Some(first) => self.by_key.get(&first.key),
                None => self.classes.get(&event.id),
            };
            let own = first.map_or(payload, |first| first.payload);
            // A damaged table of classes may give a class the address that its events lack.
            let has_room =
                |id: u16| !is_located(id) || event.payload() - event.at + SITE + own.len() <= LONGEST;
            let known = known.filter(|(id, class)| payload::fits(class, own) && has_room(*id));
            payload = if known.is_some() { own } else { payload };
            out.extend_from_slice(&sub_buffer.bytes[event.at..event.payload()]);
            if is_located(known.map_or(self.unknown, |(id, _)| *id)) {
                out.extend_from_slice(site);
            }
            let id = match known {
                Some((id, _)) => {
                    out.extend_from_slice(payload);
                    let length = (out.len() - start) as u16; // no more than it was
                    out[start + 6..start + 8].copy_from_slice(&length.to_le_bytes());
                    *id
                }
                None => {
                    *self.recovered.unknown.entry(event.id & !LOCATED).or_default() += 1;
                    let before = out.len() - start;
                    put_unknown(&mut out, &event, payload, before);
                    let length = (out.len() - start) as u16; // `put_unknown` sees to it that it fits
                    out[start + 6..start + 8].copy_from_slice(&length.to_le_bytes());
                    self.unknown
                }
            };
            let id_at = start + event.id_at() - event.at;
            out[id_at..id_at + 2].copy_from_slice(&id.to_le_bytes());
            self.recovered.events += 1;
        }
        out
    }
}

/// Bytes of the longest event.
const LONGEST: usize = u16::MAX as usize;

/// The payload of a `?`, as [`unknown_class`] describes it, after so many bytes of the event; truncated so
/// that the event's length fits 16 bits.
fn put_unknown(out: &mut Vec<u8>, event: &Event, payload: &[u8], before: usize) {
    let rest = usize::from(u16::MAX) - before - 4 - 1;
    out.extend_from_slice(&(event.id & !LOCATED).to_le_bytes());
    out.extend_from_slice(&(payload.len() as u16).to_le_bytes()); // part of an event, whose length has 16 bits
    for byte in payload.iter().take(rest / 2) {
        out.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
    }
    out.push(0);
}

/// The description of the class `?`.
fn unknown_class() -> Vec<u8> {
    let field = Field::plain;
    let class = Class {
        name: "?",
        level: Level::Info,
        major: 0,
        description: "an event of a class that the program did not know",
        print: "",
        file: "",
        line: 0,
        fields: &[
            field("id", Shape::One, Scalar::U16),
            field("length", Shape::One, Scalar::U16),
            field("bytes", Shape::Text, Scalar::U8),
        ],
    };
    let mut buffer = vec![0; MAX_MESSAGE];
    let encoded = ClassesWriter::new(&mut buffer).and_then(|mut writer| {
        writer.push(&class)?;
        let description = decode_classes(writer.finish())?.next();
        description.unwrap_or(Ok(&[])).map(<[u8]>::to_vec)
    });
    encoded.unwrap_or_default()
}

/// The clock of a region's stamps. If the recorder has not stored its frequency, cycles are shown as
/// nanoseconds.
fn clock_class(region: &Region<'_>) -> ClockClass {
    const NANOSECONDS: u64 = 1_000_000_000;
    let name = match region.clock() {
        Clock::Tsc => "tsc",
        Clock::Monotonic => "monotonic",
    };
    let mut class = ClockClass::new(name, region.real_time().map_or(NANOSECONDS, |time| time.frequency));
    if let Some(time) = region.real_time() {
        (class.offset_seconds, class.offset_cycles) = (time.offset_seconds, time.offset_cycles);
        class.origin = ClockOrigin::UnixEpoch;
    }
    class
}
