//! Streams of a trace, each used by one region after another: there are as many files as regions at the same
//! time, not as regions in total.
//!
//! Packets of a stream are ordered by time. So a region takes over only a stream that ends before the
//! region's first packet begins; if there are several, the one that ends last.

use std::collections::HashMap;
use tracewing_units::{Cpu, Cycles};

/// Streams that no region uses at the moment, by label and CPU.
pub(crate) struct Streams<S> {
    of: HashMap<(String, Cpu), Slot<S>>,
}

struct Slot<S> {
    /// Number of names assigned.
    made: usize,
    idle: Vec<S>,
}

impl<S> Streams<S> {
    pub(crate) fn new() -> Self {
        Self { of: HashMap::new() }
    }

    fn slot(&mut self, label: &str, cpu: Cpu) -> &mut Slot<S> {
        self.of.entry((label.to_owned(), cpu)).or_insert_with(|| Slot { made: 0, idle: Vec::new() })
    }

    /// A stream whose `end` is not after `begin`.
    pub(crate) fn take(
        &mut self,
        label: &str,
        cpu: Cpu,
        begin: Cycles,
        end: impl Fn(&S) -> Cycles,
    ) -> Option<S> {
        let idle = &mut self.slot(label, cpu).idle;
        let ends = idle.iter().map(end).enumerate().filter(|(_, end)| *end <= begin);
        let (last, _) = ends.max_by_key(|(_, end)| *end)?;
        Some(idle.swap_remove(last))
    }

    /// The file name of a new stream: `LABEL_CPU`, then `LABEL-2_CPU`, and so on.
    pub(crate) fn name(&mut self, label: &str, cpu: Cpu) -> String {
        let slot = self.slot(label, cpu);
        slot.made += 1;
        match slot.made {
            1 => format!("{label}_{cpu}"),
            number => format!("{label}-{number}_{cpu}"),
        }
    }

    /// Streams that no region uses.
    pub(crate) fn idle(&self) -> impl Iterator<Item = &S> {
        self.of.values().flat_map(|slot| &slot.idle)
    }

    /// As [`Streams::idle`], to change them.
    pub(crate) fn idle_mut(&mut self) -> impl Iterator<Item = &mut S> {
        self.of.values_mut().flat_map(|slot| &mut slot.idle)
    }

    /// Returns a stream that its region has finished.
    pub(crate) fn give_back(&mut self, label: &str, cpu: Cpu, stream: S) {
        self.slot(label, cpu).idle.push(stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_continued_where_time_continues() {
        let mut streams = Streams::new();
        let end = |end: &u64| Cycles(*end);
        assert_eq!(streams.name("uid0", Cpu(1)), "uid0_1");
        assert_eq!(streams.name("uid0", Cpu(1)), "uid0-2_1");
        assert_eq!(streams.name("uid0", Cpu(0)), "uid0_0");
        [10, 30, 20].into_iter().for_each(|stream| streams.give_back("uid0", Cpu(1), stream));
        assert_eq!(streams.take("uid0", Cpu(1), Cycles(9), end), None);
        assert_eq!(streams.take("uid0", Cpu(0), Cycles(99), end), None);
        assert_eq!(streams.take("uid1", Cpu(1), Cycles(99), end), None);
        assert_eq!(streams.take("uid0", Cpu(1), Cycles(29), end), Some(20));
        assert_eq!(streams.take("uid0", Cpu(1), Cycles(29), end), Some(10));
        assert_eq!(streams.take("uid0", Cpu(1), Cycles(30), end), Some(30));
        assert_eq!(streams.take("uid0", Cpu(1), Cycles(30), end), None);
    }
}
