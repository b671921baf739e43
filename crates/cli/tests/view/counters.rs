//! Frequencies of a CPU: what the server answers, and what the page draws, is what all events say.

use crate::cdp::Browser;
use crate::client::Viewer;
use crate::common::{Event, Packet, class, write_trace};
use serde_json::{Value, json as object};
use std::path::Path;
use tracewing_ctf::model::{EventRecordClass, FieldClass, StructureClass};
use tracewing_testing::installed;
use tracewing_vocabulary::environment;

/// A value, and from when to when it holds.
type Held = (u64, u64, u64);

/// So many changes of the frequency: long times, and times in which much happens.
const CHANGES: u64 = 4000;

/// Writes the trace; returns the values, with times since its first event.
fn write(folder: &Path) -> Vec<Held> {
    let mut class = class(Some(1), 1_000_000_000);
    class.set_env("domain", "kernel".to_owned());
    let number = || FieldClass::unsigned(32);
    let payload = StructureClass::new().with("state", number()).with("cpu_id", number());
    class.data_stream_classes[0].event_record_classes =
        vec![EventRecordClass::new(0, "power_cpu_frequency").with_payload(payload)];
    let mut random = 0x1234_5678_9abc_def1_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let (mut at, mut changes) = (1000, Vec::new());
    for number in 0..CHANGES {
        changes.push((400_000 + number % 7 * 10_000 + next(4_000_000), at));
        at += 1 + next(if number % 1000 < 900 { 3_000 } else { 2_000_000 });
    }
    // Two equal ones are one; the last one ends with the recording.
    changes.dedup_by_key(|(khz, _)| *khz);
    let event = |(khz, stamp): &(u64, u64)| {
        let payload = [(*khz as u32).to_le_bytes(), 0_u32.to_le_bytes()].concat();
        Event { stamp: *stamp, id: 0, tid: 0, payload }
    };
    let events: Vec<Event> = changes.iter().map(event).collect();
    write_trace(folder, &class, &[("kernel_0", Packet::new(1, 0, 500, at).bytes(&events))]);
    let begin = changes[0].1;
    changes.windows(2).map(|two| (two[0].0, two[0].1 - begin, two[1].1 - begin)).collect()
}

/// The least and the greatest value between two times; `None` if there is none.
fn range(all: &[Held], from: u64, to: u64) -> Option<(u64, u64)> {
    let values = || all.iter().filter(|(_, begin, end)| *begin < to && *end > from).map(|(khz, ..)| *khz);
    Some((values().min()?, values().max()?))
}

/// The row of the frequency, which lies below its CPU.
fn row(viewer: &Viewer) -> Value {
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["kind"] == "counter").unwrap().clone();
    let of = rows.iter().find(|of| of["id"] == row["parent"]).unwrap();
    assert_eq!((&row["name"], &of["kind"], &of["number"]), (&"frequency".into(), &"cpu".into(), &"0".into()));
    row
}

#[test]
fn the_server_has_each_value_and_the_range_of_each_bucket() {
    let folder = tempfile::tempdir().unwrap();
    let all = write(folder.path());
    let viewer = Viewer::start(folder.path());
    let row = row(&viewer);
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let (least, most) = range(&all, 0, length).unwrap();
    assert_eq!(row["counter"], object!({ "unit": "kHz", "least": least, "most": most }));

    let (id, number) = (&row["id"], row["id"].as_u64().unwrap() as u32);
    for (_, from, to) in all.iter().step_by(517) {
        let (from, to) = (from.saturating_sub(500_000), to + 300_000);
        let spans = viewer.ask("spans", &object!({ "from": from, "to": to, "rows": [id] }).to_string());
        let inside: Vec<&Held> = all.iter().filter(|(_, begin, end)| *begin < to && *end > from).collect();
        assert_eq!(spans["values"][id.to_string()], object!(inside), "{from} {to}");
    }
    let all_of_it = viewer.ask("spans", &object!({ "from": 0, "to": length, "rows": [id] }).to_string());
    assert_eq!(all_of_it["values"], object!({ (id.to_string()): null }), "too many");

    for shift in [8, 12, 14, 16, 19, 23] {
        let first = (length / 3) >> shift;
        let asked = object!({ "shift": shift, "first": first, "count": 300, "rows": [number] });
        let bytes = viewer.bytes("rows", &asked.to_string());
        let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        let float = |at: usize| f32::from_bits(word(at)) as u64;
        assert_eq!((word(0), bytes.len()), (number, 8 + word(4) as usize * 28));
        let mut found = vec![None; 300];
        for at in (8..bytes.len()).step_by(28) {
            let buckets = word(at) as usize..(word(at) + word(at + 4)) as usize;
            found[buckets].fill(Some((float(at + 12), float(at + 16))));
        }
        // Whole kHz below 2^24 are exact in single precision.
        let expected = (first..first + 300).map(|bucket| range(&all, bucket << shift, (bucket + 1) << shift));
        assert_eq!(found, expected.collect::<Vec<_>>(), "{shift}");
    }
}

