//! Follows a path backwards through the stored states.

use super::past::{LwpDoing, Past, Slot};
use super::record::{By, Stretch, UserDoing};
use super::{CriticalPath, Followed, STEPS, Step, What, Why};
use crate::actor::Actor;
use crate::names::Names;
use crate::times::grow;
use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, Read, Seek};
use std::sync::Arc;
use tracewing_trace::super_trace::{Doing, LwpSerial, Mode, Name, TaskSerial};
use tracewing_units::{Cpu, Duration, Task, Tid, Timestamp};

/// Maximum number of changes of thread without time passing; more are a cycle, which only wrong stamps can
/// cause.
const CIRCLE: usize = 64;

/// Maximum number of remembered identities.
const KNOWN: usize = 1 << 16;

/// A followed thread, down to which time, and why.
#[derive(Debug, Clone)]
struct Frame {
    followed: Followed,
    until: Timestamp,
    why: Why,
    waiter: Option<Arc<Actor>>,
}

pub(super) struct Walk<'n, F> {
    past: Past<F>,
    names: &'n Names,
    /// Identities of the threads seen so far.
    known: HashMap<Followed, Arc<Actor>>,
    /// Where the walk has arrived.
    time: Timestamp,
    /// Number of changes to another thread at this time.
    turns: usize,
    /// The followed threads, each because of the previous one.
    frames: Vec<Frame>,
    /// The step that may continue, and the total time of all later ones.
    steps: Steps,
}

impl<'n, F: Read + Seek> Walk<'n, F> {
    pub(super) fn new(past: Past<F>, names: &'n Names) -> Self {
        let (known, frames, steps) = (HashMap::new(), Vec::new(), Steps::default());
        Walk { past, names, known, time: Timestamp::ORIGIN, turns: 0, frames, steps }
    }

    /// The path of `followed` between two times. `proceed` is asked now and then.
    ///
    /// # Errors
    /// The tape cannot be read, or `proceed` has ended it.
    pub(super) fn back(
        mut self,
        followed: Followed,
        (from, to): (Timestamp, Timestamp),
        proceed: &mut dyn FnMut() -> bool,
    ) -> io::Result<CriticalPath> {
        self.time = to;
        self.past.go_to(to, proceed)?;
        let target = self.actor(followed);
        self.frames.push(Frame { followed, until: from, why: Why::Itself, waiter: None });
        while let Some(frame) = self.frames.last().cloned() {
            if self.time <= frame.until {
                self.frames.pop();
                continue;
            }
            self.past.go_to(self.time, proceed)?;
            match frame.followed {
                Followed::Lwp(serial, _) => self.follow_lwp(frame, serial),
                Followed::UserThread(serial) => self.follow_user_thread(frame, serial),
            }
        }
        Ok(self.steps.finish(target, from, to))
    }

    fn follow_lwp(&mut self, frame: Frame, serial: LwpSerial) {
        let time = self.time;
        let line = self.past.lwps.at(serial);
        let Some((stretch, next)) = line.before(time) else {
            return match line.has_begun {
                // Nothing is known before its creation; its creator woke it first.
                true => {
                    let creator = line.wake.map(|(_, by)| by);
                    self.before_creation(frame, creator);
                }
                false => self.gap(frame, None),
            };
        };
        let Stretch { from, to, doing: LwpDoing { doing, user_thread } } = stretch;
        if to < time {
            return self.gap(frame, Some(to));
        }
        let woken = line.woken(from, time).filter(|_| to == time);
        let frame = Frame { followed: Followed::Lwp(serial, user_thread), ..frame };
        match doing {
            Doing::Running { cpu, mode: Mode::Interrupt(by) } => {
                let (at, waiter) = ((frame.until, from, Some(cpu)), self.actor(frame.followed));
                self.step(at, self.interrupt(by), What::Interrupt, Why::Interrupts, Some(waiter));
            }
            Doing::Running { cpu, mode } => self.own(frame, from, Some(cpu), self.what(mode)),
            Doing::Runnable { .. } => match next {
                Some(Stretch {
                    from: begin,
                    doing: LwpDoing { doing: Doing::Running { cpu, .. }, .. },
                    ..
                }) if begin == to => {
                    self.others_on(cpu, frame.until.max(from), frame.followed);
                }
                _ => self.own(frame, from, None, What::Ready),
            },
            Doing::Blocked { on } => self.blocked(frame, from, on, woken),
            Doing::Unknown | Doing::Nested => self.own(frame, from, None, What::Unknown),
        }
    }

