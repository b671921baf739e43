//! Hand-made events of the super-trace, and a fold that notes everything it is given.

#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeMap;
use tracewing_trace::super_trace::TaskState;
use tracewing_trace::super_trace::{
    Activity, Change, Context, Doing, Fold, Interrupt, Kind, Lwp, Mode, Name, Place, SuperTrace, SwitchCause,
    UserThread, UserThreadKind as User,
};
use tracewing_units::{Cpu, Task, Tid, Timestamp};

pub const SLEEPS: i64 = 1;
pub const RUNNABLE: i64 = 0x100;
pub const DEAD: i64 = 0x20;
pub const FUTEX: Name = Name(0);
pub const READ: Name = Name(1);
pub const MUTEX: Name = Name(2);
pub const IRQ: Name = Name(9);

pub type Event = (i64, u32, i32, Kind<'static>);

/// The intervals of a state.
pub type Spans = Vec<(i64, i64, Doing)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    Lwp(i32),
    Thread(u64),
}

/// Notes every call; what an LWP did for a user thread is noted for both.
#[derive(Default)]
pub struct Notes {
    pub spans: BTreeMap<Actor, Spans>,
    pub pending: BTreeMap<Tid, Spans>,
    /// Polls, wake-ups, changes of LWP, changes of CPU.
    pub counts: BTreeMap<u64, [u64; 4]>,
}

impl Notes {
    pub fn add(&mut self, actor: Actor, doing: Doing, from: i64, to: i64) {
        assert!(from <= to);
        let spans = self.spans.entry(actor).or_default();
        match spans.last_mut() {
            _ if from == to => {}
            Some(last) if last.1 == from && last.2 == doing => last.1 = to,
            last => {
                assert!(
                    last.is_none_or(|last| last.1 == from),
                    "{actor:?} has a gap or does two things before {from}"
                );
                spans.push((from, to, doing));
            }
        }
    }

    pub fn of(&self, actor: Actor) -> &Spans {
        &self.spans[&actor]
    }

    pub fn at(&self, actor: Actor, time: i64) -> Option<Doing> {
        let spans = self.spans.get(&actor)?;
        spans.iter().find(|span| (span.0..span.1).contains(&time)).map(|span| span.2)
    }

    pub fn unknown(&self) -> i64 {
        self.spans.values().flatten().filter(|span| is_unknown(span.2)).map(|span| span.1 - span.0).sum()
    }
}

pub fn is_unknown(doing: Doing) -> bool {
    matches!(doing, Doing::Unknown | Doing::Running { mode: Mode::Unknown, .. } | Doing::Blocked { on: None })
}

impl Fold for Notes {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpDid { lwp, doing, from, to } => self.lwp(lwp, doing, from.as_ns(), to.as_ns()),
            Change::LwpRan { lwp, thread } => self.ran(lwp, thread),
            Change::UserThreadDid { thread, doing, from, to } => {
                self.user_thread(thread, doing, from.as_ns(), to.as_ns());
            }
            Change::UserThreadEnds { thread } => self.user_thread_ends(thread),
            _ => {}
        }
    }
}

impl Notes {
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: i64, to: i64) {
        self.add(Actor::Lwp(lwp.tid.0), doing, from, to);
        if lwp.runs_user_thread() {
            self.pending.entry(lwp.tid).or_default().push((from, to, doing));
        }
    }

    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>) {
        for (from, to, doing) in self.pending.remove(&lwp.tid).unwrap_or_default() {
            thread.into_iter().for_each(|thread| self.add(Actor::Thread(thread.id.0), doing, from, to));
        }
    }

    fn user_thread(&mut self, thread: &UserThread, doing: Doing, from: i64, to: i64) {
        self.add(Actor::Thread(thread.id.0), doing, from, to);
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        let counts = [thread.polls, thread.wakeups, thread.lwp_migrations, thread.cpu_migrations];
        self.counts.insert(thread.id.0, counts);
    }
}

/// The event as the super-trace takes it.
pub fn activity(&(time, cpu, tid, kind): &Event) -> Activity<'static> {
    let time = Timestamp::from_ns(time);
    Activity {
        time,
        cpu: Some(Cpu(cpu)),
        tid: Some(Tid(tid)),
        process: None,
        context: Context::Unknown,
        kind,
    }
}

pub fn fold(events: &[Event]) -> Notes {
    let mut notes = Notes::default();
    let mut state = SuperTrace::default();
    events.iter().for_each(|event| state.event(&activity(event), &mut notes));
    state.finish(&mut notes);
    assert!(notes.pending.is_empty(), "all that LWPs did for user threads is settled");
    notes
}

/// Where the event belongs that follows these.
pub fn place<R>(events: &[Event], event: Event, look: impl FnOnce(Place<'_>) -> R) -> R {
    let mut state = SuperTrace::default();
    events.iter().for_each(|event| state.event(&activity(event), &mut ()));
    look(state.place(&activity(&event)))
}

pub fn switch(prev: i32, prev_state: i64, next: i32) -> Kind<'static> {
    Kind::Switch {
        prev: Tid(prev),
        prev_name: b"prev",
        prev_state: TaskState(prev_state),
        next: Tid(next),
        next_name: b"next",
    }
}

pub fn takes(kind: Interrupt) -> Kind<'static> {
    Kind::InterruptEntry { kind, name: IRQ }
}

pub fn user_switch(prev: u64, next: u64, cause: SwitchCause) -> Kind<'static> {
    Kind::UserThread(User::Switch { prev: Task(prev), next: Task(next), cause })
}
