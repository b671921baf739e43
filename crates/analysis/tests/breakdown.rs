//! The breakdown on hand-made events whose answer is known.

mod activity;

use activity::activity;
use tracewing_analysis::{
    Analysis, Breakdown, BreakdownRow, BreakdownTable, Input, Ipc, Names, ProcessBreakdown, Ran, Recorded,
    Spent, Waits,
};
use tracewing_trace::super_trace::TaskState;
use tracewing_trace::super_trace::{
    Activity, Context, Coverage, Interrupt, Interrupts, Kind, Name, SuperTrace,
};
use tracewing_units::{Duration, Pid, Tid, Timestamp};

const SLEEPS: i64 = 1;
const NAMES: [&str; 12] = [
    "read",
    "write",
    "futex",
    "sendto",
    "recvfrom",
    "NET_RX",
    "local_timer",
    "clone",
    "exit_group",
    "nanosleep",
    "kill",
    "softirq",
];
const READ: Name = Name(0);
const WRITE: Name = Name(1);
const FUTEX: Name = Name(2);
const SENDTO: Name = Name(3);
const RECVFROM: Name = Name(4);
const NET_RX: Name = Name(5);
const TIMER: Name = Name(6);
const CLONE: Name = Name(7);
const EXIT: Name = Name(8);
const SLEEP: Name = Name(9);
const KILL: Name = Name(10);
const SOFTIRQ: Name = Name(11);

type Event = (i64, u32, i32, Kind<'static>);

/// What a recording of the whole machine with two CPUs gives. LWPs below 100 are process 1's, the others each
/// a process.
fn of(events: &[Event]) -> BreakdownTable {
    of_recorded(events, Recorded { interrupts: true, ..Recorded::default() })
}

/// The same of a recording that has these kinds of events.
fn of_recorded(events: &[Event], recorded: Recorded) -> BreakdownTable {
    of_covered(events, recorded, Coverage::default(), Context::Unknown)
}

/// The same of one that has these events, all of them in one context.
fn of_covered(events: &[Event], recorded: Recorded, coverage: Coverage, context: Context) -> BreakdownTable {
    let (mut state, mut breakdown) = (SuperTrace::new(coverage), Breakdown::new());
    let mut names = Names::default();
    for (number, text) in (0..).zip(NAMES) {
        names.learn(Name(number), text);
        breakdown.input(Input::Name { name: Name(number), text });
    }
    for (time, cpu, tid, kind) in events {
        let process = Some(if *tid < 100 { 1 } else { *tid }).filter(|_| *tid != 0);
        let event = Activity { context, ..activity(*time, *cpu, *tid, process, *kind) };
        state.event(&event, &mut breakdown);
    }
    state.finish(&mut breakdown);
    let times = events.iter().map(|event| event.0);
    let (begin_ns, end_ns) = (times.clone().min().unwrap(), times.max().unwrap());
    breakdown.finish(&Ran {
        begin_ns: Timestamp::from_ns(begin_ns),
        end_ns: Timestamp::from_ns(end_ns),
        cpus: 2,
        whole: true,
        names,
        recorded,
        ..Ran::default()
    })
}

fn switch(time: i64, cpu: u32, prev: i32, prev_state: i64, next: i32) -> Event {
    (
        time,
        cpu,
        prev,
        Kind::Switch {
            prev: Tid(prev),
            prev_name: b"lwp",
            prev_state: TaskState(prev_state),
            next: Tid(next),
            next_name: b"lwp",
        },
    )
}

fn waking(time: i64, cpu: u32, by: i32, tid: i32) -> Event {
    (time, cpu, by, Kind::Waking { tid: Tid(tid), name: b"lwp" })
}

fn begins(time: i64, cpu: u32, tid: i32, call: Name) -> Event {
    (time, cpu, tid, Kind::SystemCall { call })
}

fn ends(time: i64, cpu: u32, tid: i32, call: Name) -> Event {
    (time, cpu, tid, Kind::SystemCallEnd { call })
}

fn takes(time: i64, cpu: u32, tid: i32, kind: Interrupt, name: Name) -> Event {
    (time, cpu, tid, Kind::InterruptEntry { kind, name })
}

fn gives(time: i64, cpu: u32, tid: i32, kind: Interrupt) -> Event {
    (time, cpu, tid, Kind::InterruptExit(kind))
}

#[track_caller]
fn process(table: &BreakdownTable, number: i32) -> &ProcessBreakdown {
    table.processes.iter().find(|process| process.process == Some(Pid(number))).expect("the process is there")
}

#[track_caller]
fn row<'t>(process: &'t ProcessBreakdown, name: &str) -> &'t BreakdownRow {
    let called = |row: &&BreakdownRow| match &row.place {
        Spent::Call(call) => call == name,
        Spent::User => name == "user",
        Spent::Kernel => name == "kernel",
        Spent::Unknown => name == "unknown",
    };
    process.rows.iter().find(called).unwrap_or_else(|| panic!("no row {name}: {process:#?}"))
}

