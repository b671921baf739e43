//! What programs held that have ended, and that is kept no longer: as data that were overwritten.

use std::collections::BTreeMap;

use tracewing_ring::Overwritten;
use tracewing_units::Cpu;

use super::Contents;
use crate::summary::OverwrittenRange;

/// Streams that have a range each; beyond that, the last one grows.
const MOST_STREAMS: usize = 1024;

/// Contents that are kept no longer.
#[derive(Debug, Default)]
pub struct Dropped {
    pub(super) regions: u64,
    /// By the name of a stream.
    pub(super) ranges: BTreeMap<String, (Cpu, OverwrittenRange)>,
}

impl Dropped {
    /// Adds the contents of a region.
    pub fn add(&mut self, contents: &Contents) {
        self.regions += 1;
        for buffer in &contents.buffers {
            let (Some(first), Some(last)) = (buffer.packets.first(), buffer.packets.last()) else { continue };
            let events = buffer.packets.iter().map(|packet| packet.events.len() as u64);
            let overwritten = Overwritten {
                sub_buffers: first.overwritten.sub_buffers.saturating_add(buffer.packets.len() as u64),
                bytes: events.fold(first.overwritten.bytes, u64::saturating_add),
            };
            let name = format!("{}_{}", contents.label, buffer.cpu);
            let range = OverwrittenRange::new(&name, overwritten, contents.origin, last.end);
            self.add_range(name, buffer.cpu, range);
        }
    }

    fn add_range(&mut self, name: String, cpu: Cpu, range: OverwrittenRange) {
        let is_full = self.ranges.len() >= MOST_STREAMS && !self.ranges.contains_key(&name);
        let known = match is_full {
            true => self.ranges.last_entry().map(std::collections::btree_map::OccupiedEntry::into_mut),
            false => self.ranges.get_mut(&name),
        };
        match known {
            Some((_, known)) => known.extend(&range),
            None => drop(self.ranges.insert(name, (cpu, range))),
        }
    }
}
