//! Protocol buffers as bytes: as much of the wire format as Perfetto's traces need.
//!
//! A message inside of another one has its length in front. That is written when the message is complete, into room of
//! [`LENGTH`] bytes: readers take a length with more bytes than it needs.

/// Bytes of a length: enough for 256 MiB, which is more than any message has here.
const LENGTH: usize = 4;

/// Wire types.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

/// Appends `value`, seven bits in each byte, the lowest first.
#[inline]
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
fn key(out: &mut Vec<u8>, field: u32, kind: u32) {
    varint(out, (field << 3 | kind).into());
}

/// Appends an unsigned number, a truth value or an enumeration.
#[inline]
pub(crate) fn unsigned(out: &mut Vec<u8>, field: u32, value: u64) {
    key(out, field, VARINT);
    varint(out, value);
}

/// Appends a signed number (`int32`, `int64`).
#[inline]
pub(crate) fn signed(out: &mut Vec<u8>, field: u32, value: i64) {
    unsigned(out, field, value as u64);
}

/// Appends a number of 64 bits (`fixed64`).
#[inline]
pub(crate) fn fixed(out: &mut Vec<u8>, field: u32, value: u64) {
    key(out, field, FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a floating point number (`double`).
pub(crate) fn real(out: &mut Vec<u8>, field: u32, value: f64) {
    fixed(out, field, value.to_bits());
}

/// Appends a text.
pub(crate) fn text(out: &mut Vec<u8>, field: u32, text: &str) {
    key(out, field, BYTES);
    varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a message, which `write` appends.
#[inline]
pub(crate) fn message(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let start = begin(out, field);
    write(out);
    end(out, start);
}

/// Begins a message; the place is for [`end`].
#[inline]
pub(crate) fn begin(out: &mut Vec<u8>, field: u32) -> usize {
    key(out, field, BYTES);
    out.extend_from_slice(&[0; LENGTH]);
    out.len()
}

/// Ends the message that began at `start`.
#[inline]
pub(crate) fn end(out: &mut [u8], start: usize) {
    let length = out.len() - start;
    for (place, byte) in out[start - LENGTH..start].iter_mut().enumerate() {
        let more = if place + 1 < LENGTH { 0x80 } else { 0 };
        *byte = (length >> (7 * place)) as u8 & 0x7f | more;
    }
}