fn outside(process: &ProcessBreakdown) -> Vec<(Option<i32>, &str, u64, u64)> {
    let all = process.outside.iter();
    all.map(|other| {
        (other.process.map(|pid| pid.0), &*other.name, other.count, other.ns.map_or(0, Duration::as_ns))
    })
    .collect()
}

/// Thread 7 of process 1 reads what 200, another process, writes.
fn pipeline() -> Vec<Event> {
    vec![
        switch(0, 0, 0, 0, 7),
        switch(0, 1, 0, 0, 200),
        (0, 1, 200, Kind::User),
        (5, 0, 7, Kind::PageFault { user: true, high: true }),
        begins(10, 0, 7, READ),
        (12, 0, 7, Kind::PageFault { user: false, high: false }),
        switch(20, 0, 7, SLEEPS, 0),
        begins(30, 1, 200, WRITE),
        waking(35, 1, 200, 7),
        ends(40, 1, 200, WRITE),
        switch(50, 0, 0, 0, 7),
        takes(60, 0, 7, Interrupt::Vector, TIMER),
        gives(63, 0, 7, Interrupt::Vector),
        ends(70, 0, 7, READ),
        begins(80, 0, 7, SLEEP),
        switch(85, 0, 7, SLEEPS, 0),
        takes(95, 0, 0, Interrupt::Vector, TIMER),
        waking(96, 0, 0, 7),
        gives(98, 0, 0, Interrupt::Vector),
        switch(99, 0, 0, 0, 7),
        (100, 0, 7, Kind::Kernel),
        (100, 1, 200, Kind::User),
    ]
}

#[test]
fn a_system_call_has_its_own_time_and_what_is_nested_in_it() {
    let table = of(&pipeline());
    let reader = process(&table, 1);
    let read = row(reader, "read");
    assert_eq!((read.own_ns.as_ns(), read.calls, read.faults), (10 + 17, 1, 1));
    assert_eq!(read.ipc[Ipc::Pipe as usize], Waits { count: 1, ns: Duration::from_ns(15) });
    assert_eq!((read.interrupts_ns().as_ns(), read.interrupts[0].on.as_deref()), (3, Some("local_timer")));
    assert_eq!([read.blocked_ns, read.ready_ns], [0, 15].map(Duration::from_ns));
    let user = row(reader, "user");
    assert_eq!(
        (user.own_ns.as_ns(), user.faults, user.calls),
        (5 + 5 + 10, 1, 0),
        "the page fault says so of what was before"
    );
    let sleep = row(reader, "nanosleep");
    assert_eq!([sleep.own_ns, sleep.blocked_ns, sleep.ready_ns], [5 + 1, 11, 3].map(Duration::from_ns));
    assert_eq!(sleep.ipc(), Waits::default(), "a timer is no other thread");
    assert!(reader.rows.iter().all(|row| row.place != Spent::Unknown || row.own_ns == Duration::ZERO));
    let write = row(process(&table, 200), "write");
    assert_eq!((write.own_ns.as_ns(), write.calls, write.woke), (10, 1, 1));
}

#[test]
fn all_time_of_all_cpus_is_somewhere() {
    let table = of(&pipeline());
    let machine = table.machine.as_ref().expect("the whole machine");
    assert_eq!(machine.total_ns(), Duration::from_ns(2 * 100));
    assert_eq!(machine.idle_ns, Duration::from_ns(30 + 10 + 1));
    assert_eq!(machine.interrupts_ns, Some(Duration::from_ns(3 + 3)));
    assert_eq!(machine.unknown_ns, Duration::ZERO);
    assert_eq!([machine.calls_ns, machine.kernel_ns], [27 + 6 + 10, 0].map(Duration::from_ns));
}

/// Where a kind of interrupt is missing, the others' time is not that of interrupts.
#[test]
fn time_of_some_interrupts_is_not_that_of_all() {
    let table = of_recorded(&pipeline(), Recorded::default());
    let machine = table.machine.as_ref().expect("the whole machine");
    assert_eq!(machine.interrupts_ns, None);
    assert_eq!([machine.unknown_ns, machine.total_ns()], [3 + 3, 2 * 100].map(Duration::from_ns));
}

#[test]
fn a_woken_thread_works_for_its_waker_until_it_waits_again() {
    let table = of(&pipeline());
    // 10 ns of system call after the wait, without the interrupt, then 10 of its own, and 5 up to its next
    // wait.
    assert_eq!(outside(process(&table, 200)), [(Some(1), "", 1, 17 + 10 + 5)]);
    // The interrupt had the idle CPU for 3 ns, and woke 7.
    assert_eq!(outside(process(&table, 1)), [(None, "local_timer", 1, 3)]);
}

