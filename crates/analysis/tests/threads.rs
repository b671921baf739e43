//! The thread analysis on hand-made events whose answer is known.

mod activity;

use activity::activity;
use tracewing_analysis::{Analysis, Input, Ran, Thread, Threads, ThreadsTable, Times};
use tracewing_trace::super_trace::TaskState;
use tracewing_trace::super_trace::{Coverage, Interrupt, Kind, Name, Scope, SuperTrace};
use tracewing_units::{Cpu, Duration, Pid, Tid, Timestamp};

const SLEEPS: i64 = 1;
const RUNNABLE: i64 = 0x100;
const DEAD: i64 = 0x20;
const READ: Name = Name(0);
const TIMER: Name = Name(9);

/// The state and the analysis.
#[derive(Default)]
struct Fed {
    state: SuperTrace,
    threads: Threads,
    times: Option<(i64, i64)>,
}

impl Fed {
    fn event(&mut self, (time, cpu, tid, kind): (i64, u32, i32, Kind<'static>)) {
        let event = activity(time, cpu, tid, None, kind);
        self.state.event(&event, &mut self.threads);
        if let Kind::Dump { tid, process, name, .. } = kind {
            self.threads.input(Input::Dumped { tid, process, name });
        }
        self.times = Some((self.times.map_or(time, |(begin, _)| begin), time));
    }

    fn finish(mut self) -> ThreadsTable {
        let (begin_ns, end_ns) = self.times.unwrap_or_default();
        let mut ran = Ran {
            begin_ns: Timestamp::from_ns(begin_ns),
            end_ns: Timestamp::from_ns(end_ns),
            partial: self.state.is_partial(),
            ..Ran::default()
        };
        ran.names.learn(READ, "read");
        ran.names.learn(TIMER, "timer");
        self.state.finish(&mut self.threads);
        self.threads.finish(&ran)
    }
}

/// A recording under construction; every event says when (ns) and on which CPU.
#[derive(Default)]
struct Events(Vec<(i64, u32, i32, Kind<'static>)>);

impl Events {
    fn switch(mut self, time: i64, cpu: u32, prev: i32, prev_state: i64, next: i32) -> Self {
        let kind = Kind::Switch {
            prev: Tid(prev),
            prev_name: b"out",
            prev_state: TaskState(prev_state),
            next: Tid(next),
            next_name: b"in",
        };
        self.0.push((time, cpu, prev, kind));
        self
    }

    fn by(mut self, time: i64, cpu: u32, tid: i32, kind: Kind<'static>) -> Self {
        self.0.push((time, cpu, tid, kind));
        self
    }

    fn fold(&self) -> Fed {
        let mut fed = Fed::default();
        self.0.iter().for_each(|event| fed.event(*event));
        fed
    }

    fn table(&self) -> ThreadsTable {
        self.fold().finish()
    }
}

fn takes(kind: Interrupt) -> Kind<'static> {
    Kind::InterruptEntry { kind, name: TIMER }
}

fn waking(tid: i32) -> Kind<'static> {
    Kind::Waking { tid: Tid(tid), name: b"woken" }
}

fn wakeup(tid: i32) -> Kind<'static> {
    Kind::Wakeup { tid: Tid(tid), name: b"woken" }
}

#[track_caller]
fn thread(table: &ThreadsTable, tid: i32) -> &Thread {
    table.threads.iter().find(|thread| thread.tid == Tid(tid)).expect("the thread is in the table")
}

/// Running, waiting, blocked, unknown.
fn times(thread: &Thread) -> [u64; 4] {
    let times = &thread.times;
    [times.running_ns, times.waiting_ns, times.blocked_ns, times.unknown_ns].map(Duration::as_ns)
}

