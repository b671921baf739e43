//! What goes to another thread comes out as it went in.

use super::*;
use crate::super_trace::activity::{Context, Interrupt, Name, SwitchCause, TaskState, UserThreadKind};
use crate::threads::tests::refused;
use std::path::Path;
use tracewing_units::{Cpu, Origin, Pid, Task, Tid};

const LONG: &[u8] = &[b'n'; 300];

/// Of every kind that is frequent, and of some that are not.
fn kinds() -> Vec<Kind<'static>> {
    let (tid, name, text) = (Tid(7), Name(3), b"shop".as_slice());
    let switch = |prev_name, next_name| Kind::Switch {
        prev: Tid(0),
        prev_name,
        prev_state: TaskState::RUNNING,
        next: tid,
        next_name,
    };
    let of_user_thread = [
        UserThreadKind::Create { thread: Task(u64::MAX), origin: Origin(2) },
        UserThreadKind::Existed { thread: Task(1), origin: Origin(2) },
        UserThreadKind::Origin { origin: Origin(2), name: text, file: LONG, line: 3 },
        UserThreadKind::Rename { thread: Task(1), name: text },
        UserThreadKind::Switch { prev: Task(0), next: Task(1), cause: SwitchCause::Nested },
        UserThreadKind::Wake { thread: Task(1) },
        UserThreadKind::Exit { thread: Task(1) },
        UserThreadKind::Worker,
    ];
    let mut kinds = vec![
        switch(text, b"swapper/0"),
        switch(LONG, text),
        switch(text, LONG),
        switch(b"", b""),
        Kind::Waking { tid, name: text },
        Kind::Waking { tid, name: LONG },
        Kind::Wakeup { tid, name: b"" },
        Kind::Exec { file: LONG },
        Kind::Dump { tid, process: Pid(7), name: text, is_kernel: true },
        Kind::SystemCall { call: name },
        Kind::UnendedCall { call: name, returns: true },
        Kind::SystemCallEnd { call: name },
        Kind::InterruptEntry { kind: Interrupt::Softirq, name },
        Kind::InterruptExit(Interrupt::Vector),
        Kind::Raise { name },
        Kind::Waits { on: Some(name) },
        Kind::Sample { user: true, by_timer: false },
        Kind::Stateless,
        Kind::User,
        Kind::Kernel,
    ];
    kinds.extend(of_user_thread.map(Kind::UserThread));
    kinds
}

/// In heads that have everything, nothing, and numbers that stand for nothing.
fn activities() -> Vec<Activity<'static>> {
    let none = Activity {
        time: Timestamp::MIN,
        cpu: None,
        tid: None,
        process: None,
        context: Context::Unknown,
        kind: Kind::User,
    };
    let context = Context::Softirq(Name(9));
    let heads = [
        none,
        Activity { cpu: Some(Cpu(1)), tid: Some(Tid(0)), process: Some(Pid(5)), context, ..none },
        Activity { cpu: Some(Cpu(u32::MAX)), ..none },
        Activity { tid: Some(Tid(-1)), time: Timestamp::MAX, ..none },
    ];
    let all = heads.map(|head| kinds().into_iter().map(move |kind| Activity { kind, ..head }));
    all.into_iter().flatten().collect()
}

#[test]
fn activities_are_the_same_afterwards() {
    let (mut batch, all) = (Batch::default(), activities());
    for (stream, activity) in all.iter().enumerate() {
        batch.pack(activity, stream as u32);
        if stream % 3 == 0 {
            batch.messages.last_mut().unwrap().mark_read();
            batch.reads.push(stream);
        }
        batch.messages.push(Packed::other(None, stream as u32));
    }
    let mut at = 0;
    let flow = batch.try_for_each(|message| {
        match message {
            Decoded::Event { activity: Some(activity), time, stream, read } => {
                assert_eq!((activity, time, stream), (all[at], Some(all[at].time), at));
                assert_eq!(read.copied(), (at % 3 == 0).then_some(at));
            }
            Decoded::Event { activity: None, time: None, stream, read: None } => {
                assert_eq!(stream, at);
                at += 1;
            }
            other => panic!("{other:?}"),
        }
        ControlFlow::<()>::Continue(())
    });
    assert!(flow.is_continue());
    assert_eq!(at, all.len());
}

#[test]
fn a_thread_that_the_system_refuses_is_done_without() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/golden/recordings");
    let path = std::fs::read_dir(golden).unwrap().next().unwrap().unwrap().path();
    let recording = Recording::open(&[path]).unwrap();
    let has = |new| {
        Batches::<()>::by(new, Ahead::all(&recording, Pauses::none()), |_| None, |batches| batches.is_ok())
    };
    assert_eq!([has(refused), has(Builder::new)], [false, true]);
}
