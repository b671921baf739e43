//! The reader and the writers against a region in which another process writes arbitrary words: no panic, no
//! call that does not end, no bytes handed out from outside the CPU's data.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::thread;

use tracewing_abi::event::{EXTENDED_ID, header_word};
use tracewing_abi::region::{
    CONTROL, Clock, Geometry, Loss, Mode, PAGE, Protocol, Reference, RegionHeader, SUB_BUFFER_HEADER,
};
use tracewing_ring::lttng::{self, Smp};
use tracewing_ring::{Chunk, Left, Reader, Region, Segment, UpTo};
use tracewing_units::Tid;

use crate::events::payload;
use crate::machine::{self, Random, StopAtEnd};

const N: usize = 4;
const S: usize = 256;
const KINDS: [(Protocol, Mode); 4] = [
    (Protocol::Publish, Mode::Discard),
    (Protocol::Smp, Mode::Discard),
    (Protocol::Publish, Mode::Overwrite),
    (Protocol::Smp, Mode::Overwrite),
];

fn new_region(protocol: Protocol, mode: Mode) -> Region {
    let geometry = Geometry::new(1, N, S).unwrap();
    let geometry = if mode == Mode::Overwrite { geometry.overwriting() } else { geometry };
    machine::region(geometry, protocol, Clock::Monotonic)
}

/// A word that is likely to cause trouble.
fn nasty(random: &mut Random, near: u64) -> u64 {
    let offset = random.below(2 * S + 2) as u64;
    match random.below(10) {
        0 => 0,
        1 => u64::MAX,
        2 => u64::MAX - offset,
        3 => 1 << random.below(64),
        4 => random.next(),
        5 => offset,
        6 => near.wrapping_sub(offset),
        7 => (S as u64).wrapping_mul(random.next()),
        _ => near.wrapping_add(offset),
    }
}

/// Changes one word that the other side reads.
fn scribble(region: &Region, random: &mut Random) {
    let cpu = region.buffer(0);
    let control = cpu.control();
    let geometry = cpu.geometry();
    let consumed = control.consumed.load(Relaxed);
    let sequence = geometry.later(geometry.sequence(consumed), random.below(N + 1) as u64);
    let physical = random.below(N + 2);
    let header = cpu.header(physical);
    let near = |word: &AtomicU64| word.load(Relaxed);
    let entry = &control.table[geometry.entry(sequence)];
    match random.below(16) {
        0 => control.head.store(nasty(random, consumed), Relaxed),
        1 => control.head.store(geometry.position(sequence, physical, random.below(S)), Relaxed),
        2 => entry.committed.store(nasty(random, geometry.commit_count(sequence)), Relaxed),
        12 => entry.commit_seq.store(nasty(random, near(&entry.committed)), Relaxed),
        13 => entry.reference.store(Reference { sequence, physical }.pack(), Relaxed),
        14 => entry.reference.store(nasty(random, near(&entry.reference)), Relaxed),
        15 => header.before.store(nasty(random, near(&header.before)), Relaxed),
        3 => header.begin.store(nasty(random, near(&header.begin)), Relaxed),
        4 => header.end.store(nasty(random, near(&header.begin)), Relaxed),
        5 | 6 => header.sequence.store(sequence.wrapping_add(1), Relaxed),
        7 => header.used.store(nasty(random, SUB_BUFFER_HEADER as u64), Relaxed),
        8 => header.lost.store(nasty(random, near(&header.lost)), Relaxed),
        9 => header.sequence.store(nasty(random, sequence), Relaxed),
        _ => {
            let id = if random.below(2) == 0 { EXTENDED_ID } else { 1 };
            let word = header_word(random.next(), id, random.below(S) as u16);
            let at = random.below(S - SUB_BUFFER_HEADER) + 56;
            cpu.store(physical, at, &word.to_le_bytes());
        }
    }
}

