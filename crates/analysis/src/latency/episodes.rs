//! What certain LWPs and user threads did during certain times. These are known only when the recording has
//! been read, so it is read again: memory is that of the times asked for, however long they are.

use super::{Episode, LatencyTable};
use crate::actor::Actor;
use crate::analysis::{Analysis, Input};
use crate::names::Names;
use crate::run::Ran;
use crate::shown::Shown;
use crate::times::{Clock, grow};
use tracewing_trace::super_trace::{
    Change, Doing, Fold, Lwp, LwpSerial, Mode, Name, TaskSerial, UserThread, Waker,
};
use tracewing_units::{Duration, Timestamp};

/// The analysis. Serial numbers are those of a pass over the same recording from the same time on.
#[derive(Debug, Default)]
pub struct Episodes {
    asked: Vec<Asked>,
}

/// An interval, and the party in question.
#[derive(Debug)]
struct Asked {
    from: Timestamp,
    to: Timestamp,
    lwp: Option<Account<LwpSerial>>,
    user_thread: Option<Account<TaskSerial>>,
    /// Activity of LWPs in it for user threads that are not reported yet, by serial number.
    pending: Vec<(LwpSerial, Sums)>,
}

/// Time by what it was spent on, in more detail than others want it.
#[derive(Debug, Default)]
struct Sums {
    clock: Clock,
    /// Few in a period, so a search is short.
    calls: Vec<(Name, Duration)>,
    preempted: Duration,
}

impl Sums {
    fn add(&mut self, doing: Doing, ns: Duration) {
        self.clock.add(doing, ns);
        match doing {
            Doing::Running { mode: Mode::SystemCall(call), .. } => self.add_call(call, ns),
            Doing::Runnable { preempted: true } => grow(&mut self.preempted, ns),
            _ => {}
        }
    }

    fn add_call(&mut self, call: Name, ns: Duration) {
        match self.calls.iter_mut().find(|(known, _)| *known == call) {
            Some((_, sum)) => grow(sum, ns),
            None => self.calls.push((call, ns)),
        }
    }

    fn take(&mut self, mut other: Sums) {
        self.clock.take(&mut other.clock);
        grow(&mut self.preempted, other.preempted);
        other.calls.into_iter().for_each(|(call, ns)| self.add_call(call, ns));
    }
}

#[derive(Debug)]
struct Account<S> {
    serial: S,
    actor: Option<Actor>,
    sums: Sums,
    wakeups: u64,
    woken: Option<(Timestamp, Waker)>,
    /// Its own wakes are not recorded.
    lacks_wakes: bool,
    hooked: bool,
}

impl<S> Account<S> {
    fn new(serial: S) -> Self {
        Self {
            serial,
            actor: None,
            sums: Sums::default(),
            wakeups: 0,
            woken: None,
            lacks_wakes: false,
            hooked: false,
        }
    }

    fn knows(&mut self, thread: &UserThread) {
        self.lacks_wakes = thread.lacks_wakes();
        self.hooked = thread.is_hooked();
    }

    fn woken(&mut self, by: &Waker, at: Timestamp) {
        self.wakeups += 1;
        self.woken = Some((at, *by));
    }

    fn finish(self, names: &Names, shown: Shown) -> Option<Episode> {
        let shown = if self.lacks_wakes { shown.without_wakes() } else { shown };
        let Sums { clock, mut calls, preempted } = self.sums;
        calls.retain(|_| shown.modes);
        calls.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let (woken_ns, woken_by) = self.woken.map(|(at, by)| (at, Actor::woke(&by, names))).unzip();
        Some(Episode {
            actor: self.actor?,
            times: shown.times(clock.times(names)),
            system_calls: calls.into_iter().map(|(call, ns)| (names.get(call).to_owned(), ns)).collect(),
            preempted_ns: shown.preempted(preempted),
            wakeups: shown.wakes.then_some(self.wakeups),
            hooked: self.hooked,
            woken_by,
            woken_ns,
        })
    }
}

