//! The containers of the timeline, the names of its events, and where an event is shown.

use super::{CpuLine, Line, Timeline};
use crate::model::{Container, ContainerId, Kind as What, NameId, Use, at};
use tracewing_analysis::Seen;
use tracewing_timeline::Undecided;
use tracewing_trace::super_trace::{Carried, LwpSerial, Mode, Place, UserThread};
use tracewing_units::{Cpu, Tid, Timestamp};

impl Timeline {
    pub(super) fn container(&mut self, kind: What) -> ContainerId {
        let label = self.model.names.add(String::new(), Use::Container);
        self.model.containers.push(Container::new(kind, label));
        self.lines.push(Line {
            state: None,
            to: Timestamp::MIN,
            begin: Timestamp::MAX,
            end: Timestamp::MIN,
            woken: None,
        });
        (self.lines.len() - 1) as ContainerId
    }

    pub(super) fn lwp_container(&mut self, serial: LwpSerial, tid: Tid) -> ContainerId {
        if let Some(Some(known)) = self.lwps.get(serial.0) {
            return *known;
        }
        let new = self.container(What::Lwp { tid });
        *at(&mut self.lwps, serial.0) = Some(new);
        new
    }

    pub(super) fn task_container(&mut self, thread: &UserThread) -> ContainerId {
        if let Some(Some(known)) = self.tasks.get(thread.serial.0) {
            return *known;
        }
        let new = self.container(What::Task { number: thread.id });
        *at(&mut self.tasks, thread.serial.0) = Some(new);
        new
    }

    pub(super) fn cpu(&mut self, number: Cpu) -> &mut CpuLine {
        if !self.cpus.contains_key(&number) {
            let container = self.container(What::Cpu { number });
            self.cpus.insert(number, CpuLine { container, idle_since: None });
        }
        self.cpus.get_mut(&number).expect("inserted just now")
    }

    /// The container that an event is shown in.
    pub(super) fn place(&mut self, place: &Place<'_>) -> Option<ContainerId> {
        let task = place.thread_serial.and_then(|serial| *self.tasks.get(serial.0)?);
        match (place.mode, place.thread, place.lwp.zip(place.tid)) {
            (Mode::Interrupt(_), ..) => {}
            (_, Carried::Thread { .. }, _) if task.is_some() => return task,
            (_, _, Some((serial, tid))) => return Some(self.lwp_container(serial, tid)),
            _ => {}
        }
        place.cpu.map(|cpu| self.cpu(cpu).container)
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
        let new = self.model.names.add(text.to_owned(), Use::Event);
        self.event_names.insert(text.to_owned(), new);
        new
    }

    pub(super) fn undecided(&mut self, serial: LwpSerial) -> &mut Undecided {
        at(&mut self.undecided, serial.0).get_or_insert_with(|| Undecided::new(&self.folder))
    }

    pub(super) fn is_task(&self, container: ContainerId) -> bool {
        matches!(self.model.containers[container as usize].kind, What::Task { .. })
    }
}
