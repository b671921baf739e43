//! Pollers that stay on their CPUs, like those of a kernel or firmware, with a buffer each: protocol
//! [`Local`], which needs neither restartable sequences nor locked instructions, since only signal handlers
//! can intervene.
//!
//! ```text
//! poller [PACKETS]
//! ```
//!
//! Each poller takes packets off a (simulated) queue of its network card, and writes one event per packet in
//! two phases: it reserves the event before it handles the packet, and commits it with the result. Another
//! thread reads the buffers meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};
use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, EXTENDED_ID, HEADER, split_header_word};
use tracewing_abi::region::{Clock, Geometry, Protocol};
use tracewing_consumer::memory::SharedMemory;
use tracewing_ring::lttng::{self, Local};
use tracewing_ring::{Chunk, Region, UpTo};
use tracewing_units::Tid;

/// Maximum number of pollers.
const MOST: usize = 4;
/// The class of the events. Payload: `u64 number; u32 bytes`.
const PACKET: u16 = 1;
const PAYLOAD: usize = 12;

/// The totals of one buffer's events.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Total {
    packets: u64,
    bytes: u64,
    lost: u64,
}

/// A packet's size. Its contents do not matter here.
fn handle(number: u64) -> u32 {
    64 + (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as u32
}

/// Polls on this CPU; it is the only thread that writes to buffer `buffer`.
fn poll(region: &Region, buffer: usize, cpu: usize, packets: u64) -> rustix::io::Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only)?;
    let tid = Tid(gettid().as_raw_nonzero().get());
    for number in 0..packets {
        // SAFETY: the memory stays mapped until all pollers are done; this thread stays on its CPU, and the
        // buffer is its own.
        let slot = unsafe { lttng::reserve::<Local>(region, buffer, tid, PACKET, PAYLOAD) };
        let bytes = handle(number);
        // An event without room is counted as lost.
        if let Ok(mut slot) = slot {
            slot.put(&number.to_le_bytes());
            slot.put(&bytes.to_le_bytes());
            slot.commit();
        }
    }
    Ok(())
}

/// Adds a chunk's events.
fn add(total: &mut Total, chunk: &Chunk) {
    // SAFETY: the chunk is not released yet, and committed bytes do not change.
    let mut bytes = unsafe { std::slice::from_raw_parts(chunk.bytes().as_ptr(), chunk.bytes().len()) };
    while let Some(word) = bytes.first_chunk() {
        let (_, id, length) = split_header_word(u64::from_le_bytes(*word));
        let (event, rest) = bytes.split_at(usize::from(length));
        let header = if id == EXTENDED_ID { EXTENDED_HEADER } else { HEADER };
        let size = event[header + CONTEXT..].get(8..).and_then(|size| size.first_chunk());
        total.packets += 1;
        total.bytes += u64::from(size.copied().map_or(0, u32::from_le_bytes));
        bytes = rest;
    }
}

/// Handles `packets` packets on each of some CPUs.
fn run(packets: u64) -> Result<Vec<Total>, Box<dyn std::error::Error>> {
    let allowed = sched_getaffinity(None)?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).take(MOST).collect();
    let geometry = Geometry::new(cpus.len(), 8, 64 << 10)?;
    let memory = SharedMemory::new(geometry.size())?;
    // SAFETY: new zeroed memory of the region's size, mapped until all threads are done.
    let region =
        unsafe { Region::create(memory.base(), geometry, Protocol::Local, Clock::Monotonic, [0; 16], 0) };
    let working = AtomicUsize::new(cpus.len());
    let mut totals = vec![Total::default(); cpus.len()];
    thread::scope(|scope| {
        for (buffer, cpu) in cpus.iter().enumerate() {
            let (region, working) = (&region, &working);
            scope.spawn(move || {
                if let Err(error) = poll(region, buffer, *cpu, packets) {
                    eprintln!("CPU {cpu}: {error}");
                }
                working.fetch_sub(1, Ordering::Release); // with the acquire below: all its events were written before
            });
        }
        // SAFETY: the only readers.
        let mut readers: Vec<_> = (0..cpus.len()).map(|buffer| unsafe { region.reader(buffer) }).collect();
        loop {
            let is_over = working.load(Ordering::Acquire) == 0; // with the release above
            for (reader, total) in readers.iter_mut().zip(&mut totals) {
                while let Ok(Some(chunk)) = reader.next(UpTo::LastWritten) {
                    add(total, &chunk);
                    reader.release(chunk);
                }
            }
            if is_over {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
    });
    for (buffer, total) in totals.iter_mut().enumerate() {
        total.lost = region.lost(buffer).iter().sum();
    }
    Ok(totals)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let packets = std::env::args().nth(1).and_then(|packets| packets.parse().ok()).unwrap_or(1_000_000);
    for (buffer, Total { packets, bytes, lost }) in run(packets)?.iter().enumerate() {
        println!("buffer {buffer}: {packets} packets of {bytes} bytes, {lost} events lost");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_is_read_or_counted() {
        let packets = 50_000;
        let all: u64 = (0..packets).map(|number| u64::from(handle(number))).sum();
        for total in run(packets).unwrap() {
            assert_eq!(total.packets + total.lost, packets);
            assert!(if total.lost == 0 { total.bytes == all } else { total.bytes < all }, "{total:?}");
        }
    }

    #[test]
    fn what_a_buffer_holds_is_all_there() {
        let packets = 1000;
        let bytes = (0..packets).map(|number| u64::from(handle(number))).sum();
        for total in run(packets).unwrap() {
            assert_eq!(total, Total { packets, bytes, lost: 0 });
        }
    }
}
