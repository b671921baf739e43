//! The user threads of all programs, and which LWP runs which of them.
//!
//! A user thread is known from its creation, or the first switch from or to it. Other events about an unknown
//! one may refer to one that has ended, and are ignored.

use super::activity::{Name, SwitchCause, UserThreadKind};
use super::comm::Comm;
use super::coverage::Coverage;
use super::doing::{Mode, Waker};
use super::fold::{Change, Fold};
use super::lwp::{Carries, Lwp, Sight};
use super::numbers::Numbers;
use super::origins::Origins;
use super::serial::TaskSerial;
use super::user_thread::{Key, Owner, State, UserThread};
use tracewing_rules::ThreadPattern;
use tracewing_units::{Cpu, Origin, Pid, Task, Tid, Timestamp};

type Lwps = Numbers<Tid, Lwp>;
type UserThreads = Numbers<Task, UserThread>;

#[derive(Debug)]
pub(super) struct Programs {
    /// By [`Key::owner`] and [`Key::id`].
    programs: Numbers<Owner, UserThreads>,
    /// What user threads of an origin are called.
    origins: Origins,
    /// How many user threads there have been.
    serials: usize,
    /// Until then, switches may have been lost.
    blind_until: Timestamp,
    /// No switch is recorded, or only some: a user thread that no LWP is known to run may run and end unseen.
    unseen: bool,
    /// The recording has the events of threads that match one pattern of each list; of all if there are no
    /// lists.
    chosen: Vec<Vec<ThreadPattern>>,
}

impl Programs {
    /// None known so far, of a recording that can know so much.
    pub fn new(coverage: &Coverage) -> Self {
        Self {
            programs: Numbers::default(),
            origins: Origins::default(),
            serials: 0,
            blind_until: coverage.begin.unwrap_or(Timestamp::MIN),
            unseen: !coverage.user_switches,
            chosen: coverage.of_user_threads.clone(),
        }
    }

    /// Whether events may be missing at this time.
    pub fn is_blind(&self, now: Timestamp) -> bool {
        now < self.blind_until
    }

    pub fn has(&self, owner: Owner) -> bool {
        self.programs.has(owner)
    }

    pub fn get(&self, key: Key) -> Option<&UserThread> {
        self.programs.get(key.owner)?.get(key.id)
    }

    fn get_mut(&mut self, key: Key) -> Option<&mut UserThread> {
        self.programs.get_mut(key.owner)?.get_mut(key.id)
    }

    /// Handles an event of the LWP `tid`, which is known; `times` are now and when the recording began.
    pub fn event(
        &mut self,
        kind: UserThreadKind<'_>,
        tid: Tid,
        cpu: Option<Cpu>,
        times: (Timestamp, Timestamp),
        lwps: &mut Lwps,
        fold: &mut impl Fold,
    ) {
        let now = times.0;
        if let UserThreadKind::Origin { origin, name, file, line } = kind {
            return self.origins.learn(origin, name, (file, line));
        }
        let Some(lwp) = lwps.get_mut(tid) else { return };
        let owner = owner(lwp);
        let key = |id| Key { owner, id };
        match kind {
            UserThreadKind::Origin { .. } => {}
            UserThreadKind::Create { thread, origin } => {
                let waker = self.waker(lwp, lwp.cpu().or(cpu));
                self.created(key(thread), origin, &waker, now, lwps, fold);
            }
            UserThreadKind::Existed { thread, origin } => self.existed(key(thread), origin, times.1, fold),
            UserThreadKind::Rename { thread, name } => self.renamed(key(thread), name, times.1, fold),
            // What has ended has, whatever is missing.
            UserThreadKind::Exit { thread }
            | UserThreadKind::Switch { prev: thread, cause: SwitchCause::Ended, .. }
                if self.is_blind(now) =>
            {
                self.end(key(thread), now, fold);
                if let UserThreadKind::Exit { .. } = kind {
                    lwp.exited = Some(thread);
                }
            }
            _ if self.is_blind(now) => {}
            UserThreadKind::Switch { prev, next, cause } => {
                self.leaves(prev, cause, tid, times, lwps, fold);
                if !next.is_none() {
                    self.runs(key(next), (tid, cpu), times, lwps, fold);
                }
            }
            UserThreadKind::Wake { thread } => {
                let waker = self.waker(lwp, lwp.cpu().or(cpu));
                self.woken(key(thread), &waker, now, fold);
            }
            UserThreadKind::Exit { thread } => {
                let runs = self.get(key(thread)).map(|thread| thread.state);
                // Its last switch implies the same.
                if !matches!(runs, Some(State::Running { .. }) | None) {
                    self.end(key(thread), now, fold);
                    lwp.exited = Some(thread);
                }
            }
            UserThreadKind::Wait { kind } => self.waits(lwp.carries, Some(kind)),
            UserThreadKind::Acquired => self.waits(lwp.carries, None),
            UserThreadKind::Worker => self.runs_none(lwp, now, fold),
        }
    }

