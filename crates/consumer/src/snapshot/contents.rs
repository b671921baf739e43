//! The content of buffers, copied while programs write to them.

use std::time::Duration;

use tracewing_ring::{Chunk, Damaged, Left, Overwritten, Reader, Region, UpTo};
use tracewing_units::{Cpu, Cycles};

use crate::drain::Drain;
use crate::firsts::Firsts;
use crate::memory::SharedMemory;
use crate::outside::Insider;
use crate::packet_events::{Event, Walk};
use crate::summary::LossRange;
use crate::whole_events::whole_events;

/// How many laps of the writers a snapshot follows.
const ROUNDS: usize = 4;

/// Number of attempts, looks per attempt, and pause between attempts, for which a snapshot waits for threads
/// to finish their events.
const COMMIT_ATTEMPTS: usize = 100;

const COMMIT_LOOKS: usize = 1000;

const COMMIT_WAIT: Duration = Duration::from_millis(1);

/// What a region's writers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// They continue: a buffer's snapshot ends where they were a moment ago.
    Living,
    /// The region is closed; they finish the events that they have begun. Events that are still unfinished
    /// after a while are skipped.
    Ending,
    /// There are none any more; the events that they left unfinished are skipped.
    Dead,
}

/// The content of a region's buffers, copied.
pub struct Contents {
    pub(super) label: String,
    /// The clock when the region was made.
    pub(super) origin: Cycles,
    pub(super) buffers: Vec<BufferContents>,
}

pub(super) struct BufferContents {
    pub(super) cpu: Cpu,
    pub(super) packets: Vec<Packet>,
    pub(super) damages: Vec<String>,
    pub(super) losses: Vec<LossRange>,
    pub(super) is_lost_unknown: bool,
}

impl Contents {
    /// Copies a region's buffers. Sub-buffers that are copied go back into the ring.
    pub fn of(drain: &mut Drain, writers: Writers) -> Self {
        let region = drain.region();
        let (label, origin, memory, insider, buffers) = drain.parts();
        let buffers = buffers.iter_mut().map(|buffer| {
            let counted = buffer.counted();
            let (mut packets, damages) = read(&mut buffer.reader, region, memory, writers, counted);
            let mut is_lost_unknown = buffer.is_lost_unknown;
            for packet in &mut packets {
                insider.into_iter().for_each(|insider| packet.put_outside(insider));
                if !buffer.can_have_written(packet.overwritten.sub_buffers) {
                    (packet.overwritten, is_lost_unknown) = (Overwritten::default(), true);
                }
            }
            let losses = buffer.ranges.clone();
            BufferContents { cpu: buffer.cpu, packets, damages, losses, is_lost_unknown }
        });
        Self {
            label: label.to_owned(),
            origin,
            buffers: buffers.filter(|buffer| !buffer.is_empty()).collect(),
        }
    }

    /// Registers the classes of its first events.
    pub fn scan(&self, firsts: &Firsts) {
        for packet in self.buffers.iter().flat_map(|buffer| &buffer.packets) {
            firsts.scan(packet.whole());
        }
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.buffers.iter().flat_map(|buffer| &buffer.packets).map(Packet::bytes).sum()
    }
}

impl BufferContents {
    /// Its packets up to the moment `taken`, and up to when they have events. Buffers are copied one after
    /// the other, so all of them together are complete until then only. If all that was here then is
    /// overwritten, nothing is left out: an end of other streams before the first of these packets shows to
    /// readers what is unknown.
    pub(super) fn up_to(&self, taken: Cycles) -> (&[Packet], Cycles) {
        let is_newer = |first: &Packet| first.begin > taken && first.overwritten != Overwritten::default();
        let until = if self.packets.first().is_some_and(is_newer) { Cycles::MAX } else { taken };
        (&self.packets[..self.packets.partition_point(|packet| packet.begin <= until)], until)
    }

    fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.damages.is_empty()
    }
}

/// A packet in preparation: events copied out of a buffer.
pub(super) struct Packet {
    pub(super) events: Vec<u8>,
    pub(super) begin: Cycles,
    pub(super) end: Cycles,
    pub(super) lost: u64,
    pub(super) overwritten: Overwritten,
}

