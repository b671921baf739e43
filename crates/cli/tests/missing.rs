//! What `tracewing.json` lists and the files lack: streams that are gone or cut off, and losses after a
//! stream's end. And events that analyses cannot use.

#[path = "../../trace/tests/common/mod.rs"]
mod common;
mod harness;

use common::{Packet, class, tick, write_trace};
use harness::{Printed, RunExt};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tracewing_ctf::model::{EventRecordClass, FieldClass, StructureClass};

/// What a command prints on standard output and standard error.
fn said(command: &[&str], trace: &Path) -> [String; 2] {
    let output = harness::of(trace, command).ran();
    assert!(output.status.code().is_some_and(|code| code < 2), "{command:?}: {output:?}");
    [output.text(), output.notes()]
}

fn parsed(command: &[&str], trace: &Path) -> Value {
    serde_json::from_str(&said(&[command, &["--format", "json"]].concat(), trace)[0]).unwrap()
}

/// Two streams of two packets with two events each, of which the second packet counts three lost ones.
fn recording(folder: &Path) -> Value {
    let mut reported = Vec::new();
    let mut files = Vec::new();
    for (instance, name) in [(0, "uid0_0"), (1, "uid0_1")] {
        let mut bytes = Vec::new();
        for packet in 0..2 {
            let begin = 1000 + packet * 1000 + instance * 100;
            let head =
                Packet { seq: packet, discarded: packet * 3, ..Packet::new(1, instance, begin, begin + 500) };
            bytes.extend(head.bytes(&[tick(begin, 1), tick(begin + 10, 2)]));
        }
        reported.push(json!({"name": name, "events": 4, "packets": 2, "bytes": bytes.len(), "lost": 3}));
        files.push((name, bytes));
    }
    write_trace(&folder.join("user"), &class(Some(1), 1_000_000_000), &files);
    json!({"version": "9", "state": "complete", "user_streams": reported})
}

fn send_result(folder: &Path, reported: &Value) {
    fs::write(folder.join("tracewing.json"), reported.to_string()).unwrap();
}

#[test]
fn events_out_of_order_or_with_meaningless_values_are_reported_by_analyses() {
    let folder = tempfile::tempdir().unwrap();
    let mut softirqs = class(Some(1), 1_000_000_000);
    softirqs.set_env("domain", "kernel".to_owned());
    let payload = StructureClass::new().with("vec", FieldClass::unsigned(32));
    softirqs.data_stream_classes[0].event_record_classes[0] =
        EventRecordClass::new(0, "softirq_raise").with_payload(payload);
    let packet = |seq, begin: u64, events: [u64; 2]| {
        let head = Packet { seq, ..Packet::new(1, 0, begin, events[1]) };
        head.bytes(&events.map(|stamp| tick(stamp, 99)))
    };
    let back = [packet(0, 1000, [1000, 6000]), packet(1, 4000, [4000, 8000])].concat();
    for (name, class, stream, warning) in [
        ("back", class(Some(1), 1_000_000_000), back, "stamps of a stream go back (within 2.00 µs"),
        ("vec", softirqs, packet(0, 1000, [1000, 2000]), "left out: 2 events with impossible values"),
    ] {
        let trace = folder.path().join(name);
        write_trace(&trace, &class, &[("uid0_0", stream)]);
        for command in [&["threads"][..], &["sched", "latency"], &["locks"], &["tasks"], &["profile"]] {
            let [_, warnings] = said(command, &trace);
            assert!(warnings.contains(warning), "{command:?} {name}: {warnings}");
        }
    }
}