    fn follow_user_thread(&mut self, frame: Frame, serial: TaskSerial) {
        let time = self.time;
        let line = self.past.user_threads.at(serial);
        let Some((stretch, next)) = line.before(time) else {
            return match line.has_begun {
                true => {
                    let creator = line.created;
                    self.before_creation(frame, creator);
                }
                false => self.gap(frame, None),
            };
        };
        let Stretch { from, to, doing } = stretch;
        if to < time {
            return self.gap(frame, Some(to));
        }
        let woken = line.woken(from, time).filter(|_| to == time);
        let until = frame.until.max(from);
        match doing {
            UserDoing::On(lwp) => {
                let followed = Followed::Lwp(LwpSerial(lwp.0), Some(serial));
                self.go(frame.clone(), Frame { followed, until, ..frame }, What::Running);
            }
            UserDoing::Nested(lwp) => {
                let followed = Followed::Lwp(LwpSerial(lwp.0), None);
                self.go(frame.clone(), Frame { followed, until, ..frame }, What::Running);
            }
            UserDoing::Off(Doing::Runnable { .. }) => match next {
                Some(Stretch { from: begin, doing: UserDoing::On(lwp), .. }) if begin == to => {
                    let (followed, waiter) =
                        (Followed::Lwp(LwpSerial(lwp.0), None), Some(self.actor(frame.followed)));
                    let next = Frame { followed, until, why: Why::HasThread, waiter };
                    self.go(frame, next, What::Ready);
                }
                _ => self.own(frame, from, None, What::Ready),
            },
            UserDoing::Off(Doing::Blocked { on }) => self.blocked(frame, from, on, woken),
            UserDoing::Off(_) => self.own(frame, from, None, What::Unknown),
        }
    }

    /// It was blocked until now.
    fn blocked(&mut self, frame: Frame, since: Timestamp, on: Option<Name>, woken: Option<By>) {
        let what = What::Blocked(on.map(|on| self.names.get(on).into()));
        let (until, waiter) = (frame.until.max(since), Some(self.actor(frame.followed)));
        let next = |followed, why| Frame { followed, until, why, waiter: waiter.clone() };
        match woken {
            Some(By::Lwp(lwp)) => self.go(frame, next(Followed::Lwp(lwp, None), Why::Wakes), what),
            Some(By::UserThread(thread)) => {
                self.go(frame, next(Followed::UserThread(thread), Why::Wakes), what)
            }
            // A softirq that a thread raised, as its packets over the loopback device do, is that thread's
            // doing.
            Some(By::Via(softirq, lwp)) => {
                let why = Why::WakesVia(self.names.get(softirq).into());
                self.go(frame, next(Followed::Lwp(LwpSerial(lwp.0), None), why), what);
            }
            Some(By::Interrupt(name)) => {
                let actor = self.interrupt(name);
                self.step((frame.until, since, None), actor, what, Why::Wakes, waiter);
            }
            Some(By::Unknown) | None => self.own(frame, since, None, what),
        }
    }

    /// It is unknown before this time: the path continues with its creator.
    fn before_creation(&mut self, frame: Frame, creator: Option<By>) {
        let followed = match creator {
            Some(By::Lwp(lwp)) => Followed::Lwp(lwp, None),
            Some(By::UserThread(thread)) => Followed::UserThread(thread),
            Some(By::Interrupt(_) | By::Via(..) | By::Unknown) | None => {
                return self.own(frame, Timestamp::MIN, None, What::Unknown);
            }
        };
        let waiter = Some(self.actor(frame.followed));
        let next = Frame { followed, until: frame.until, why: Why::Creates, waiter };
        self.go(frame, next, What::Unknown);
    }

    /// Nothing is known of it between now and `known`, or what has not been read yet.
    fn gap(&mut self, frame: Frame, known: Option<Timestamp>) {
        let from = self.past.gap(known);
        self.own(frame, from, None, What::Unknown);
    }

    /// Continues with another thread; in a cycle, the time is attributed to the first one as `what`.
    fn go(&mut self, frame: Frame, next: Frame, what: What) {
        self.turns += 1;
        match self.turns <= CIRCLE {
            true => self.frames.push(next),
            false => self.own(frame, next.until, None, what),
        }
    }

    /// Attributes the time in which `waiter` waited for a CPU, from `since` until now, to the threads that
    /// had it.
    fn others_on(&mut self, cpu: Cpu, since: Timestamp, waiter: Followed) {
        let (from, actor, what) = match self.past.on_cpu(cpu, self.time) {
            Some(Stretch { from, to, doing: Slot { lwp, user_thread, mode } }) if to >= self.time => {
                match mode {
                    Mode::Interrupt(by) => (from, self.interrupt(by), What::Interrupt),
                    mode => (from, self.actor(Followed::Lwp(lwp, user_thread)), self.what(mode)),
                }
            }
            slot => (self.past.gap(slot.map(|slot| slot.to)), Arc::default(), What::Unknown),
        };
        let waiter = self.actor(waiter);
        self.step((since, from, Some(cpu)), actor, what, Why::HasCpu, Some(waiter));
    }

