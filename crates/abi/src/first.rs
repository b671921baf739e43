//! First events of a class that the recorder does not know yet: the event [`NAME`], which has the class's
//! [`key`] and the event's own payload in it. The recorder puts the event itself in its place once it knows
//! the class, so no program waits.
//!
//! ```text
//! u64 low, u64 high (the key) | u32 process id | u16 length | payload
//! ```
//!
//! With [`DESCRIPTION`] as process id the payload is the class's description. It comes before the first event
//! of the class, in this buffer or another one of the recording, so that the recorder needs nothing else of
//! the program, which may have ended.
//!
//! A program may write such events as soon as the recorder has granted the class [`NAME`] in it, until the
//! new class has an id of its own in it. The recorder asks for the class
//! ([`Describe`](crate::message::ask::Describe)) when it finds such events. Where it does not read events
//! before a snapshot, it asks when [`news`](crate::region::RegionHeader::news) has changed.

/// The event class's name.
pub const NAME: &str = "tracewing:first";
/// Bytes before the payload.
pub const HEADER: usize = 16 + 4 + 2;
/// In place of a process id: the payload is a description, not an event.
pub const DESCRIPTION: u32 = 0;

/// Identifies a class before it has an id: a 128-bit hash of its description in message encoding.
pub type Key = [u64; 2];

/// The key of a class with this description (what [`decode_classes`](crate::message::decode_classes) gives).
/// Equal descriptions are one class; of different ones, no two keys are equal as far as chance allows.
pub fn key(description: &[u8]) -> Key {
    // FNV-1a, 128 bits.
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = description.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
    });
    [hash as u64, (hash >> 64) as u64]
}