#[test]
fn a_stream_that_is_gone_is_lost_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    send_result(folder.path(), &recording(folder.path()));
    let [_, warnings] = said(&["stats"], folder.path());
    assert_eq!(warnings, "");
    assert_eq!(said(&["list"], folder.path())[1].lines().count(), 2, "what packets count is lost");
    let stream = folder.path().join("user/uid0_1");
    for emptied in [true, false] {
        match emptied {
            true => drop(fs::File::create(&stream).unwrap()),
            false => fs::remove_file(&stream).unwrap(),
        }
        for command in ["list", "info", "threads", "stats"] {
            let [_, warnings] = said(&[command], folder.path());
            let what = if emptied { "is empty, and had 4 events" } else { "is missing, with 4 events" };
            assert!(warnings.contains(&format!("user/uid0_1 {what}")), "{command}: {warnings}");
        }
        let [_, warnings] = said(&["list"], folder.path());
        assert!(warnings.contains("WARNING: Tracer discarded 7 events between"), "{warnings}");
        let lost = parsed(&["stats"], folder.path())["streams"].clone();
        assert_eq!((&lost[0]["lost_events"], &lost[1]["lost_events"]), (&3.into(), &7.into()));
        let [_, warnings] = said(&["breakdown"], folder.path());
        assert!(warnings.contains("10 events were lost in this time"), "{warnings}");
        let copies = tempfile::tempdir().unwrap();
        let copy = copies.path().join("copy");
        let _output =
            harness::tracewing().args(["convert", "--to", "ctf1"]).args([folder.path(), &copy]).succeeds();
    }
    fs::remove_file(folder.path().join("user/uid0_0")).unwrap();
    for command in ["list", "threads"] {
        let reported = said(&[command], folder.path()).concat();
        assert!(
            reported.contains("The recording has no events at all, but part of it is missing"),
            "{reported}"
        );
    }
}

#[test]
fn traces_that_were_made_of_others_have_files_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    fs::create_dir(&whole).unwrap();
    send_result(&whole, &recording(&whole));
    for command in
        [&["extract", "--to", "+1us"][..], &["extract", "-e", "none:*"], &["convert", "--to", "ctf2"]]
    {
        let made = folder.path().join("made");
        harness::tracewing().args(command).args([&whole, &made]).succeeds();
        assert_eq!(said(&["stats"], &made)[1], "", "{command:?}");
        fs::remove_dir_all(&made).unwrap();
    }
}

fn run(command: &[&str], of: &Path, to: &Path) -> String {
    harness::tracewing().args(command).args([of, to]).succeeds().text()
}

/// One stream lost five events after its last packet, the other one is gone.
#[test]
fn traces_that_were_made_of_others_lack_what_those_lack_at_their_ends() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    fs::create_dir(&whole).unwrap();
    let mut reported = recording(&whole);
    // The other stream ends later, up to which five are missing in this one.
    reported["user_streams"][0]["lost"] = 8.into();
    reported["user_streams"].as_array_mut().unwrap().push(json!(
        {"name": "uid0_2", "events": 6, "packets": 1, "bytes": 100, "lost": 0}
    ));
    send_result(&whole, &reported);
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    for command in [&["extract"][..], &["extract", "-e", "none:*"], &["convert", "--to", "ctf2"]] {
        // Also a copy of a copy, and the trace alone, without its description.
        let said_by_it = run(command, &whole, &first);
        assert!(said_by_it.contains("; 17 events lost in the recording"), "{said_by_it}");
        run(command, &first, &second);
        fs::remove_file(second.join("tracewing.json")).unwrap();
        for (copy, is_described) in [(&first, true), (&second, false)] {
            let [printed, warnings] = said(&["list"], copy);
            for lost in [3, 3, 5, 6] {
                let lost = format!("Tracer discarded {lost} events");
                assert!(warnings.contains(&lost), "{command:?}: {printed}\n{warnings}");
            }
            assert_eq!(
                warnings.contains("user/uid0_2 is missing, with 6 events"),
                is_described,
                "{warnings}"
            );
            let [_, warnings] = said(&["breakdown"], copy);
            assert!(warnings.contains("17 events were lost in this time"), "{command:?}: {warnings}");
        }
        fs::remove_dir_all(&first).unwrap();
        fs::remove_dir_all(&second).unwrap();
    }
    // Before any of that.
    run(&["extract", "--to", "+50ns"], &whole, &first);
    let [_, warnings] = said(&["stats"], &first);
    assert!(!warnings.contains("lost"), "{warnings}");
}

