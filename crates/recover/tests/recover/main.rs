//! Buffers written by the production writers, as a recovery finds them: whole, damaged, and while they
//! change.

mod garbage;
mod living;
mod written;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use tracewing_abi::region::{Clock, Geometry, PAGE, Protocol};
use tracewing_recover::{Damage, Region as Found};
use tracewing_ring::lttng::{self, Smp};
use tracewing_ring::{Region, Segment};
use tracewing_units::{Cpu, Cycles, Tid};

/// Events carry their number and bytes that follow from it.
pub(crate) fn payload(number: u64) -> Vec<u8> {
    let filler = (0..number * 7 % 50).map(|at| (number + at) as u8);
    number.to_le_bytes().into_iter().chain(filler).collect()
}

/// Writes event `number`; returns whether there was room.
pub(crate) fn emit(region: &Region, cpu: usize, number: u64) -> bool {
    // SAFETY: living segments; the region's memory outlives its users in all tests.
    unsafe { lttng::write::<Smp>(region, cpu, Tid(7), 3, &[Segment::of(&payload(number))]) }.is_ok()
}

/// A region in private memory.
pub(crate) struct Written {
    pub(crate) region: Region,
    layout: Layout,
}

impl Written {
    pub(crate) fn new(geometry: Geometry, protocol: Protocol, origin: u64) -> Self {
        let layout = Layout::from_size_align(geometry.size(), PAGE).unwrap();
        // SAFETY: a region is never empty.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
        // SAFETY: zeroed, aligned to a page, as large as the region, not used by other code, and freed with
        // `self`.
        let region = unsafe { Region::create(base, geometry, protocol, Clock::Monotonic, [9; 16], origin) };
        Self { region, layout }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        // SAFETY: the memory that `new` took; no thread writes during the call.
        unsafe { std::slice::from_raw_parts(self.region.base().as_ptr(), self.layout.size()) }.to_vec()
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // SAFETY: taken in `new` with this layout.
        unsafe { dealloc(self.region.base().as_ptr(), self.layout) };
    }
}

/// The contents of one CPU's buffer.
pub(crate) struct Recovered {
    pub(crate) numbers: Vec<u64>,
    pub(crate) damages: Vec<Damage>,
    pub(crate) lost: u64,
}

/// Reads a buffer and checks its events: whole, in the order of numbers and time.
pub(crate) fn recover(region: &Found<'_>, cpu: usize) -> Recovered {
    let buffer = region.buffer(Cpu::at(cpu)).expect("all of the region is there");
    let mut recovered = Recovered { numbers: Vec::new(), damages: Vec::new(), lost: buffer.lost() };
    let mut last = Cycles::ZERO;
    for read in buffer.sub_buffers() {
        let sub_buffer = match read {
            Ok(sub_buffer) => sub_buffer,
            Err(damage) => {
                recovered.damages.push(damage);
                continue;
            }
        };
        recovered.damages.extend(sub_buffer.damage);
        for event in sub_buffer.events() {
            assert!((last..=sub_buffer.end).contains(&event.stamp));
            last = event.stamp;
            let bytes = &sub_buffer.bytes[event.payload()..event.at + event.len];
            let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            assert_eq!(bytes, payload(number), "event {number}");
            recovered.numbers.push(number);
        }
    }
    assert!(recovered.numbers.is_sorted_by(|a, b| a < b), "{:?}", recovered.numbers);
    recovered
}