impl Episodes {
    /// Asks about a time, an LWP and a user thread.
    pub(super) fn add(
        &mut self,
        from: Timestamp,
        to: Timestamp,
        lwp: Option<LwpSerial>,
        user_thread: Option<TaskSerial>,
    ) {
        let (lwp, user_thread) = (lwp.map(Account::new), user_thread.map(Account::new));
        self.asked.push(Asked { from, to, lwp, user_thread, pending: Vec::new() });
    }

    /// Up to when the recording must be read, in nanoseconds on its clock; `None` where nothing is asked.
    pub fn until(&self) -> Option<Timestamp> {
        self.asked.iter().map(|asked| asked.to).max()
    }

    /// Puts the answers into the table that they were asked for.
    pub fn finish(self, table: &mut LatencyTable, ran: &Ran) {
        let (of_lwps, of_user_threads) = (Shown::of_threads(ran), Shown::of_user_threads(ran));
        for (asked, period) in self.asked.into_iter().zip(&mut table.worst) {
            period.lwp = asked.lwp.and_then(|account| account.finish(&ran.names, of_lwps));
            period.user_thread =
                asked.user_thread.and_then(|account| account.finish(&ran.names, of_user_threads));
        }
    }

    /// The times that a stretch has a part in, and how long that is.
    fn within(&mut self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = (&mut Asked, Duration)> {
        self.asked.iter_mut().filter_map(move |asked| {
            let ns = to.min(asked.to).checked_since(from.max(asked.from))?;
            (!ns.is_zero()).then_some((asked, ns))
        })
    }

    /// The times that a moment is in.
    fn at(&mut self, at: Timestamp) -> impl Iterator<Item = &mut Asked> {
        self.asked.iter_mut().filter(move |asked| asked.from <= at && at <= asked.to)
    }
}

impl Analysis for Episodes {
    const CONTINUES: bool = true;
    fn input(&mut self, _: Input<'_>) {}
}

impl Fold for Episodes {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpDid { lwp, doing, from, to } => self.lwp(lwp, doing, from, to),
            Change::LwpRan { lwp, thread } => self.ran(lwp, thread),
            Change::UserThreadDid { thread, doing, from, to } => self.user_thread(thread, doing, from, to),
            Change::LwpWoken { lwp, by, at } => self.lwp_woken(lwp, by, at),
            Change::UserThreadWoken { thread, by, at } => self.user_thread_woken(thread, by, at),
            _ => {}
        }
    }
}

