//! The thread that runs where a wake is recorded is the waker only if events would report an interrupt there.

mod common;

use common::{Event, Packet};
use std::path::Path;
use tracewing_ctf::model::{EventRecordClass, FieldClass, StructureClass};
use tracewing_trace::super_trace::{Change, Fold, Follower, Lwp, Waker};
use tracewing_trace::{Conversion, Filter, Merge, Message, Recording, TimeRange};
use tracewing_vocabulary::kernel::SystemCall;

const SWITCH: u16 = 1;
const WAKING: u16 = 2;
const WAKEUP: u16 = 3;
const FORK: u16 = 4;
const OTHER: u16 = 5;
const VECTOR: u16 = 6;
const VECTOR_END: u16 = 7;
const CALL: u16 = 100;

const VECTORS: [&str; 2] = ["x86_irq_vectors_local_timer_entry", "x86_irq_vectors_local_timer_exit"];
const OTHER_INTERRUPTS: [&str; 4] =
    ["irq_handler_entry", "irq_handler_exit", "irq_softirq_entry", "irq_softirq_exit"];
const OTHER_VECTORS: [&str; 8] = [
    "x86_irq_vectors_call_function_single_entry",
    "x86_irq_vectors_call_function_single_exit",
    "x86_irq_vectors_call_function_entry",
    "x86_irq_vectors_call_function_exit",
    "x86_irq_vectors_reschedule_entry",
    "x86_irq_vectors_reschedule_exit",
    "x86_irq_vectors_irq_work_entry",
    "x86_irq_vectors_irq_work_exit",
];

/// Every kind of interrupt that an x86 has.
fn all() -> Vec<&'static str> {
    [&VECTORS[..], &OTHER_VECTORS, &OTHER_INTERRUPTS].concat()
}

/// 7 is woken by 8, which the recording follows; by 9, which it does not follow unless it covers all threads;
/// by the timer, which interrupts 8; by the timer, which interrupts no thread and is not reported by any
/// event; and by 8 in a system call. Then 9 wakes 10.
fn write(folder: &Path, env: &[(&str, &str)], interrupts: &[&str]) {
    let mut class = common::class(Some(1), 1_000_000_000);
    for (name, value) in [("domain", "kernel"), ("recorded_system_calls", "all")].iter().chain(env) {
        class.set_env(*name, *value);
    }
    let number = || FieldClass::signed(32);
    let woken = || StructureClass::new().with("comm", FieldClass::string()).with("tid", number());
    let switch = StructureClass::new()
        .with("prev_comm", FieldClass::string())
        .with("prev_tid", number())
        .with("prev_state", FieldClass::signed(64))
        .with("next_comm", FieldClass::string())
        .with("next_tid", number());
    let fork = StructureClass::new().with("child_comm", FieldClass::string()).with("child_tid", number());
    let with = |id: u16, name: &str, payload| EventRecordClass::new(id.into(), name).with_payload(payload);
    let empty = |id, name: &str| with(id, name, StructureClass::new());
    let mut classes = vec![
        with(SWITCH, "sched_switch", switch),
        with(WAKING, "sched_waking", woken()),
        with(WAKEUP, "sched_wakeup_new", woken()),
        with(FORK, "sched_process_fork", fork),
        empty(OTHER, "signal_deliver"),
    ];
    classes.extend((VECTOR..).zip(interrupts).map(|(id, name)| empty(id, name)));
    for (id, call) in (CALL..).step_by(2).zip(SystemCall::OF_ALL_KERNELS) {
        classes.push(empty(id, &format!("syscall_entry_{call}")));
        classes.push(empty(id + 1, &format!("syscall_exit_{call}")));
    }
    class.data_stream_classes[0].event_record_classes = classes;
    let event = |stamp, id, tid, payload: &[u8]| Event { stamp, id, tid, payload: payload.to_owned() };
    let named = |tid: i32| [&b"name\0"[..], &tid.to_le_bytes()].concat();
    let switch = |stamp, prev: i32, next: i32| {
        event(stamp, SWITCH, prev, &[named(prev), 0_i64.to_le_bytes().to_vec(), named(next)].concat())
    };
    let mut events = vec![
        switch(100, 0, 8),
        event(110, OTHER, 8, &[]),
        event(120, WAKING, 8, &named(7)),
        switch(200, 8, 9),
        event(210, WAKING, 9, &named(7)),
        switch(300, 9, 8),
        event(320, WAKING, 8, &named(7)),
        switch(400, 8, 0),
        event(410, WAKING, 0, &named(7)),
        switch(500, 0, 8),
        event(510, CALL, 8, &[]),
        event(520, WAKING, 8, &named(7)),
        event(530, CALL + 1, 8, &[]),
        switch(600, 8, 9),
        event(610, FORK, 9, &named(10)),
        event(620, WAKEUP, 9, &named(10)),
    ];
    if interrupts.starts_with(&VECTORS) {
        events.insert(6, event(310, VECTOR, 8, &[]));
        events.insert(8, event(330, VECTOR_END, 8, &[]));
    }
    common::write_trace(folder, &class, &[("channel_0", Packet::new(1, 0, 100, 900).bytes(&events))]);
}

