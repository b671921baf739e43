//! One event in a buffer and in a user packet, byte by byte (little-endian, unaligned).
//!
//! ```text
//! compact    u32 low half of the time stamp | u16 id    | u16 length | i32 tid | payload
//! extended   u32 low half of the time stamp | u16 65535 | u16 length | u64 time stamp | u16 id | i32 tid | payload
//! ```
//!
//! If the id has the bit [`LOCATED`], the payload begins with the address of the site (u64).
//!
//! `length` counts the whole event from its first byte. An event is extended when its stamp lies 2^32 or more
//! above the beginning of its sub-buffer; the low half determines every other stamp, since stamps never go
//! backwards in a buffer.

/// Bytes before the thread id of a compact event.
pub const HEADER: usize = 8;
/// Bytes before the thread id of an extended event.
pub const EXTENDED_HEADER: usize = HEADER + 10;
/// Bytes of the thread id, the context that all user events have.
pub const CONTEXT: usize = 4;
/// The id that marks an extended event.
pub const EXTENDED_ID: u16 = 65535;
/// Ids of event classes lie between 1 and this, without [`LOCATED`]; 0 means that the class is switched off.
pub const MAX_ID: u16 = 32766;
/// In an id: the payload begins with the address of the site, [`SITE`] bytes.
pub const LOCATED: u16 = 1 << 15;
/// Bytes of the address of a site.
pub const SITE: usize = 8;

/// Whether events with this id begin with the address of their site; 0 if that is not known.
pub const fn is_located(id: u16) -> bool {
    id & LOCATED != 0
}

/// The word that a compact event begins with.
pub const fn header_word(stamp: u64, id: u16, length: u16) -> u64 {
    stamp & 0xffff_ffff | (id as u64) << 32 | (length as u64) << 48
}

/// Low stamp half, id and length of an event's first word.
pub const fn split_header_word(word: u64) -> (u32, u16, u16) {
    (word as u32, (word >> 32) as u16, (word >> 48) as u16)
}

/// The full time stamp of an event with this low half that is not older than `last` and less than 2^32
/// younger. Below `last` when there is no such stamp, since `last` lies less than 2^32 below the end of 64
/// bits.
pub const fn extend_stamp(last: u64, low: u32) -> u64 {
    last.wrapping_add(low.wrapping_sub(last as u32) as u64)
}
