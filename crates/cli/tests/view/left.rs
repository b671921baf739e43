//! The index that a viewer leaves which has followed a recording: commands that continue from its checkpoints
//! print what they print without any index.

use crate::client::{Viewer, seed};
use crate::commands::{COMMANDS, WHOLE};
use crate::harness::{self, Json, Printed, RunExt, traceable};
use crate::live::{Recorded, compare, follow, wait_for_end, wait_for_more};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tracewing_index::{Cache, Kept};
use tracewing_testing::{build, wait_until};
use tracewing_trace::{Checkpoints, Recording};
use tracewing_units::Timestamp;

/// In the place of a folder or file that the command writes.
const FOLDER: &str = "FOLDER";

/// Records a server of tasks with locks and a program with functions, three times, and so much between them
/// that checkpoints are made; a viewer follows.
fn recorded() -> (Recorded, Viewer) {
    let example = |package: &str, name: &str| {
        let folder = build(env!("CARGO_TARGET_TMPDIR"), &["-p", package, "--example", name]);
        folder.join("examples").join(name).display().to_string()
    };
    let (server, calls) = (example("tracewing-tokio", "server"), example("tracewing", "calls"));
    let bulk = example("tracewing", "bulk");
    let script = format!(
        "exec > /dev/null; until test -e begin; do sleep 0.01; done
        for each in 1 2; do {server} log spawned; {calls}; {bulk} 70; done; {server} log spawned; {calls}
        touch done; until test -e stop; do sleep 0.05; done"
    );
    let options = ["--locks", "--functions", "--profile", "--sub-buffers", "32"];
    let mut recorded = Recorded::with(&options, &script);
    let viewer = follow(&recorded.trace(), &["--follow"]);
    fs::write(recorded.folder.path().join("begin"), "").unwrap();
    wait_until("the programs have ended", || recorded.folder.path().join("done").exists());
    wait_for_more(&viewer, 2);
    recorded.ends();
    wait_for_end(&viewer);
    (recorded, viewer)
}

/// All commands of the list, and those that it leaves out.
fn commands(trace: &Path) -> Vec<Vec<String>> {
    let text = |arguments: &[&str]| -> Vec<String> {
        let whole = trace.to_str().unwrap();
        arguments.iter().map(|one| if *one == WHOLE { whole.to_owned() } else { (*one).to_owned() }).collect()
    };
    // All but what is large.
    let few = ["--exclude", "bulk:*"];
    let first = |command: &str, number: &str| {
        let found = harness::of(trace, &[command, "-n", "1", "--format", "json"]).succeeds().json();
        let row = &found[command][0];
        (row[number].to_string(), row["process"].to_string())
    };
    let ((tid, _), (task, process)) = (first("threads", "tid"), first("tasks", "task"));
    let named = format!("{process}/{task}");
    // The events of another program; those with all events are below, without what is large.
    let is_of_others = |of: &[String]| of[0] == "list" || of.iter().any(|one| one.starts_with("clerks:"));
    let mut all: BTreeSet<Vec<String>> =
        COMMANDS.iter().map(|(of, ..)| text(of)).filter(|of| !is_of_others(of)).collect();
    for command in [
        &["list"][..],
        &["list", "--super"],
        &["convert", "--format", "json", "-o", "-"],
        &["convert", "--format", "csv", "-o", "-"],
        &["convert", "--format", "ctf2", "-o", FOLDER],
        &["extract", "-o", FOLDER],
        &["export", "--format", "chrome", "-o", "-"],
        &["export", "--format", "paje", "-o", "-"],
        &["export", "--format", "perfetto", "-o", "-"],
    ] {
        all.insert(text(&[command, &few].concat()));
    }
    for command in [
        &["critical-path", "--tid", &tid][..],
        &["critical-path", "--task", &named],
        &["threads", "--tid", &tid],
        &["locks", "--task", &named],
        &["stats", "--process", &process],
        &["profile", "--flame-graph", FOLDER],
    ] {
        all.insert(text(command));
    }
    all.into_iter().collect()
}

/// What a command prints and writes with the indexes of this folder.
fn printed(trace: &Path, command: &[String], cache: &Path) -> (Option<i32>, [String; 2], Files) {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("folder");
    let given = |one: &String| if one == FOLDER { folder.display().to_string() } else { one.clone() };
    let arguments: Vec<String> = command.iter().map(given).collect();
    let mut run = harness::tracewing();
    let out = run.args(arguments).arg(trace).env("XDG_CACHE_HOME", cache).ran();
    let (text, notes) = (String::from_utf8_lossy(&out.stdout).into_owned(), out.notes());
    let said = [text, notes].map(|text| text.replace(folder.to_str().unwrap(), FOLDER));
    (out.status.code(), said, files(&folder, &folder))
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(folder: &Path, root: &Path) -> Files {
    let mut all = Files::new();
    if folder.is_file() {
        all.insert(PathBuf::new(), fs::read(folder).unwrap());
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => all.extend(files(&path, root)),
            false => _ = all.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap()),
        }
    }
    all
}

