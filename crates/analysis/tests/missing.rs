//! What missing events cost: never a result, only knowledge. A small machine runs at random; of what it
//! records, some is left out.

mod activity;

use activity::activity;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tracewing_analysis::{Ran, Task, Tasks, Threads, ThreadsTable, Thresholds, Times};
use tracewing_trace::super_trace::TaskState;
use tracewing_trace::super_trace::{
    Change, Doing, Fold, Interrupt, Kind, Lwp, Name, Scope, SuperTrace, SwitchCause, UserThread,
    UserThreadKind,
};
use tracewing_units::Task as Number;
use tracewing_units::{Cpu, Pid, Tid, Timestamp};

const SLEEPS: i64 = 1;
const RUNNABLE: i64 = 0x100;
const DEAD: i64 = 0x20;
const FUTEX: Name = Name(0);
const TIMER: Name = Name(1);
const PROCESS: i32 = 10;
const CPUS: usize = 2;
const TASKS: usize = 4;

type Event = (i64, u32, i32, Kind<'static>);

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Running,
    Runnable,
    Blocked,
}

/// A machine with threads that run tasks.
struct Machine {
    random: u64,
    now: i64,
    events: Vec<Event>,
    /// The thread on each CPU, 0 for none.
    cpus: [i32; CPUS],
    threads: BTreeMap<i32, (State, bool, Option<usize>)>,
    /// Ready, blocked or with a thread.
    tasks: [State; TASKS],
    next_tid: i32,
}

impl Machine {
    fn new(seed: u64) -> Self {
        let threads = (PROCESS..PROCESS + 5).map(|tid| (tid, (State::Blocked, false, None))).collect();
        Machine {
            random: seed | 1,
            now: 0,
            events: Vec::new(),
            cpus: [0; CPUS],
            threads,
            tasks: [State::Blocked; TASKS],
            next_tid: PROCESS + 5,
        }
    }

    /// Below `end`, by xorshift.
    fn below(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as usize % end
    }

    fn emit(&mut self, cpu: usize, kind: Kind<'static>) {
        self.now += 1 + self.below(20) as i64;
        self.events.push((self.now, cpu as u32, self.cpus[cpu], kind));
    }

    fn any(&mut self, state: State) -> Option<i32> {
        let fitting: Vec<i32> =
            self.threads.iter().filter(|(_, thread)| thread.0 == state).map(|(tid, _)| *tid).collect();
        (!fitting.is_empty()).then(|| fitting[self.below(fitting.len())])
    }

    fn switch(&mut self, cpu: usize, prev_state: i64) {
        let (prev, next) = (self.cpus[cpu], self.any(State::Runnable).unwrap_or(0));
        self.emit(
            cpu,
            Kind::Switch {
                prev: Tid(prev),
                prev_name: b"a",
                prev_state: TaskState(prev_state),
                next: Tid(next),
                next_name: b"b",
            },
        );
        self.cpus[cpu] = next;
        if let Some(thread) = self.threads.get_mut(&next) {
            thread.0 = State::Running;
        }
        match prev_state {
            DEAD => drop(self.threads.remove(&prev)),
            state => {
                if let Some(thread) = self.threads.get_mut(&prev) {
                    thread.0 = if state == RUNNABLE { State::Runnable } else { State::Blocked };
                }
            }
        }
    }

    fn wake(&mut self, cpu: usize) {
        if let Some(tid) = self.any(State::Blocked) {
            self.emit(cpu, Kind::Waking { tid: Tid(tid), name: b"b" });
            self.emit(cpu, Kind::Wakeup { tid: Tid(tid), name: b"b" });
            self.threads.insert(tid, (State::Runnable, self.threads[&tid].1, self.threads[&tid].2));
        }
    }

    fn user(&mut self, cpu: usize, kind: UserThreadKind<'static>) {
        self.emit(cpu, Kind::UserThread(kind));
    }

    /// The thread of a CPU, which is in its program, does something with tasks.
    fn schedule(&mut self, cpu: usize, carried: Option<usize>) {
        let tid = self.cpus[cpu];
        let chosen = self.below(TASKS);
        let number = |task: usize| task as u64 + 1;
        match (carried, self.tasks[chosen]) {
            (Some(task), _) if self.below(3) > 0 => {
                let blocked = self.below(2) == 0;
                let cause = if blocked { SwitchCause::Blocked } else { SwitchCause::Yielded };
                self.user(cpu, UserThreadKind::Switch { prev: Number(number(task)), next: Number(0), cause });
                self.tasks[task] = if blocked { State::Blocked } else { State::Runnable };
                self.threads.insert(tid, (State::Running, false, None));
            }
            (None, State::Runnable) => {
                let cause = SwitchCause::Unknown;
                self.user(
                    cpu,
                    UserThreadKind::Switch { prev: Number(0), next: Number(number(chosen)), cause },
                );
                self.tasks[chosen] = State::Running;
                self.threads.insert(tid, (State::Running, false, Some(chosen)));
            }
            (_, State::Blocked) => {
                self.user(cpu, UserThreadKind::Wake { thread: Number(number(chosen)) });
                self.tasks[chosen] = State::Runnable;
            }
            _ => {}
        }
    }

