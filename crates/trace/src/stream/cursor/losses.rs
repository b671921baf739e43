//! What a packet's header shows of the packets before it: losses between them, and events that came late.

use super::{Lost, LostKind, PacketHead, StreamCursor};
use tracewing_units::Timestamp;

impl StreamCursor {
    /// Remarks on events of the packet before that are later than an index of packets shows.
    pub(super) fn note_late_events(&mut self, file: usize, head: &PacketHead) {
        let ends = [self.previous.and_then(|previous| previous.end_ns), head.begin_ns];
        self.reach = ends.into_iter().flatten().fold(self.reach, Timestamp::max);
        let is_late = self.stamp.take().is_some_and(|last| last.time > self.reach);
        // Packets that do not say when they begin have no index, and those of several files come by time,
        // whatever the file.
        if is_late && head.begin_ns.is_some() && !self.joined {
            self.files[file].remark_late_events();
        }
    }

    /// Notes losses before this packet that no packet reports.
    pub(super) fn note_apart(&mut self, head: &PacketHead) {
        let is_before = |lost: &Lost| lost.range.is_some_and(|(begin, _)| Some(begin) <= head.begin_ns);
        while let Some(lost) = self.apart.pop_front_if(|lost| is_before(lost)) {
            self.pending.push_back(lost);
        }
        self.uncounted = self.pending.len();
    }

    /// What babeltrace2 concludes from the counters of this packet and the one before.
    pub(super) fn note_losses(&mut self, head: &PacketHead) {
        let previous = self.previous;
        let stands_for_counter = |lost: &Lost| {
            lost.kind == LostKind::Events && lost.range.is_some_and(|(_, end)| Some(end) <= head.end_ns)
        };
        let is_declared = self.pending.iter().any(stands_for_counter);
        let events = match (previous.and_then(|previous| previous.discarded), head.discarded) {
            // Before the first packet, or in it: how many of them belong to this recording is unknown. An
            // extract declares when they were lost.
            (None, Some(now)) if now.value > 0 && !is_declared => Some((None, head.begin_ns)),
            (Some(before), Some(now)) => match now.since(before) {
                Some(0) => None,
                count => Some((count, previous.and_then(|previous| previous.end_ns.or(previous.begin_ns)))),
            },
            _ => None,
        };
        // Packets may overlap in time.
        let until = |begin: Option<Timestamp>, end: Option<Timestamp>| match begin.zip(end) {
            Some((begin, end)) if begin > end => Some((head.begin_ns.unwrap_or(end).min(end), begin)),
            range => range,
        };
        if let Some((count, begin)) = events {
            self.note(LostKind::Events, count, until(begin, head.end_ns));
        }
        let Some(previous) = previous else { return };
        let (Some(before), Some(now)) = (previous.sequence, head.sequence) else { return };
        let missing = match now.since(before) {
            Some(0 | 1) => return,
            Some(step) => Some(step - 1),
            None => None,
        };
        let end = previous.end_ns.or(previous.begin_ns);
        self.note(LostKind::Packets, missing, until(end, head.begin_ns));
    }

    fn note(&mut self, kind: LostKind, count: Option<u64>, range: Option<(Timestamp, Timestamp)>) {
        self.pending.push_back(Lost { kind, count, range });
    }
}