#[test]
fn a_trace_that_is_gone_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    fs::create_dir(&whole).unwrap();
    let mut reported = recording(&whole);
    reported["kernel_streams"] = json!([
        {"name": "channel_0", "events": 40, "packets": 1, "bytes": 4096, "lost": 0},
        {"name": "channel_1", "events": 2, "packets": 1, "bytes": 4096, "lost": 0}
    ]);
    send_result(&whole, &reported);
    let copy = folder.path().join("copy");
    run(&["extract"], &whole, &copy);
    for trace in [&whole, &copy] {
        for command in ["list", "info", "threads", "stats"] {
            let [_, warnings] = said(&[command], trace);
            assert!(warnings.contains("whole/kernel is missing, with 42 events"), "{command}: {warnings}");
        }
        let printed = said(&["locks"], trace).concat();
        assert!(printed.contains("but part of it is missing"), "{printed}");
    }
    for (place, given) in
        [(folder.path(), "whole"), (folder.path(), "./whole"), (&whole, "."), (&whole, "../whole")]
    {
        let notes = harness::tracewing().current_dir(place).args(["stats", given]).ran().notes();
        assert!(notes.contains("kernel is missing, with 42 events"), "{given}: {notes}");
    }
    let [_, warnings] = said(&["stats"], &whole.join("user"));
    assert_eq!(warnings, "", "the others were not asked for");
}

#[test]
fn without_the_folder_of_programs_numbers_of_their_events_are_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let mut reported = recording(folder.path());
    fs::rename(folder.path().join("user"), folder.path().join("kernel")).unwrap();
    let streams = reported["user_streams"].clone();
    reported["kernel_streams"] = streams;
    send_result(folder.path(), &reported);
    for (command, total) in
        [("tasks", "unknown tasks in "), ("functions", "unknown calls of unknown functions in ")]
    {
        let [printed, _] = said(&[command], folder.path());
        assert!(printed.lines().any(|line| line.starts_with(total)), "{command}: {printed}");
    }
}

/// Also by formats that programs read: the trace, how many events it had, and that of an extract unknown.
#[test]
fn a_trace_that_is_gone_is_in_json_and_csv() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    fs::create_dir(&whole).unwrap();
    let mut reported = recording(&whole);
    reported["host"] = json!({"name": "here"});
    reported["kernel_streams"] =
        json!([{"name": "channel_0", "events": 40, "packets": 1, "bytes": 4096, "lost": 2}]);
    send_result(&whole, &reported);
    let (copy, again) = (folder.path().join("copy"), folder.path().join("again"));
    run(&["extract"], &whole, &copy);
    run(&["convert", "--to", "ctf2"], &copy, &again);
    for (trace, lost, sum) in [
        (&whole, json!(42), json!(48)),
        (&copy, json!(null), json!(null)),
        (&again, json!(null), json!(null)),
    ] {
        let (info, stats) = (parsed(&["info"], trace), parsed(&["stats"], trace));
        for json in [&info, &stats] {
            let missing = json["missing"][0].as_str().unwrap();
            assert!(missing.contains("whole/kernel is missing, with 40 events"), "{json}");
        }
        let gone = &info["traces"][1];
        assert_eq!(gone["name"], "here/kernel");
        assert_eq!((&gone["streams"][0]["lost_events"], &stats["total"]["lost_events"]), (&lost, &sum));
        let row = &stats["streams"][2];
        assert_eq!(
            (&row["trace"], &row["events"], &row["lost_events"]),
            (&json!("here/kernel"), &json!(0), &lost)
        );
        let csv = said(&["info", "--show", "streams", "--format", "csv"], trace)[0].clone();
        assert!(csv.contains("here/kernel"), "{csv}");
    }
    // How many of them were in a part of the time is unknown.
    let part = parsed(&["stats", "--from", "+10ns"], &whole);
    assert_eq!(part["streams"][2]["lost_events"], json!(null));
    let text = said(&["stats"], &copy)[0].clone();
    assert!(text.contains("s, at least 6 events lost"), "{text}");
}

#[test]
fn a_stream_that_is_gone_keeps_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let reported = recording(folder.path());
    send_result(folder.path(), &reported);
    let ids = || {
        let report = parsed(&["info"], folder.path());
        let streams = report["traces"][0]["streams"].as_array().unwrap().iter();
        let id = |stream: &Value| (stream["id"].as_u64().unwrap(), stream["events"].as_u64().unwrap());
        let mut ids: Vec<_> = streams.map(id).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(ids(), [(0, 4), (1, 4)]);
    drop(fs::File::create(folder.path().join("user/uid0_0")).unwrap());
    assert_eq!(ids(), [(0, 0), (1, 4)]);
    // Of several, the index says which is which.
    fs::remove_file(folder.path().join("user/uid0_1")).unwrap();
    fs::create_dir(folder.path().join("user/index")).unwrap();
    let mut index = tracewing_ctf::index::encode_header().to_vec();
    let entry = tracewing_ctf::index::Entry { stream_instance_id: Some(7), ..Default::default() };
    index.extend(tracewing_ctf::index::encode_entry(&entry));
    fs::write(folder.path().join("user/index/uid0_1.idx"), index).unwrap();
    assert_eq!(ids(), [(0, 0), (7, 0)]);
}

