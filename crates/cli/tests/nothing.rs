//! Analyses that find nothing, or not all, say why: the recording has no such events, or the filter leaves
//! none of them.

mod harness;
mod kernel_common;
mod recorded;

use harness::{Printed, RunExt};

use recorded::{Recording, build, ended, record};

/// What an analysis prints on standard output and standard error.
fn said(recording: &Recording, command: &[&str]) -> [String; 2] {
    let output = harness::of(&recording.trace(), command).ran();
    [output.text(), output.notes()]
}

const ABOUT: [(&str, &str); 3] =
    [("locks", "about locks"), ("functions", "about functions"), ("profile", "with samples")];

#[test]
fn a_recording_without_such_events_says_how_to_make_one() {
    let recording = record(&[], &["true"]);
    for (command, about) in ABOUT {
        let line =
            format!("The recording has no events {about}: `tracewing record --{command}` records them.");
        let [table, _] = said(&recording, &[command]);
        assert_eq!(table.lines().last(), Some(&*line), "{table}");
        // Programs read the result: what people should know is elsewhere.
        for format in ["json", "csv"] {
            let [table, warning] = said(&recording, &[command, "--format", format]);
            assert!(!table.contains(about) && warning.contains(&line), "{table}{warning}");
        }
    }
    for command in ["functions", "profile"] {
        let drawn = recording.folder.path().join("none.svg");
        let [_, error] = said(&recording, &[command, "--flame-graph", drawn.to_str().unwrap()]);
        assert!(error.contains("The recording has no events ") && !drawn.exists(), "{error}");
    }
    for command in [&["critical-path", "--tid", "1"][..], &["list"], &["threads"], &["stats"]] {
        let reported = said(&recording, command).concat();
        assert!(reported.contains("The recording has no events: "), "{command:?}: {reported}");
    }
    let [replay, _] = said(&recording, &["functions", "--replay"]);
    assert!(replay.contains("The recording has no events about functions"), "{replay}");
}

#[test]
fn a_recording_that_was_made_for_them_says_so() {
    build(
        &[&["-p", "tracewing-preload"][..], if cfg!(debug_assertions) { &[] } else { &["--release"] }]
            .concat(),
    );
    let recording = record(&["--locks", "--functions"], &["true"]);
    for (command, about) in &ABOUT[..2] {
        let [table, _] = said(&recording, &[command]);
        let line = format!("The recording has no events {about}, though --{command} was given: ");
        assert!(table.lines().last().is_some_and(|last| last.starts_with(&line)), "{table}");
    }
    let [table, _] = said(&recording, &["profile"]);
    assert!(table.trim_end().ends_with("`tracewing record --profile` records them."), "{table}");
    let [info, _] = said(&recording, &["info"]);
    assert!(info.contains("option    --locks\noption    --functions *\n"), "{info}");
}