    /// A new user thread; one that had its number has ended.
    fn created(
        &mut self,
        key: Key,
        origin: Origin,
        by: &Waker,
        now: Timestamp,
        lwps: &mut Lwps,
        fold: &mut impl Fold,
    ) {
        if let Some(namesake) = self.remove(key) {
            self.interrupt(&namesake, lwps, now, fold);
            self.finish_one(namesake, now, fold);
        }
        let mut created = UserThread::new(TaskSerial(self.serials), key, now).of_origin(origin);
        created.learn_name(&self.origins);
        // Else its first switch may be missing.
        if !self.is_blind(now) && !self.unseen {
            created = created.ready();
        }
        self.serials += 1;
        fold.change(Change::UserThreadCreated { thread: &created, by, at: now });
        self.programs.at(key.owner, Numbers::default).insert(key.id, created);
    }

    /// A user thread that was there before the recording, which began at `begin`.
    fn existed(&mut self, key: Key, origin: Origin, begin: Timestamp, fold: &mut impl Fold) {
        let known = self.known(key, begin);
        if known.name.is_empty() {
            known.origin = Some(origin);
            let thread = self.known(key, begin); // by its name
            fold.change(Change::UserThreadNamed { thread });
        }
    }

    fn renamed(&mut self, key: Key, name: &[u8], begin: Timestamp, fold: &mut impl Fold) {
        let thread = self.known(key, begin);
        thread.rename(name);
        fold.change(Change::UserThreadNamed { thread });
    }

    /// A worker's own event: it runs no user thread now.
    fn runs_none(&mut self, lwp: &mut Lwp, now: Timestamp, fold: &mut impl Fold) {
        if lwp.carries != Carries::None {
            lwp.report(now, fold);
            self.let_go(lwp, fold);
            lwp.carries = Carries::None;
        }
    }

    /// A wake-up; without the switches it is not known whether the thread waited.
    fn woken(&mut self, key: Key, by: &Waker, now: Timestamp, fold: &mut impl Fold) {
        let unseen = self.unseen;
        if let Some(thread) = self.get_mut(key) {
            match unseen {
                true => thread.wakeups += 1,
                false => thread.wakes(now, fold),
            }
            fold.change(Change::UserThreadWoken { thread, by, at: now });
        }
    }

    /// What the running user thread waits for from now on.
    fn waits(&mut self, carries: Carries, on: Option<Name>) {
        if let Carries::Thread(key) = carries
            && let Some(thread) = self.get_mut(key)
        {
            thread.waits_for = on;
        }
    }

    pub fn origin_name(&self, origin: Origin) -> Option<&str> {
        std::str::from_utf8(self.origins.get(origin)?).ok()
    }