/// Windows that begin after a checkpoint: after the last, across it, and some by chance.
fn windows(kept: &Kept, end: Timestamp) -> Vec<Vec<String>> {
    let mut random = seed();
    let mut any = move |from: i64, to: i64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        from + ((random >> 20) % (to - from).max(1).cast_unsigned()).cast_signed()
    };
    let times = kept.times();
    println!("checkpoints {times:?}");
    let [first, .., last] = times[..] else { panic!("{times:?}") };
    let [first, last, end] = [first, last, end].map(Timestamp::as_ns);
    let mut windows = vec![(last + 1, None), (any(first + 1, last), Some(any(last, end)))];
    for _ in 0..2 {
        let from = any(first + 1, end);
        windows.push((from, Some(any(from, end))));
    }
    let point = |ns: i64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let window = |(from, to): (i64, Option<i64>)| {
        let to = to.into_iter().flat_map(|to| ["--to".to_owned(), point(to)]);
        ["--from".to_owned(), point(from)].into_iter().chain(to).collect()
    };
    windows.into_iter().map(window).collect()
}

/// Each command in two windows; those that read symbols of programs, which takes long, in one.
fn jobs(commands: &[Vec<String>], windows: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut jobs = Vec::new();
    for (command, window) in commands.iter().zip(windows.iter().cycle()) {
        jobs.push([&command[..], window].concat());
        if command[0] != "profile" && *window != windows[0] {
            jobs.push([&command[..], &windows[0]].concat());
        }
    }
    jobs
}

/// Overwrites the second packet of a stream, which keeps its size and time. The first is read when the trace
/// is opened.
fn damage(stream: &Path) {
    let time = fs::metadata(stream).unwrap().modified().unwrap();
    let file = fs::File::options().read(true).write(true).open(stream).unwrap();
    // In bits, after the packet's header, its times and the size of its content.
    let mut size = [0; 8];
    file.read_exact_at(&mut size, 56).unwrap();
    file.write_all_at(&[0xff; 4096], u64::from_le_bytes(size) / 8).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn commands_continue_from_it_and_say_what_they_say_without_it() {
    if !traceable() {
        return;
    }
    let (recorded, viewer) = recorded();
    let trace = recorded.trace();
    let recording = Recording::open(&[&trace]).unwrap();
    let left = viewer.home.path().join(".cache");
    let cache = Cache::new(Some(&left.join("tracewing/view"))).unwrap();
    wait_until("it has checkpoints", || cache.checkpoints(&recording).is_some());
    // It is the one that is made afterwards, and the viewer says the same.
    let made = Cache::new(Some(&recorded.folder.path().join("made"))).unwrap();
    harness::of(&trace, &["index"]).arg("--index").arg(recorded.folder.path().join("made")).succeeds();
    let bytes = |of: &Cache| fs::read(of.path_of(&recording)).unwrap();
    assert!(bytes(&cache) == bytes(&made), "the indexes differ");
    compare(&viewer, &Viewer::start(&trace));

    let kept = cache.checkpoints(&recording).unwrap();
    let index = cache.find(&recording).unwrap();
    let windows = windows(&kept, index.tail().begin + index.tail().length);
    let none = recorded.folder.path().join("none");
    let jobs = jobs(&commands(&trace), &windows);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrong = Vec::new();
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let [with, without] = [&left, &none].map(|cache| printed(&trace, job, cache));
            // A thread may not exist in a window.
            let is_said = with.0 == Some(0) || job[0] == "critical-path";
            if with != without || !is_said {
                wrong.push((job, with.0, without.0));
            }
        }
        wrong
    };
    let wrong: Vec<_> = thread::scope(|scope| {
        let other = scope.spawn(work);
        work().into_iter().chain(other.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "of {} commands differ {wrong:#?}", jobs.len());

    // What is before is not read.
    let threads = [&["threads".to_owned()][..], &windows[0]].concat();
    let expected = printed(&trace, &threads, &none);
    assert_eq!(expected.0, Some(0), "{expected:?}");
    damage(&trace.join("user/uid0_0"));
    assert_ne!(printed(&trace, &threads, &none), expected);
    assert_eq!(printed(&trace, &threads, &left), expected);
}
