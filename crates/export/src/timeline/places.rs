//! Where an event is shown, and under which name.

use super::Timeline;
use crate::model::{ContainerId, NameId, Use, at};
use tracewing_analysis::Seen;
use tracewing_trace::super_trace::{Carried, Mode, Place};

impl Timeline {
    /// The container that an event is shown in.
    pub(super) fn place(&mut self, place: &Place<'_>) -> Option<ContainerId> {
        let task = place.thread_serial.and_then(|serial| self.states.known_task(serial));
        match (place.mode, place.thread, place.lwp.zip(place.tid)) {
            (Mode::Interrupt(_), ..) => {}
            (_, Carried::Thread { .. }, _) if task.is_some() => return task,
            (_, _, Some((serial, tid))) => return Some(self.states.lwp_track(serial, tid)),
            _ => {}
        }
        place.cpu.map(|cpu| self.states.cpu_track(cpu))
    }

    pub(super) fn event_name(&mut self, seen: &Seen<'_>) -> NameId {
        let decoded = seen.event.decoded();
        let (stream, class) = (seen.event.stream_index(), decoded.class_index());
        if let Some(Some(known)) = self.events.get(stream).and_then(|classes| classes.get(class)) {
            return *known;
        }
        let name = self.named_event(decoded.class().name.as_deref().unwrap_or("event"));
        *at(at(&mut self.events, stream), class) = Some(name);
        name
    }

    pub(super) fn named_event(&mut self, text: &str) -> NameId {
        if let Some(known) = self.event_names.get(text) {
            return *known;
        }
        let new = self.states.sink.model.names.add(text.to_owned(), Use::Event);
        self.event_names.insert(text.to_owned(), new);
        new
    }
}