#[test]
fn a_stream_that_is_cut_off_may_have_lost_all_that_came_later() {
    let folder = tempfile::tempdir().unwrap();
    let reported = recording(folder.path());
    send_result(folder.path(), &reported);
    let stream = folder.path().join("user/uid0_0");
    let bytes = reported["user_streams"][0]["bytes"].as_u64().unwrap();
    fs::File::options().write(true).open(&stream).unwrap().set_len(bytes / 2).unwrap();
    let [_, warnings] = said(&["list", "--clock-seconds", "--clock-gmt"], folder.path());
    assert!(
        warnings.contains(&format!("uid0_0: {} of its {bytes} bytes are missing", bytes / 2)),
        "{warnings}"
    );
    assert!(
        warnings.contains(
            "Tracer may have discarded events between [1795235140.123458289] and [1795235140.123459389]"
        ),
        "{warnings}"
    );
    // Also where only a time after the cut is asked for.
    let of_time = [&["--from", "1795235140.12345885"][..], &[]];
    for (range, lost) in
        of_time.into_iter().zip(["in 2 places", "3 events and an unknown number of events in 1 place"])
    {
        let [_, warnings] = said(&[&["breakdown"], range].concat(), folder.path());
        assert!(warnings.contains(lost), "{range:?}: {warnings}");
    }
}

#[test]
fn events_lost_after_the_last_packet_count() {
    let folder = tempfile::tempdir().unwrap();
    let mut reported = recording(folder.path());
    reported["user_streams"][0]["lost"] = 8.into();
    reported["state"] = "cut_short".into();
    send_result(folder.path(), &reported);
    let [_, warnings] = said(&["list"], folder.path());
    assert!(warnings.contains("the recording was cut short"), "{warnings}");
    assert_eq!(warnings.matches("Tracer discarded 3 events").count(), 2, "{warnings}");
    assert_eq!(warnings.matches("Tracer discarded 5 events").count(), 1, "{warnings}");
    assert_eq!(parsed(&["info"], folder.path())["traces"][0]["streams"][0]["lost_events"], 8);
}

#[test]
fn after_the_end_of_a_killed_recording_nothing_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let mut reported = recording(folder.path());
    (reported["state"], reported["user_streams"]) = ("recording".into(), json!([]));
    // Where nothing older than 20 ns was unwritten, what is unknown is no longer.
    for (flush, from) in [(json!(null), "1795235140.123459289"), (json!({"flush_ms": 0}), "")] {
        reported["buffers"] = flush;
        send_result(folder.path(), &reported);
        let [_, warnings] = said(&["list", "--clock-seconds", "--clock-gmt"], folder.path());
        assert!(warnings.contains("the recorder was killed"), "{warnings}");
        let may = warnings.lines().find(|line| line.contains("may have discarded"));
        assert_eq!(may.is_some_and(|line| line.contains(from)), !from.is_empty(), "{warnings}");
    }
}