#[derive(Default)]
struct Wakes(Vec<String>);

impl Fold for Wakes {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        if let Change::LwpWoken { lwp, by, .. } = change {
            self.lwp_woken(lwp, by);
        }
    }
}

impl Wakes {
    fn lwp_woken(&mut self, lwp: &Lwp, by: &Waker) {
        let actor = match (by.interrupt, by.tid) {
            (Some(_), tid) => format!("interrupt{}", tid.map(|_| " for a thread").unwrap_or_default()),
            (None, Some(tid)) => tid.to_string(),
            (None, None) => {
                assert_eq!((by.lwp, by.process, by.call, by.name.as_str()), (None, None, None, ""));
                "?".to_owned()
            }
        };
        self.0.push(format!("{} by {actor}", lwp.tid));
    }
}

fn wakes(folder: &Path) -> Vec<String> {
    let recording = Recording::open(&[folder]).unwrap();
    let (mut follower, mut wakes) = (Follower::of(&recording), Wakes::default());
    let mut merge = Merge::new(&recording, TimeRange::ALL);
    while let Some(message) = merge.advance().unwrap() {
        let Message::Event(event) = message else { panic!("nothing is lost") };
        let activity = follower.activity(&event).unwrap();
        follower.event(&activity, &mut wakes);
    }
    wakes.0
}

fn of(env: &[(&str, &str)], interrupts: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), env, interrupts);
    wakes(folder.path())
}

const OURS: (&str, &str) = ("tracer_name", "tracewing");
const OF_ALL: (&str, &str) = ("scope", "system");

const KNOWN: [&str; 6] = ["7 by 8", "7 by 9", "7 by interrupt", "7 by 0", "7 by 8", "10 by 9"];
const UNTOLD: [&str; 6] = ["7 by ?", "7 by ?", "7 by ?", "7 by 0", "7 by ?", "10 by 9"];

#[test]
fn if_all_interrupts_are_recorded_the_running_thread_is_the_waker() {
    assert_eq!(of(&[OURS, OF_ALL], &all()), KNOWN);
    assert_eq!(of(&[("tracer_name", "lttng-modules")], &all()), KNOWN);
}

#[test]
fn a_thread_that_is_not_followed_may_have_been_interrupted() {
    assert_eq!(
        of(&[OURS], &all()),
        ["7 by 8", "7 by ?", "7 by interrupt", "7 by 0", "7 by 8", "10 by 9"],
        "9 recorded nothing"
    );
}