    /// The waker, for an action of an LWP on a CPU.
    pub fn waker(&self, lwp: &Lwp, cpu: Option<Cpu>) -> Waker {
        let thread = match lwp.carries {
            Carries::Thread(key) => self.get(key),
            Carries::None | Carries::Unknown | Carries::Late(_) => None,
        };
        Waker {
            cpu,
            interrupt: None,
            call: match lwp.mode() {
                Mode::SystemCall(call) => Some(call),
                _ => None,
            },
            process: lwp.process,
            tid: Some(lwp.tid),
            name: Comm::new(&lwp.name),
            lwp: Some(lwp.serial),
            user_thread: thread.map(|thread| thread.id),
            user_thread_serial: thread.map(|thread| thread.serial),
        }
    }

    /// The user thread that an LWP runs is on this CPU now.
    pub fn arrives(&mut self, key: Key, cpu: Cpu) {
        self.get_mut(key).into_iter().for_each(|thread| thread.arrives(cpu));
    }

    /// The process of an LWP becomes known.
    pub fn adopt(&mut self, tid: Tid, process: Pid, now: Timestamp, lwps: &mut Lwps, fold: &mut impl Fold) {
        let Some(orphans) = self.programs.remove(Owner::lwp(tid)) else { return };
        let owner = Owner::process(process);
        let Some(lwp) = lwps.get_mut(tid) else { return };
        if let Carries::Thread(key) = &mut lwp.carries {
            key.owner = owner;
        }
        for (id, mut orphan) in orphans.into_iter() {
            // One that the process has by that number is the same one: it cannot run elsewhere.
            if let Some(double) = self.remove(Key { owner, id }) {
                self.interrupt(&double, lwps, now, fold);
                self.finish_one(double, now, fold);
            }
            orphan.process = Some(process);
            self.programs.at(owner, Numbers::default).insert(id, orphan);
        }
    }

    /// Events of programs between `from` and `to` are missing.
    pub fn lost(&mut self, from: Timestamp, to: Timestamp, lwps: &mut Lwps, fold: &mut impl Fold) {
        self.blind_until = self.blind_until.max(to);
        for lwp in lwps.values_mut() {
            lwp.report(from, fold);
            self.ran(lwp, fold);
            lwp.carries = Carries::Unknown;
            lwp.waits_for = None;
        }
        for thread in self.programs.values_mut().flat_map(UserThreads::values_mut) {
            thread.lose(from, fold);
        }
    }

    /// The user thread that an LWP runs from now on, and the state of the previous one, are unknown.
    pub fn loses_sight(&mut self, lwp: &mut Lwp, now: Timestamp, fold: &mut impl Fold) {
        lwp.report(now, fold);
        self.ran(lwp, fold);
        if let Carries::Thread(key) = std::mem::replace(&mut lwp.carries, Carries::Unknown)
            && let Some(thread) = self.get_mut(key)
        {
            thread.lose(now, fold);
        }
    }

    /// An LWP has ended, and what it ran with it.
    pub fn detach(&mut self, lwp: &mut Lwp, fold: &mut impl Fold) {
        self.ran(lwp, fold);
        if let Carries::Thread(key) = std::mem::replace(&mut lwp.carries, Carries::Unknown)
            && let Some(thread) = self.remove(key)
        {
            fold.change(Change::UserThreadEnds { thread: &thread });
        }
    }

    /// A program has ended, or another one has taken its process.
    pub fn ends(&mut self, owner: Owner, now: Timestamp, lwps: &mut Lwps, fold: &mut impl Fold) {
        if !self.has(owner) {
            return;
        }
        for lwp in lwps.values_mut() {
            if matches!(lwp.carries, Carries::Thread(key) if key.owner == owner) {
                lwp.report(now, fold);
                self.detach(lwp, fold);
            }
        }
        let threads = self.programs.remove(owner).unwrap_or_default();
        threads.into_iter().for_each(|(_, thread)| self.finish_one(thread, now, fold));
    }

    /// What lies before `time` counts no longer.
    pub fn restart(&mut self, time: Timestamp) {
        self.programs.values_mut().flat_map(UserThreads::values_mut).for_each(|thread| thread.restart(time));
    }

