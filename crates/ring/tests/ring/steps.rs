//! The instructions of the sequences against their steps in the model checker: single-stepped, the
//! instructions store the same values as the steps, in the same order.

use std::cell::RefCell;
use std::sync::atomic::Ordering::*;

use tracewing_abi::event::HEADER;
use tracewing_abi::region::{CONTROL, Clock, Geometry, Protocol, SUB_BUFFER_HEADER};
use tracewing_ring::publish::model::{self, Fate, Processor, Task};
use tracewing_ring::publish::{Opened, Outcome};
use tracewing_ring::{Attachment, Region, Segment};
use tracewing_units::{Cpu, Tid};

use crate::events::payload;
use crate::machine;
use crate::publisher::Publisher;
use crate::tracer::{Tracee, accept};

const TID: i32 = 5;
const ID: u16 = 3;
const LEN: usize = 31;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Sequence {
    Fixed,
    Gather,
    Extended,
    Open,
    FirstOpen,
}

const ALL: [Sequence; 5] =
    [Sequence::Fixed, Sequence::Gather, Sequence::Extended, Sequence::Open, Sequence::FirstOpen];

/// One CPU's part of a region, and the stretches of it that hold times.
struct Watched {
    region: Region,
    cpu: usize,
    times: Vec<(usize, usize)>,
}

impl Watched {
    /// The part's bytes; a time is reduced to whether it is set.
    fn image(&self) -> Vec<u8> {
        let geometry = self.region.geometry();
        let (part, len) = (geometry.control_offset(self.cpu), geometry.stride());
        // SAFETY: the CPU's part of the mapping; the child that writes to it is stopped.
        let mut bytes =
            unsafe { std::slice::from_raw_parts(self.region.base().as_ptr().add(part), len) }.to_vec();
        for (start, end) in &self.times {
            let is_there = bytes[*start..*end].iter().any(|byte| *byte != 0);
            bytes[*start..*end].fill(u8::from(is_there));
        }
        bytes
    }

    /// With the places of all times after `sequence` has run at this position.
    fn with_times(mut self, sequence: Sequence, head: u64) -> Self {
        let geometry = self.region.geometry();
        let header = |physical: usize| CONTROL + physical * geometry.sub_buffer_bytes();
        let event = header(geometry.physical(head)) + geometry.at(head);
        self.times = match sequence {
            Sequence::Fixed | Sequence::Gather => vec![(event, event + 4)],
            Sequence::Extended => vec![(event, event + 4), (event + HEADER, event + HEADER + 8)],
            // End of the old sub-buffer, begin of the new one.
            Sequence::Open => vec![(header(0) + 8, header(0) + 16), (header(1), header(1) + 8)],
            Sequence::FirstOpen => vec![(header(0), header(0) + 16)],
        };
        self
    }
}

/// Adds an image unless it is the last one.
fn add(images: &mut Vec<Vec<u8>>, image: Vec<u8>) {
    if images.last() != Some(&image) {
        images.push(image);
    }
}

/// What the instructions store, one image after each that stores something.
fn by_instructions(publisher: &Publisher, watched: &Watched, sequence: Sequence, head: u64) -> Vec<Vec<u8>> {
    let bytes = payload::<LEN>(TID as u32, 1);
    let segments = [Segment::of(&bytes[..20]), Segment::of(&bytes[20..])];
    let mut tracee = Tracee::new(|| {
        accept();
        let done = match sequence {
            Sequence::Fixed => publisher.fixed::<LEN, false>(ID, &bytes),
            Sequence::Gather => publisher.gather(ID, &segments, false) == Outcome::Written,
            Sequence::Extended => publisher.gather(ID, &segments, true) == Outcome::Written,
            Sequence::Open | Sequence::FirstOpen => {
                publisher.open(Cpu::at(watched.cpu), head) == Opened::Retry
            }
        };
        i32::from(!done)
    });
    tracee.step_to_sequence();
    let mut images = vec![watched.image()]; // the claim, if there is one, comes before
    while tracee.step_inside() {
        add(&mut images, watched.image());
    }
    add(&mut images, watched.image());
    assert_eq!(tracee.finish(0), 0);
    images
}

/// What the steps store, one image after each that stores something.
fn by_steps(watched: &Watched, sequence: Sequence, head: u64) -> Vec<Vec<u8>> {
    let attachment = Attachment::new();
    let key = attachment.attach(&watched.region, 1);
    let processors: Vec<_> = (0..watched.region.geometry().cpus()).map(|_| Processor::default()).collect();
    let images = RefCell::new(Vec::new());
    let look = || {
        add(&mut images.borrow_mut(), watched.image());
        Fate::Continue
    };
    let (processors, attachment, fate) = (&processors[..], &attachment, &look);
    let mut task = Task { processors, on: watched.cpu, attachment, key, tid: Tid(TID), enabled: None, fate };
    let bytes = payload::<LEN>(TID as u32, 1);
    match sequence {
        Sequence::Open | Sequence::FirstOpen => {
            assert_eq!(
                model::open(&mut task, &watched.region, Cpu::at(watched.cpu), head),
                Some(Opened::Retry)
            );
        }
        _ => {
            let is_extended = sequence == Sequence::Extended;
            let written = model::event(&mut task, &watched.region, ID, &bytes, is_extended);
            assert_eq!(written, Some(Outcome::Written));
        }
    }
    look();
    images.into_inner()
}

#[test]
fn the_instructions_do_what_the_steps_say() {
    for (sequence, overwriting) in ALL.into_iter().flat_map(|sequence| [(sequence, false), (sequence, true)])
    {
        let geometry = Geometry::new(machine::possible_cpus(), 4, 512).unwrap();
        let geometry = if overwriting { geometry.overwriting() } else { geometry };
        let region = || machine::region(geometry, Protocol::Publish, Clock::Tsc);
        let Some(publisher) = Publisher::of(region()) else { return };
        let cpu = machine::usable_cpus()[0];
        machine::run_on(&[cpu]);
        publisher.enter(TID);
        let before = match sequence {
            Sequence::FirstOpen => 0,
            Sequence::Open => 15, // 28 bytes each
            _ => 2,
        };
        for number in 0..before {
            publisher.emit_fixed::<16, false>(1, &payload(TID as u32, number)).unwrap();
        }
        let head = publisher.region.buffer(cpu).control().head.load(Relaxed);
        let watch = |region| Watched { region, cpu, times: Vec::new() }.with_times(sequence, head);
        let (real, modelled) = (watch(publisher.region), watch(region()));
        // SAFETY: two mappings of the same size; no thread writes meanwhile.
        unsafe { modelled.region.base().copy_from(real.region.base(), geometry.size()) };
        let steps = by_steps(&modelled, sequence, head);
        let instructions = by_instructions(&publisher, &real, sequence, head);
        let what = format!("{sequence:?}, overwriting: {overwriting}");
        assert!(steps.len() > 2, "{what}");
        assert!(instructions[0] == steps[0], "{what}: different from the beginning");
        let mut step = 0;
        for (number, image) in instructions.iter().enumerate() {
            if step + 1 < steps.len() && *image == steps[step + 1] {
                step += 1;
            }
            let (from, to) = (&steps[step], &steps[(step + 1).min(steps.len() - 1)]);
            for (at, byte) in image.iter().enumerate() {
                assert!(
                    *byte == from[at] || *byte == to[at],
                    "{what}: store {number} changes byte {at} (head at 0, data at {CONTROL}, headers of \
                     {SUB_BUFFER_HEADER}) out of turn"
                );
            }
        }
        assert_eq!(step + 1, steps.len(), "{what}: every step's stores were seen");
    }
}
