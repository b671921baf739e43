//! Events of the kernel and of profiles that wait for their packet, with the headers of kernel events
//! (`tracewing_ctf::write`).

use tracewing_ctf::write::EXTENDED_ID;

use crate::PacketTimes;
use tracewing_units::Cycles;

/// Events that are not yet written, and the time of the last one.
#[derive(Debug)]
pub struct Gathered {
    bytes: Vec<u8>,
    /// Minimum size of a packet, bytes.
    enough: usize,
    events: u64,
    begin: Cycles,
    last: Cycles,
}

impl Gathered {
    /// No events yet; `enough` bytes fill a packet.
    pub fn new(enough: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(enough + 8192),
            enough,
            events: 0,
            begin: Cycles::ZERO,
            last: Cycles::ZERO,
        }
    }

    /// Appends an event: `write` writes its context and payload; nothing is appended if it returns `false`.
    /// Its stamp is raised to the last event's: readers would treat a smaller one as a wrap of the clock.
    #[inline]
    pub fn append(&mut self, stamp: Cycles, id: u16, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let stamp = stamp.max(self.last);
        let before = self.bytes.len();
        if self.events == 0 || stamp.0 - self.last.0 < 1 << 32 {
            let [a, b] = id.to_le_bytes();
            let [c, d, e, f] = (stamp.0 as u32).to_le_bytes();
            self.bytes.extend_from_slice(&[a, b, c, d, e, f]);
        } else {
            self.bytes.extend_from_slice(&EXTENDED_ID.to_le_bytes());
            self.bytes.extend_from_slice(&(stamp.0 as u32).to_le_bytes());
            self.bytes.extend_from_slice(&stamp.0.to_le_bytes());
            self.bytes.extend_from_slice(&id.to_le_bytes());
        }
        if !write(&mut self.bytes) {
            self.bytes.truncate(before);
            return false;
        }
        if self.events == 0 {
            self.begin = stamp;
        }
        self.events += 1;
        self.last = stamp;
        true
    }

    /// Whether the events fill a packet.
    #[inline]
    pub fn is_enough(&self) -> bool {
        self.bytes.len() >= self.enough
    }

    /// Whether no event waits for a packet.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// The stamp of the last event, written or not; 0 before the first.
    pub fn last(&self) -> Cycles {
        self.last
    }

    /// All bytes, and the times of their packet.
    pub fn packet(&self, lost: u64) -> (&[u8], PacketTimes) {
        (&self.bytes, PacketTimes { begin: self.begin, end: self.last, lost, skipped: 0 })
    }

    /// Removes all events, for the next packet. Returns how many there were.
    pub fn clear(&mut self) -> u64 {
        self.bytes.clear();
        std::mem::take(&mut self.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(gathered: &mut Gathered, stamp: u64) {
        assert!(gathered.append(Cycles(stamp), 7, |out| {
            out.push(b'x');
            true
        }));
    }

    #[test]
    fn stamps_far_apart_take_the_long_header() {
        let mut gathered = Gathered::new(20);
        append(&mut gathered, 1 << 40);
        append(&mut gathered, 5);
        assert!(!gathered.is_enough());
        append(&mut gathered, (1 << 40) + (1 << 32));
        let (bytes, times) = gathered.packet(3);
        assert_eq!(bytes.len(), 7 + 7 + 17);
        assert_eq!((times.begin.0, times.end.0, times.lost), (1 << 40, (1 << 40) + (1 << 32), 3));
        assert!(gathered.is_enough());
        assert_eq!((gathered.clear(), gathered.is_empty()), (3, true));
        // The packet's beginning determines the time of its first event.
        append(&mut gathered, 1 << 50);
        assert_eq!(gathered.packet(0).0.len(), 7);
    }

    #[test]
    fn an_event_that_is_not_written_leaves_no_bytes() {
        let mut gathered = Gathered::new(20);
        let half = |out: &mut Vec<u8>| {
            out.push(1);
            false
        };
        assert!(!gathered.append(Cycles(5), 7, half));
        assert_eq!(
            (gathered.packet(0).0.len(), gathered.last(), gathered.is_empty()),
            (0, Cycles::ZERO, true)
        );
    }
}
