//! Events, losses, and what the state dump says of threads.

use super::{CpuLine, Timeline};
use crate::change::Change;
use crate::model::{Kind as What, state};
use tracewing_analysis::{Analysis, Input, Loss, Party, Seen};
use tracewing_trace::EventRef;
use tracewing_trace::super_trace::{self, Kind, Lwp, Scope};
use tracewing_units::{Cpu, Pid, Tid, Timestamp};

impl Analysis for Timeline {
    const EARLIER: bool = true;

    #[inline(always)]
    fn input(&mut self, input: Input<'_>) {
        match input {
            Input::Explained(event) => self.explained(event),
            Input::Earlier(seen) => self.calls.earlier(seen),
            Input::Event(seen) => self.event(seen),
            Input::Dumped { tid, process, name } => self.dumped(tid, process, name),
            Input::LeftOut(super_trace::Change::LwpEnds { lwp }) => self.other_ends(lwp),
            Input::LossOver { time } => self.loss_over(time),
            Input::Lost(lost) => self.lost(lost),
            _ => {}
        }
    }
}

impl Timeline {
    fn show(&mut self, seen: &Seen<'_>, time: Timestamp) {
        let Some(of) = self.place(&seen.place) else { return };
        let name = self.event_name(seen);
        self.touch(of, time);
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        self.encoder.fields(seen.event, &mut fields);
        self.push(Change::Event { of, name, fields: &fields }, time);
        self.fields = fields;
    }

    /// The CPU has no running LWP from `time` on.
    fn idle(&mut self, cpu: Cpu, time: Timestamp) {
        self.cpu(cpu).idle_since = Some(time);
    }

    /// The CPU runs an LWP from `time` on.
    fn busy(&mut self, cpu: Cpu, time: Timestamp) {
        let CpuLine { container, idle_since } = self.cpu(cpu);
        if let (container, Some(since)) = (*container, idle_since.take()) {
            self.did(container, state::IDLE, false, since, time);
        }
    }

    fn explained(&mut self, event: &EventRef<'_>) {
        self.chains.explained(event);
    }

    fn event(&mut self, seen: &Seen<'_>) {
        let mut calls = Vec::new();
        let is_call = self.calls.event(seen, &mut |thread, time, call| calls.push((thread, time, call)));
        calls.into_iter().for_each(|(thread, time, call)| self.call(thread, time, call));
        if is_call {
            return;
        }
        let Some(activity) = seen.activity else { return };
        if let Some(looked) = self.chains.event(seen) {
            self.looked(seen, activity.time, looked);
            return;
        }
        let mut uses = Vec::new();
        self.lock_uses.event(seen, &mut |lock| uses.push(lock));
        uses.iter().for_each(|lock| self.lock_use(lock));
        match (activity.kind, activity.cpu) {
            (Kind::User | Kind::Waits { .. } | Kind::Kernel | Kind::PageFault { .. }, _) => {
                self.show(seen, activity.time);
            }
            (Kind::Switch { prev, next, .. }, Some(cpu)) => {
                if prev.is_idle() {
                    self.busy(cpu, activity.time);
                }
                if next.is_idle() {
                    self.idle(cpu, activity.time);
                }
            }
            _ => {}
        }
    }

    fn dumped(&mut self, tid: Tid, process: Pid, name: &[u8]) {
        // Numbers are reused: the last container of this number is meant. The end of a live thread is
        // reported separately.
        let dumped = What::Lwp { tid };
        if let Some(container) = self.model.containers.iter_mut().rev().find(|known| known.kind == dumped) {
            container.process.get_or_insert(process);
            if container.own_name.is_empty() {
                container.own_name = String::from_utf8_lossy(name).into_owned();
            }
        }
    }

    fn other_ends(&mut self, lwp: &Lwp) {
        self.lock_user_ends(Party::Thread(lwp.tid), lwp.reported_to());
    }

    fn loss_over(&mut self, time: Timestamp) {
        self.lock_uses.loss_over();
        self.calls.loss_over(time);
    }

    fn lost(&mut self, lost: &Loss) {
        self.lock_uses.lost(lost);
        if lost.tears_programs() {
            self.calls.lost(lost.from);
        }
        if let Some(cpu) = lost.cpu {
            let of = self.cpu(cpu).container;
            let text = match lost.events {
                Some(events) => format!("{events} lost events"),
                None => "lost events".to_owned(),
            };
            let name = self.named_event(&text);
            self.touch(of, lost.from);
            self.push(Change::Event { of, name, fields: &[] }, lost.from);
        }
        let Scope::Kernel(lossy) = lost.scope else { return };
        for (number, cpu) in &mut self.cpus {
            if lossy.is_none_or(|lossy| lossy == *number) {
                cpu.idle_since = None;
            }
        }
    }
}