/// One call of a reader's method; whatever it returns is inside the data of the only CPU.
fn call(region: &Region, reader: &mut Reader, random: &mut Random) {
    let check = |chunk: &Chunk| {
        let geometry = region.geometry();
        let data = region.base().addr().get() + geometry.control_offset(0) + CONTROL;
        let bytes = geometry.data_bytes();
        let (start, len) = (chunk.bytes().as_ptr() as usize, chunk.bytes().len());
        assert!(start >= data && start + len <= data + bytes && len > 0 && len <= S);
        assert!(chunk.begin <= chunk.end);
    };
    let before = region.buffer(0).control().consumed.load(Relaxed);
    let chunk = match random.below(9) {
        0 => {
            assert!(reader.waiting() <= N * S);
            let _ = (reader.poll(), reader.overwritten());
            None
        }
        8 if region.geometry().mode() == Mode::Overwrite => {
            reader.rewind();
            None
        }
        1 => match reader.finalise() {
            Ok(Left::Chunk(chunk)) => Some(chunk),
            Ok(Left::Unfinished(_) | Left::Nothing) | Err(_) => None,
        },
        choice => {
            reader.next(if choice % 2 == 0 { UpTo::LastWritten } else { UpTo::LastFull }).ok().flatten()
        }
    };
    if let Some(chunk) = chunk {
        check(&chunk);
        match random.below(4) {
            0 => {} // the reader dies with it
            1 if region.geometry().mode() == Mode::Overwrite => reader.give_back(chunk),
            _ => reader.release(chunk),
        }
    }
    if region.geometry().mode() == Mode::Discard {
        let sequence = |position| region.geometry().sequence(position);
        let after = region.buffer(0).control().consumed.load(Relaxed);
        let passed = region.geometry().distance(sequence(before), sequence(after));
        assert!((0..=3 * N as i64 + 2).contains(&passed), "one call passed {passed} sub-buffers");
    }
}

#[test]
fn a_reader_survives_any_words() {
    for (seed, protocol, mode) in
        (0..25).flat_map(|seed| KINDS.map(|(protocol, mode)| (seed, protocol, mode)))
    {
        let region = new_region(protocol, mode);
        // SAFETY: the region's only reader.
        let mut reader = unsafe { region.reader(0) };
        let mut random = Random(seed);
        for round in 0..3000_u32 {
            if protocol == Protocol::Smp && random.below(3) == 0 {
                let bytes = payload::<20>(1, round);
                // SAFETY: a living segment; the region stays mapped.
                let _ = unsafe { lttng::write::<Smp>(&region, 0, Tid(1), 1, &[Segment::of(&bytes)]) };
            }
            for _ in 0..random.below(6) {
                scribble(&region, &mut random);
            }
            call(&region, &mut reader, &mut random);
        }
    }
}

#[test]
fn a_reader_survives_words_that_change_under_it() {
    for (protocol, mode) in KINDS {
        let region = new_region(protocol, mode);
        // SAFETY: the region's only reader.
        let mut reader = unsafe { region.reader(0) };
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random(99);
                while !stop.load(Relaxed) {
                    scribble(&region, &mut random);
                }
            });
            let _stop = StopAtEnd(&stop);
            let mut random = Random(1);
            for _ in 0..80_000 {
                call(&region, &mut reader, &mut random);
            }
        });
    }
}

#[test]
fn a_writer_that_runs_ahead_permanently_does_not_keep_the_reader() {
    let region = new_region(Protocol::Publish, Mode::Discard);
    // SAFETY: the region's only reader.
    let mut reader = unsafe { region.reader(0) };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // As many empty sub-buffers as the reader passes.
            let cpu = region.buffer(0);
            while !stop.load(Relaxed) {
                let consumed = cpu.geometry().sequence(cpu.control().consumed.load(Relaxed));
                for sequence in consumed..consumed + N as u64 {
                    let header = cpu.header(cpu.geometry().entry(sequence));
                    header.used.store(SUB_BUFFER_HEADER as u64, Relaxed);
                    header.sequence.store(sequence + 1, Relaxed);
                }
                cpu.control().head.store(cpu.geometry().position(consumed + N as u64 - 1, 0, 0), Release);
            }
        });
        let _stop = StopAtEnd(&stop);
        let mut random = Random(2);
        for _ in 0..20_000 {
            call(&region, &mut reader, &mut random);
        }
    });
}

