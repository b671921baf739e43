//! Which system calls a recording has: ours say it, of others' traces the classes do.

mod common;

use std::fs;
use tracewing_ctf::model::{EnvValue, EventRecordClass, StructureClass};
use tracewing_trace::Recording;
use tracewing_trace::super_trace::Coverage;
use tracewing_vocabulary::kernel::SystemCall;

/// Whether begins and ends of all calls are there, and whether begins are, of a kernel trace with these
/// classes that says this of itself.
fn knows(classes: &[String], env: &[(&str, &str)]) -> (bool, bool) {
    let folder = tempfile::tempdir().unwrap();
    let mut class = common::class(Some(1), 1_000_000_000);
    for (name, value) in [("domain", "kernel")].iter().chain(env) {
        class.set_env(*name, EnvValue::from(*value));
    }
    let with = |(id, name): (u64, &String)| {
        EventRecordClass::new(id, name.as_str()).with_payload(StructureClass::new())
    };
    class.data_stream_classes[0].event_record_classes = (0..).zip(classes).map(with).collect();
    fs::write(folder.path().join("metadata"), tracewing_ctf::tsdl::print(&class)).unwrap();
    let coverage = Coverage::of(&Recording::open(&[folder.path()]).unwrap());
    (coverage.system_calls, coverage.system_call_entries)
}

fn classes(calls: &[&str]) -> Vec<String> {
    let both = |call: &&str| ["entry", "exit"].map(|part| format!("syscall_{part}_{call}"));
    calls.iter().flat_map(both).collect()
}

#[test]
fn what_the_recorder_asked_for_says_whether_system_calls_are_all() {
    let ours = |calls| [("tracer_name", "tracewing"), ("recorded_system_calls", calls)];
    let few = classes(&["read"]);
    assert_eq!(knows(&few, &ours("all")), (true, true), "a kernel may have so few");
    assert_eq!(knows(&few, &ours("entries")), (false, true));
    let many: Vec<String> = (0..400).map(|call| format!("call{call}")).collect();
    let many = classes(&many.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(knows(&many, &ours("all")[..1]), (false, false), "a pattern can fit many");
    let left_out = [&ours("all")[..], &[("extract_system_calls", "some")]].concat();
    assert_eq!(knows(&few, &left_out), (false, true));
}

#[test]
fn in_other_tracers_traces_the_classes_say_whether_system_calls_are_all() {
    let lttng = [("tracer_name", "lttng-modules")];
    let all = classes(&SystemCall::OF_ALL_KERNELS);
    assert_eq!(knows(&all, &lttng), (true, true));
    assert_eq!(knows(&all, &[]), (true, true));
    for left_out in &all {
        let some: Vec<String> = all.iter().filter(|name| *name != left_out).cloned().collect();
        assert_eq!(knows(&some, &lttng), (false, left_out.starts_with("syscall_exit")), "{left_out}");
    }
    let common = |char: char| SystemCall::OF_ALL_KERNELS.iter().all(|call| call.contains(char));
    assert!(!('a'..='z').any(common), "a pattern with a letter fits them all");
}