#[test]
fn a_thread_is_followed_through_all_states() {
    let table = Events::default()
        .switch(100, 0, 0, 0, 7) // nothing known of 7 before: 0 ns, the recording begins here
        .switch(130, 0, 7, SLEEPS, 0) // ran 30
        .by(180, 1, 9, waking(7)) // blocked 50
        .by(182, 1, 9, wakeup(7))
        .switch(190, 1, 9, RUNNABLE, 7) // waited 10, on the other CPU
        .switch(250, 1, 7, RUNNABLE, 9) // ran 60
        .switch(300, 1, 9, SLEEPS, 7) // waited 50
        .switch(350, 1, 7, DEAD, 0) // ran 50
        .switch(400, 1, 0, 0, 9)
        .table();
    let seven = thread(&table, 7);
    assert_eq!(times(seven), [140, 60, 50, 0]);
    assert_eq!((seven.switches, seven.preemptions, seven.migrations, seven.wakeups), (3, 1, 1, 1));
    // 9 was first seen at 180, running; its state before is unknown; from 300 it sleeps, and its waker is not
    // recorded.
    assert_eq!(times(thread(&table, 9)), [60, 60, 0, 180]);
    assert_eq!(table.duration_ns, Duration::from_ns(300));
}

#[test]
fn what_follows_stamps_that_go_back_is_unknown() {
    let table = Events::default()
        .switch(100, 0, 0, 0, 7)
        .switch(150, 0, 7, SLEEPS, 9)
        .switch(120, 0, 9, SLEEPS, 7) // written after the one before, which it may precede or not
        .switch(180, 0, 7, SLEEPS, 9)
        .switch(190, 0, 9, SLEEPS, 7)
        .table();
    assert_eq!(times(thread(&table, 7)), [50, 0, 0, 40]);
    assert_eq!(times(thread(&table, 9)), [10, 0, 0, 80]);
}

/// A signal, or the end of its process, takes a thread out of its program; it may be preempted in the kernel.
#[test]
fn without_the_event_of_its_end_the_user_time_of_a_killed_thread_is_unknown() {
    let story = |exit: Option<i64>| {
        let read = Events::default()
            .switch(100, 0, 0, 0, 7)
            .by(110, 0, 7, Kind::SystemCall { call: READ })
            .by(120, 0, 7, Kind::SystemCallEnd { call: READ });
        let left = match exit {
            Some(time) => read.by(time, 0, 7, Kind::Exit { name: b"" }),
            None => read,
        };
        left.switch(140, 0, 7, RUNNABLE, 9).switch(150, 0, 9, RUNNABLE, 7).switch(190, 0, 7, DEAD, 9).table()
    };
    let figures = |table: &ThreadsTable| {
        let seven = thread(table, 7);
        let Times { running_ns, user_ns, system_ns, .. } = seven.times;
        ([running_ns, user_ns, system_ns].map(Duration::as_ns), seven.dies_unseen)
    };
    assert_eq!(figures(&story(Some(130))), ([80, 10, 10], false));
    assert_eq!(figures(&story(None)), ([80, 0, 10], true));
}

/// Nothing after it is its time, though the event may be all that there is of the thread.
#[test]
fn without_switches_a_thread_ends_with_the_event_of_its_exit() {
    let coverage = Coverage { switches: false, ..Coverage::default() };
    let mut fed = Fed { state: SuperTrace::new(coverage), ..Fed::default() };
    fed.event((100, 0, 7, Kind::Exit { name: b"seven" }));
    fed.event((110, 1, 8, Kind::SystemCall { call: READ }));
    fed.event((150, 1, 8, Kind::Exit { name: b"eight" }));
    fed.event((151, 1, 8, waking(9)));
    fed.event((200, 0, 9, Kind::SystemCall { call: READ }));
    let table = fed.finish();
    let figures = [7, 8, 9].map(|tid| (thread(&table, tid).name.as_str(), times(thread(&table, tid))));
    assert_eq!(figures[..2], [("seven", [0, 0, 0, 0]), ("eight", [0, 0, 0, 50])]);
    assert_eq!(figures[2].1, [0, 0, 0, 100]);
}

#[test]
fn a_new_thread_is_blocked_until_its_first_wakeup_and_knows_its_process() {
    let table = Events::default()
        .by(0, 0, 5, Kind::Exec { file: b"/usr/bin/program" })
        .by(10, 0, 5, Kind::NewTask { child: Tid(6), same_process: true })
        .by(11, 0, 5, Kind::NewTask { child: Tid(8), same_process: false })
        .by(12, 0, 5, Kind::Fork { child: Tid(8), name: b"child" })
        .by(20, 0, 5, wakeup(6))
        .switch(50, 0, 5, RUNNABLE, 6)
        .by(60, 0, 6, Kind::SystemCall { call: READ })
        .switch(90, 0, 6, SLEEPS, 5)
        .table();
    assert_eq!(times(thread(&table, 6)), [40, 30, 10, 0]);
    assert_eq!(thread(&table, 6).process, Some(Pid(5)));
    assert_eq!((thread(&table, 8).process, thread(&table, 8).name.as_str()), (Some(Pid(8)), "child"));
    assert_eq!(times(thread(&table, 5)), [50, 40, 0, 0]);
    assert_eq!(thread(&table, 6).system_calls, 1);
}