#[test]
fn without_a_kind_of_interrupt_the_waker_of_an_older_thread_is_unknown() {
    assert_eq!(of(&[OURS, OF_ALL], &[]), UNTOLD);
    assert_eq!(of(&[OURS, OF_ALL], &OTHER_INTERRUPTS), UNTOLD);
    assert_eq!(of(&[OURS], &[]), UNTOLD);
    assert_eq!(of(&[("tracer_name", "lttng-modules")], &[]), UNTOLD);
    for kind in all() {
        let some: Vec<&str> = all().into_iter().filter(|name| *name != kind).collect();
        let [.., in_call, _] = &of(&[OURS, OF_ALL], &some)[..] else { panic!("six wakes") };
        assert_eq!(in_call, "7 by ?", "without {kind}");
    }
}

#[test]
fn an_arm_has_no_vectors() {
    let arm = [&OTHER_INTERRUPTS[..], &["ipi_entry", "ipi_exit"]].concat();
    let of_machine = |machine: &'static str, kinds: &[&str]| {
        of(&[OURS, OF_ALL, ("architecture", machine)], kinds).swap_remove(4)
    };
    assert_eq!(of_machine("aarch64", &arm), "7 by 8");
    assert_eq!(of_machine("armv7l", &arm), "7 by 8");
    assert_eq!(of_machine("aarch64", &OTHER_INTERRUPTS), "7 by ?");
    assert_eq!(of_machine("riscv64", &arm), "7 by ?");
    assert_eq!(of_machine("x86_64", &arm), "7 by ?");
    assert_eq!(of_machine("x86_64", &all()), "7 by 8");
}

#[test]
fn an_extract_without_interrupts_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, part) = (folder.path().join("whole"), folder.path().join("part"));
    write(&whole, &[OURS, OF_ALL], &all());
    let events = ["sched_*", "signal_*", "syscall_*", "irq_*"].map(String::from);
    let filter = Filter { events: events.to_vec(), ..Filter::default() };
    let recording = Recording::open(&[&whole]).unwrap();
    let conversion = Conversion { filter, ..Conversion::default() };
    conversion.run(&recording, &part, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    assert_eq!(wakes(&part), UNTOLD);
}

const HARD: u8 = 0x08;
const SOFT: u8 = 0x10;
const NMI: u8 = 0x40;
const OTHERS: u8 = !(HARD | SOFT | NMI);

/// The wakes of a recording of the whole machine with events of this name, recorded with ftrace's flags by
/// these threads, which `switches` lead to; the first wakes 71, the next one 72. Before each, the interrupt
/// with this place among `interrupts` begins, if there is one, and it ends after it.
fn flagged(
    name: &str,
    switches: &[(i32, &str)],
    interrupts: &[&str],
    events: &[(u8, i32, Option<u16>)],
) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut class = common::class(Some(1), 1_000_000_000);
    for (name, value) in [("domain", "kernel"), OURS, OF_ALL] {
        class.set_env(name, value);
    }
    let number = || FieldClass::signed(32);
    let woken = StructureClass::new().with("comm", FieldClass::string()).with("tid", number());
    let switch = StructureClass::new()
        .with("prev_comm", FieldClass::string())
        .with("prev_tid", number())
        .with("prev_state", FieldClass::signed(64))
        .with("next_comm", FieldClass::string())
        .with("next_tid", number());
    let stream = &mut class.data_stream_classes[0];
    let context = StructureClass::new().with("tid", number());
    stream.common_context = Some(context.with("flags", FieldClass::unsigned(8)));
    let with = |id: u16, name: &str, payload| EventRecordClass::new(id.into(), name).with_payload(payload);
    stream.event_record_classes = vec![with(WAKING, name, woken), with(SWITCH, "sched_switch", switch)];
    let empty = (VECTOR..).zip(interrupts).map(|(id, name)| with(id, name, StructureClass::new()));
    stream.event_record_classes.extend(empty);
    let named = |name: &str, tid: i32| [name.as_bytes(), b"\0", &tid.to_le_bytes()].concat();
    let event = |stamp, id, tid, flags: u8, payload: Vec<u8>| Event {
        stamp,
        id,
        tid,
        payload: [vec![flags], payload].concat(),
    };
    let mut all = Vec::new();
    let (mut running, mut stamp) = (("swapper", 0), 100);
    for (number, &(flags, tid, interrupt)) in (71..).zip(events) {
        let name = switches.iter().find(|(other, _)| *other == tid).map(|(_, name)| *name);
        if let Some(name) = name.filter(|_| running.1 != tid) {
            let names = [named(running.0, running.1), 0_i64.to_le_bytes().to_vec(), named(name, tid)];
            all.push(event(stamp, SWITCH, running.1, 0, names.concat()));
            running = (name, tid);
        }
        let vector = interrupt.map(|place| VECTOR + 2 * place);
        all.extend(vector.map(|id| event(stamp + 1, id, tid, 0, Vec::new())));
        all.push(event(stamp + 2, WAKING, tid, flags, named("woken", number)));
        all.extend(vector.map(|id| event(stamp + 3, id + 1, tid, 0, Vec::new())));
        stamp += 10;
    }
    let bytes = Packet::new(1, 0, 100, 900).bytes(&all);
    common::write_trace(folder.path(), &class, &[("channel_0", bytes)]);
    wakes(folder.path())
}