    /// The recording ends; each LWP has reported its last interval.
    pub fn finish(&mut self, now: Timestamp, lwps: &mut Lwps, fold: &mut impl Fold) {
        lwps.values().for_each(|lwp| self.ran(lwp, fold));
        let threads = self.programs.values_mut().flat_map(UserThreads::values_mut);
        threads.for_each(|thread| {
            thread.learn_name(&self.origins);
            thread.finish(now, fold);
        });
    }

    /// The LWP `tid` stops running `prev`, or none if that is 0.
    fn leaves(
        &mut self,
        prev: Task,
        cause: SwitchCause,
        tid: Tid,
        (now, begin): (Timestamp, Timestamp),
        lwps: &mut Lwps,
        fold: &mut impl Fold,
    ) {
        let Some(lwp) = lwps.get_mut(tid) else { return };
        let key = Key { owner: owner(lwp), id: prev };
        let unseen = self.unseen;
        let has_exited = lwp.exited.take() == Some(prev) && cause == SwitchCause::Ended;
        lwp.report(now, fold);
        if lwp.carries == Carries::Late(key) {
            // Taken over, and reported, before; it may even have ended.
            fold.change(Change::LwpRan { lwp, thread: None });
            lwp.carries = Carries::None;
            return;
        }
        if lwp.carries == Carries::Thread(key)
            && let Some(thread) = self.get_mut(key)
        {
            fold.change(Change::LwpRan { lwp, thread: Some(&*thread) });
            lwp.carries = Carries::None;
            fold.change(Change::UserThreadStops { thread, lwp, cause, at: now });
            thread.stops(cause, now, fold);
            if unseen {
                thread.vanishes();
            }
        } else {
            self.let_go(lwp, fold);
            lwp.carries = Carries::None;
            // One that its exit has ended is not another one of that number.
            let is_over = has_exited && self.get(key).is_none();
            if !prev.is_none() && !is_over {
                self.known(key, begin);
                self.leaves_others(key, now, lwps, fold);
                if let Some(thread) = self.get_mut(key) {
                    thread.stops(cause, now, fold);
                    if unseen {
                        thread.vanishes();
                    }
                }
            }
        }
        if cause == SwitchCause::Ended {
            self.end(key, now, fold);
        }
    }

    /// The LWP `tid`, which runs none, begins to run a user thread, on `cpu` if its event says so.
    fn runs(
        &mut self,
        key: Key,
        (tid, cpu): (Tid, Option<Cpu>),
        (now, begin): (Timestamp, Timestamp),
        lwps: &mut Lwps,
        fold: &mut impl Fold,
    ) {
        let is_extract = !self.chosen.is_empty();
        let mut thread = self.known(key, begin);
        if let State::Running { tid: other } = thread.state {
            match other == tid || is_extract || self.unseen {
                true => self.leaves_others(key, now, lwps, fold),
                false => self.stop_unreported(key, other, now, lwps, fold),
            }
            thread = self.known(key, begin);
        }
        let Some(lwp) = lwps.get_mut(tid) else { return };
        if is_extract {
            self.comes_into_sight(key, lwp, cpu, now, fold);
            thread = self.known(key, begin);
        }
        let polls = thread.polls;
        thread.begins(tid, now, fold);
        lwp.polls += thread.polls - polls;
        lwp.carries = Carries::Thread(key);
        fold.change(Change::UserThreadRuns { thread, lwp, at: now });
        lwp.carried_to = lwp.cpu().or(cpu);
        lwp.carried_to.into_iter().for_each(|cpu| thread.arrives(cpu));
    }

    /// An LWP, which runs none, begins to run a user thread in a recording that is a part of some.
    #[cold]
    fn comes_into_sight(
        &self,
        key: Key,
        lwp: &mut Lwp,
        cpu: Option<Cpu>,
        now: Timestamp,
        fold: &mut impl Fold,
    ) {
        if let Sight::WithThread { chosen } = &mut lwp.sight {
            *chosen = self.is_chosen(key);
        }
        // How it came to its CPU has been left out.
        if let Some(cpu) = cpu {
            lwp.seen_on(cpu, now, fold);
            lwp.in_program(true, now, fold);
        }
    }