#[test]
fn a_waker_that_comes_before_the_switch_leaves_no_blocked_time() {
    let events = Events::default()
        .switch(0, 0, 0, 0, 7)
        .by(95, 1, 9, waking(7))
        .switch(100, 0, 7, SLEEPS, 0)
        .by(105, 1, 9, wakeup(7))
        .switch(120, 0, 0, 0, 7);
    assert_eq!(times(thread(&events.table(), 7)), [100, 20, 0, 0]);
    // Used up before the switch: the thread really slept.
    let events = Events::default()
        .switch(0, 0, 0, 0, 7)
        .by(95, 1, 9, waking(7))
        .by(96, 1, 9, wakeup(7))
        .switch(100, 0, 7, SLEEPS, 0)
        .by(150, 1, 9, waking(7))
        .switch(170, 0, 0, 0, 7);
    assert_eq!(times(thread(&events.table(), 7)), [100, 20, 50, 0]);
}

#[test]
fn one_unmatched_event_costs_only_the_time_it_leaves_open() {
    let table = Events::default()
        .switch(0, 0, 0, 0, 7)
        .by(40, 0, 7, Kind::SystemCall { call: READ }) // the last sign of 7
        .switch(100, 0, 8, SLEEPS, 7) // its switch to 8 is missing
        .switch(130, 0, 7, SLEEPS, 0)
        .by(150, 0, 0, waking(7))
        .switch(160, 0, 0, 0, 7)
        .table();
    assert_eq!(times(thread(&table, 7)), [70, 10, 20, 60]);
}

#[test]
fn interrupts_are_part_of_the_running_time() {
    let table = Events::default()
        .switch(0, 0, 0, 0, 7)
        .by(10, 0, 7, takes(Interrupt::Vector))
        .by(15, 0, 7, takes(Interrupt::Handler))
        .by(20, 0, 7, Kind::InterruptExit(Interrupt::Handler))
        .by(25, 0, 7, Kind::InterruptExit(Interrupt::Vector))
        .by(30, 0, 7, Kind::InterruptExit(Interrupt::Vector)) // unmatched
        .switch(50, 0, 7, SLEEPS, 0)
        .table();
    let times = &thread(&table, 7).times;
    assert_eq!([times.running_ns, times.interrupted_ns], [50, 15].map(Duration::from_ns));
    let by = &times.interrupted_by;
    assert_eq!((by.len(), by[0].on.as_deref(), by[0].ns.as_ns()), (1, Some("timer"), 15));
}

#[test]
fn a_loss_makes_unknown_what_it_may_have_changed_and_nothing_else() {
    let before = Events::default().switch(0, 0, 0, 0, 7).switch(0, 1, 0, 0, 8).by(10, 1, 8, waking(9));
    let mut threads = before.fold();
    for scope in [Scope::Kernel(Some(Cpu(0))), Scope::User] {
        threads.state.lost(scope, Timestamp::from_ns(50), Timestamp::from_ns(80), &mut threads.threads);
    }
    for event in Events::default().switch(100, 0, 7, SLEEPS, 9).switch(120, 1, 8, SLEEPS, 0).0 {
        threads.event(event);
    }
    let table = threads.finish();
    assert_eq!(times(thread(&table, 7)), [50, 0, 20, 50]);
    assert_eq!(times(thread(&table, 8)), [120, 0, 0, 0]);
    assert_eq!(times(thread(&table, 9)), [20, 40, 0, 60]);
}