    /// The time since `from` is the followed one's own.
    fn own(&mut self, frame: Frame, from: Timestamp, cpu: Option<Cpu>, what: What) {
        let actor = self.actor(frame.followed);
        self.step((frame.until, from, cpu), actor, what, frame.why, frame.waiter);
    }

    /// Adds a step `at` a CPU from the second time, but not from before the first, to now, and goes there.
    fn step(
        &mut self,
        at: (Timestamp, Timestamp, Option<Cpu>),
        actor: Arc<Actor>,
        what: What,
        why: Why,
        waiter: Option<Arc<Actor>>,
    ) {
        let (until, from, cpu) = at;
        let from_ns = from.max(until);
        self.steps.push(Step { from_ns, to_ns: self.time, cpu, actor, what, why, waiter });
        (self.time, self.turns) = (from_ns, 0);
    }

    fn what(&self, mode: Mode) -> What {
        match mode {
            Mode::User => What::User,
            Mode::SystemCall(call) => What::SystemCall(self.names.get(call).into()),
            Mode::Interrupt(_) => What::Interrupt,
            Mode::Unknown => What::Running,
        }
    }

    fn interrupt(&self, name: Option<Name>) -> Arc<Actor> {
        Actor::interrupt(name.map_or("", |name| self.names.get(name))).into()
    }

    fn actor(&mut self, followed: Followed) -> Arc<Actor> {
        if let Some(actor) = self.known.get(&followed) {
            return actor.clone();
        }
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        let actor = Arc::new(self.named(followed));
        self.known.insert(followed, actor.clone());
        actor
    }

    fn named(&mut self, followed: Followed) -> Actor {
        let mut actor = Actor::default();
        let (lwp, thread) = match followed {
            Followed::Lwp(lwp, thread) => (Some(lwp), thread),
            Followed::UserThread(thread) => (None, Some(thread)),
        };
        if let Some(lwp) = lwp {
            let lwp = &self.past.lwps.at(lwp).identity;
            (actor.process, actor.tid) = (lwp.process, i32::try_from(lwp.number).ok().map(Tid));
            actor.name.clone_from(&lwp.name);
        }
        if let Some(thread) = thread {
            let thread = &self.past.user_threads.at(thread).identity;
            (actor.process, actor.user_thread) =
                (thread.process.or(actor.process), Some(Task(thread.number)));
            actor.user_thread_name.clone_from(&thread.name);
        }
        actor
    }
}

/// What a path consists of.
#[derive(Debug, Default)]
struct Steps {
    /// The latest first.
    steps: Vec<Step>,
    /// The one that may continue.
    open: Option<Step>,
    left_out: u64,
    actor: HashMap<Arc<Actor>, Duration>,
    what: HashMap<What, Duration>,
}

impl Steps {
    fn push(&mut self, step: Step) {
        match &mut self.open {
            Some(open) if open.continues(&step) => open.from_ns = step.from_ns,
            open => {
                let done = open.replace(step);
                self.close(done);
            }
        }
    }

    fn close(&mut self, step: Option<Step>) {
        let Some(step) = step else { return };
        add(&mut self.actor, &step.actor, step.ns());
        add(&mut self.what, &step.what, step.ns());
        match self.steps.len() < STEPS {
            true => self.steps.push(step),
            false => self.left_out += 1,
        }
    }

    fn finish(mut self, target: Arc<Actor>, from_ns: Timestamp, to_ns: Timestamp) -> CriticalPath {
        let open = self.open.take();
        self.close(open);
        self.steps.reverse();
        let Steps { steps, left_out, .. } = self;
        let (by_actor, by_what) = (sorted(self.actor), sorted(self.what));
        CriticalPath { target, from_ns, to_ns, steps, left_out, by_actor, by_what }
    }
}

fn add<K: Clone + Eq + Hash>(sums: &mut HashMap<K, Duration>, key: &K, ns: Duration) {
    match sums.get_mut(key) {
        Some(sum) => *sum += ns,
        None => drop(sums.insert(key.clone(), ns)),
    }
}

/// The sums by the text of their keys, greatest first.
fn sorted<K: ToString>(sums: HashMap<K, Duration>) -> Vec<(String, Duration)> {
    let mut by_name: HashMap<String, Duration> = HashMap::new();
    for (key, ns) in sums {
        grow(by_name.entry(key.to_string()).or_default(), ns);
    }
    let mut sums: Vec<_> = by_name.into_iter().collect();
    sums.sort_by(|(a, longest), (b, longer)| longer.cmp(longest).then_with(|| a.cmp(b)));
    sums
}
