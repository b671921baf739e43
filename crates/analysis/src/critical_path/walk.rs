//! Goes back in time over what all did.

use super::lines::{By, LwpDoing, Slot, UserDoing};
use super::{CriticalPaths, Step, What, Why};
use crate::names::Names;
use crate::who::Who;
use std::collections::HashMap;
use std::sync::Arc;
use tracewing_trace::super_trace::{Doing, Mode, Name};

/// So often the path goes from one to another without time passing; more is a circle, which only false stamps make.
const CIRCLE: usize = 64;

/// Somebody whom the path can follow, by serial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Actor {
    /// With the user thread for which it acts.
    Lwp(usize, Option<usize>),
    UserThread(usize),
}

/// Whom the path follows, down to when, and why.
#[derive(Debug, Clone)]
struct Frame {
    actor: Actor,
    until: i64,
    why: Why,
    whom: Option<Actor>,
}

pub(super) struct Walk<'l> {
    lines: &'l CriticalPaths,
    cpus: HashMap<u32, Vec<Slot>>,
    names: &'l Names,
    /// Those that were met.
    known: HashMap<Actor, Arc<Who>>,
    /// Where the walk has arrived.
    time: i64,
    /// How often it has gone on to somebody else there.
    turns: usize,
    /// Whom it follows, each for the sake of the one before.
    frames: Vec<Frame>,
    /// The latest first.
    steps: Vec<Step>,
}

impl<'l> Walk<'l> {
    pub fn new(lines: &'l CriticalPaths, names: &'l Names) -> Self {
        let (known, frames, steps) = (HashMap::new(), Vec::new(), Vec::new());
        Walk { lines, cpus: lines.cpus(), names, known, time: 0, turns: 0, frames, steps }
    }

    /// The path of `actor` between two times.
    pub fn back(mut self, actor: Actor, from: i64, to: i64) -> Vec<Step> {
        self.time = to;
        self.frames.push(Frame { actor, until: from, why: Why::Itself, whom: None });
        while let Some(frame) = self.frames.last().cloned() {
            if self.time <= frame.until {
                self.frames.pop();
                continue;
            }
            match frame.actor {
                Actor::Lwp(serial, _) => self.follow_lwp(frame, serial),
                Actor::UserThread(serial) => self.follow_user_thread(frame, serial),
            }
        }
        self.steps.reverse();
        self.steps
    }

    fn follow_lwp(&mut self, frame: Frame, serial: usize) {
        let time = self.time;
        let line = self.lines.lwps.get(&serial);
        let Some((line, (place, stretch))) = line.and_then(|line| Some((line, line.before(time)?))) else {
            // Nothing is known before its creation; its creator woke it first.
            let creator = line.and_then(|line| line.wakes.first()).map(|(_, by)| *by);
            return self.before_creation(frame, creator);
        };
        if stretch.to < time {
            return self.own(frame, stretch.to, None, What::Unknown);
        }
        let LwpDoing { doing, user_thread } = stretch.doing;
        let frame = Frame { actor: Actor::Lwp(serial, user_thread), ..frame };
        match doing {
            Doing::Running { cpu, mode: Mode::Interrupt(by) } => {
                let at = (frame.until, stretch.from, Some(cpu));
                self.step(at, self.interrupt(by), What::Interrupt, Why::Interrupts, Some(frame.actor));
            }
            Doing::Running { cpu, mode } => self.own(frame, stretch.from, Some(cpu), self.what(mode)),
            Doing::Runnable { .. } => {
                let next = line.stretches.get(place + 1).map(|next| next.doing.doing);
                match next {
                    Some(Doing::Running { cpu, .. }) if stretch.to == line.stretches[place + 1].from => {
                        self.others_on(cpu, frame.until.max(stretch.from), frame.actor);
                    }
                    _ => self.own(frame, stretch.from, None, What::Ready),
                }
            }
            Doing::Blocked { on } => {
                let woken = line.woken(stretch.from, time).filter(|_| stretch.to == time);
                self.blocked(frame, stretch.from, on, woken);
            }
            Doing::Unknown | Doing::Nested => self.own(frame, stretch.from, None, What::Unknown),
        }
    }

