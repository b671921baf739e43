//! Events, losses, and what the state dump says of threads.

use super::Timeline;
use crate::change::Change;
use tracewing_analysis::profile::Chains;
use tracewing_analysis::{Analysis, Calls, Input, Loss, Party, Seen};
use tracewing_timeline::StateId;
use tracewing_trace::EventRef;
use tracewing_trace::super_trace::{self, Kind, Lwp, Part, Scope};
use tracewing_units::{Cpu, Timestamp};

impl Analysis for Timeline {
    const EARLIER: bool = true;

    const CONTINUES: bool = true;

    fn can_take(&self, parts: &[Part]) -> bool {
        Chains::has_part(parts) && Calls::has_part(parts)
    }

    fn take(&mut self, parts: &[Part]) -> bool {
        let has_all = self.chains.take_part(parts) && self.calls.take_part(parts);
        if !has_all {
            self.chains = Chains::default();
        }
        has_all
    }

    #[inline(always)]
    fn input(&mut self, input: Input<'_>) {
        match input {
            Input::Explained(event) => self.explained(event),
            Input::Earlier(seen) => self.calls.earlier(seen),
            Input::Event(seen) => self.event(seen),
            Input::Dumped { tid, process, name } => self.states.dumped(tid, process, name),
            Input::LeftOut(super_trace::Change::LwpEnds { lwp }) => self.other_ends(lwp),
            Input::LossOver { time } => self.loss_over(time),
            Input::Lost(lost) => self.lost(lost),
            _ => {}
        }
    }

    fn is_done(&self) -> bool {
        self.states.has_failed() || self.states.sink.has_failed()
    }
}

impl Timeline {
    fn show(&mut self, seen: &Seen<'_>, time: Timestamp) {
        let Some(of) = self.place(&seen.place) else { return };
        let name = self.event_name(seen);
        self.states.sink.touch(of, time);
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        self.encoder.fields(seen.event, &mut fields);
        self.states.sink.push(Change::Event { of, name, fields: &fields }, time);
        self.fields = fields;
    }

    /// The CPU has no running LWP from `time` on.
    fn idle(&mut self, cpu: Cpu, time: Timestamp) {
        self.states.cpu_track(cpu);
        self.idle_since.insert(cpu, time);
    }

    /// The CPU runs an LWP from `time` on.
    fn busy(&mut self, cpu: Cpu, time: Timestamp) {
        let of = self.states.cpu_track(cpu);
        if let Some(since) = self.idle_since.remove(&cpu) {
            self.states.sink.did(of, StateId::IDLE.0, false, since, time);
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
            let of = self.states.cpu_track(cpu);
            let text = match lost.events {
                Some(events) => format!("{events} lost events"),
                None => "lost events".to_owned(),
            };
            let name = self.named_event(&text);
            let lines = &mut self.states.sink;
            lines.touch(of, lost.from);
            lines.push(Change::Event { of, name, fields: &[] }, lost.from);
        }
        let Scope::Kernel(lossy) = lost.scope else { return };
        self.idle_since.retain(|cpu, _| lossy.is_some_and(|lossy| lossy != *cpu));
    }
}
