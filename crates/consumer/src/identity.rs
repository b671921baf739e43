//! Random identities: of a recording, of its clock, and unguessable names.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// A random UUID (RFC 9562, version 4).
///
/// # Errors
/// The kernel provides no random bytes.
pub fn random_uuid() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::io::retry_on_intr(|| getrandom(&mut bytes[filled..], GetRandomFlags::empty()))?;
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(bytes)
}
