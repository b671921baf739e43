//! Decodes the raw pages that `per_cpu/cpuN/trace_pipe_raw` gives.
//!
//! A page is a header and a run of records, as the kernel's ring buffer lays them out
//! (`kernel/trace/ring_buffer.c`, `include/linux/ring_buffer.h`):
//!
//! ```text
//! u64 stamp                      time of the first record, before its own delta
//! word commit                    bits 0..30  bytes of records on this page
//!                                bit  30     RB_MISSED_STORED: how many were missed follows the records
//!                                bit  31     RB_MISSED_EVENTS: records before this page were overwritten
//! records, each 4-byte aligned:
//!   u32: bits 0..5 type_len, bits 5..32 delta (27 bits), then by type_len
//!     1..=28  data of 4 * type_len bytes
//!     0       u32 length (itself included), then the data
//!     29      padding: delta 0 ends the page, else u32 length of what to skip
//!     30      time extend: u32; stamp += u32 << 27 | delta
//!     31      time stamp:  u32; stamp  = u32 << 27 | delta, 59 bits, the five above kept
//! ```
//!
//! `word` is the kernel's `long`; its size comes from `events/header_page` ([`PageLayout`]). Everything is in
//! the machine's own byte order. Any bytes give records or a [`PageError`]; what a record's bytes mean is the
//! business of [`crate::format`].

use crate::error::FormatError;
use crate::format::FieldLine;
use tracewing_units::Cycles;

const MISSED_EVENTS: u32 = 1 << 31;
const MISSED_STORED: u32 = 1 << 30;
const DELTA_BITS: u32 = 27;
/// The bits of a stamp that an absolute time stamp record has no room for (`TS_MSB`).
const STAMP_TOP: u64 = 0xf8 << 56;

/// Where the parts of a page are, as `events/header_page` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    word: usize,
    data: usize,
    size: usize,
}

impl PageLayout {
    /// Parses the text of `events/header_page`.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let (mut stamp, mut commit, mut data) = (None, None, None);
        for line in text.lines() {
            let Some(field) = FieldLine::parse(line)? else { continue };
            match field.declaration.rsplit(' ').next() {
                Some("timestamp") => stamp = Some((field.offset, field.size)),
                Some("commit") => commit = Some((field.offset, field.size)),
                Some("data") => data = Some((field.offset, field.size)),
                _ => {}
            }
        }
        match (stamp, commit, data) {
            (Some((0, 8)), Some((8, word @ (4 | 8))), Some((data, len))) if data == 8 + word && len > 0 => {
                Ok(Self { word, data, size: data + len })
            }
            _ => Err(FormatError::PageHeader),
        }
    }

    /// Bytes of a whole page.
    pub fn page_size(&self) -> usize {
        self.size
    }

    /// Bytes of a page before its records.
    pub fn header(&self) -> usize {
        self.data
    }

    /// Bytes of the kernel's `long`: 4 or 8.
    pub fn word(&self) -> usize {
        self.word
    }
}

/// Why a page cannot be decoded. Offsets are bytes from the page's begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// Fewer bytes than a page header has.
    #[error("a page of {len} bytes has no room for its header")]
    Short {
        /// Bytes that were read.
        len: usize,
    },
    /// The header claims more record bytes than there are.
    #[error("the page header claims {claimed} bytes of records, the page has room for {room}")]
    Commit {
        /// Bytes of records according to the header.
        claimed: usize,
        /// Bytes that the page has after its header.
        room: usize,
    },
    /// A record does not fit between its beginning and the end of the records.
    #[error("record at byte {offset}: its length of {len} bytes does not fit the page")]
    Record {
        /// Where the record begins.
        offset: usize,
        /// Its length according to its own header, in bytes.
        len: usize,
    },
}

/// Records that the kernel overwrote before this page was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// Exactly this number, which the page states.
    Count(u64),
    /// At least one; the page had no room for the number.
    Unknown,
}

/// One page of a CPU's ring buffer, with its header decoded and its records still raw.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The time from which the records' deltas count, by the instance's clock.
    pub stamp: Cycles,
    /// What was lost right before this page.
    pub missed: Option<Missed>,
    records: &'a [u8],
    base: usize,
}

