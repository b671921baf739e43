//! The recorder: what it answers, reports as overwritten, and bears.

use super::*;

#[test]
fn a_recorder_that_is_none_says_so() {
    let mut flight = Flight::start_in(&[], &[], &[]);
    flight.numbers("emit 1");
    let pid = flight.recorder.id().to_string();
    let output = snapshot(&[&pid]);
    assert!(!output.status.success() && output.stdout.is_empty());
    let error = output.notes();
    assert!(error.contains(&format!("process {pid} is not a flight recorder")), "{error}");
    assert!(flight.order("snapshot").contains("not a flight recorder"));
    let output = snapshot(&["no-such-recording"]);
    assert!(!output.status.success());
    let error = output.notes();
    // One that another test has stopped may be meant.
    let is_reported = error.contains("no-such-recording") || error.contains("recorders that do not answer");
    assert!(is_reported && error.contains(&pid), "{error}");
    flight.end();
}

#[test]
fn the_command_answers_in_json_and_by_name_of_the_command() {
    let mut flight = Flight::start(&[]);
    flight.numbers("emit 1");
    let output = snapshot(&[&flight.recorder.id().to_string(), "--format", "json"]);
    let answer: Value = output.json();
    assert_eq!(answer["folder"], flight.path(1).to_str().unwrap());
    assert_eq!(answer["recorder"], flight.recorder.id());
    flight.end();
}

/// Plain overwrite mode: the recorder sleeps while the program goes round its buffers.
#[test]
fn events_overwritten_unread_are_reported_with_their_time_range() {
    let mut flight = Flight::start_in(&["--on-full", "overwrite"], &SMALL, &[]);
    let cpus = flight.numbers("emit 100").len();
    let trace = flight.folder.path().join("t");
    let streams = || {
        let names = std::fs::read_dir(trace.join("user")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("uid")).count()
    };
    wait_for("nothing is written", || streams() == cpus);
    flight.signal(libc::SIGSTOP);
    let emitted = flight.numbers("emit 20000");
    flight.signal(libc::SIGCONT);
    let ended = flight.end();
    let (mut last, mut missing) = (BTreeMap::<u64, u64>::new(), BTreeMap::<u64, u64>::new());
    for event in list(&trace).iter().filter(|event| event.name == "pilot:count") {
        let (cpu, number) = (event.number("cpu"), event.number("number"));
        let before = last.insert(cpu, number).unwrap_or(0);
        assert!(before < number);
        *missing.entry(cpu).or_default() += number - before - 1;
    }
    assert_eq!(last.into_values().collect::<Vec<_>>(), emitted);
    let ranges = ended.summary["overwritten"].as_array().unwrap();
    for (cpu, events) in missing {
        let name = format!("_{cpu}");
        let mut of = ranges.iter().filter(|range| range["stream"].as_str().unwrap().ends_with(&name));
        let bytes: u64 = of.clone().map(|range| range["bytes"].as_u64().unwrap()).sum();
        assert!(bytes_of(events, 0).contains(&bytes), "{events} are not {ranges:?}");
        assert!(events > 0 && of.all(|range| range["begin_cycles"].as_u64() < range["end_cycles"].as_u64()));
    }
    let Ok(peer) = Command::new("babeltrace2").arg(&trace).output() else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
    };
    let ours = harness::tracewing().arg("list").arg(&trace).ran();
    assert!(ours.stdout == peer.stdout, "tracewing list and babeltrace2 differ");
    let lines = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(text);
        let mut lines: Vec<_> =
            text.lines().filter_map(|line| line.find("Tracer").map(|at| line[at..].to_owned())).collect();
        lines.sort();
        lines
    };
    let warnings = lines(&peer.stderr);
    assert!(!warnings.is_empty() && warnings.iter().all(|line| line.contains("packet")), "{warnings:?}");
    assert_eq!(lines(&ours.stderr), warnings);
    let info = harness::tracewing().arg("info").arg(&trace).ran();
    let info = info.text();
    assert!(info.contains("sub-buffers overwritten") && info.contains("packets from "), "{info}");
    let stats = harness::tracewing().args(["stats", "--format", "json"]).arg(&trace).ran();
    let total = stats.json()["total"].clone();
    let packets: u64 = ranges.iter().map(|range| range["sub_buffers"].as_u64().unwrap()).sum();
    assert_eq!((&total["lost_events"], &total["lost_packets"]), (&Value::Null, &packets.into()), "{total}");
}

