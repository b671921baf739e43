//! Any bytes yield events, fewer events, or an error.

use std::mem::offset_of;

use proptest::prelude::*;
use tracewing_abi::class_table;
use tracewing_abi::region::{CONTROL, Geometry, PAGE, Protocol, RegionHeader, SUB_BUFFER_HEADER};
use tracewing_abi::schema::{Base, Class, Field, Scalar, Shape};
use tracewing_programs::image::{AddressSpace, Mapping, Memory};
use tracewing_recover::{Error, Region as Found, write_trace};
use tracewing_trace::{Listing, Recording};
use tracewing_units::{Cpu, Cycles};

use crate::{Written, emit};

/// Offsets where damage matters most: headers and control words. All others are in events.
fn places(geometry: Geometry) -> impl Strategy<Value = usize> {
    let size = geometry.size();
    let control = geometry.control_offset(0);
    let sub_buffer = geometry.sub_buffer_bytes();
    prop_oneof![
        0..128usize,
        (0..256usize).prop_map(move |at| control + at),
        (0..64 * geometry.sub_buffers()).prop_map(move |at| control + 256 + at % 512),
        (0..64usize, 0..geometry.physical_sub_buffers())
            .prop_map(move |(at, number)| control + CONTROL + number * sub_buffer + at),
        0..size,
    ]
}

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(u64::MAX),
        Just(1 << 63),
        0..600u64,
        any::<u64>(),
        (0..64u32).prop_map(|bit| 1 << bit)
    ]
}

fn geometry() -> impl Strategy<Value = Geometry> {
    (any::<bool>(), any::<bool>()).prop_map(|(is_large, overwrites)| {
        let geometry =
            Geometry::new(1, if is_large { 4 } else { 2 }, if is_large { 1024 } else { 256 }).unwrap();
        if overwrites { geometry.overwriting() } else { geometry }
    })
}

/// Bytes that `Debug` does not print one by one.
#[derive(Clone)]
struct Bytes(Vec<u8>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// A region with events in which some bytes were replaced: a word each, or one bit.
fn damaged() -> impl Strategy<Value = Bytes> {
    (geometry(), 0..200u64).prop_flat_map(|(geometry, count)| {
        prop::collection::vec((places(geometry), value(), any::<bool>()), 1..12).prop_map(move |changes| {
            let written = Written::new(geometry, Protocol::Smp, 0);
            (0..count).for_each(|number| {
                emit(&written.region, 0, number);
            });
            let mut bytes = written.bytes();
            for (at, value, one_bit) in changes {
                if one_bit {
                    bytes[at] ^= 1 << (value % 8);
                } else {
                    let at = at.min(bytes.len() - 8) & !7;
                    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                }
            }
            Bytes(bytes)
        })
    })
}

/// Reads everything; checks the guarantees for arbitrary bytes.
fn look(bytes: &[u8]) {
    let Ok(region) = Found::open(&bytes, 0, bytes.len() as u64) else { return };
    for cpu in 0..region.geometry().cpus() {
        let Some(buffer) = region.buffer(Cpu::at(cpu)) else { continue };
        let (mut last, mut found, mut total) = (Cycles::ZERO, 0, 0);
        for read in buffer.sub_buffers() {
            found += 1;
            let Ok(sub_buffer) = read else { continue };
            assert!(last <= sub_buffer.begin && sub_buffer.begin <= sub_buffer.end);
            let (mut end, mut stamp) = (0, sub_buffer.begin);
            for event in sub_buffer.events() {
                assert!(
                    event.at == end && event.id != 0 && stamp <= event.stamp && event.stamp <= sub_buffer.end
                );
                (end, stamp) = (event.at + event.len, event.stamp);
            }
            assert!(end > 0 && end == sub_buffer.bytes.len(), "whole events, at least one");
            assert!(end <= region.geometry().sub_buffer_bytes() - SUB_BUFFER_HEADER);
            (last, total) = (sub_buffer.end, total + end);
        }
        assert!(found <= region.geometry().physical_sub_buffers() && total <= region.geometry().data_bytes());
    }
}

/// A process's memory: a region and a table of classes.
struct Memories {
    parts: Vec<(u64, Vec<u8>)>,
    mappings: Vec<Mapping>,
}

impl Memories {
    fn new(parts: Vec<(u64, Vec<u8>)>) -> Self {
        let mapping = |(start, bytes): &(u64, Vec<u8>)| Mapping {
            start: *start,
            size: bytes.len() as u64,
            ..Mapping::default()
        };
        Self { mappings: parts.iter().map(mapping).collect(), parts }
    }
}

impl Memory for Memories {
    fn read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        self.parts.iter().find_map(|(start, bytes)| bytes.as_slice().read(address.checked_sub(*start)?, len))
    }

    fn is_live(&self) -> bool {
        false
    }
}