#[test]
fn warnings_are_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    recording(folder.path());
    let huge = format!(
        r#"{{"user_streams": [{{"name": "uid0_0", "lost": {0}, "events": {0}}}, {{"name": "uid0_4294967295", "bytes": {0}, "events": {0}, "lost": {0}}},
            {{"name": "gone", "bytes": 1, "events": {0}}}, {{"name": "../metadata", "bytes": {0}}}, {{"name": ""}}, {{"name": 7}}, 7]}}"#,
        u64::MAX
    );
    let all = [
        ("{", true),
        ("[]", true),
        ("", true),
        ("7", true),
        (r#"{"state": 7, "user_streams": {"a": 1}, "buffers": 3}"#, false),
        (r#"{"state": "recording", "buffers": {"flush_ms": 9223372036854775807}}"#, false),
        (r#"{"state": "recording", "buffers": {"flush_ms": -9000000}}"#, false),
        (&huge, false),
    ];
    for (text, is_broken) in all {
        fs::write(folder.path().join("tracewing.json"), text).unwrap();
        for command in ["list", "info", "threads", "stats"] {
            let [printed, warnings] = said(&[command], folder.path());
            assert!(!warnings.contains("panicked") && !printed.is_empty(), "{text}: {warnings}");
            let broken = warnings.lines().filter(|line| line.contains("tracewing.json is broken")).count();
            assert_eq!(broken, usize::from(is_broken), "{text}: {warnings}");
        }
    }
}

/// On a CPU whose stream was cut off, no thread is known to run after the cut.
#[test]
fn no_thread_runs_where_no_event_shows_one() {
    if !rustix::process::geteuid().is_root() {
        return tracewing_testing::skip(
            tracewing_testing::Cause::KernelEvents,
            "recording kernel events needs root",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    // Works on the first CPU.
    let work = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    let record = ["record", "--system-wide", "-o"];
    let output = harness::tracewing()
        .args(record)
        .arg(&trace)
        .args(["--", "taskset", "-c", "0", "sh", "-c", work])
        .output();
    let stream = trace.join("kernel/channel_0");
    // The second packet's offset stands in its entry of LTTng's index.
    let index = fs::read(trace.join("kernel/index/channel_0.idx")).unwrap_or_default();
    let Some(offset) = index.get(16 + 72..16 + 72 + 8) else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::KernelEvents,
            format_args!("no kernel events were recorded: {output:?}"),
        );
    };
    let offset = u64::from_be_bytes(offset.try_into().unwrap());
    let running = |from: i64| {
        let from = format!("{}.{:09}", from / 1_000_000_000, from % 1_000_000_000);
        let table = parsed(&["threads", "--cpu", "0", "--from", &from], &trace);
        let threads = table["threads"].as_array().unwrap();
        threads.iter().map(|thread| thread["running_ns"].as_u64().unwrap()).sum::<u64>()
    };
    let end = |of: &str| {
        let report = parsed(&["info"], &trace);
        let streams = report["traces"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|trace| trace["streams"].as_array().unwrap());
        let mut named = streams.filter(|stream| stream["files"][0].as_str().unwrap().ends_with(of));
        named.next().unwrap()["end_ns"].as_i64().unwrap()
    };
    let whole = fs::read(&stream).unwrap();
    fs::write(&stream, &whole[..offset as usize]).unwrap();
    let cut = end("channel_0");
    assert_eq!(running(cut + 1), 0);
    fs::write(&stream, whole).unwrap();
    assert!(running(cut + 1) > 0);
}

/// A loss from 1500 to 3500 ns, of three events.
#[test]
fn a_loss_that_a_window_cuts_is_of_unknown_size() {
    let folder = tempfile::tempdir().unwrap();
    let trace = &folder.path().join("trace");
    let packets = [(0, 0, 1000), (1, 3, 3000)].into_iter().flat_map(|(seq, discarded, begin)| {
        let packet = Packet { seq, discarded, ..Packet::new(1, 0, begin, begin + 500) };
        packet.bytes(&[tick(begin, 1), tick(begin + 400, 2)])
    });
    write_trace(trace, &class(Some(1), 1_000_000_000), &[("s_0", packets.collect())]);
    let (known, unknown) = ("3 events were lost in this time", "an unknown number of events in 1 place");
    let windows: [(&[&str], &str); 5] = [
        (&[], known),
        (&["--to", "+2us"], unknown),
        (&["--from", "+1us"], unknown),
        (&["--from", "+1us", "--to", "+1.5us"], unknown),
        (&["--from", "+0.4us", "--to", "+2.4us"], unknown),
    ];
    for (number, (window, expected)) in windows.into_iter().enumerate() {
        let [_, warnings] = said(&[&["threads"], window].concat(), trace);
        assert!(warnings.contains(expected), "{window:?}: {warnings}");
        let copy = folder.path().join(number.to_string());
        harness::tracewing().arg("extract").args(window).args([trace, &copy]).succeeds();
        let [_, warnings] = said(&["threads"], &copy);
        assert!(warnings.contains(expected), "extract {window:?}: {warnings}");
    }
}

/// No description says how long the stream was, but its index has more packets.
#[test]
fn a_stream_that_was_cut_off_at_a_packets_end() {
    let folder = tempfile::tempdir().unwrap();
    recording(folder.path());
    let copies = tempfile::tempdir().unwrap();
    let copy = copies.path().join("copy");
    // It has indexes.
    run(&["convert", "--to", "ctf1"], folder.path(), &copy);
    let stream = copy.join("user/uid0_1");
    let whole = fs::read(&stream).unwrap();
    assert_eq!(said(&["list"], &copy)[1].lines().count(), 2);
    fs::write(&stream, &whole[..whole.len() / 2]).unwrap();
    let half = whole.len() / 2;
    let note = format!("user/uid0_1: {half} of its {} bytes are missing", whole.len());
    for command in ["list", "info", "threads", "stats"] {
        let [_, warnings] = said(&[command], &copy);
        assert!(warnings.contains(&note), "{command}: {warnings}");
    }
    let [_, warnings] = said(&["list"], &copy);
    assert!(warnings.contains("WARNING: Tracer discarded 1 packet between"), "{warnings}");
    let lost = parsed(&["stats"], &copy)["streams"].clone();
    assert_eq!((&lost[0]["lost_packets"], &lost[1]["lost_packets"]), (&0.into(), &1.into()));
    let [_, warnings] = said(&["threads"], &copy);
    assert!(warnings.contains("an unknown number of events in 1 place"), "{warnings}");
    // The index of another file shows nothing.
    fs::copy(copy.join("user/index/uid0_0.idx"), copy.join("user/index/uid0_1.idx")).unwrap();
    assert_eq!(said(&["info"], &copy)[1], "");
}

/// Three events were lost on CPU 0, and an unknown number on CPU 1.
#[test]
fn losses_of_other_cpus_are_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let trace = &folder.path().join("trace");
    let stream = |cpu: u64, second: Packet| {
        let first = Packet::new(1, cpu, 0, 500).bytes(&[tick(0, 1), tick(400, 2)]);
        [first, second.bytes(&[tick(3000, 1), tick(3400, 2)])].concat()
    };
    let second = |cpu| Packet { seq: 1, ..Packet::new(1, cpu, 3000, 3500) };
    let zero = stream(0, Packet { discarded: 3, ..second(0) });
    let one = stream(1, Packet { seq: 2, ..second(1) });
    // The last one's name says CPU 2, but its packets that they are of another one.
    let other = stream(3, Packet { discarded: 5, ..second(3) });
    let streams = [("s_0", zero), ("s_1", one), ("s_2", other)];
    write_trace(trace, &class(Some(1), 1_000_000_000), &streams);
    let all = (Value::Null, Value::from(8), 3);
    let cases: [(&[&str], _, _); 5] = [
        (&[], all.clone(), "8 events and an unknown number of events in 1 place were lost"),
        (&["--cpu", "0-3"], all, "8 events and an unknown number of events in 1 place were lost"),
        (&["--cpu", "0"], (8.into(), 8.into(), 2), "8 events were lost"),
        (&["--cpu", "1"], (Value::Null, 5.into(), 2), "5 events and an unknown number of events in 1 place"),
        (&["--cpu", "4"], (5.into(), 5.into(), 1), "5 events were lost"),
    ];
    for (filter, (lost, least, warnings), said_of) in cases {
        let threads = parsed(&[&["threads"], filter].concat(), trace);
        assert_eq!((&threads["lost_events"], &threads["least_lost_events"]), (&lost, &least), "{filter:?}");
        assert!(said(&[&["threads"], filter].concat(), trace)[1].contains(said_of), "{filter:?}");
        let stats = parsed(&[&["stats"], filter].concat(), trace);
        assert_eq!(stats["total"]["lost_events"], lost, "stats {filter:?}");
        assert_eq!(stats["total"]["least_lost_events"], least, "stats {filter:?}");
        let [_, listed] = said(&[&["list"], filter].concat(), trace);
        assert_eq!(listed.matches("Tracer discarded").count(), warnings, "list {filter:?}: {listed}");
        let part = &folder.path().join(format!("part{}", filter.join("")));
        said(&[&["extract", "-o", part.to_str().unwrap()], filter].concat(), trace);
        let threads = parsed(&["threads"], part);
        assert_eq!(
            (&threads["lost_events"], &threads["least_lost_events"]),
            (&lost, &least),
            "part {filter:?}"
        );
        assert!(said(&["threads"], part)[1].contains(said_of), "part {filter:?}");
        let stats = parsed(&["stats"], part);
        assert_eq!(stats["total"]["lost_events"], lost, "stats of part {filter:?}");
        let [_, listed] = said(&["list"], part);
        assert_eq!(listed.matches("Tracer discarded").count(), warnings, "list of part {filter:?}: {listed}");
    }
}
