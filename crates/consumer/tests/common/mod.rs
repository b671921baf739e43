//! A writer for tests, which needs no program and no thread.

use std::sync::atomic::Ordering;

use tracewing_abi::event;
use tracewing_abi::region::{Loss, SUB_BUFFER_HEADER};
use tracewing_ring::Region;

/// Writes events like the only program under protocol `Publish`.
pub struct Writer {
    pub region: Region,
    pub cpu: usize,
    pub stamp: u64,
}

impl Writer {
    /// Emits an event, unless its buffer is full.
    pub fn emit(&mut self, id: u16, payload: &[u8]) {
        let (cpu, geometry) = (self.region.buffer(self.cpu), self.region.geometry());
        let control = cpu.control();
        let len = event::HEADER + event::CONTEXT + payload.len();
        let head = control.head.load(Ordering::Relaxed);
        self.stamp += 1000;
        let (mut sequence, mut at) = (geometry.sequence(head), geometry.at(head));
        if at == 0 || at + len >= geometry.sub_buffer_bytes() {
            let next = if at == 0 { sequence } else { sequence + 1 };
            let consumed = geometry.sequence(control.consumed.load(Ordering::Relaxed));
            if next - consumed >= geometry.sub_buffers() as u64 {
                return cpu.count_loss(Loss::Full);
            }
            if at != 0 {
                let header = cpu.header(geometry.entry(sequence));
                header.end.store(self.stamp, Ordering::Relaxed);
                header.used.store(at as u64, Ordering::Relaxed);
            }
            let header = cpu.header(geometry.entry(next));
            header.begin.store(self.stamp, Ordering::Relaxed);
            header.sequence.store(next + 1, Ordering::Relaxed);
            header.lost.store(cpu.lost_total(), Ordering::Relaxed);
            (sequence, at) = (next, SUB_BUFFER_HEADER);
        }
        let mut bytes = event::header_word(self.stamp, id, len as u16).to_le_bytes().to_vec();
        bytes.extend(4711_i32.to_le_bytes());
        bytes.extend(payload);
        let physical = geometry.entry(sequence);
        cpu.store(physical, at, &bytes);
        control.head.store(geometry.position(sequence, physical, at + len), Ordering::Release);
    }
}