#[test]
fn a_parent_and_an_awaited_process_have_no_servers() {
    let events = [
        switch(0, 0, 0, 0, 7),
        begins(10, 0, 7, CLONE),
        (11, 0, 7, Kind::NewTask { child: Tid(200), same_process: false }),
        waking(12, 0, 7, 200),
        switch(12, 1, 0, 0, 200),
        ends(15, 1, 200, CLONE),
        ends(16, 0, 7, CLONE),
        begins(20, 0, 7, READ),
        switch(25, 0, 7, SLEEPS, 0),
        begins(30, 1, 200, EXIT),
        waking(35, 1, 200, 7),
        switch(40, 0, 0, 0, 7),
        switch(40, 1, 200, 0x20, 0),
        switch(60, 0, 7, SLEEPS, 0),
    ];
    let table = of(&events);
    let (parent, child) = (process(&table, 1), process(&table, 200));
    assert_eq!((outside(parent), outside(child)), (vec![], vec![]));
    let born = row(child, "clone");
    assert_eq!((born.own_ns.as_ns(), born.calls), (3, 0), "it begins in the call that made it");
    assert_eq!(row(child, "exit_group").own_ns, Duration::from_ns(10));
    assert_eq!(row(parent, "read").ipc[Ipc::Pipe as usize].count, 1, "the end of the other closes its files");
}

/// Over what 7 waited in `waits` for 200 in `wakes`, which an interrupt's wake stands for where there is
/// none.
fn over(waits: Name, wakes: Option<Name>, socket: bool) -> Vec<(Ipc, u64)> {
    let mut events = vec![
        switch(0, 0, 0, 0, 7),
        switch(0, 1, 0, 0, 200),
        begins(10, 0, 7, waits),
        switch(20, 0, 7, SLEEPS, 0),
    ];
    match wakes {
        Some(call) => events.extend([begins(30, 1, 200, call), waking(35, 1, 200, 7)]),
        None => events.extend([
            takes(30, 1, 200, Interrupt::Softirq, NET_RX),
            waking(35, 1, 200, 7),
            gives(36, 1, 200, Interrupt::Softirq),
        ]),
    }
    events.push(switch(40, 0, 0, 0, 7));
    events.extend(socket.then_some((45, 0, 7, Kind::Socket)));
    events.push(ends(50, 0, 7, waits));
    let table = of(&events);
    let kinds = row(process(&table, 1), NAMES[waits.0 as usize]).ipc_by_kind();
    kinds.into_iter().map(|(ipc, waits)| (ipc, waits.ns.as_ns())).collect()
}

#[test]
fn calls_of_both_processes_show_how_they_communicate() {
    assert_eq!(over(READ, Some(WRITE), false), [(Ipc::Pipe, 15)]);
    assert_eq!(over(READ, Some(WRITE), true), [(Ipc::Socket, 15)], "an event says that it was a socket");
    assert_eq!(over(READ, Some(SENDTO), false), [(Ipc::Socket, 15)]);
    assert_eq!(over(RECVFROM, Some(WRITE), false), [(Ipc::Socket, 15)]);
    assert_eq!(over(RECVFROM, None, false), [(Ipc::Socket, 15)]);
    assert_eq!(over(FUTEX, Some(FUTEX), false), [(Ipc::Futex, 15)]);
    assert_eq!(over(FUTEX, None, false), []);
    assert_eq!(over(SLEEP, Some(KILL), false), [(Ipc::Signal, 15)]);
    assert_eq!(over(SLEEP, Some(WRITE), false), []);
    assert_eq!(over(READ, Some(SLEEP), false), []);
}

/// Without interrupts, the context of a wake may say that a softirq made it, but not which; or nothing says
/// whether the running thread did.
#[test]
fn what_ended_a_wait_is_unknown_without_interrupts() {
    let waits = |waits: Name, context| {
        let events = [
            switch(0, 0, 0, 0, 7),
            switch(0, 1, 0, 0, 200),
            begins(10, 0, 7, waits),
            switch(20, 0, 7, SLEEPS, 0),
            begins(30, 1, 200, SENDTO),
            waking(35, 1, 200, 7),
            switch(40, 0, 0, 0, 7),
        ];
        let coverage = Coverage { interrupts: Interrupts::Unrecorded, ..Coverage::default() };
        let table = of_covered(&events, Recorded::default(), coverage, context);
        let row = row(process(&table, 1), NAMES[waits.0 as usize]);
        [row.unexplained.ns, row.ipc().ns, row.blocked_ns].map(Duration::as_ns)
    };
    let softirq = Context::Softirq(SOFTIRQ);
    assert_eq!([waits(RECVFROM, softirq), waits(READ, softirq)], [[15, 0, 0]; 2], "perhaps NET_RX");
    assert_eq!(
        [waits(FUTEX, softirq), waits(SLEEP, softirq)],
        [[0, 0, 15]; 2],
        "no thread, whichever it was"
    );
    assert_eq!([waits(FUTEX, Context::Unknown), waits(SLEEP, Context::Unknown)], [[15, 0, 0]; 2]);
    assert_eq!(waits(RECVFROM, Context::Thread), [0, 15, 0]);
}

