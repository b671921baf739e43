//! A region that threads write to while it is read: this process's own, through `/proc`.

use std::cell::Cell;
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use tracewing_abi::region::{CONTROL, Clock, CpuControl, Geometry, Protocol, SubBufferHeader};
use tracewing_consumer::memory::SharedMemory;
use tracewing_programs::image::{AddressSpace, Memory, Process};
use tracewing_recover::{DamageCause, Region as Found};
use tracewing_ring::{Region, UpTo};
use tracewing_units::Pid;

use crate::{Written, emit, recover};

/// Ends the threads, even if the test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn only_whole_events_while_writers_overwrite() {
    for geometry in [Geometry::new(1, 4, 1024).unwrap(), Geometry::new(1, 8, 4096).unwrap()] {
        let geometry = geometry.overwriting();
        let memory = SharedMemory::new(geometry.size()).unwrap();
        // SAFETY: new zeroed memory of the region's size, mapped until all threads are done.
        let region =
            unsafe { Region::create(memory.base(), geometry, Protocol::Smp, Clock::Monotonic, [9; 16], 0) };
        let process = Process::open(Pid::from_unsigned(std::process::id())).unwrap();
        let base = memory.base().as_ptr().addr() as u64;
        assert!(process.mappings().iter().any(|mapping| mapping.start == base));
        let found = Found::open(&process, base, geometry.size() as u64).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut number = 0;
                while !done.load(Relaxed) {
                    emit(&region, 0, number);
                    number += 1;
                }
            });
            // Snapshots exchange sub-buffers with the ring.
            scope.spawn(|| {
                // SAFETY: the only reader.
                let mut reader = unsafe { region.reader(0) };
                while !done.load(Relaxed) {
                    reader.rewind();
                    while let Ok(Some(chunk)) = reader.next(UpTo::LastWritten) {
                        reader.give_back(chunk);
                    }
                }
            });
            let _end_of_threads = End(&done);
            let mut events = 0;
            let (mut rounds, begin) = (0, Instant::now());
            while rounds < 1000 || events == 0 && begin.elapsed() < Duration::from_secs(60) {
                rounds += 1;
                let recovered = recover(&found, 0);
                events += recovered.numbers.len();
                for damage in recovered.damages {
                    assert_eq!(damage.cause, DamageCause::Unfinished, "as the writer does all the time");
                }
            }
            assert!(events > 0);
        });
        // No thread writes any more, so nothing may be left out.
        let recovered = recover(&found, 0);
        assert_eq!(recovered.damages, []);
        assert!(recovered.numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{:?}", recovered.numbers);
    }
}

/// Memory that a writer changes twice, each time between two reads.
struct Changing<'a> {
    states: [&'a [u8]; 3],
    /// Reads that see the first state, and the second one.
    left: [Cell<u32>; 2],
}

impl Memory for Changing<'_> {
    fn read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let state = self.left.iter().position(|left| left.get() > 0).unwrap_or(2);
        self.left.get(state).inspect(|left| left.set(left.get() - 1));
        self.states[state].read(address, len)
    }

    fn is_live(&self) -> bool {
        true
    }
}

/// A region's bytes before an event that needs another sub-buffer, and after it; and the event's number.
fn switched(written: &Written, round: usize) -> (Vec<u8>, Vec<u8>, u64) {
    let geometry = written.region.geometry();
    let head = || written.region.buffer(0).control().head.load(Relaxed);
    let (mut switches, mut number) = (0, 0);
    loop {
        let (before, sequence) = (written.bytes(), geometry.sequence(head()));
        assert!(emit(&written.region, 0, number));
        switches += usize::from(geometry.sequence(head()) != sequence);
        if switches == round {
            return (before, written.bytes(), number);
        }
        number += 1;
    }
}

/// A writer is interrupted while it closes a sub-buffer, and continues between any two reads: its size is an
/// earlier lap's at first, or 0.
#[test]
fn a_sub_buffer_that_is_closed_while_it_is_read() {
    for (geometry, round) in (1..=11).flat_map(|round| {
        let geometry = Geometry::new(1, 4, 1024).unwrap();
        [(geometry.overwriting(), round), (geometry, round.min(3))]
    }) {
        let written = Written::new(geometry, Protocol::Smp, 0);
        let (before, after, number) = switched(&written, round);
        let head = geometry.control_offset(0) + offset_of!(CpuControl, head);
        let position = u64::from_le_bytes(before[head..head + 8].try_into().unwrap());
        let sub_buffer = geometry.physical(position) * geometry.sub_buffer_bytes();
        let end = geometry.control_offset(0) + CONTROL + sub_buffer + offset_of!(SubBufferHeader, end);
        // It has reserved its event in the next one; then, it has stored the end of this one.
        let mut reserved = before;
        reserved[head..head + 8].copy_from_slice(&after[head..head + 8]);
        let mut ended = reserved.clone();
        ended[end..end + 8].copy_from_slice(&after[end..end + 8]);
        let states = [&reserved[..], &ended, &after];
        let is_over = |reads| {
            let memory = Changing { states, left: [const { Cell::new(0) }; 2] };
            let found = Found::open(&memory, 0, after.len() as u64).unwrap();
            memory.left.iter().zip(reads).for_each(|(left, reads)| left.set(reads));
            let recovered = recover(&found, 0);
            let numbers = recovered.numbers;
            assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{reads:?} reads: {numbers:?}");
            assert!(numbers.last() >= Some(&(number - 1)), "{reads:?} reads: up to {:?}", numbers.last());
            let is_unfinished = recovered.damages.iter().all(|one| one.cause == DamageCause::Unfinished);
            assert!(is_unfinished, "{reads:?} reads: {:?}", recovered.damages);
            memory.left.iter().any(|left| left.get() > 0)
        };
        for first in 0.. {
            if (0..).find(|second| is_over([first, *second])) == Some(0) {
                break;
            }
        }
    }
}

#[test]
fn a_process_that_is_not_there() {
    // No process has this id: the kernel's limit is 2^22 (include/linux/threads.h).
    let error = Process::open(Pid::from_unsigned(u32::MAX >> 1)).unwrap_err().to_string();
    assert!(error.starts_with("there is no process 2147483647"), "{error}");
}
