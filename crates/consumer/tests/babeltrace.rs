//! From a region filled by hand to what babeltrace2 says of the folder: no warning, the right events, the
//! right losses.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::Writer;
use tracewing_abi::class_table;
use tracewing_abi::message::{ClassesWriter, MAX_MESSAGE, decode_classes};
use tracewing_abi::region::{Geometry, Loss, Protocol};
use tracewing_abi::schema::{Base, Class, Field, Level, Scalar, Shape};
use tracewing_consumer::classes::Classes;
use tracewing_consumer::clock::{Calibration, ClockChoice, TraceClock};
use tracewing_consumer::description::{BufferDescription, Description};
use tracewing_consumer::drain::{Backing, Drain};
use tracewing_consumer::folder::Folder;
use tracewing_consumer::metadata::clock_class;
use tracewing_consumer::trace::UserTrace;
use tracewing_units::Cycles;

const RECORDING: [u8; 16] = [7; 16];

fn field(name: &'static str, shape: Shape, scalar: Scalar) -> Field<'static> {
    Field::plain(name, shape, scalar)
}

fn describe(class: &Class<'_>) -> Vec<u8> {
    let mut buffer = vec![0; MAX_MESSAGE];
    let mut writer = ClassesWriter::new(&mut buffer).unwrap();
    writer.push(class).unwrap();
    let message = writer.finish().to_vec();
    decode_classes(&message).unwrap().next().unwrap().unwrap().to_vec()
}

struct Recording {
    _temporary: tempfile::TempDir,
    folder: Folder,
    clock: TraceClock,
    classes: Classes,
    trace: UserTrace,
    begin: Calibration,
}

fn recording() -> Recording {
    let temporary = tempfile::tempdir().unwrap();
    let folder = Folder::create(&temporary.path().join("trace")).unwrap();
    let clock = TraceClock::new(ClockChoice::Auto).unwrap();
    let begin = clock.calibrate();
    let classes = Classes::new(&[folder.user()], RECORDING, clock_class(&clock, &begin, [9; 16])).unwrap();
    let trace = UserTrace::new(folder.user(), RECORDING).unwrap();
    let buffers = BufferDescription {
        sub_buffer_bytes: 4096,
        sub_buffers: 4,
        per_process: false,
        overwrite: false,
        flush_ms: Some(200),
    };
    folder.describe(&Description::new(&clock, begin, buffers)).unwrap();
    Recording { _temporary: temporary, folder, clock, classes, trace, begin }
}

impl Recording {
    fn drain(&self, cpus: usize) -> Drain {
        let geometry = Geometry::new(cpus, 4, 4096).unwrap();
        Drain::new(Backing::Memory, "uid0".into(), geometry, Protocol::Publish, &self.clock, RECORDING)
            .unwrap()
    }

    fn poll(&mut self, drain: &mut Drain, flush: Duration) {
        drain.poll(&mut self.trace, &self.clock, flush, Duration::ZERO).unwrap();
    }
}

/// babeltrace2's lines for the user trace, or `None` where it is not installed. What it warns of is a
/// failure, but for losses, which it reports among its warnings.
fn babeltrace(folder: &Path) -> Option<(Vec<String>, String)> {
    let Ok(output) = Command::new("babeltrace2").args(["--clock-seconds", "--no-delta"]).arg(folder).output()
    else {
        tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
        return None;
    };
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{warnings}");
    Some((String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect(), warnings))
}

#[test]
fn every_kind_of_field_reads_back() {
    let mut recording = recording();
    let labels = [(0, "cold"), (u64::MAX, "below zero"), (5, "hot \"very\"")];
    let fields = [
        Field { base: Base::Hexadecimal, unit: "bytes", ..field("addr", Shape::One, Scalar::U64) },
        field("delta", Shape::One, Scalar::I16),
        field("ratio", Shape::One, Scalar::F64),
        field("ok", Shape::One, Scalar::Bool),
        field("letter", Shape::One, Scalar::Char),
        field("big", Shape::One, Scalar::U128),
        field("name", Shape::Text, Scalar::U8),
        Field { length: 3, ..field("fixed", Shape::Array, Scalar::U16) },
        field("list", Shape::Slice, Scalar::I32),
        field("maybe", Shape::Optional, Scalar::U32),
        field("never", Shape::Optional, Scalar::U32),
        Field { labels: &labels, ..field("heat", Shape::Enumeration, Scalar::I8) },
        field("event", Shape::One, Scalar::U8),
        field("event", Shape::One, Scalar::U8),
        field("größe", Shape::One, Scalar::U8),
        field("_hidden", Shape::One, Scalar::U8),
    ];
    let class = Class {
        name: "test:kinds",
        level: Level::Info,
        major: 0,
        description: "A \"quoted\" \\ description\nof two lines, 100 % größe",
        print: "addr {addr:#x}",
        file: "src/a.rs",
        line: 17,
        fields: &fields,
    };
    let ids = recording.classes.register([describe(&class).as_slice()]).unwrap();
    assert_eq!((ids.ids, ids.refused), (vec![1], vec![]));

    let mut payload = Vec::new();
    payload.extend(0xdead_beef_u64.to_le_bytes());
    payload.extend((-5_i16).to_le_bytes());
    payload.extend(0.25_f64.to_le_bytes());
    payload.push(1);
    payload.extend("é\0\0".as_bytes());
    payload.extend((1_u128 << 64 | 2).to_le_bytes());
    payload.extend(b"some text\0");
    payload.extend([1, 0, 2, 0, 3, 0]);
    payload.extend([2, 0]);
    payload.extend((-1_i32).to_le_bytes());
    payload.extend(9_i32.to_le_bytes());
    payload.extend([1, 42, 0, 0, 0]);
    payload.push(0);
    payload.push(0xff);
    payload.extend([10, 11, 12, 13]);

    let mut drain = recording.drain(2);
    let mut writer = Writer { region: drain.region(), cpu: 1, stamp: recording.begin.cycles.0 };
    writer.emit(1, &payload);
    recording.poll(&mut drain, Duration::ZERO);
    drain.finish(&mut recording.trace, &recording.clock).unwrap();
    assert!(!recording.folder.user().path().join("uid0_0").exists());

    let Some((lines, warnings)) = babeltrace(recording.folder.path()) else { return };
    assert_eq!(warnings, "");
    assert_eq!(lines.len(), 1, "{lines:?}");
    let stamp = recording.clock.real_time(&recording.begin, Cycles(recording.begin.cycles.0 + 1000)).as_ns();
    let reported: String = lines[0].chars().take_while(|c| *c != ']').filter(char::is_ascii_digit).collect();
    assert!(
        reported.parse::<u64>().unwrap().abs_diff(stamp.cast_unsigned()) < 1000,
        "{} at {stamp}",
        lines[0]
    );
    let (_, fields) = lines[0].split_once("test:kinds: ").unwrap();
    assert_eq!(
        fields,
        "{ cpu_id = 1 }, { tid = 4711 }, { addr = 0xDEADBEEF, delta = -5, ratio = 0.25, ok = 1, letter = \"é\", \
         big = { low = 2, high = 1 }, name = \"some text\", fixed = [ [0] = 1, [1] = 2, [2] = 3 ], \
         _list_length = 2, list = [ [0] = -1, [1] = 9 ], _maybe_tag = ( \"some\" : container = 1 ), \
         maybe = { 42 }, _never_tag = ( \"none\" : container = 0 ), never = { { } }, \
         heat = ( \"below zero\" : container = -1 ), event = 10, event_2 = 11, gr__e = 12, _hidden = 13 }"
    );
}

#[test]
fn partial_sub_buffers_and_losses_add_up() {
    let mut recording = recording();
    let fields = [field("n", Shape::One, Scalar::U64)];
    let class = Class { level: Level::Debug, fields: &fields, ..Class::named("test:n") };
    recording.classes.register([describe(&class).as_slice()]).unwrap();
    let mut drain = recording.drain(1);
    let mut writer = Writer { region: drain.region(), cpu: 0, stamp: recording.begin.cycles.0 };
    let mut emitted = 0_u64;
    let mut emit = |count: u64| {
        for _ in 0..count {
            writer.emit(1, &emitted.to_le_bytes());
            emitted += 1;
        }
    };
    emit(10);
    recording.poll(&mut drain, Duration::ZERO);
    emit(1000);
    // Not due yet: only what is full.
    recording.poll(&mut drain, Duration::from_secs(3600));
    let written = drain.summary()[0].events;
    assert!(10 < written && written + drain.summary()[0].lost < 1010, "{written}");
    emit(3);
    recording.poll(&mut drain, Duration::ZERO);
    emit(2000);
    drain.finish(&mut recording.trace, &recording.clock).unwrap();

    let summary = drain.summary();
    assert_eq!(summary.len(), 1);
    assert_eq!(summary[0].events + summary[0].lost, emitted, "{summary:?}");
    assert!(summary[0].lost > 0);
    let by_reason = drain.losses().fold(BTreeMap::new(), |mut sums, range| {
        assert!(range.begin < range.end, "{range:?}");
        *sums.entry(range.reason.clone()).or_insert(0) += range.events;
        sums
    });
    assert_eq!(by_reason, BTreeMap::from([("buffer full".to_owned(), summary[0].lost)]));

    let Some((lines, warnings)) = babeltrace(recording.folder.path()) else { return };
    assert_eq!(lines.len() as u64, summary[0].events);
    let reported: u64 = warnings
        .lines()
        .filter_map(|line| line.split_once("discarded ")?.1.split_once(" event")?.0.parse::<u64>().ok())
        .sum();
    assert_eq!(reported, summary[0].lost, "{warnings}");
    assert_eq!(warnings.lines().filter(|line| !line.contains("discarded")).count(), 0, "{warnings}");
}

/// A long event finds no room where a short one later does: the last packet's loss covers both.
#[test]
fn events_after_a_loss_lie_in_its_time() {
    let mut recording = recording();
    let fields = [field("text", Shape::Text, Scalar::U8)];
    recording
        .classes
        .register([describe(&Class { fields: &fields, ..Class::named("test:text") }).as_slice()])
        .unwrap();
    let mut drain = recording.drain(1);
    let mut writer = Writer { region: drain.region(), cpu: 0, stamp: recording.begin.cycles.0 };
    let long = [&[b'x'; 300][..], &[0]].concat();
    while writer.region.buffer(0).lost_total() == 0 {
        writer.emit(1, &long);
    }
    let lost = writer.stamp;
    writer.emit(1, b"short\0");
    assert_eq!(writer.region.buffer(0).lost_total(), 1);
    // The full sub-buffers; the last one not before its end.
    recording.poll(&mut drain, Duration::ZERO);
    let written = drain.summary()[0].events;
    recording.poll(&mut drain, Duration::ZERO);
    assert_eq!(drain.summary()[0].events, written);
    drain.finish(&mut recording.trace, &recording.clock).unwrap();
    assert_eq!((drain.summary()[0].lost, drain.losses().count()), (1, 1));
    assert!(drain.summary()[0].events > written + 1);

    let Some((lines, warnings)) = babeltrace(recording.folder.path()) else { return };
    assert!(lines.last().unwrap().contains("short"));
    let stamp = |cycles| recording.clock.real_time(&recording.begin, Cycles(cycles)).as_ns().cast_unsigned();
    let times: Vec<u64> = warnings
        .split(['[', ']'])
        .filter_map(|word| word.split_once('.').and_then(|(s, ns)| format!("{s}{ns}").parse().ok()))
        .collect();
    assert!(
        matches!(times[..], [begin, end] if begin < stamp(lost) && stamp(lost + 1000) < end),
        "{warnings}: {} lost",
        stamp(lost)
    );
}

#[test]
fn losses_before_the_first_event_are_reported() {
    let mut recording = recording();
    let class = Class::named("test:e");
    recording.classes.register([describe(&class).as_slice()]).unwrap();
    let mut drain = recording.drain(1);
    for _ in 0..7 {
        drain.region().buffer(0).count_loss(Loss::TooLarge);
    }
    Writer { region: drain.region(), cpu: 0, stamp: recording.begin.cycles.0 }.emit(1, &[]);
    drain.finish(&mut recording.trace, &recording.clock).unwrap();
    assert_eq!(
        drain.losses().map(|range| (range.reason.as_str(), range.events)).collect::<Vec<_>>(),
        [("event too large", 7)]
    );
    let Some((lines, warnings)) = babeltrace(recording.folder.path()) else { return };
    assert_eq!(lines.len(), 1);
    assert!(warnings.contains("discarded 7 events"), "{warnings}");
}

#[test]
fn equal_descriptions_share_an_id_and_only_wanted_classes_are_in_the_metadata() {
    let mut recording = recording();
    let class = |name, major| Class {
        name,
        level: Level::Info,
        major,
        description: "",
        print: "",
        file: "a.rs",
        line: 1,
        fields: &[],
    };
    let descriptions: Vec<Vec<u8>> =
        [("shop:a", 0), ("bar:a", 0), ("shop:a", 0), ("shop:b", 7), ("shop:a", 7)]
            .map(|(name, major)| describe(&class(name, major)))
            .into();
    let ids = recording.classes.describe(descriptions.iter().map(Vec::as_slice), |_| true).ids;
    assert_eq!(ids, [1, 2, 1, 3, 4]);
    assert_eq!(recording.classes.described().map(|(id, class)| (id, class.name)).last(), Some((4, "shop:a")));
    let table = recording.folder.path().join("classes");
    recording.classes.keep_table(recording.folder.dir(), "classes").unwrap();
    let kept = || {
        let text = std::fs::read_to_string(recording.folder.user().path().join("metadata")).unwrap();
        let names = ["bar:a", "shop:a", "shop:b"].map(|name| text.contains(&format!("\"{name}\"")));
        let table = std::fs::read(&table).unwrap();
        let ids: Vec<u16> = class_table::entries(&table[class_table::HEADER..]).map(|(id, _)| id).collect();
        (names, ids, text)
    };
    assert_eq!((kept().0, kept().1, recording.classes.len()), ([false; 3], vec![], 0));
    recording.classes.enable([3, 0, 9]).unwrap();
    let (names, ids, text) = kept();
    assert_eq!((names, ids), ([false, false, true], vec![3]));
    assert!(text.contains("event_3_major = 7"), "{text}");
    recording.classes.enable([1, 3]).unwrap();
    let (names, ids, text) = kept();
    assert_eq!((names, ids), ([false, true, true], vec![1, 3]));
    assert!(!text.contains("event_1_major"), "{text}");
    let Some((_, warnings)) = babeltrace(recording.folder.path()) else { return };
    assert_eq!(warnings, "");
}

#[test]
fn hostile_descriptions_are_refused_and_leave_the_metadata_good() {
    let mut recording = recording();
    let bad_label = [(300, "x")];
    let cases: [(&str, Vec<Field<'_>>); 5] = [
        ("", vec![]),
        ("a\nb", vec![]),
        ("too:large", vec![Field { length: u32::MAX, ..field("a", Shape::Array, Scalar::U128) }]),
        ("float:enum", vec![field("e", Shape::Enumeration, Scalar::F64)]),
        ("bad:label", vec![Field { labels: &bad_label, ..field("e", Shape::Enumeration, Scalar::U8) }]),
    ];
    for (name, fields) in &cases {
        let class = Class {
            name,
            level: Level::Info,
            major: 0,
            description: "",
            print: "",
            file: "",
            line: 0,
            fields,
        };
        let registered = recording.classes.register([describe(&class).as_slice()]).unwrap();
        assert_eq!((registered.ids, registered.refused.len()), (vec![0], 1), "{name}");
    }
    assert_eq!(recording.classes.register([b"rubbish".as_slice()]).unwrap().ids, [0]);

    let odd = ["\"; }; event { name = \"x", "\\", "", "struct", "int", "a b", "a_b", "\u{7f}", "0"];
    let fields: Vec<_> = odd.iter().map(|name| field(name, Shape::Slice, Scalar::U8)).collect();
    let class = Class {
        name: "odd:\"};\\ name */",
        level: Level::Trace,
        major: 0,
        description: "\0\u{1b}[31m\"; }; /* \\",
        print: "",
        file: "",
        line: u32::MAX,
        fields: &fields,
    };
    assert_eq!(recording.classes.register([describe(&class).as_slice()]).unwrap().ids, [1]);
    let mut drain = recording.drain(1);
    Writer { region: drain.region(), cpu: 0, stamp: recording.begin.cycles.0 }.emit(1, &[0; 18]);
    drain.finish(&mut recording.trace, &recording.clock).unwrap();
    let Some((lines, warnings)) = babeltrace(recording.folder.path()) else { return };
    assert_eq!((lines.len(), warnings.as_str()), (1, ""));
    assert!(lines[0].contains("odd:\"};\\ name */"), "{lines:?}");
}

#[test]
fn a_folder_with_something_in_it_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    std::fs::write(temporary.path().join("x"), "").unwrap();
    let error = Folder::create(temporary.path()).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
}
