//! Values that no tracer here writes, but CTF has: nested compounds, variants, bit fields, all bases,
//! big-endian traces, clocks in payloads, streams without clock. As babeltrace2 prints them.

use std::fs;
use std::path::Path;
use tracewing_oracle::assert_always_same_as_babeltrace2;
use tracewing_trace::{Filter, Format, Listing, Predicate, Recording};

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 8; align = 8; signed = true; } := i8;
typealias integer { size = 16; align = 8; signed = false; } := u16;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
trace { major = 1; minor = 8; byte_order = ORDER; packet.header := struct { u32 magic; }; };
env { hostname = "box"; domain = "bare"; procname = "init"; vpid = 1; };
clock { name = c; freq = 1000; offset_s = 1000000; };
typealias integer { size = 32; align = 8; signed = false; map = clock.c.value; } := stamp;
stream {
    packet.context := struct { u32 content_size; u32 packet_size; u8 cpu_id; string note; };
    event.header := struct { u8 id; HEADER };
    event.context := struct { struct { u8 a; } inner; };
};
event {
    name = "deep"; id = 0; loglevel = 4; model.emf.uri = "http://example.com/deep";
    context := struct { i8 level; };
    fields := struct {
        struct { u8 x; struct { i8 y; string z; } in; } point;
        struct { u8 x; } points[2];
        u8 matrix[2][2];
        u8 count;
        string names[count];
        enum : i8 { minus = -1, zero, other = 1 ... 5, more = 3 ... 9 } choice;
        enum : u8 { number, text, pair } tag;
        variant <tag> { u16 number; string text; struct { u8 a; u8 b; } pair; } either;
        CLOCKED
        struct { } nothing;
        integer { size = 8; align = 8; base = 2; signed = true; } binary;
        integer { size = 8; align = 8; base = 8; signed = true; } octal;
        integer { size = 16; align = 8; base = 16; signed = true; } hex;
        integer { size = 3; align = 1; signed = false; } three;
        integer { size = 5; align = 1; signed = true; base = 8; } five;
        floating_point { exp_dig = 8; mant_dig = 24; align = 8; } real;
        u8 tail[0];
    };
};
event { name = "bare"; id = 1; };
event { name = "quiet"; id = 2; fields := struct { }; };
"#;

/// A trace of three kinds of events, in the given byte order, with a clock or without.
fn write(folder: &Path, big: bool, clock: bool) {
    let number = |value: u64, size: usize| match big {
        true => value.to_be_bytes()[8 - size..].to_vec(),
        false => value.to_le_bytes()[..size].to_vec(),
    };
    let mut events = Vec::new();
    let head = |events: &mut Vec<u8>, id: u8, stamp: u64| {
        events.push(id);
        if clock {
            events.extend(number(stamp, 4));
        }
        events.push(9);
    };
    for (index, tag) in [0_u8, 1, 2].into_iter().enumerate() {
        head(&mut events, 0, 5000 + index as u64);
        events.extend([0xFE, 1, 0xFF]);
        events.extend(b"in\0");
        events.extend([3, 4, 1, 2, 3, 4]);
        events.push(index as u8);
        (0..index).for_each(|name| events.extend(format!("name{name}\0").into_bytes()));
        events.extend([index as u8 * 2, tag]);
        match tag {
            0 => events.extend(number(700, 2)),
            1 => events.extend(b"text\0"),
            _ => events.extend([5, 6]),
        }
        if clock {
            events.extend(number(5000 + index as u64, 4));
        }
        events.extend([0x85, 0xFD]);
        events.extend(number(0xFFFE, 2));
        events.push(0b1011_0101);
        events.extend(number(u64::from(1.25_f32.to_bits()), 4));
    }
    head(&mut events, 1, 6000);
    head(&mut events, 2, 7000);
    let size = 4 + 4 + 4 + 1 + 5 + events.len();
    let mut bytes = number(0xC1FC_1FC1, 4);
    bytes.extend(number(size as u64 * 8, 4));
    bytes.extend(number(size as u64 * 8, 4));
    bytes.push(3);
    bytes.extend(b"note\0");
    bytes.extend(events);
    let metadata = METADATA
        .replace("ORDER", if big { "be" } else { "le" })
        .replace("HEADER", if clock { "stamp timestamp;" } else { "" })
        .replace("CLOCKED", if clock { "stamp again;" } else { "" });
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("metadata"), metadata).unwrap();
    fs::write(folder.join("stream"), bytes).unwrap();
}

#[test]
fn every_compound_in_both_byte_orders() {
    for big in [false, true] {
        for clock in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            write(folder.path(), big, clock);
            assert_always_same_as_babeltrace2(folder.path());
            let mut ours = (Vec::new(), Vec::new());
            Listing::default().print(&Recording::open(&[folder.path()]).unwrap(), &mut ours).unwrap();
            let text = String::from_utf8(ours.0).unwrap();
            assert_eq!(text.lines().count(), 5, "{text}");
        }
    }
}