impl Packet {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.events.capacity()
    }

    /// Translates the thread numbers to those that the recorder sees.
    fn put_outside(&mut self, insider: &Insider) {
        let len = self.whole().len();
        insider.replace(&mut self.events[..len], true);
    }

    /// The bytes of its whole events.
    pub(super) fn whole(&self) -> &[u8] {
        // SAFETY: the vector is this process's own.
        let (_, len) = unsafe { whole_events(self.events.as_slice().into(), |_| {}) };
        &self.events[..len]
    }

    /// The bytes of its whole events up to this time.
    pub(super) fn up_to(&self, until: Cycles) -> &[u8] {
        let whole = self.whole();
        if self.end <= until {
            return whole;
        }
        let mut stamp = self.begin;
        let is_later = |event: &Event| {
            stamp = event.stamp(whole, stamp);
            stamp > until
        };
        Walk { bytes: whole, at: 0 }.find(is_later).map_or(whole, |event| &whole[..event.at])
    }
}

/// Copies a buffer, beginning with its oldest sub-buffer; also returns the damage found. Reports at most the
/// `counted` losses.
fn read(
    reader: &mut Reader,
    region: Region,
    memory: &SharedMemory,
    mut writers: Writers,
    counted: u64,
) -> (Vec<Packet>, Vec<String>) {
    let (mut packets, mut damages, mut found_lost) = (Vec::<Packet>::new(), Vec::new(), 0);
    let (mut up_to, mut left_out) = (UpTo::LastFull, Overwritten::default());
    reader.rewind();
    // A sub-buffer yields a chunk, or damage, or both. Writers continue in the meantime and may lap the
    // reader.
    for _ in 0..ROUNDS * region.geometry().sub_buffers() {
        let next = match writers {
            Writers::Dead => reader.finalise(),
            Writers::Living | Writers::Ending => {
                wait_for_chunk(reader, region, up_to).map(|chunk| chunk.map_or(Left::Nothing, Left::Chunk))
            }
        };
        let chunk = match next {
            Ok(Left::Chunk(chunk)) => chunk,
            Ok(Left::Unfinished(_)) => {
                found_lost += 1;
                continue;
            }
            Ok(Left::Nothing) if up_to == UpTo::LastFull && writers != Writers::Dead => {
                up_to = UpTo::LastWritten;
                continue;
            }
            // A writer that has not finished by now never will.
            Ok(Left::Nothing) if writers == Writers::Ending => {
                writers = Writers::Dead;
                continue;
            }
            Ok(Left::Nothing) => break,
            Err(damaged) => {
                damages.push(damaged.to_string());
                found_lost += 1;
                if damaged.bytes == 0 {
                    break;
                }
                continue;
            }
        };
        let lost = chunk.lost.min(counted).saturating_add(found_lost);
        let overwritten = leave_out(&mut packets, &mut left_out, chunk.overwritten);
        let (events, begin, end) = (memory.copy(chunk.bytes()), chunk.begin, chunk.end);
        packets.push(Packet { events, begin, end, lost, overwritten });
        reader.give_back(chunk);
        if up_to == UpTo::LastWritten && writers == Writers::Living {
            break;
        }
    }
    (packets, damages)
}

/// Leaves out the packets so far if more was overwritten since the last of them, so that those that remain
/// follow one another. Returns what was overwritten up to the next packet, those left out included.
fn leave_out(packets: &mut Vec<Packet>, left_out: &mut Overwritten, overwritten: Overwritten) -> Overwritten {
    let sub_buffers = overwritten.sub_buffers.saturating_add(left_out.sub_buffers);
    if packets.last().is_some_and(|last| last.overwritten.sub_buffers < sub_buffers) {
        left_out.sub_buffers += packets.len() as u64;
        left_out.bytes += packets.drain(..).map(|packet| packet.events.len() as u64).sum::<u64>();
    }
    Overwritten {
        sub_buffers: overwritten.sub_buffers.saturating_add(left_out.sub_buffers),
        bytes: overwritten.bytes.saturating_add(left_out.bytes),
    }
}

/// The next full sub-buffer; or, with [`UpTo::LastWritten`], the content of the writers' current one. `None`
/// if there is no more.
///
/// A sub-buffer cannot always be read: with `Smp` not while a thread is between reserving and committing,
/// which takes long only if the thread is not running; and not while writers lap the reader. Waits for a
/// better moment.
fn wait_for_chunk(reader: &mut Reader, region: Region, up_to: UpTo) -> Result<Option<Chunk>, Damaged> {
    let least = if up_to == UpTo::LastWritten { 1 } else { region.geometry().sub_buffer_bytes() };
    for _ in 0..COMMIT_ATTEMPTS {
        for _ in 0..COMMIT_LOOKS {
            let chunk = reader.next(up_to)?;
            if chunk.is_some() || reader.waiting() < least {
                return Ok(chunk);
            }
            std::hint::spin_loop();
        }
        std::thread::sleep(COMMIT_WAIT);
    }
    Ok(None)
}