    /// A user thread has blocked and was woken, but the LWP `tid` that ran it has not reported the stop yet:
    /// it is taken to have stopped now.
    fn stop_unreported(&mut self, key: Key, tid: Tid, now: Timestamp, lwps: &mut Lwps, fold: &mut impl Fold) {
        let Some(lwp) = lwps.get_mut(tid) else { return };
        lwp.report(now, fold);
        if let Some(thread) = self.get_mut(key) {
            fold.change(Change::LwpRan { lwp, thread: Some(&*thread) });
            fold.change(Change::UserThreadStops { thread, lwp, cause: SwitchCause::Blocked, at: now });
            thread.stops(SwitchCause::Blocked, now, fold);
        }
        lwp.carries = Carries::Late(key);
    }

    /// A user thread is seen elsewhere than on the LWP that was thought to run it.
    fn leaves_others(&mut self, key: Key, now: Timestamp, lwps: &mut Lwps, fold: &mut impl Fold) {
        if let Some(State::Running { tid }) = self.get(key).map(|thread| thread.state)
            && let Some(other) = lwps.get_mut(tid)
        {
            other.report(now, fold);
            self.let_go(other, fold);
        }
    }

    /// The LWP runs another user thread than assumed, since an unknown time.
    fn let_go(&mut self, lwp: &mut Lwp, fold: &mut impl Fold) {
        fold.change(Change::LwpRan { lwp, thread: None });
        if let Carries::Thread(key) = std::mem::replace(&mut lwp.carries, Carries::Unknown) {
            self.get_mut(key).into_iter().for_each(UserThread::vanishes);
        }
    }

    /// The LWP ran the assumed user thread up to its last reported time.
    fn ran(&self, lwp: &Lwp, fold: &mut impl Fold) {
        match lwp.carries {
            Carries::Thread(key) => fold.change(Change::LwpRan { lwp, thread: self.get(key) }),
            Carries::None | Carries::Unknown | Carries::Late(_) => {
                fold.change(Change::LwpRan { lwp, thread: None })
            }
        }
    }

    /// Ends what an LWP does for a user thread whose number is given again.
    fn interrupt(&mut self, thread: &UserThread, lwps: &mut Lwps, now: Timestamp, fold: &mut impl Fold) {
        if let State::Running { tid } = thread.state
            && let Some(lwp) = lwps.get_mut(tid)
        {
            lwp.report(now, fold);
            fold.change(Change::LwpRan { lwp, thread: Some(thread) });
            lwp.carries = Carries::Unknown;
        }
    }

    fn end(&mut self, key: Key, now: Timestamp, fold: &mut impl Fold) {
        if let Some(thread) = self.remove(key) {
            self.finish_one(thread, now, fold);
        }
    }

    fn finish_one(&self, mut thread: UserThread, now: Timestamp, fold: &mut impl Fold) {
        thread.learn_name(&self.origins);
        thread.finish(now, fold);
    }

    fn remove(&mut self, key: Key) -> Option<UserThread> {
        self.programs.get_mut(key.owner)?.remove(key.id)
    }

    /// Whether the recording has all events of a user thread, which is known.
    fn is_chosen(&self, key: Key) -> bool {
        let Some(UserThread { process, id, name, .. }) = self.get(key) else { return false };
        self.chosen.iter().all(|any| any.iter().any(|pattern| pattern.matches(*process, *id, name)))
    }

    fn known(&mut self, key: Key, begin: Timestamp) -> &mut UserThread {
        let serials = &mut self.serials;
        let threads = self.programs.at(key.owner, Numbers::default);
        let thread = threads.at(key.id, || {
            *serials += 1;
            UserThread::new(TaskSerial(*serials - 1), key, begin)
        });
        thread.learn_name(&self.origins);
        thread
    }
}

/// Whose user threads an LWP runs.
fn owner(lwp: &Lwp) -> Owner {
    Owner::of(lwp.process, lwp.tid)
}