#[test]
fn a_filter_that_leaves_nothing_is_named() {
    let folder = build(&["-p", "tracewing", "--example", "locks", "--features", "tracewing/parking_lot"]);
    let recording = record(&[], &[folder.join("examples/locks")]);
    let is_lock = |name: &str| name.starts_with("lock:acquired") || name.starts_with("lock:re");
    let conditions = ["lock:condition_wait", "lock:condition_woken"];
    let events = recording.events();
    let count =
        events.iter().filter(|event| is_lock(&event.name) || conditions.contains(&&*event.name)).count();
    assert!(count > 0);
    let line = format!("The filter leaves out all of the recording's {count} events about locks.");
    for (option, value, hint) in [
        ("--from", "+1h", " --from is after the last event ("),
        ("--to", "+0", " None of them happened in the chosen time."),
    ] {
        let [table, _] = said(&recording, &["locks", option, value]);
        let last = table.lines().last().unwrap();
        let rest = last.strip_prefix(&*line).unwrap_or_else(|| panic!("{option}: {table}"));
        assert!(rest.starts_with(hint), "{option}: {rest}");
    }
    for filter in [&["--process", "1"][..], &["--kernel"], &["-e", "tracewing:*"]] {
        let [table, _] = said(&recording, &[&["locks"], filter].concat());
        assert_eq!(table.lines().last(), Some(&*line), "{filter:?}: {table}");
    }
    let [dot, warning] = said(&recording, &["locks", "--process", "1", "--graph=dot"]);
    assert!(dot == "digraph locks {\n}\n" && warning.contains(&line), "{dot}{warning}");
    let [dot, warning] = said(&recording, &["locks", "--graph=dot"]);
    assert!(dot.starts_with("digraph locks {\n") && warning.is_empty(), "{dot}{warning}");
    let [dot, warning] = said(&recording, &["locks", "-e", "lock:acquired", "--graph=dot"]);
    assert!(dot == "digraph locks {\n}\n" && warning.contains("No thread or task waited"), "{dot}{warning}");
    let [bins, _] = said(&recording, &["locks", "--histogram", "--format", "csv"]);
    assert!(bins.starts_with("measure,from,to,count,percent,cumulative_percent\n"), "{bins}");
    let drawn = recording.folder.path().join("none.svg");
    let [_, error] =
        said(&recording, &["locks", "--histogram", "--process", "1", "--svg", drawn.to_str().unwrap()]);
    assert!(error.contains(&line) && !drawn.exists(), "{error}");
    let [table, _] = said(&recording, &["locks", "-e", "lock:released"]);
    assert!(
        table.trim_end().ends_with(
            "There are events about locks left, but other events that the command needs are missing."
        ),
        "{table}"
    );
    let [table, _] = said(&recording, &["locks"]);
    assert!(!table.contains("events about locks"), "{table}");
    // Sums know no more than the lines.
    let part = recording.folder.path().join("part");
    said(&recording, &["extract", "--exclude", "lock:acquired", "-o", part.to_str().unwrap()]);
    let table = harness::of(&part, &["locks"]).ran().text();
    assert!(table.contains("\nunknown acquisitions, unknown waits, in "), "{table}");
}

#[test]
fn every_command_names_a_filter_that_leaves_nothing() {
    let folder = build(&["-p", "tracewing", "--example", "locks", "--features", "tracewing/parking_lot"]);
    let recording = record(&[], &[folder.join("examples/locks")]);
    let line = format!("The filter leaves out all of the recording's {} events.", recording.events().len());
    let commands: [&[&str]; 7] = [
        &["list"],
        &["list", "--super"],
        &["list", "--super", "--format", "csv"],
        &["list", "--format", "json"],
        &["stats"],
        &["threads"],
        &["latency", "--begin", "lock:acquired", "--end", "lock:released"],
    ];
    for command in commands {
        let [printed, warnings] = said(&recording, &[command, &["--task", "nobody"]].concat());
        let lists = command[0] == "list";
        let (reported, other) = if lists { (warnings, printed) } else { (printed, warnings) };
        assert!(
            reported.trim_end().ends_with(&line) && !other.contains("The filter"),
            "{command:?}: {reported}{other}"
        );
        let [printed, warnings] = said(&recording, command);
        assert!(!format!("{printed}{warnings}").contains("The filter leaves"), "{command:?}");
    }
    let [printed, _] = said(&recording, &["sched", "timehist"]);
    assert!(printed.contains("The recording has no events about thread switches"), "{printed}");
    let [table, _] = said(&recording, &["stats", "-n", "1", "--format", "csv"]);
    assert_eq!(table.lines().count(), 1 + 3, "the first event, stream and process: {table}");
}

