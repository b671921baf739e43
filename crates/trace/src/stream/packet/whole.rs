//! Packets of a file that is being written: whether they are whole.

use super::{FIRST_LOOK, PacketFile, has_size};
use tracewing_ctf::decode::{Step, StreamReader};
use tracewing_units::Timestamp;

/// Whether a packet of a file that is being written is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whole {
    /// It is, and up to when it reaches, in nanoseconds since the clock's origin; `i64::MIN` where nothing in
    /// it has a stamp.
    Yes { reach: Timestamp },
    /// Bytes are missing, or it does not say how many it has.
    NotYet,
    /// It cannot be decoded, at least not with the metadata that there is.
    Damaged,
}

impl PacketFile {
    /// Reads all of the packet at hand, to see whether it is whole. If not, it can be tried again.
    pub(crate) fn try_packet(&mut self) -> Whole {
        let whole = self.reach_of_whole();
        if !matches!(whole, Whole::Yes { .. }) {
            self.seek(self.offset, self.index, self.first);
        }
        whole
    }

    fn reach_of_whole(&mut self) -> Whole {
        let head = match self.head() {
            Ok(Some(head)) => head,
            Err(_)
                if self.size().is_ok_and(|size| {
                    !(self.offset..self.offset.saturating_add(FIRST_LOOK)).contains(&size)
                }) =>
            {
                return Whole::Damaged;
            }
            _ => return Whole::NotYet,
        };
        let class = self.reader.as_ref().and_then(StreamReader::data_stream_class);
        if self.cut.is_some() || !class.is_some_and(has_size) {
            return Whole::NotYet;
        }
        if self.enter_packet().is_err() {
            return Whole::Damaged;
        }
        let mut reach = head.begin_ns.max(head.end_ns);
        loop {
            match self.step() {
                Ok(Step::Event) => {
                    let stamp = self.event().clock_value().zip(self.clock());
                    reach = reach.max(stamp.and_then(|(cycles, clock)| clock.time(cycles)));
                }
                Ok(Step::Packet) => {}
                Ok(Step::PacketEnd | Step::End) => {
                    return Whole::Yes { reach: reach.unwrap_or(Timestamp::MIN) };
                }
                Err(_) => return Whole::Damaged,
            }
        }
    }
}