impl Episodes {
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: Timestamp, to: Timestamp) {
        let carries = lwp.runs_user_thread();
        for (asked, ns) in self.within(from, to) {
            if let Some(account) = asked.lwp.as_mut().filter(|account| account.serial == lwp.serial) {
                account.actor.get_or_insert_with(|| Actor::lwp(lwp));
                account.sums.add(doing, ns);
            }
            if carries && asked.user_thread.is_some() {
                match asked.pending.iter_mut().find(|(serial, _)| *serial == lwp.serial) {
                    Some((_, sums)) => sums.add(doing, ns),
                    None => {
                        let mut sums = Sums::default();
                        sums.add(doing, ns);
                        asked.pending.push((lwp.serial, sums));
                    }
                }
            }
        }
    }

    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>) {
        for asked in &mut self.asked {
            let pending = asked.pending.iter().position(|(serial, _)| *serial == lwp.serial);
            let Some(done) = pending.map(|place| asked.pending.swap_remove(place).1) else { continue };
            if let (Some(account), Some(thread)) = (&mut asked.user_thread, thread)
                && account.serial == thread.serial
            {
                account.actor.get_or_insert_with(|| Actor::user_thread(thread));
                account.sums.take(done);
                account.knows(thread);
            }
        }
    }

    fn user_thread(&mut self, thread: &UserThread, doing: Doing, from: Timestamp, to: Timestamp) {
        for (asked, ns) in self.within(from, to) {
            if let Some(account) =
                asked.user_thread.as_mut().filter(|account| account.serial == thread.serial)
            {
                account.actor.get_or_insert_with(|| Actor::user_thread(thread));
                account.sums.add(doing, ns);
                account.knows(thread);
            }
        }
    }

    fn lwp_woken(&mut self, lwp: &Lwp, by: &Waker, at: Timestamp) {
        for asked in self.at(at) {
            if let Some(account) = asked.lwp.as_mut().filter(|account| account.serial == lwp.serial) {
                account.woken(by, at);
            }
        }
    }

    fn user_thread_woken(&mut self, thread: &UserThread, by: &Waker, at: Timestamp) {
        for asked in self.at(at) {
            if let Some(account) =
                asked.user_thread.as_mut().filter(|account| account.serial == thread.serial)
            {
                account.woken(by, at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Period;
    use super::*;
    use crate::run::{LocksLack, Recorded};
    use crate::shown::ShownTimes;
    use tracewing_trace::super_trace::TaskState;
    use tracewing_trace::super_trace::{
        Activity, Context, Coverage, Kind, SuperTrace, SwitchCause, UserThreadKind,
    };
    use tracewing_units::{Cpu, Origin, Pid, Task, Tid};

    const READ: Name = Name(0);
    const MUTEX: Name = Name(1);

    /// Two LWPs, of which 7 runs a task; reported from 20 to 95.
    fn period_of(lwp: usize, user_thread: Option<TaskSerial>, recorded: Recorded) -> Period {
        let switch = |prev, prev_state, next| Kind::Switch {
            prev,
            prev_name: b"lwp",
            prev_state: TaskState(prev_state),
            next,
            next_name: b"lwp",
        };
        let turns = |prev, next, cause| Kind::UserThread(UserThreadKind::Switch { prev, next, cause });
        let events = [
            (0, 0, 0, switch(Tid(0), 0, Tid(7))),
            (0, 1, 0, switch(Tid(0), 0, Tid(9))),
            (
                5,
                0,
                7,
                Kind::UserThread(UserThreadKind::Origin {
                    origin: Origin(1),
                    name: b"task",
                    file: b"",
                    line: 0,
                }),
            ),
            (5, 0, 7, Kind::UserThread(UserThreadKind::Create { thread: Task(1), origin: Origin(1) })),
            (10, 0, 7, turns(Task(0), Task(1), SwitchCause::Unknown)),
            (25, 0, 7, Kind::UserThread(UserThreadKind::Wait { kind: MUTEX })),
            (30, 0, 7, turns(Task(1), Task(0), SwitchCause::Blocked)),
            (40, 0, 7, Kind::SystemCall { call: READ }),
            (45, 0, 7, switch(Tid(7), 1, Tid(0))),
            (60, 1, 9, Kind::Waking { tid: Tid(7), name: b"lwp" }),
            (70, 0, 0, switch(Tid(0), 0, Tid(7))),
            (75, 0, 7, Kind::SystemCallEnd { call: READ }),
            (80, 0, 7, Kind::UserThread(UserThreadKind::Wake { thread: Task(1) })),
            (90, 0, 7, turns(Task(0), Task(1), SwitchCause::Unknown)),
            (100, 0, 7, Kind::User),
        ];
        let mut episodes = Episodes::default();
        let at = Timestamp::from_ns;
        episodes.add(at(20), at(95), Some(LwpSerial(lwp)), user_thread);
        assert_eq!(episodes.until(), Some(at(95)));
        let user_wakes = !recorded.lacks_user_wakes;
        let mut state = SuperTrace::new(Coverage { user_wakes, ..Coverage::default() });
        let is_wake = |kind: &Kind<'_>| matches!(kind, Kind::UserThread(UserThreadKind::Wake { .. }));
        for (time, cpu, tid, kind) in events.into_iter().filter(|(.., kind)| user_wakes || !is_wake(kind)) {
            let event = Activity {
                time: at(time),
                cpu: Some(Cpu(cpu)),
                tid: Some(Tid(tid)),
                process: Some(Pid(7)),
                context: Context::Unknown,
                kind,
            };
            state.event(&event, &mut episodes);
        }
        state.finish(&mut episodes);
        let mut names = Names::default();
        names.learn(READ, "read");
        names.learn(MUTEX, "mutex");
        let mut table = LatencyTable { worst: vec![Period::default()], ..LatencyTable::default() };
        episodes.finish(&mut table, &Ran { names, recorded, ..Ran::default() });
        table.worst.remove(0)
    }

    /// User, system, waiting, blocked, all.
    fn times(times: &ShownTimes) -> [Option<u64>; 5] {
        let ShownTimes { running_ns, waiting_ns, blocked_ns, user_ns, system_ns, .. } = *times;
        let shown = [running_ns, waiting_ns, blocked_ns].into_iter().flatten().sum::<Duration>();
        let all = Some(shown + times.nested_ns + times.unknown_ns);
        [user_ns, system_ns, waiting_ns, blocked_ns, all].map(|time| time.map(Duration::as_ns))
    }

    const ALL: Recorded = Recorded {
        switches: true,
        wakes: true,
        first_wakes: true,
        system_calls: true,
        all_system_calls: true,
        page_faults: true,
        interrupts: true,
        softirqs: true,
        lacks_user_switches: false,
        lacks_user_wakes: false,
        lacks_effects: false,
        lacks_ends_of_functions: false,
        lacks_functions: false,
        lacks_of_locks: [LocksLack { requests: false, acquisitions: false, releases: false }; 2],
        lacks_mappings: false,
        lacks_programs: false,
    };

    #[test]
    fn all_of_the_time_is_attributed_to_an_lwp_and_to_its_user_thread() {
        let period = period_of(0, Some(TaskSerial(0)), ALL);
        let (lwp, task) = (period.lwp.unwrap(), period.user_thread.unwrap());
        assert_eq!(times(&lwp.times), [20 + 20, 5 + 5, 10, 15, 75].map(Some));
        assert_eq!(times(&task.times), [10 + 5, 0, 10, 50, 75].map(Some));
        assert_eq!((lwp.actor.to_string(), lwp.wakeups), ("thread 7 (lwp)".to_owned(), Some(1)));
        assert_eq!((task.actor.to_string(), task.wakeups), ("task 1 (task)".to_owned(), Some(1)));
        assert_eq!(
            (lwp.woken_ns, lwp.woken_by.unwrap().to_string()),
            (Some(Timestamp::from_ns(60)), "thread 9 (lwp)".to_owned())
        );
        assert_eq!(task.woken_ns, Some(Timestamp::from_ns(80)));
        assert_eq!(task.woken_by.unwrap().to_string(), "thread 7 (lwp)");
        assert_eq!(lwp.times.blocked_on[0].on.as_deref(), Some("read"));
        assert_eq!(
            (lwp.system_calls, task.system_calls),
            (vec![("read".to_owned(), Duration::from_ns(10))], Vec::new())
        );
        assert_eq!((lwp.preempted_ns, task.preempted_ns), (Some(Duration::ZERO), Some(Duration::ZERO)));
    }

    #[test]
    fn what_no_event_shows_is_unknown() {
        let without = Recorded { wakes: false, interrupts: false, lacks_user_wakes: true, ..ALL };
        let period = period_of(0, Some(TaskSerial(0)), without);
        let (lwp, task) = (period.lwp.unwrap(), period.user_thread.unwrap());
        assert_eq!(times(&lwp.times), [Some(40), Some(10), None, None, Some(75)]);
        // A task reports itself what it waits for: that lasts until its next poll.
        assert_eq!(times(&task.times), [Some(15), Some(0), None, Some(60), Some(75)]);
        assert_eq!([lwp.times.unknown_ns, task.times.unknown_ns], [25, 0].map(Duration::from_ns));
        let [on] = &task.times.blocked_on[..] else { panic!("{task:?}") };
        assert_eq!((on.on.as_deref(), on.ns), (Some("mutex"), Duration::from_ns(60)));
        assert_eq!((lwp.times.interrupted_ns, lwp.wakeups, task.wakeups), (None, None, None));
        assert_eq!((lwp.preempted_ns, task.preempted_ns), (None, None));
        assert!(lwp.times.blocked_on.is_empty());
    }

    #[test]
    fn other_threads_have_no_episode() {
        let period = period_of(1, Some(TaskSerial(5)), ALL);
        assert_eq!(times(&period.lwp.unwrap().times)[4], Some(75));
        assert_eq!(period.user_thread, None);
    }
}
