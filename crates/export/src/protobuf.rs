//! Writes protocol buffers: as much of the wire format as Perfetto traces need.
//!
//! A nested message is prefixed with its length, which is known only once the message is complete. One byte
//! is reserved for it; a long message is moved to make room.

/// Wire types.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

/// Appends a varint: seven bits per byte, lowest bits first.
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

/// Appends an unsigned number, a boolean or an enumeration value.
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

/// Appends a floating-point number (`double`).
pub(crate) fn real(out: &mut Vec<u8>, field: u32, value: f64) {
    fixed(out, field, value.to_bits());
}

pub(crate) fn text(out: &mut Vec<u8>, field: u32, text: &str) {
    key(out, field, BYTES);
    varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a nested message; `write` appends its fields.
#[inline]
pub(crate) fn message(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let start = begin(out, field);
    write(out);
    end(out, start);
}

/// Begins a nested message; pass the result to [`end`].
#[inline]
pub(crate) fn begin(out: &mut Vec<u8>, field: u32) -> usize {
    key(out, field, BYTES);
    out.push(0);
    out.len()
}

/// Ends the message that began at `start`.
#[inline]
pub(crate) fn end(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    match length {
        0..0x80 => out[start - 1] = length as u8,
        _ => end_long(out, start),
    }
}

#[cold]
fn end_long(out: &mut Vec<u8>, start: usize) {
    let body = out.split_off(start);
    out.truncate(start - 1);
    varint(out, body.len() as u64);
    out.extend_from_slice(&body);
}
