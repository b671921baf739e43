//! What other viewers read in exports, against a program's account.

use super::checks::Checks;
use super::export_formats::{Shown, chrome, paje, perfetto};
use super::harness::{self, RunExt};
use std::path::Path;
use std::process::Command;
use tracewing_testing::{Cause, skip};

fn export(trace: &Path, format: &str, read: fn(&Path) -> Shown) -> Shown {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format);
    harness::of(trace, &["export", "--format", format, "-o", file.to_str().unwrap()]).succeeds();
    read(&file)
}

fn is_there(program: &'static str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        skip(Cause::Program(program), format_args!("{program} is not installed"));
    }
    is_there
}

/// The other formats show the same.
fn compare_formats(how: &str, trace: &Path, shown: &Shown) {
    // Counters apart, which `pj_dump` rounds.
    let without = |shown: Shown| Shown { counters: Default::default(), ..shown };
    // `paje` wants a file with something in it.
    if *shown != Shown::default() && is_there("pj_dump") {
        assert_eq!(without(export(trace, "paje", paje)), without(shown.clone()), "{how}");
    }
    if is_there("protoc") {
        assert_eq!(export(trace, "perfetto", perfetto), *shown, "{how}");
    }
}

pub fn check(checks: &Checks<'_>, all_formats: bool) {
    let Checks { how, trace, account, whole, ref hidden } = *checks;
    let shown = export(trace, "chrome", chrome);
    if all_formats {
        compare_formats(how, trace, &shown);
    }
    for (tid, range) in &account.threads {
        let times = shown.times.get(&tid.to_string());
        let [running, unknown] = ["running_ns", "unknown_ns"]
            .map(|state| times.and_then(|times| times.get(state)).copied().unwrap_or(0));
        // Interrupts are slices of the thread that they interrupt.
        assert!(running <= range.most + account.took / 4, "{how}: {running} ns of {tid}, {range:?}");
        let is_all = !whole.contains(&"threads") || hidden.of_tid(*tid).most(running, unknown) >= range.least;
        assert!(is_all, "{how}: {running} and {unknown} ns of {tid}, {range:?}");
    }
    let parts = |line: &str, is: &dyn Fn(&str) -> bool| -> u64 {
        let of_it = shown.parts.iter().filter(|((label, name), _)| label.starts_with(line) && is(name));
        of_it.map(|(_, ns)| ns).sum()
    };
    let (function, _, total) = account.function;
    let called = parts("functions", &|name| name.ends_with(function));
    let least = if whole.contains(&"functions") { total.least } else { 0 };
    assert!(called <= total.most && called >= least, "{how}: {called} ns of {total:?}");
    for (address, lock) in &account.locks {
        let address = format!(" {address:#x}");
        let is_wait = |name: &str| name.starts_with("waits for ") && name.ends_with(&address);
        // The futex of a lock is waited for within a wait for the lock.
        let waited = |name: &str| is_wait(name) && !name.starts_with("waits for futex");
        let held = |name: &str| !name.starts_with("waits for ") && name.ends_with(&address);
        let all = |is: &dyn Fn(&str) -> bool| parts("locks", is) + parts("more locks", is);
        let (wait, hold) = (all(&waited), all(&held));
        let least = if whole.contains(&"locks") { lock.hold_ns.least } else { 0 };
        assert!(wait <= lock.wait_ns.most, "{how}, wait of{address}: {wait} ns of {lock:?}");
        assert!(hold <= lock.hold_ns.most && hold >= least, "{how}, hold of{address}: {hold} ns of {lock:?}");
    }
    let ([begin, end, _], requests) = &account.requests;
    for event in [begin, end] {
        let count = shown.events.get(*event).copied().unwrap_or(0) as usize;
        let is_right = count <= requests.len() && (!whole.contains(&"latency") || count == requests.len());
        assert!(is_right, "{how}: {count} x {event}");
    }
}