#[test]
fn strangers_of_a_partial_recording_are_counted_and_not_judged() {
    let table = Events::default()
        .switch(0, 0, 50, RUNNABLE, 7)
        .by(5, 0, 7, Kind::SystemCall { call: READ })
        .switch(20, 0, 7, SLEEPS, 50)
        .switch(90, 0, 51, SLEEPS, 7) // nothing was recorded from 50 to 51
        .switch(100, 0, 7, SLEEPS, 0)
        .table();
    assert_eq!(table.threads.iter().map(|thread| thread.tid).collect::<Vec<_>>(), [Tid(7)]);
    assert_eq!(table.strangers, 2);
}

#[test]
fn a_number_given_twice_has_two_accounts() {
    let fork = Kind::Fork { child: Tid(7), name: b"child" };
    let table = Events::default()
        .switch(0, 0, 0, 0, 7)
        .switch(10, 0, 7, DEAD, 5)
        .by(20, 0, 5, fork)
        .by(21, 0, 5, wakeup(7))
        .switch(30, 0, 5, RUNNABLE, 7)
        .switch(70, 0, 7, DEAD, 5)
        .table();
    let accounts: Vec<_> = table.threads.iter().filter(|thread| thread.tid == Tid(7)).map(times).collect();
    assert_eq!(accounts, [[40, 9, 1, 0], [10, 0, 0, 0]]);
}

#[test]
fn nothing_gives_an_empty_table() {
    assert_eq!(Threads::new().finish(&Ran::default()), ThreadsTable::default());
}

#[test]
fn events_of_programs_are_counted_and_move_nothing() {
    let table = Events::default()
        .switch(0, 0, 0, 0, 7)
        .by(5, 0, 7, Kind::Introduction { process: Pid(6), name: b"other" })
        .by(6, 1, 8, Kind::Introduction { process: Pid(6), name: b"worker" })
        .by(7, 1, 8, Kind::User)
        .by(10, 1, 7, Kind::User) // in the buffer of a CPU where it no longer is
        .switch(50, 0, 7, SLEEPS, 0)
        .table();
    let seven = thread(&table, 7);
    assert_eq!((times(seven), seven.user_events, seven.migrations), ([50, 0, 0, 0], 1, 0));
    assert_eq!(seven.process, Some(Pid(6)));
    // The scheduler did not say how it is called.
    assert_eq!((thread(&table, 8).process, thread(&table, 8).name.as_str()), (Some(Pid(6)), "worker"));
}

#[test]
fn a_state_dump_names_threads_that_events_show_and_no_others() {
    let dump = |tid, process| Kind::Dump { tid, process, name: b"dumped", is_kernel: false };
    let table = Events::default()
        .by(50, 0, 99, dump(Tid(7), Pid(5))) // before its first event, as in LTTng's traces
        .by(50, 0, 99, dump(Tid(9), Pid(9))) // its number is given to another thread before it does anything
        .by(50, 0, 99, dump(Tid(10), Pid(10))) // does nothing
        .by(60, 1, 8, Kind::SystemCall { call: READ })
        .by(70, 0, 7, Kind::SystemCall { call: READ })
        .by(80, 0, 7, Kind::NewTask { child: Tid(9), same_process: true })
        .switch(85, 2, 11, DEAD, 0)
        .by(90, 0, 99, Kind::Dump { tid: Tid(11), process: Pid(6), name: b"", is_kernel: false }) // it has ended: only its process is known
        .by(90, 0, 99, dump(Tid(8), Pid(6))) // after its events, as in a snapshot
        .by(91, 0, 99, Kind::Dump { tid: Tid(5), process: Pid(5), name: b"first", is_kernel: false })
        .by(91, 0, 99, dump(Tid(9), Pid(4))) // events take precedence
        .table();
    let of = |tid| (thread(&table, tid).process, thread(&table, tid).name.as_str());
    assert_eq!(of(7), (Some(Pid(5)), "dumped"));
    assert_eq!(of(8), (Some(Pid(6)), "dumped"));
    assert_eq!(of(9), (Some(Pid(5)), "dumped"));
    assert_eq!(of(11), (Some(Pid(6)), "out"));
    let of = |number| table.processes().into_iter().find(|process| process.process == Some(number));
    assert_eq!(
        of(Pid(5)).expect("two of its threads did something").name,
        "first",
        "though its first thread did not"
    );
    assert_eq!(table.threads.len(), 4, "neither the thread that wrote the dump nor an inactive one");
}