#[test]
fn without_interrupt_events_ftraces_flags_show_whether_one_had_the_cpu() {
    let all = [0, OTHERS, HARD, SOFT, NMI, HARD | SOFT, OTHERS | HARD];
    let events: Vec<_> =
        all.into_iter().zip([9, 8].into_iter().cycle()).map(|(flags, tid)| (flags, tid, None)).collect();
    assert_eq!(
        flagged("sched_waking", &[], &[], &events),
        [
            "71 by 9",
            "72 by 8",
            "73 by interrupt",
            "74 by interrupt",
            "75 by interrupt",
            "76 by interrupt",
            "77 by interrupt"
        ]
    );
}

/// With `sched_wakeup` but without `sched_waking`, which is recorded by the waker.
#[test]
fn a_thread_on_another_cpu_may_be_the_waker() {
    const SWITCHES: [(i32, &str); 4] =
        [(0, "swapper/0"), (8, "program"), (9, "migration/0"), (10, "kworker")];
    const TIMER: Option<u16> = Some(0);
    const CALL: Option<u16> = Some(1);
    const HANDLER: Option<u16> = Some(5);
    let events = [
        (0, 8, None),
        (0, 0, None),
        (0, 9, None),
        (0, 10, None),
        (HARD, 8, TIMER),
        (HARD, 8, CALL),
        (HARD, 8, HANDLER),
        (HARD, 8, None),
        (SOFT, 8, None),
        (HARD, 0, CALL),
    ];
    let proven = ["71 by 8", "72 by ?", "73 by ?", "74 by 10"];
    let woken = flagged("sched_wakeup", &SWITCHES, &all(), &events);
    assert_eq!(woken[..4], proven);
    assert_eq!(
        woken[4..],
        ["75 by interrupt", "76 by ?", "77 by ?", "78 by ?", "79 by interrupt", "80 by ?"],
        "of the interrupts, the timer's and softirqs wake themselves"
    );
    let none: Vec<_> = events.iter().map(|(flags, tid, _)| (*flags, *tid, None)).collect();
    let some = flagged("sched_wakeup", &SWITCHES, &[], &none);
    assert_eq!(some[..4], proven);
    assert_eq!(
        some[4..],
        ["75 by ?", "76 by ?", "77 by ?", "78 by ?", "79 by interrupt", "80 by ?"],
        "no event says which interrupt it was"
    );
    let waking = flagged("sched_waking", &SWITCHES, &all(), &events);
    assert_eq!(waking[1], "72 by 0");
    assert_eq!(waking[5], "76 by interrupt", "a waking is recorded by the waker");
}