/// Names of the events for which a predicate holds, with what is in `either`.
fn chosen(recording: &Recording, predicate: &str) -> Result<Vec<String>, String> {
    let listing = Listing {
        format: Format::Json,
        filter: Filter {
            predicate: Some(Predicate::parse(predicate).map_err(|error| error.to_string())?),
            ..Filter::default()
        },
        ..Listing::default()
    };
    let mut out = (Vec::new(), Vec::new());
    listing.print(recording, &mut out).map_err(|error| error.to_string())?;
    let values = out.0.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let values = values.map(|line| serde_json::from_slice::<serde_json::Value>(line).unwrap());
    Ok(values.map(|value| format!("{} {}", value["event"], value["payload"]["either"])).collect())
}

#[test]
fn predicates_reach_inside_compounds() {
    const NUMBER: &str = r#""deep" {"number":700}"#;
    const TEXT: &str = r#""deep" {"text":"text"}"#;
    const PAIR: &str = r#""deep" {"pair":{"a":5,"b":6}}"#;
    const DEEP: [&str; 3] = [NUMBER, TEXT, PAIR];
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), true, true);
    let recording = Recording::open(&[folder.path()]).unwrap();
    for (predicate, expected) in [
        ("either.number == 700", &[NUMBER][..]),
        ("either.number != 700", &[]),
        ("!(either.number == 700)", &[]),
        ("!(either.number == 700 || point.x == 2)", &[]),
        ("!(either.number == 700 && point.x == 2)", &DEEP),
        // Other events have no `point`.
        ("point.x == 1 || $event == 'bare'", &[NUMBER, TEXT, PAIR, r#""bare" null"#]),
        ("!(point.x == 1 && $event == 'bare')", &[NUMBER, TEXT, PAIR, r#""quiet" null"#]),
        ("!(point.x == 1 || $event == 'bare')", &[]),
        ("either.text =~ 't??t'", &[TEXT]),
        ("either.pair.b > either.pair.a", &[PAIR]),
        ("either.pair.a == 6 || tag == 'text'", &[TEXT]),
        ("point.in.y == -1 && point.in.z == 'in' && point.x == 1", &DEEP),
        ("len(point.in.z) == 2 && len(names) < 2", &[NUMBER, TEXT]),
        ("names[0] == 'name0'", &[TEXT, PAIR]),
        ("names[1] != 'name0'", &[PAIR]),
        ("len(points) == 2", &DEEP),
        ("choice == 'other'", &[TEXT, PAIR]),
        ("choice == 'zero' || choice == 'more'", &[NUMBER, PAIR]),
        ("points[0].x == 3 && points[1].x == 4 && matrix[1][0] == 3", &DEEP),
        ("matrix[1][1] == 3", &[]),
        ("choice == 'more' && choice =~ 'oth*'", &[PAIR]),
        ("choice != 'more'", &[NUMBER, TEXT]),
        ("three == 5 && hex == -2 && real == 1.25", &DEEP),
        ("$level == 4 && $event == 'deep' && $cpu == 3 && $note == 'note'", &DEEP),
        ("$inner.a == 9", &[NUMBER, TEXT, PAIR, r#""bare" null"#, r#""quiet" null"#]),
        (
            "$hostname == 'box' && $procname =~ 'in*' && $pid == 1 && $event != 'deep'",
            &[r#""bare" null"#, r#""quiet" null"#],
        ),
        ("again & 1", &[TEXT]),
    ] {
        assert_eq!(
            chosen(&recording, predicate).as_deref(),
            Ok(&expected.iter().map(ToString::to_string).collect::<Vec<_>>()[..]),
            "{predicate}"
        );
    }
    for (predicate, expected) in [
        ("points[0].q == 1", "it has no `points[0].q` (it has points[0].x)"),
        ("point.q == 1", "event \"deep\": it has no `point.q` (it has point.x, point.in)"),
        (
            "point == 1",
            "event \"deep\": `point` is made of parts: ask for one of them (it has point.x, point.in)",
        ),
        (
            "either == 1",
            "`either` is made of parts: ask for one of them (it has either.number, either.text, either.pair)",
        ),
        ("points[2].x == 1", "`points[2].x`: the array has 2 values"),
        ("matrix[0][2] == 1", "`matrix[0][2]`: the array has 2 values"),
        ("point.x[0] == 1", "`point.x[0]`: the field has a single value"),
        ("matrix[0] == 1", "`matrix[0]` has several values"),
        ("tail[0] == 1", "`tail[0]`: the array has 0 values"),
        ("nobody == 1", "event \"bare\": it has no `nobody`; and so for 1 other event"),
        ("point.x == 1 || nobody == 1", "no event has `nobody`, which the condition uses"),
        ("$vtid == 1", "it has no `$vtid` (it has $event, $level, $level, "),
        ("tag == 'none'", "`tag` has no label \"none\" (it has number, text, pair)"),
    ] {
        let error = chosen(&recording, predicate).unwrap_err();
        assert!(error.contains(expected), "{predicate}: {error}");
    }
}