#[test]
fn stamps_at_the_end_of_time() {
    let region = new_region(Protocol::Publish, Mode::Discard);
    let cpu = region.buffer(0);
    // SAFETY: the region's only reader.
    let mut reader = unsafe { region.reader(0) };
    cpu.header(0).begin.store(u64::MAX - 1, Relaxed);
    cpu.header(0).sequence.store(1, Relaxed);
    cpu.store(0, 64, &header_word(5, 1, 12).to_le_bytes());
    cpu.control().head.store(76, Release);
    assert_eq!(reader.next(UpTo::LastWritten).unwrap_err().bytes, 12);
}

#[test]
fn smp_writers_survive_any_words() {
    let region = new_region(Protocol::Smp, Mode::Discard);
    let mut random = Random(5);
    for round in 0..100_000 {
        scribble(&region, &mut random);
        if random.below(4) == 0 {
            region.buffer(0).control().consumed.store(nasty(&mut random, 0), Relaxed);
        }
        let bytes = payload::<40>(1, round);
        // SAFETY: a living segment; the region stays mapped.
        let _ = unsafe { lttng::write::<Smp>(&region, 0, Tid(1), 1, &[Segment::of(&bytes)]) };
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn publishing_survives_any_words() {
    use crate::publisher::Publisher;
    let Some(publisher) = Publisher::new(N, S) else { return };
    machine::run_on(&[0]);
    publisher.enter(1);
    let mut random = Random(6);
    for round in 0..100_000 {
        scribble(&publisher.region, &mut random);
        if random.below(4) == 0 {
            publisher.region.buffer(0).control().consumed.store(nasty(&mut random, 0), Relaxed);
        }
        let _ = publisher.emit_any(1, round);
    }
    assert!(publisher.region.lost(0)[Loss::Full as usize] > 0);
}

#[test]
fn a_header_that_does_not_fit_its_mapping_is_refused() {
    let region = new_region(Protocol::Publish, Mode::Discard);
    let size = region.geometry().size();
    // SAFETY: the mapping is `size` bytes, and stays.
    let attach = |mapped| unsafe { Region::attach(region.base(), mapped) };
    let copy = attach(size).unwrap();
    assert_eq!((copy.geometry(), copy.recording()), (region.geometry(), [7; 16]));
    assert!(attach(size - 1).is_err() && attach(PAGE - 1).is_err());
    let header = region.base().cast::<RegionHeader>().as_ptr();
    // SAFETY: the region's first page, which no other thread reads meanwhile.
    let set = |change: &dyn Fn(&mut RegionHeader)| unsafe { change(&mut *header) };
    let refused = |change: &dyn Fn(&mut RegionHeader), back: &dyn Fn(&mut RegionHeader)| {
        set(change);
        let result = attach(size);
        set(back);
        assert!(result.is_err());
        assert!(attach(size).is_ok());
    };
    refused(&|h| h.magic += 1, &|h| h.magic -= 1);
    refused(&|h| h.version += 1, &|h| h.version -= 1);
    refused(&|h| h.protocol += 3, &|h| h.protocol -= 3);
    refused(&|h| h.mode += 2, &|h| h.mode -= 2);
    refused(&|h| h.mode = Mode::Overwrite as u32, &|h| h.mode = Mode::Discard as u32);
    refused(&|h| h.clock += 2, &|h| h.clock -= 2);
    refused(&|h| h.cpus = u32::MAX, &|h| h.cpus = 1);
    refused(&|h| h.cpus = 0, &|h| h.cpus = 1);
    refused(&|h| h.sub_buffers *= 2, &|h| h.sub_buffers /= 2);
    refused(&|h| h.sub_buffers = 3, &|h| h.sub_buffers = N as u32);
    refused(&|h| h.sub_buffer_bytes = 0, &|h| h.sub_buffer_bytes = S as u32);
    refused(&|h| h.stride += 8, &|h| h.stride -= 8);
    refused(&|h| h.size += 8, &|h| h.size -= 8);
}