    fn follow_user_thread(&mut self, frame: Frame, serial: usize) {
        let time = self.time;
        let line = self.lines.user_threads.get(&serial);
        let Some((line, (place, stretch))) = line.and_then(|line| Some((line, line.before(time)?))) else {
            return self.before_creation(frame, line.and_then(|line| line.created));
        };
        if stretch.to < time {
            return self.own(frame, stretch.to, None, What::Unknown);
        }
        let until = frame.until.max(stretch.from);
        match stretch.doing {
            UserDoing::On(lwp) => {
                let actor = Actor::Lwp(lwp, Some(serial));
                self.go(frame.clone(), Frame { actor, until, ..frame }, What::Running);
            }
            UserDoing::Off(Doing::Runnable { .. }) => {
                let next = line.stretches.get(place + 1).filter(|next| next.from == stretch.to);
                match next.map(|next| next.doing) {
                    Some(UserDoing::On(lwp)) => {
                        let whom = Some(frame.actor);
                        let actor = Actor::Lwp(lwp, None);
                        let next = Frame { actor, until, why: Why::HasThread, whom };
                        self.go(frame, next, What::Ready);
                    }
                    _ => self.own(frame, stretch.from, None, What::Ready),
                }
            }
            UserDoing::Off(Doing::Blocked { on }) => {
                let woken = line.woken(stretch.from, time).filter(|_| stretch.to == time);
                self.blocked(frame, stretch.from, on, woken);
            }
            UserDoing::Off(Doing::Nested) => {
                match place.checked_sub(1).map(|place| line.stretches[place].doing) {
                    Some(UserDoing::On(lwp)) => {
                        let actor = Actor::Lwp(lwp, None);
                        self.go(frame.clone(), Frame { actor, until, ..frame }, What::Running);
                    }
                    _ => self.own(frame, stretch.from, None, What::Unknown),
                }
            }
            UserDoing::Off(Doing::Unknown | Doing::Running { .. }) => {
                self.own(frame, stretch.from, None, What::Unknown);
            }
        }
    }

    /// It was blocked until now.
    fn blocked(&mut self, frame: Frame, since: i64, on: Option<Name>, woken: Option<By>) {
        let what = What::Blocked(on.map(|on| self.names.get(on).to_owned()));
        let (until, whom) = (frame.until.max(since), Some(frame.actor));
        let next = |actor, why| Frame { actor, until, why, whom };
        match woken {
            Some(By::Lwp(lwp)) => self.go(frame, next(Actor::Lwp(lwp, None), Why::Wakes), what),
            Some(By::UserThread(thread)) => self.go(frame, next(Actor::UserThread(thread), Why::Wakes), what),
            // A softirq that a thread raised, as its packets over the loopback device do, is that thread's doing.
            Some(By::Via(softirq, lwp)) => {
                let why = Why::WakesVia(self.names.get(softirq).into());
                self.go(frame, next(Actor::Lwp(lwp, None), why), what);
            }
            Some(By::Interrupt(name)) => {
                let who = self.interrupt(name);
                self.step((frame.until, since, None), who, what, Why::Wakes, whom);
            }
            Some(By::Unknown) | None => self.own(frame, since, None, what),
        }
    }

    /// Nothing is known of it before now: the path goes on with its creator.
    fn before_creation(&mut self, frame: Frame, creator: Option<By>) {
        let actor = match creator {
            Some(By::Lwp(lwp)) => Actor::Lwp(lwp, None),
            Some(By::UserThread(thread)) => Actor::UserThread(thread),
            Some(By::Interrupt(_) | By::Via(..) | By::Unknown) | None => {
                return self.own(frame, i64::MIN, None, What::Unknown);
            }
        };
        let next = Frame { actor, until: frame.until, why: Why::Creates, whom: Some(frame.actor) };
        self.go(frame, next, What::Unknown);
    }