impl<'a> Page<'a> {
    /// Reads the header of the page in `bytes`, which may be shorter than a whole page.
    pub fn parse(layout: &PageLayout, bytes: &'a [u8]) -> Result<Self, PageError> {
        let short = PageError::Short { len: bytes.len() };
        let stamp = Cycles(u64_at(bytes, 0).ok_or(short)?);
        let commit = u32_at(bytes, commit_low_half(layout.word)).ok_or(short)?;
        let body = bytes.get(layout.data..).ok_or(short)?;
        let len = (commit & !(MISSED_EVENTS | MISSED_STORED)) as usize;
        let records = body.get(..len).ok_or(PageError::Commit { claimed: len, room: body.len() })?;
        let missed = (commit & MISSED_EVENTS != 0).then(|| {
            let count = match (commit & MISSED_STORED != 0, layout.word) {
                (true, 8) => u64_at(body, len),
                (true, _) => u32_at(body, len).map(u64::from),
                (false, _) => None,
            };
            count.map_or(Missed::Unknown, Missed::Count)
        });
        Ok(Self { stamp, missed, records, base: layout.data })
    }

    /// Bytes of records on this page.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Bytes of the page up to the end of its records; what follows them says only what was lost before.
    pub fn extent(&self) -> usize {
        self.base + self.records.len()
    }

    /// Whether the page has no records.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The records in the order in which they were written. An error is the last item.
    pub fn records(&self) -> Records<'a> {
        Records { bytes: self.records, at: 0, stamp: self.stamp, base: self.base }
    }
}

/// One event as it lies in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// When, by the instance's clock.
    pub stamp: Cycles,
    /// The event's bytes, padded by the kernel to a multiple of four.
    pub data: &'a [u8],
}

/// Iterator over the records of a [`Page`].
#[derive(Debug, Clone)]
pub struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    stamp: Cycles,
    base: usize,
}

impl<'a> Records<'a> {
    fn fail<T>(&mut self, len: usize) -> Option<Result<T, PageError>> {
        let offset = self.base + self.at;
        self.at = self.bytes.len();
        Some(Err(PageError::Record { offset, len }))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, PageError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.bytes.len() {
            let Some(head) = u32_at(self.bytes, self.at) else { return self.fail(4) };
            let delta = u64::from(head >> 5);
            let type_len = (head & 31) as usize;
            if let 1..=28 = type_len {
                let Some(data) = self.bytes.get(self.at + 4..self.at + 4 + 4 * type_len) else {
                    return self.fail(4 + 4 * type_len);
                };
                self.at += 4 + 4 * type_len;
                self.stamp.0 = self.stamp.0.wrapping_add(delta);
                return Some(Ok(Record { stamp: self.stamp, data }));
            }
            if type_len == 29 && delta == 0 {
                self.at = self.bytes.len();
                return None;
            }
            let Some(word) = u32_at(self.bytes, self.at + 4) else { return self.fail(8) };
            let long = word as usize;
            match type_len {
                0 => {
                    let end = self.at.saturating_add(4).saturating_add(long);
                    let Some(data) = self.bytes.get(self.at + 8..end) else { return self.fail(long) };
                    self.at = (end + 3) & !3;
                    self.stamp.0 = self.stamp.0.wrapping_add(delta);
                    return Some(Ok(Record { stamp: self.stamp, data }));
                }
                29 => {
                    // A discarded record. The kernel writes delta 1 where it was 0, which would mean the
                    // page's end.
                    self.stamp.0 = self.stamp.0.wrapping_add(if delta == 1 { 0 } else { delta });
                    let end = self.at.saturating_add(4).saturating_add(long);
                    if long < 4 || end > self.bytes.len() {
                        return self.fail(long);
                    }
                    self.at = (end + 3) & !3;
                }
                30 => {
                    let extend = u64::from(word) << DELTA_BITS | delta;
                    self.stamp.0 = self.stamp.0.wrapping_add(extend);
                    self.at += 8;
                }
                _ => {
                    self.stamp = with_top(u64::from(word) << DELTA_BITS | delta, self.stamp);
                    self.at += 8;
                }
            }
        }
        None
    }
}

/// The full stamp of which an absolute record keeps 59 bits, given a stamp shortly before it.
fn with_top(low: u64, Cycles(before): Cycles) -> Cycles {
    let full = low & !STAMP_TOP | before & STAMP_TOP;
    Cycles(if full < before && before & STAMP_TOP != 0 { full.wrapping_add(1 << 59) } else { full })
}

/// Offset of the half of `commit` that holds the length and the flags. The upper half of a 64-bit one is the
/// sign of `RB_MISSED_EVENTS`, an `int` in the kernel.
const fn commit_low_half(word: usize) -> usize {
    if cfg!(target_endian = "big") { 8 + word - 4 } else { 8 }
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests;