    fn step(&mut self) {
        let cpu = self.below(CPUS);
        let tid = self.cpus[cpu];
        let Some((_, in_call, carried)) = self.threads.get(&tid).copied() else {
            self.wake(cpu);
            return self.switch(cpu, 0);
        };
        match self.below(12) {
            0 => self.switch(cpu, RUNNABLE),
            1 | 2 => {
                if !in_call {
                    self.emit(cpu, Kind::SystemCall { call: FUTEX });
                    self.threads.insert(tid, (State::Running, true, carried));
                }
                self.switch(cpu, SLEEPS);
            }
            3 | 4 => self.wake(cpu),
            5 => {
                self.emit(cpu, Kind::InterruptEntry { kind: Interrupt::Vector, name: TIMER });
                self.wake(cpu);
                self.emit(cpu, Kind::InterruptExit(Interrupt::Vector));
            }
            6 if carried.is_none() && self.threads.len() > 3 => {
                self.emit(cpu, Kind::Exit { name: b"" });
                self.switch(cpu, DEAD);
            }
            7 if self.threads.len() < 8 => {
                let child = self.next_tid;
                self.next_tid += 1;
                self.emit(cpu, Kind::NewTask { child: Tid(child), same_process: true });
                self.emit(cpu, Kind::Wakeup { tid: Tid(child), name: b"b" });
                self.threads.insert(child, (State::Runnable, false, None));
            }
            _ if in_call => {
                self.emit(cpu, Kind::SystemCallEnd { call: FUTEX });
                self.threads.insert(tid, (State::Running, false, carried));
            }
            _ => self.schedule(cpu, carried),
        }
    }

    fn run(seed: u64, steps: usize) -> Vec<Event> {
        let mut machine = Machine::new(seed);
        machine.emit(0, Kind::Introduction { process: Pid(PROCESS), name: b"a" });
        (0..steps).for_each(|_| machine.step());
        machine.events
    }
}

/// Notes what each LWP did, by its number, and checks that there are no gaps. No number is given again.
#[derive(Default)]
struct Spans(BTreeMap<i32, Vec<(i64, i64, Doing)>>);

impl Fold for Spans {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        if let Change::LwpDid { lwp, doing, from, to } = change {
            self.lwp(lwp, doing, from.as_ns(), to.as_ns());
        }
    }
}

impl Spans {
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: i64, to: i64) {
        let spans = self.0.entry(lwp.tid.0).or_default();
        assert!(from <= to && spans.last().is_none_or(|last| last.1 == from), "{} has a gap", lwp.tid);
        spans.push((from, to, doing));
    }
}

/// The total time reported of each user thread.
#[derive(Default)]
struct Lives {
    pending: BTreeMap<usize, i64>,
    lives: BTreeMap<u64, i64>,
}

impl Fold for Lives {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpDid { lwp, from, to, .. } => self.lwp(lwp, from.as_ns(), to.as_ns()),
            Change::LwpRan { lwp, thread } => self.ran(lwp, thread),
            Change::UserThreadDid { thread, from, to, .. } => {
                self.user_thread(thread, from.as_ns(), to.as_ns())
            }
            _ => {}
        }
    }
}

impl Lives {
    fn lwp(&mut self, lwp: &Lwp, from: i64, to: i64) {
        if lwp.runs_user_thread() {
            *self.pending.entry(lwp.serial.0).or_default() += to - from;
        }
    }

    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>) {
        let ran = self.pending.remove(&lwp.serial.0).unwrap_or(0);
        thread.into_iter().for_each(|thread| *self.lives.entry(thread.id.0).or_default() += ran);
    }

    fn user_thread(&mut self, thread: &UserThread, from: i64, to: i64) {
        *self.lives.entry(thread.id.0).or_default() += to - from;
    }
}

/// Events of one CPU's kernel, or of programs, that are lost: from when to when.
type Loss = Option<(Scope, i64, i64)>;

fn is_lost((time, cpu, _, kind): &Event, loss: Loss) -> bool {
    let user = matches!(kind, Kind::User | Kind::UserThread(_) | Kind::Introduction { .. });
    loss.is_some_and(|(scope, from, to)| {
        let concerned = match scope {
            Scope::User => user,
            Scope::Samples => false,
            Scope::Kernel(of) => !user && of.is_none_or(|of| of == Cpu(*cpu)),
        };
        concerned && (from..=to).contains(time)
    })
}

fn fold<F: Fold + Default>(events: &[Event], mut loss: Loss) -> F {
    feed(events, &mut loss, F::default()).0
}

