//! Counts the events in a byte string, and finds the end of the last whole one, by the length fields that
//! processes have written.

use tracewing_abi::event;
use tracewing_abi::shared::SharedBytes;

/// Number of events that follow each other from the first byte by their length fields, and the bytes that
/// they take: all bytes unless a process wrote nonsense. `note` receives the ids of their classes.
///
/// # Safety
/// The bytes are mapped and readable.
pub(crate) unsafe fn whole_events(bytes: SharedBytes, note: impl Fn(u16)) -> (u64, usize) {
    let (start, len) = (bytes.as_ptr(), bytes.len());
    const SMALLEST: usize = event::HEADER + event::CONTEXT;
    const LARGE: usize = event::EXTENDED_HEADER + event::CONTEXT;
    // SAFETY: called for two bytes that end at or before `len` and need no alignment; volatile reads are
    // never repeated.
    let number = |at: usize| unsafe { u16::from_le_bytes(start.add(at).cast::<[u8; 2]>().read_volatile()) };
    let (mut at, mut events) = (0, 0);
    while at + SMALLEST <= len {
        let length = usize::from(number(at + 6));
        if length < SMALLEST || at + length > len {
            break;
        }
        match number(at + 4) {
            event::EXTENDED_ID if length < LARGE => break,
            event::EXTENDED_ID => note(number(at + event::HEADER + 8)),
            id => note(id),
        }
        at += length;
        events += 1;
    }
    (events, at)
}