/// Runs a script in a flight recorder with small buffers; `$1` is the program `pilot`.
fn fly(script: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut command = recorder(folder.path(), &[&["--flight-recorder"], &SMALL[..]].concat());
    let output = command.args(["sh", "-ec", script, "sh"]).arg(program("pilot")).ran();
    assert!(output.status.success(), "{}", output.notes());
    folder
}

/// Checks that the snapshot at the end has what so many programs held. Gives what `stats` says of it.
fn check_programs(folder: &Path, programs: u64) -> Value {
    let snapshot = folder.join("t/snapshot-1");
    let stats =
        harness::tracewing().args(["stats", "-e", "pilot:*", "--format", "json"]).arg(&snapshot).ran();
    let stats = stats.json();
    let cpus = description(&snapshot)["host"]["cpus"].as_u64().unwrap();
    let least = cpus * (SUB_BUFFERS - 1) * (SUB_BUFFER - 100) / LARGEST_EVENT;
    let most = cpus * SUB_BUFFERS * SUB_BUFFER / EVENT;
    let events = stats["total"]["events"].as_u64().unwrap();
    assert!((programs * least..=programs * most).contains(&events), "{programs}, {least} to {most}: {stats}");
    stats
}

/// Two programs fill their buffers, and end before the recording does, one after the other.
const TWO: &str = r#"d=$(mktemp -d); trap 'rm -r "$d"' EXIT
    mkfifo "$d/a" "$d/b" "$d/said-a" "$d/said-b"
    "$1" <"$d/a" >"$d/said-a" & "$1" <"$d/b" >"$d/said-b" &
    exec 3>"$d/a" 4>"$d/b" 5<"$d/said-a" 6<"$d/said-b"
    echo emit 8000 >&3; read -r _ <&5; echo emit 8000 >&4; read -r _ <&6
    exec 3>&- 4>&-; wait; "#;

#[test]
fn programs_that_lived_together_are_kept_together() {
    check_programs(fly(TWO).path(), 2);
}

#[test]
fn what_later_programs_leave_no_room_for_is_reported_as_lost() {
    let folder = fly(&format!("{TWO} for i in 1 2 3 4 5 6 7 8; do echo emit 8000 | \"$1\"; done"));
    let snapshot = folder.path().join("t/snapshot-1");
    let notes = description(&snapshot)["notes"].to_string();
    let dropped = notes.split_once("the buffers of ").and_then(|(_, rest)| rest.split(' ').next());
    let dropped: u64 = dropped.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{notes}"));
    assert!((1..10).contains(&dropped), "{notes}");
    let stats = check_programs(folder.path(), 10 - dropped);
    assert_eq!(stats["total"]["lost_events"], Value::Null, "{stats}");
    for command in ["list", "info", "stats", "threads"] {
        let notes = harness::tracewing().arg(command).arg(&snapshot).ran().notes();
        assert!(notes.contains("older events were overwritten"), "{command}: {notes}");
    }
}

#[test]
fn a_storm_of_signals_does_not_keep_the_recording_from_its_end() {
    let mut flight = Flight::start(&SMALL);
    // With the program's first answer the signal has its meaning.
    flight.numbers("emit 1");
    // Lines of more snapshots than a pipe holds.
    let mut stderr = flight.recorder.stderr.take().unwrap();
    let reported = std::thread::spawn(move || std::io::read_to_string(&mut stderr).unwrap());
    let end = Instant::now() + Duration::from_secs(60);
    let mut is_asked = false;
    let status = loop {
        for _ in 0..1000 {
            flight.signal(libc::SIGUSR2);
        }
        if !is_asked && flight.path(3).exists() {
            // Its number is above that of the signal for snapshots, so the kernel gives the latter first.
            flight.signal(libc::SIGTERM);
            is_asked = true;
        }
        if let Some(status) = flight.recorder.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > end {
            flight.recorder.kill().unwrap();
        }
    };
    assert_eq!(status.code(), Some(128 + libc::SIGTERM), "{status}");
    let reported = reported.join().unwrap();
    let summary: Value = serde_json::from_str(reported.lines().next_back().unwrap()).unwrap();
    let snapshots = summary["snapshots"].as_array().unwrap();
    assert_eq!(snapshots.last().unwrap()["reason"], "exit");
}