impl AddressSpace for Memories {
    fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }
}

/// The class of [`crate::payload`]: a number, and arbitrary text.
fn table(shape: Shape, scalar: Scalar) -> Vec<u8> {
    let field = |name, shape, scalar| Field {
        name,
        shape,
        scalar,
        length: 3,
        base: Base::Hexadecimal,
        unit: "",
        labels: &[],
    };
    let fields = [field("number", Shape::One, Scalar::U64), field("rest", shape, scalar)];
    let class = Class { fields: &fields, ..Class::named("test:number") };
    let mut bytes = vec![0; PAGE];
    class_table::Writer::new(&mut bytes, &[9; 16]).unwrap().push(3, &class).unwrap();
    bytes
}

/// As `tracewing recover` does: all events as text, and the number of `?` events.
fn listed(image: &Memories) -> Result<(String, u64), Error> {
    let folder = tempfile::tempdir().unwrap();
    let recovered = write_trace(image, folder.path())?;
    let (mut text, mut warnings) = (Vec::new(), Vec::new());
    let recording = Recording::open(&[folder.path()]).unwrap();
    Listing::default().print(&recording, &mut (&mut text, &mut warnings)).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count() as u64, recovered.events);
    Ok((text, recovered.unknown.values().sum()))
}

proptest! {
    #[test]
    fn damaged_regions(bytes in damaged()) {
        look(&bytes.0);
    }

    #[test]
    fn random_regions(geometry in geometry(), seed in prop::collection::vec(value(), 1..64)) {
        let written = Written::new(geometry, Protocol::Smp, 0);
        let mut bytes = written.bytes();
        let words = bytes[PAGE..].chunks_exact_mut(8);
        words.zip(seed.iter().cycle()).for_each(|(word, value)| word.copy_from_slice(&value.to_le_bytes()));
        look(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn damaged_memories(
        region in damaged(),
        changes in prop::collection::vec((0..200usize, any::<u8>()), 0..6),
        shape in prop::sample::select(vec![Shape::Text, Shape::Array, Shape::Slice, Shape::Optional, Shape::One]),
    ) {
        let mut classes = table(shape, if shape == Shape::Text { Scalar::U8 } else { Scalar::U16 });
        changes.into_iter().for_each(|(at, value)| classes[at] = value);
        let image = Memories::new(vec![(0x7000_0000, region.0), (0x1000, classes)]);
        match listed(&image) {
            Ok(_) | Err(Error::NoRegion | Error::NoReadableRegion { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn events_of_unknown_classes() {
    let written = Written::new(Geometry::new(1, 4, 4096).unwrap(), Protocol::Smp, 0);
    (0..3).for_each(|number| assert!(emit(&written.region, 0, number)));
    let region = (0x7000_0000, written.bytes());
    let (text, unknown) = listed(&Memories::new(vec![region.clone()])).unwrap();
    assert_eq!(unknown, 3);
    let second = text.lines().nth(1).unwrap();
    assert!(
        second.ends_with(
            r#"?: { cpu_id = 0 }, { tid = 7 }, { id = 3, length = 15, bytes = "010000000000000001020304050607" }"#
        ),
        "{second}"
    );
    // The first has no text at all, the second has no end of it, the third fits its class.
    let classes = (0x1000, table(Shape::Array, Scalar::U8));
    let (text, unknown) = listed(&Memories::new(vec![region, classes])).unwrap();
    assert_eq!(unknown, 3, "{text}");
}

#[test]
fn a_clock_that_cannot_be() {
    let written = Written::new(Geometry::new(1, 4, 4096).unwrap(), Protocol::Smp, 0);
    assert!(emit(&written.region, 0, 1));
    // 2^60 milliseconds have passed since the machine started.
    let mut bytes = written.bytes();
    let (begin, at) = (1_u64 << 60, CONTROL + PAGE);
    bytes[at..at + 8].copy_from_slice(&begin.to_le_bytes());
    let frequency = offset_of!(RegionHeader, frequency);
    bytes[frequency..frequency + 8].copy_from_slice(&1000_u64.to_le_bytes());
    let folder = tempfile::tempdir().unwrap();
    let recovered = write_trace(&Memories::new(vec![(0x7000_0000, bytes)]), folder.path()).unwrap();
    assert_eq!(recovered.events, 0);
    assert!(recovered.damages[0].contains("its time lies beyond"), "{:?}", recovered.damages);
}

#[test]
fn empty_memory() {
    assert!(matches!(listed(&Memories::new(vec![(0x1000, vec![0; PAGE])])), Err(Error::NoRegion)));
    assert!(matches!(listed(&Memories::new(Vec::new())), Err(Error::NoRegion)));
}