#[test]
fn what_is_written_of_a_filter_that_leaves_nothing_says_so() {
    let folder = build(&["-p", "tracewing", "--example", "locks", "--features", "tracewing/parking_lot"]);
    let recording = record(&[], &[folder.join("examples/locks")]);
    let line = format!("The filter leaves out all of the recording's {} events.", recording.events().len());
    let place = recording.folder.path().join("written");
    let out = place.to_str().unwrap();
    let commands: [&[&str]; 6] = [
        &["extract", "-o", out],
        &["convert", "--to", "ctf2", "-o", out],
        &["convert", "--to", "json", "-o", out],
        &["convert", "--to", "csv", "-o", out],
        &["convert", "--to", "csv", "-o", "-"],
        &["export", "--format", "perfetto", "-o", out],
    ];
    let clear = || match place.is_dir() {
        true => std::fs::remove_dir_all(&place).unwrap(),
        false => drop(std::fs::remove_file(&place)),
    };
    for command in commands {
        for filter in [&["--tid", "1"][..], &["--task", "nobody"], &["--from", "+1h"]] {
            let [_, warning] = said(&recording, &[command, filter].concat());
            let is_named = match filter[0] {
                "--from" => warning.contains(&format!("{line} --from is after the last event (")),
                _ => warning.trim_end().ends_with(&line),
            };
            assert!(is_named, "{command:?} {filter:?}: {warning}");
            clear();
        }
        let [_, warning] = said(&recording, command);
        assert!(warning.is_empty(), "{command:?}: {warning}");
        clear();
    }
    let [json, _] = said(&recording, &["convert", "--to", "json", "-o", "-"]);
    assert_eq!(json, said(&recording, &["list", "--format", "json"])[0]);
    let [_, error] = said(&recording, &["extract", "-o", "-"]);
    assert!(error.contains("a trace is a folder"), "{error}");
    // What a part has not, its recording may have.
    said(&recording, &["extract", "-o", out, "--tid", "1"]);
    let mut latency = harness::tracewing();
    let output = latency.args(["sched", "latency"]).arg(&place).ran();
    let reported = output.text();
    assert!(
        reported.contains("no events about thread switches: it is an extract of another one."),
        "{reported}"
    );
}

#[test]
fn analyses_say_that_events_were_lost() {
    let folder = build(&["-p", "reactivity"]);
    let (program, tasks) =
        (folder.join("reactivity"), ["--tasks", "8", "--quantum", "0", "--messages", "10"]);
    let command: Vec<_> = std::iter::once(program.to_str().unwrap()).chain(tasks).collect();
    let small = record(&["--sub-buffers", "2", "--sub-buffer-size", "4K", "--flush", "1000"], &command);
    let [stats, _] = said(&small, &["stats"]);
    let total = stats.lines().find(|line| line.ends_with(" lost")).expect("the total");
    let lost = total.rsplit(", ").next().unwrap().replace(" lost", " were lost");
    assert!(!lost.starts_with("0 "), "{stats}");
    let large = record(&["--sub-buffers", "64"], &command);
    for analysis in [&["threads"][..], &["tasks"], &["sched", "latency"], &["breakdown"]] {
        let [_, warnings] = said(&small, analysis);
        assert!(warnings.contains(&lost), "{analysis:?}, {lost}: {warnings}");
        let [_, warnings] = said(&large, analysis);
        assert!(!warnings.contains("were lost"), "{analysis:?}: {warnings}");
    }
}

#[test]
fn a_breakdown_says_what_was_not_recorded() {
    let folder = build(&["-p", "tracewing", "--example", "locks", "--features", "tracewing/parking_lot"]);
    let recording = record(&[], &[folder.join("examples/locks")]);
    let line = "The recording has no events about thread switches: record kernel events, as root.";
    let [table, _] = said(&recording, &["breakdown"]);
    assert_eq!(table.trim_end(), line);
    let [table, warning] = said(&recording, &["breakdown", "--format", "json"]);
    assert!(table.starts_with('{') && warning.contains(line), "{table}{warning}");
    if !harness::traceable() {
        return;
    }
    let recording = |options: &[&str]| {
        let place = tempfile::tempdir().unwrap();
        let recorder = kernel_common::record(place.path(), options, &["ls"]).spawn().unwrap();
        said(&ended(place, recorder), &["breakdown"])
    };
    let missing = |table: &str| -> Vec<String> {
        let lines = table.lines().filter_map(|line| line.strip_prefix("The recording has no "));
        lines.map(|line| line.split_once(" (").expect("names of events").0.to_owned()).collect()
    };
    let [table, _] = recording(&["-k", "syscalls:*"]);
    assert!(table.contains("openat"), "{table}");
    let all = ["switches of threads", "wake-ups", "interrupts", "softirqs", "page faults"];
    assert_eq!(missing(&table), all, "{table}");
    let [table, _] = recording(&["-k", "sched:*"]);
    assert_eq!(missing(&table), ["system calls", "interrupts", "softirqs", "page faults"], "{table}");
    // It is of one command, and does not know what others did.
    assert!(!table.contains("all CPUs"), "{table}");
    let [table, _] = recording(&[]);
    assert_eq!(missing(&table), [""; 0], "{table}");
}
