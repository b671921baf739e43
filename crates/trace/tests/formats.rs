//! The formats that babeltrace2 does not have: print forms with units, JSON, the report; and what is chosen
//! of a trace.

mod common;

use common::{Event, Packet, class, tick, write_trace};
use std::path::Path;
use tracewing_ctf::model::{
    DisplayBase, Encoding, EnumerationClass, EventRecordClass, FieldClass, IntegerClass, StructureClass,
    VariantClass,
};
use tracewing_trace::{ClockStyle, Filter, Format, Listing, Predicate, Recording, Report, Style, Zone};
use tracewing_units::{Duration, Timestamp};

fn print(folder: &Path, listing: &Listing) -> Vec<String> {
    let mut ours = (Vec::new(), Vec::new());
    listing.print(&Recording::open(&[folder]).unwrap(), &mut ours).unwrap();
    String::from_utf8(ours.0).unwrap().lines().map(str::to_owned).collect()
}

fn named(pattern: &str) -> Filter {
    Filter { events: vec![pattern.into()], ..Filter::default() }
}

fn condition(text: &str) -> Filter {
    Filter { predicate: Some(Predicate::parse(text).unwrap()), ..Filter::default() }
}

fn listing(format: Format) -> Listing {
    let clock = ClockStyle { zone: Zone::Utc, ..ClockStyle::default() };
    Listing { format, style: Style { clock, delta: false, ..Style::default() }, ..Listing::default() }
}

/// A trace of one event of class 1, with these members and this payload, and these notes.
fn one_event(folder: &Path, members: StructureClass, payload: &[u8], notes: &[(&str, &str)]) {
    let mut class = class(Some(1), 1_000_000_000);
    class.data_stream_classes[0]
        .event_record_classes
        .push(EventRecordClass::new(1, "shop:enqueued").with_payload(members));
    for (key, value) in notes {
        class.set_env(format!("event_1_{key}"), *value);
    }
    let event = Event { stamp: 11, id: 1, tid: 42, payload: payload.to_vec() };
    write_trace(folder, &class, &[("s", Packet::new(1, 0, 10, 20).bytes(&[event]))]);
}

fn members() -> StructureClass {
    let state = EnumerationClass::new(IntegerClass::unsigned(8)).with("idle", 0, 0).with("busy", 1, 3);
    StructureClass::new()
        .with("region", IntegerClass::unsigned(64).with_base(DisplayBase::Hexadecimal))
        .with("wait", FieldClass::unsigned(32))
        .with("ok", FieldClass::unsigned(8))
        .with("letter", FieldClass::unsigned(32))
        .with("state", state)
        .with("sizes", FieldClass::array(FieldClass::unsigned(8), 2))
        .with("name", FieldClass::string())
}

fn payload() -> Vec<u8> {
    let mut bytes = 0xBEEF_u64.to_le_bytes().to_vec();
    bytes.extend(1500_u32.to_le_bytes());
    bytes.push(1);
    bytes.extend(u32::from('ß').to_le_bytes());
    bytes.extend([2, 10, 20]);
    bytes.extend(b"caf\xc3\xa9\0");
    bytes
}

const UNITS: [(&str, &str); 4] =
    [("unit_wait", "ns"), ("unit_ok", "bool"), ("unit_letter", "char"), ("unit_sizes", "bytes")];

