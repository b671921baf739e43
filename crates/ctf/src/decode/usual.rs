//! Event records that need no walk: their class's layout says where everything lies.

use super::compile::Stream;
use super::header::Found;
use super::layout::Stride;
use super::packet::ticked;
use super::record::Pieces;

/// An event record that needs no walk.
pub(super) struct Usual<'s> {
    /// Where it begins and ends, in bits.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The bit from which on its layout counts: where it would begin if its header were of the usual form.
    pub(super) origin: u64,
    pub(super) stride: &'s Stride,
    /// Its stamp.
    pub(super) clock: u64,
}

impl<'s> Usual<'s> {
    /// The one behind bit `at` of a packet, if there is one and it ends before bit `limit`; where its pieces
    /// begin goes to `pieces`.
    #[inline(always)]
    pub(super) fn next(
        stream: &'s Stream,
        data: &[u8],
        (at, limit): (u64, u64),
        clock: u64,
        pieces: &mut Pieces,
    ) -> Option<Self> {
        // Behind the last one lies the next packet, which is not to be taken for an event record.
        let header = stream.header.as_ref().filter(|_| at < limit)?;
        let start = header.aligned(at);
        let found = header.read(data.get((start / 8) as usize..)?)?;
        let stride = stream.strides.get(found.id as usize)?;
        let origin = (start + found.bits).checked_sub(header.bits())?;
        let first = (origin / 8) as usize;
        let end = origin + stride.measure(data.get(first..)?, first, pieces)?;
        let clock = ticked(clock, found.stamp_mask, found.stamp);
        (end <= limit && end > at).then_some(Usual { start, end, origin, stride, clock })
    }

    /// The header of an event record of any layout at bit `at`, and the bit behind it, if the header has a
    /// usual form.
    #[inline]
    pub(super) fn header(stream: &Stream, data: &[u8], (at, limit): (u64, u64)) -> Option<(Found, u64)> {
        let header = stream.header.as_ref().filter(|header| header.has_id())?;
        let start = header.aligned(at);
        let found = header.read(data.get((start / 8) as usize..)?)?;
        let end = start + found.bits;
        (end <= limit).then_some((found, end))
    }
}