#[test]
fn threads_of_the_kernels_own_have_no_unknown_time() {
    let table = of(&[
        (0, 0, 7, Kind::Dump { tid: Tid(300), process: Pid(300), name: b"kworker", is_kernel: true }),
        switch(10, 0, 7, SLEEPS, 300),
        (20, 0, 300, Kind::NewTask { child: Tid(301), same_process: false }),
        switch(30, 0, 300, SLEEPS, 301),
        switch(40, 0, 301, SLEEPS, 0),
    ]);
    for kernel in [300, 301] {
        assert_eq!(
            row(process(&table, kernel), "kernel").own_ns,
            Duration::from_ns(if kernel == 300 { 20 } else { 10 })
        );
    }
    assert_eq!(table.machine.unwrap().kernel_ns, Duration::from_ns(30));
}

#[test]
fn a_softirq_that_a_thread_raised_is_its_doing() {
    let table = of(&[
        switch(0, 0, 0, 0, 7),
        switch(0, 1, 0, 0, 200),
        begins(10, 0, 7, RECVFROM),
        switch(20, 0, 7, SLEEPS, 0),
        begins(25, 1, 200, SENDTO),
        (28, 1, 200, Kind::Raise { name: NET_RX }),
        takes(30, 1, 200, Interrupt::Softirq, NET_RX),
        waking(35, 1, 200, 7),
        gives(36, 1, 200, Interrupt::Softirq),
        switch(40, 0, 0, 0, 7),
        ends(50, 0, 7, RECVFROM),
        begins(60, 0, 7, SLEEP),
        switch(61, 0, 7, SLEEPS, 0),
    ]);
    assert_eq!(outside(process(&table, 200)), [(Some(1), "", 1, 21)]);
    assert_eq!(outside(process(&table, 1)), [(None, "NET_RX", 1, 6)]);
}

/// What is known of 7, which leaves CPU 0 in these states and comes back.
fn computes(states: &[i64]) -> BreakdownTable {
    let mut events = vec![(0, 0, 7, Kind::Kernel)];
    for (time, state) in (10..).step_by(10).zip(states) {
        events.extend([switch(time, 0, 7, *state, 0), switch(time, 0, 0, 0, 7)]);
    }
    events.push((100, 0, 7, Kind::Kernel));
    of(&events)
}

#[test]
fn a_thread_that_loses_its_cpu_only_on_return_was_in_its_program() {
    assert_eq!(row(process(&computes(&[0, 0]), 1), "user").own_ns, Duration::from_ns(100));
    for states in [&[][..], &[0, 0x100], &[0, SLEEPS]] {
        assert_eq!(
            row(process(&computes(states), 1), "unknown").own_ns,
            Duration::from_ns(100),
            "{states:?}"
        );
    }
}

/// At the end of a recording, or where events are missing, nothing has ended it: another thread may.
#[test]
fn what_a_wait_is_for_is_unknown_until_it_ends() {
    let waits = |call: Name| {
        let story = [
            switch(0, 0, 0, 0, 10),
            begins(10, 0, 10, call),
            switch(20, 0, 10, SLEEPS, 11),
            begins(50, 0, 11, SENDTO),
        ];
        let table = of(&story);
        let row = row(process(&table, 1), NAMES[call.0 as usize]);
        (row.ipc().count, row.lasting.count, row.lasting.ns.as_ns(), row.blocked_ns.as_ns())
    };
    for call in [READ, FUTEX, RECVFROM, SLEEP] {
        assert_eq!(waits(call), (0, 1, 30, 0), "a signal of another thread ends each");
    }
}

/// Without system calls, no event shows where it did that.
#[test]
fn wakes_are_counted_where_the_waker_is() {
    let story = [switch(0, 0, 0, 0, 10), waking(10, 0, 10, 100), switch(20, 0, 10, SLEEPS, 0)];
    let coverage = Coverage { system_calls: false, ..Coverage::default() };
    let table =
        of_covered(&story, Recorded { wakes: true, ..Recorded::default() }, coverage, Context::Thread);
    assert_eq!(row(process(&table, 1), "unknown").woke, 1);
}
