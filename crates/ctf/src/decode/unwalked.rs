//! Event records that need no walk: the layout of their class gives all positions.

use super::compile::Stream;
use super::event::Starts;
use super::header::Found;
use super::layout::Stride;
use super::packet::ticked;
use super::record::Pieces;
use crate::model::Scope;
use tracewing_units::Cycles;

/// An event record that needs no walk.
pub(super) struct Unwalked<'s> {
    /// Where it begins and ends, in bits.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The bit that its layout counts from: where it would begin if its header had the common form.
    pub(super) origin: u64,
    pub(super) stride: &'s Stride,
    /// The stamp of the event.
    pub(super) clock: Cycles,
}

/// Where a reader is between two event records, and the clock there.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    /// Bits from the packet's start.
    pub(super) at: u64,
    /// The clock's value after the event.
    pub(super) clock: Cycles,
}

impl Cursor {
    /// Steps over the event record here, if it needs no walk and ends before bit `limit`. Where it does not,
    /// at most `pieces` have changed.
    #[inline(always)]
    pub(super) fn step<'s>(
        &mut self,
        stream: &'s Stream,
        data: &[u8],
        limit: u64,
        pieces: &mut Pieces,
        starts: &mut Starts,
    ) -> Option<Unwalked<'s>> {
        let record = Unwalked::next(stream, data, (self.at, limit), self.clock, pieces)?;
        *self = Self { at: record.end, clock: record.clock };
        starts[Scope::EventHeader as usize] = record.start;
        Some(record)
    }
}

impl<'s> Unwalked<'s> {
    /// The event record at or after bit `at` of a packet, if there is one and it ends before bit `limit`;
    /// stores the beginnings of its pieces in `pieces`.
    #[inline(always)]
    fn next(
        stream: &'s Stream,
        data: &[u8],
        (at, limit): (u64, u64),
        clock: Cycles,
        pieces: &mut Pieces,
    ) -> Option<Self> {
        // After the last one the next packet follows, which must not be read as an event record.
        let header = stream.header.as_ref().filter(|_| at < limit)?;
        let start = header.aligned(at);
        let found = header.read(data.get((start / 8) as usize..)?)?;
        let stride = stream.strides.get(found.id as usize)?;
        let origin = (start + found.bits).checked_sub(header.bits())?;
        let first = (origin / 8) as usize;
        let end = origin + stride.measure(data.get(first..)?, first, pieces)?;
        let clock = ticked(clock, found.stamp_mask, found.stamp);
        (end <= limit && end > at).then_some(Unwalked { start, end, origin, stride, clock })
    }

    /// The header of an event record of any layout at bit `at`, and the bit after it, if the header has a
    /// common form.
    #[inline]
    pub(super) fn header(stream: &Stream, data: &[u8], (at, limit): (u64, u64)) -> Option<(Found, u64)> {
        let header = stream.header.as_ref().filter(|header| header.has_id())?;
        let start = header.aligned(at);
        let found = header.read(data.get((start / 8) as usize..)?)?;
        let end = start + found.bits;
        (end <= limit).then_some((found, end))
    }
}