#[test]
fn print_forms() {
    let head = "[04:25:40.123456800] shop:enqueued: { cpu_id = 0 }, { tid = 42 }, ";
    for (form, expected) in [
        ("region {region:#x} of {name}", "region 0xbeef of café"),
        ("{name:>6}|{name:<6}|{wait:08}", "  café|café  |00001500 ns"),
        ("waited {wait}", "waited 1500 ns"),
        ("waited {wait} ns, then", "waited 1500 ns, then"),
        ("{ok} {letter} {state} {state:#x}", "true ß busy 0x2"),
        ("{sizes} by {tid} {{ok}}", "[ 10, 20 ] bytes by 42 {ok}"),
        // What cannot be printed so is printed as structure.
        (
            "{nowhere}",
            "{ region = 0xBEEF, wait = 1500 ns, ok = true, letter = 'ß', state = ( \"busy\" : container = 2 ), \
             sizes = [ [0] = 10, [1] = 20 ] bytes, name = \"café\" }",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut notes = UNITS.to_vec();
        notes.push(("print", form));
        one_event(folder.path(), members(), &payload(), &notes);
        assert_eq!(print(folder.path(), &listing(Format::Pretty)), [format!("{head}{expected}")], "{form}");
    }
}

#[test]
fn texts_neither_break_lines_nor_command_terminals() {
    let folder = tempfile::tempdir().unwrap();
    let members = StructureClass::new().with("name", FieldClass::string());
    one_event(folder.path(), members, b"l1\nl2\x1b[2J\xff,\0", &[("print", "a\n{name}")]);
    let printed = print(folder.path(), &listing(Format::Pretty));
    let [line] = &printed[..] else { panic!("{printed:?}") };
    assert!(line.ends_with("a\\nl1\\nl2\\u{1b}[2J\u{fffd},"), "{line}");
    let csv = print(folder.path(), &listing(Format::Csv));
    assert_eq!(csv[1..].join("\n").split_once('"').unwrap().1, "l1\nl2\u{1b}[2J\u{fffd},\"");
}

#[test]
fn print_forms_show_an_option_as_its_value() {
    for (payload, expected) in [(&[1, 7][..], "7 of 7"), (&[0], "none of none")] {
        let tag = EnumerationClass::new(IntegerClass::unsigned(8)).with("none", 0, 0).with("some", 1, 1);
        let weight = VariantClass::new("_weight_tag")
            .with("none", StructureClass::new())
            .with("some", FieldClass::unsigned(8));
        let members = StructureClass::new().with("_weight_tag", tag).with("weight", weight);
        let folder = tempfile::tempdir().unwrap();
        one_event(folder.path(), members, payload, &[("print", "{weight} of {weight}")]);
        let printed = print(folder.path(), &listing(Format::Pretty));
        assert!(printed[0].ends_with(&format!("{{ tid = 42 }}, {expected}")), "{printed:?}");
    }
}

#[test]
fn json_is_exact() {
    let folder = tempfile::tempdir().unwrap();
    let inner = StructureClass::new().with("a", FieldClass::signed(8)).with("b", FieldClass::float(64));
    let tag = EnumerationClass::new(IntegerClass::unsigned(8)).with("left", 0, 0).with("right", 1, 1);
    let either =
        VariantClass::new("tag").with("left", FieldClass::unsigned(8)).with("right", FieldClass::float(32));
    let members = StructureClass::new()
        .with("big", FieldClass::unsigned(64))
        .with("inner", inner)
        .with("tag", tag)
        .with("either", FieldClass::Variant(either.into()))
        .with("text", FieldClass::string());
    let mut payload = u64::MAX.to_le_bytes().to_vec();
    payload.push(0xFF);
    payload.extend(f64::NEG_INFINITY.to_le_bytes());
    payload.push(1);
    payload.extend(0.5_f32.to_le_bytes());
    payload.extend(b"a\"\n\xff\0");
    one_event(folder.path(), members, &payload, &[]);
    assert_eq!(
        print(folder.path(), &listing(Format::Json)),
        ["{\"ns\":1795235140123456800,\"cycles\":11,\"trace\":\"\",\"stream_class\":0,\"stream\":0,\
          \"event\":\"shop:enqueued\",\"packet_context\":{\"cpu_id\":0},\"common_context\":{\"tid\":42},\
          \"payload\":{\"big\":18446744073709551615,\"inner\":{\"a\":-1,\"b\":\"-inf\"},\
          \"tag\":{\"value\":1,\"labels\":[\"right\"]},\"either\":{\"right\":0.5},\"text\":\"a\\\"\\n\u{fffd}\"}}"]
    );
}

#[test]
fn a_selection_counts_only_what_it_prints() {
    let folder = tempfile::tempdir().unwrap();
    let mut class = class(Some(1), 1_000_000_000);
    let payload = StructureClass::new().with("n", FieldClass::unsigned(32));
    let stream = &mut class.data_stream_classes[0];
    stream.event_record_classes.push(EventRecordClass::new(1, "test:tock").with_payload(payload));
    let event =
        |number: u32| Event { id: (number % 2) as u16, ..tick(1000 + u64::from(number) * 100, number) };
    let events: Vec<_> = (0..10).map(event).collect();
    write_trace(folder.path(), &class, &[("s", Packet::new(1, 0, 1000, 2000).bytes(&events))]);

    let numbers = |listing: &Listing| -> Vec<u32> {
        let number = |line: &String| line.rsplit(' ').nth(1).unwrap().parse().unwrap();
        print(folder.path(), listing).iter().map(number).collect()
    };
    let mut odd = Listing { filter: named("*:to?k"), ..listing(Format::Text) };
    assert_eq!(numbers(&odd), [1, 3, 5, 7, 9]);
    odd.count = Some(2);
    assert_eq!(numbers(&odd), [1, 3]);
    odd.filter.set_range(Some("+300ns"), Some("+700ns")).unwrap();
    odd.count = None;
    assert_eq!(numbers(&odd), [3, 5, 7]);
    odd.filter.events.push("test:tick".into());
    assert_eq!(numbers(&odd), [3, 4, 5, 6, 7]);
    // The distance is that from the previous event that was printed.
    odd.filter.events.truncate(1);
    odd.style.delta = true;
    let lines = print(folder.path(), &odd);
    assert!(lines[0].contains("(+?.?????????)") && lines[1].contains("(+0.000000200)"), "{lines:?}");
}

/// What tracewing writes as several fields, and under another name, is what the program had.
#[test]
fn predicates_see_fields_as_the_program_had_them() {
    let optional = |name: &str, class: FieldClass| {
        let tag = EnumerationClass::new(IntegerClass::unsigned(8)).with("none", 0, 0).with("some", 1, 1);
        let value = VariantClass::new(format!("_{name}_tag").as_str())
            .with("none", StructureClass::new())
            .with("some", class);
        (tag, value)
    };
    let wide = |signed| {
        let high = IntegerClass { signed, ..IntegerClass::unsigned(64) };
        FieldClass::from(StructureClass::new().with("low", FieldClass::unsigned(64)).with("high", high))
    };
    let letter = FieldClass::array(IntegerClass::unsigned(8).with_encoding(Encoding::Utf8), 4);
    let (maybe_tag, maybe) = optional("maybe", wide(true));
    let (empty_tag, empty) = optional("empty", FieldClass::unsigned(8));
    let members = StructureClass::new()
        .with("huge", wide(false))
        .with("_maybe_tag", maybe_tag)
        .with("maybe", maybe)
        .with("_empty_tag", empty_tag)
        .with("empty", empty)
        .with("letter", letter)
        .with("_sizes_length", FieldClass::unsigned(16))
        .with("sizes", FieldClass::sequence(wide(true), "_sizes_length"))
        .with("http_method", FieldClass::string());
    let mut payload = (u128::MAX - 1).to_le_bytes().to_vec();
    payload.push(1);
    payload.extend((-3_i128).to_le_bytes());
    payload.push(0);
    payload.extend("ß\0\0".as_bytes());
    payload.extend(2_u16.to_le_bytes());
    payload.extend([5_i128.to_le_bytes(), (-(1_i128 << 90)).to_le_bytes()].concat());
    payload.extend(b"GET\0");
    let folder = tempfile::tempdir().unwrap();
    one_event(folder.path(), members, &payload, &[]);
    for (predicate, expected) in [
        ("huge == 340282366920938463463374607431768211454", true),
        ("huge < 0 || huge & 1", false),
        ("maybe == -3 && len(maybe) == 1 && maybe < huge", true),
        ("empty == 0 || empty != 0 || len(empty) != 0", false),
        ("!(empty == 0)", false),
        ("!(empty == 0 && maybe == 3)", true),
        ("letter == 'ß' && letter =~ '?'", true),
        ("len(sizes) == 2 && sizes[0] == 5 && sizes[1] < -1000", true),
        ("sizes[2] != 0", false),
        ("http.method == 'GET' && http_method != 'PUT'", true),
        ("$tid == 42 && $cpu == 0 && $event == 'shop:enqueued'", true),
        ("$cpu > -1 && $cpu_id < 1", true),
    ] {
        let lines = print(folder.path(), &Listing { filter: condition(predicate), ..listing(Format::Text) });
        assert_eq!(lines.len(), usize::from(expected), "{predicate:?}");
    }
    let none = Listing { filter: condition("nobody"), ..listing(Format::Text) };
    let error =
        none.print(&Recording::open(&[folder.path()]).unwrap(), &mut (Vec::new(), Vec::new())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no event has what the condition asks for\n  event \"test:tick\": it has no `nobody` (it has n)\n  event \
         \"shop:enqueued\": it has no `nobody` (it has huge, maybe, empty, letter, sizes, http_method)"
    );
    let elsewhere =
        Listing { filter: Filter { events: vec!["bar:*".into()], ..condition("nobody") }, ..none };
    assert!(print(folder.path(), &elsewhere).is_empty(), "nothing to choose from is no mistake");
}

#[test]
fn a_report_says_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let notes =
        [("description", "An order came in."), ("file", "src/shop.rs"), ("line", "17"), ("unit_wait", "ns")];
    one_event(&folder.path().join("user"), members(), &payload(), &notes);
    std::fs::write(folder.path().join("tracewing.json"), r#"{"command":["shop"]}"#).unwrap();
    let (report, errors) = Report::new(&Recording::open(&[folder.path()]).unwrap());
    assert!(errors.is_empty());
    assert_eq!(report.recordings[0]["command"][0], "shop");
    let trace = &report.traces[0];
    assert_eq!(
        (report.begin_ns, report.duration_ns),
        (Some(Timestamp::from_ns(1_795_235_140_123_456_799)), Some(Duration::from_ns(10)))
    );
    assert!(trace.environment.is_empty(), "notes are not environment: {:?}", trace.environment);
    assert_eq!((trace.streams[0].packets, trace.streams[0].events, trace.streams[0].cpu), (1, 1, Some(0)));
    let class = &trace.event_classes[1];
    assert_eq!((class.count, class.description.as_deref()), (1, Some("An order came in.")));
    assert_eq!(class.source.as_deref(), Some("src/shop.rs:17"));
    let field = &class.fields[1];
    assert_eq!(
        (field.name.as_str(), field.class.as_str(), field.unit.as_deref()),
        ("wait", "u32", Some("ns"))
    );
}