#[test]
fn the_page_draws_the_range_of_each_column() {
    if !installed(&["chromium"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let all = write(folder.path());
    let viewer = Viewer::start(folder.path());
    let id = row(&viewer)["id"].clone();
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    let length = all.last().unwrap().2;
    for (from, to) in [(0, length), (length / 3, length / 2), (length / 3, length / 3 + 900_000)] {
        browser.open(&format!("http://127.0.0.1:{}/#v=1&from={from}&to={to}&pin={id}", viewer.port));
        browser.wait(&format!(
            "tracewing.isIdle() && tracewing.view.from === {from} && !!tracewing.valued()[{id}]"
        ));
        browser.settle();
        let values = browser.value(&format!("tracewing.valued()[{id}]"));
        let values: Vec<Option<f64>> = values.as_array().unwrap().iter().map(Value::as_f64).collect();
        let width = values.len() as u64 / 3;
        assert!(width > 500);
        let time = |column: u64| from + (to - from) * column / width;
        for column in 1..width - 1 {
            let found =
                values[column as usize * 3..][..2].iter().map(|value| value.map(|value| value as u64));
            let [Some(least), Some(most)] = found.collect::<Vec<_>>()[..] else {
                panic!("{column}: nothing is drawn");
            };
            let middle = (time(column) + time(column + 1)) / 2;
            let (value, _) = range(&all, middle, middle + 1).unwrap();
            assert!(least <= value && value <= most, "{column}: {least} {value} {most}");
            // Buckets are no wider than a column.
            let around = range(&all, time(column - 1), time(column + 2)).unwrap();
            assert!(around.0 <= least && most <= around.1, "{column}: {least} {most} {around:?}");
        }
    }
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// A recorder's counter on CPU 0, with its readings in ms.
fn write_cycles(folder: &Path, uuid: u8, readings: &[(u64, u64)]) {
    let mut class = class(Some(uuid), 1_000_000_000);
    class.set_env("domain", "profile".to_owned());
    class.set_env(environment::PROFILE_COUNTERS, environment::OF_CPU.to_owned());
    let payload = StructureClass::new().with("cycles", FieldClass::unsigned(64));
    class.data_stream_classes[0].event_record_classes =
        vec![EventRecordClass::new(0, "profile:counters").with_payload(payload)];
    let event = |&(ms, cycles): &(u64, u64)| {
        let payload = cycles.to_le_bytes().to_vec();
        Event { stamp: ms * 1_000_000, id: 0, tid: 0, payload }
    };
    let events: Vec<Event> = readings.iter().map(event).collect();
    write_trace(folder, &class, &[("cpu_0", Packet::new(uuid, 0, 0, 10_000_000).bytes(&events))]);
}

#[test]
fn counters_of_two_recorders_in_a_recording_are_not_mixed() {
    if !installed(&["chromium"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write_cycles(&folder.path().join("one"), 3, &[(1, 0), (3, 2_000), (5, 4_000)]);
    write_cycles(&folder.path().join("other"), 4, &[(1, 1_000_000), (4, 1_000_003), (5, 1_000_004)]);
    let viewer = Viewer::start(folder.path());
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "counter");
    let rows: Vec<u64> = rows.map(|row| row["id"].as_u64().unwrap()).collect();
    assert_eq!(rows.len(), 2);
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    let pins = format!("{}.{}", rows[0], rows[1]);
    browser.open(&format!("http://127.0.0.1:{}/#v=1&pin={pins}", viewer.port));
    let mut found = Vec::new();
    for row in rows {
        // The rates of each are those between its own readings.
        let values =
            format!("[...new Set(tracewing.valued()[{row}].filter((value) => value !== null))].sort()");
        found.push(browser.value(&values));
    }
    found.sort_by_key(Value::to_string);
    assert_eq!(found, [object!([1_000_000]), object!([1000])]);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