fn feed<F: Fold>(events: &[Event], loss: &mut Loss, mut fold: F) -> (F, Ran) {
    let mut state = SuperTrace::default();
    for (time, cpu, tid, kind) in events {
        if let Some((scope, from, to)) = loss.take_if(|(_, from, _)| *from <= *time) {
            state.lost(scope, Timestamp::from_ns(from), Timestamp::from_ns(to), &mut fold);
        }
        let process = (*tid != 0).then_some(PROCESS);
        let event = activity(*time, *cpu, *tid, process, *kind);
        state.event(&event, &mut fold);
    }
    let mut ran = Ran::default();
    let time = |event: Option<&Event>| event.map_or(Timestamp::ORIGIN, |event| Timestamp::from_ns(event.0));
    (ran.begin_ns, ran.end_ns) = (time(events.first()), time(events.last()));
    state.finish(&mut fold);
    (fold, ran)
}

fn threads(events: &[Event]) -> ThreadsTable {
    let (threads, ran) = feed(events, &mut None, Threads::new());
    threads.finish(&ran)
}

fn tasks(events: &[Event]) -> Vec<Task> {
    feed(events, &mut None, Tasks::new(Thresholds::default(), false)).0.finish()
}

/// Running where, ready, blocked; what it runs is left aside.
fn coarse(doing: Doing) -> Option<(State, Option<u32>)> {
    match doing {
        Doing::Running { cpu, .. } => Some((State::Running, Some(cpu.0))),
        Doing::Runnable { .. } => Some((State::Runnable, None)),
        Doing::Blocked { .. } => Some((State::Blocked, None)),
        Doing::Unknown | Doing::Nested => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_missing_the_states_of_each_add_up_to_its_life(seed: u64, dropped in 0..60_usize) {
        let mut random = Machine::new(seed.rotate_left(7));
        let mut events = Machine::run(seed, 400);
        events.retain(|_| random.below(100) >= dropped);
        prop_assume!(!events.is_empty());

        let table = threads(&events);
        let spans: Spans = fold(&events, None);
        for thread in &table.threads {
            let times = &thread.times;
            let sum = times.running_ns + times.waiting_ns + times.blocked_ns + times.unknown_ns;
            let spans = &spans.0[&thread.tid.0];
            let life = spans[spans.len() - 1].1 - spans[0].0;
            prop_assert_eq!(sum.as_ns(), life as u64, "{:?}", thread);
        }
        let lives: Lives = fold(&events, None);
        // One that seems to have ended, with its thread, and is seen again has two accounts.
        let mut sums: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
        for thread in &table.user_threads {
            let Times { running_ns, waiting_ns, blocked_ns, nested_ns, unknown_ns, .. } = thread.times;
            sums.entry(thread.thread.expect("a number").0).or_default()[0] +=
                (running_ns + waiting_ns + blocked_ns + nested_ns + unknown_ns).as_ns();
        }
        for task in tasks(&events) {
            sums.entry(task.task.expect("a number").0).or_default()[1] +=
                (task.busy_ns + task.scheduled_ns + task.idle_ns + task.nested_ns + task.unknown_ns).as_ns();
        }
        let lives: BTreeMap<u64, [u64; 2]> =
            lives.lives.iter().map(|(task, life)| (*task, [*life as u64; 2])).collect();
        prop_assert_eq!(sums, lives);

        // Every thread with remaining events is reported.
        for (_, _, tid, _) in &events {
            let is_reported = *tid == 0 || table.strangers > 0 || table.threads.iter().any(|thread| thread.tid == Tid(*tid));
            prop_assert!(is_reported, "nothing is reported of {}", tid);
        }
    }

    #[test]
    fn a_loss_that_is_reported_makes_nothing_wrong(seed: u64, from in 0..4000_i64, long in 1..1000_i64, of in 0..4_u32) {
        let events = Machine::run(seed, 400);
        let scope = match of {
            3 => Scope::User,
            2 => Scope::Kernel(None),
            cpu => Scope::Kernel(Some(Cpu(cpu))),
        };
        let loss = Some((scope, from, from + long));
        let left: Vec<Event> = events.iter().filter(|event| !is_lost(event, loss)).copied().collect();
        prop_assume!(!left.is_empty() && left[0] == events[0]);
        let (whole, lossy): (Spans, Spans) = (fold(&events, None), fold(&left, loss));
        for (tid, spans) in &lossy.0 {
            for (begin, end, doing) in spans {
                let Some(is) = coarse(*doing) else { continue };
                for (from, to, doing) in &whole.0[tid] {
                    let overlaps = from.max(begin) < to.min(end);
                    if let (true, Some(was)) = (overlaps, coarse(*doing)) {
                        prop_assert_eq!(is, was, "{} from {} to {}", tid, from.max(begin), to.min(end));
                    }
                }
            }
        }
    }
}