    /// Goes on with somebody else; in a circle, the time up to when it would be followed is `what` of the first.
    fn go(&mut self, frame: Frame, next: Frame, what: What) {
        self.turns += 1;
        match self.turns <= CIRCLE {
            true => self.frames.push(next),
            false => self.own(frame, next.until, None, what),
        }
    }

    /// Whoever had a CPU until now had it while `whom` waited for it, which it did since `since`.
    fn others_on(&mut self, cpu: u32, since: i64, whom: Actor) {
        let slots = self.cpus.get(&cpu).map_or(&[][..], Vec::as_slice);
        let slot =
            slots.partition_point(|slot| slot.from < self.time).checked_sub(1).map(|place| slots[place]);
        let (from, who, what) = match slot {
            Some(Slot { from, to, lwp, place }) if to >= self.time => {
                let LwpDoing { doing, user_thread } = self.lines.lwps[&lwp].stretches[place].doing;
                match doing {
                    Doing::Running { mode: Mode::Interrupt(by), .. } => {
                        (from, self.interrupt(by), What::Interrupt)
                    }
                    Doing::Running { mode, .. } => {
                        (from, self.who(Actor::Lwp(lwp, user_thread)), self.what(mode))
                    }
                    _ => (from, Arc::default(), What::Unknown),
                }
            }
            slot => (slot.map_or(i64::MIN, |slot| slot.to), Arc::default(), What::Unknown),
        };
        self.step((since, from, Some(cpu)), who, what, Why::HasCpu, Some(whom));
    }

    /// The time since `from` is the followed one's own.
    fn own(&mut self, frame: Frame, from: i64, cpu: Option<u32>, what: What) {
        let who = self.who(frame.actor);
        self.step((frame.until, from, cpu), who, what, frame.why, frame.whom);
    }

    /// Adds a step `at` a CPU from the second time, but not from before the first, to now, and goes there.
    fn step(
        &mut self,
        at: (i64, i64, Option<u32>),
        who: Arc<Who>,
        what: What,
        why: Why,
        whom: Option<Actor>,
    ) {
        let (until, from, cpu) = at;
        let (from_ns, whom) = (from.max(until), whom.map(|actor| self.who(actor)));
        let step = Step { from_ns, to_ns: self.time, cpu, who, what, why, whom };
        (self.time, self.turns) = (from_ns, 0);
        match self.steps.last_mut() {
            Some(last) if last.continues(&step) => last.from_ns = from_ns,
            _ => self.steps.push(step),
        }
    }

    fn what(&self, mode: Mode) -> What {
        match mode {
            Mode::User => What::User,
            Mode::SystemCall(call) => What::SystemCall(self.names.get(call).to_owned()),
            Mode::Interrupt(_) => What::Interrupt,
            Mode::Unknown => What::Running,
        }
    }

    fn interrupt(&self, name: Option<Name>) -> Arc<Who> {
        Who::interrupt(name.map_or("", |name| self.names.get(name))).into()
    }

    pub fn who(&mut self, actor: Actor) -> Arc<Who> {
        let lines = self.lines;
        self.known.entry(actor).or_insert_with(|| named(lines, actor).into()).clone()
    }
}

fn named(lines: &CriticalPaths, actor: Actor) -> Who {
    let (lwp, thread) = match actor {
        Actor::Lwp(lwp, thread) => (lines.lwps.get(&lwp), thread),
        Actor::UserThread(thread) => (None, Some(thread)),
    };
    let thread = thread.and_then(|thread| lines.user_threads.get(&thread));
    let name = |name: Option<&String>| name.cloned().unwrap_or_default();
    Who {
        process: thread.and_then(|thread| thread.process).or(lwp.and_then(|lwp| lwp.process)),
        tid: lwp.and_then(|lwp| i32::try_from(lwp.number).ok()),
        name: name(lwp.map(|lwp| &lwp.name)),
        user_thread: thread.map(|thread| thread.number),
        user_thread_name: name(thread.map(|thread| &thread.name)),
        interrupt: None,
    }
}
