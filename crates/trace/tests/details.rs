//! Details of recordings: what babeltrace2's details printer says of CTF 1.8, and every field class of CTF 2.

use std::path::Path;
use std::process::Command;
use tracewing_trace::{Filter, Format, Listing, Predicate, Recording, print_details};

fn details(folder: &Path, compact: bool) -> String {
    let mut out = Vec::new();
    print_details(&Recording::open(&[folder]).unwrap(), &mut out, compact).unwrap();
    String::from_utf8(out).unwrap()
}

fn write(folder: &Path, metadata: &[u8], data: &[u8]) {
    std::fs::write(folder.join("metadata"), metadata).unwrap();
    std::fs::write(folder.join("stream"), data).unwrap();
}

const METADATA: &str = r#"/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; freq = 1000; offset_s = 5; };
typealias integer { size = 8; map = clock.c.value; } := stamp;
typealias integer { size = 8; } := u8;
stream {
    packet.context := struct { stamp timestamp_begin; stamp timestamp_end; u8 packet_size; u8 content_size;
        u8 events_discarded; u8 packet_seq_num; u8 cpu_id; };
    event.header := struct { stamp timestamp; u8 id; };
};
event { id = 0; name = e; fields := struct {
    enum : u8 { A = 0, _B, C = 5 ... 9 } tag;
    variant <tag> { integer { size = 8; base = 16; } A; string _B; struct { integer { size = 8; base = 8; } x; } C; } v;
    integer { size = 8; signed = 1; } arr[2][1]; }; };
event { id = 1; name = f; context := struct { u8 n; };
    fields := struct { u8 seq[event.context.n]; struct { } empty; }; };
"#;

fn packet(stamps: [u8; 2], discarded: u8, sequence: u8, events: &[&[u8]]) -> Vec<u8> {
    let events = events.concat();
    let bits = (7 + events.len() as u8) * 8;
    [&[stamps[0], stamps[1], bits, bits, discarded, sequence, 1], events.as_slice()].concat()
}

/// Drops what later versions of babeltrace2 word otherwise than 2.0, and what depends on the folder.
fn common(text: &str) -> Vec<String> {
    let other = ["Offset", "Origin", "UUID", "UID", "  Name: ", "  Trace"];
    let lines = text.lines().filter(|line| !other.iter().any(|word| line.contains(word)));
    let plain = |line: &str| match line
        .split_once(" field path [")
        .or_else(|| line.split_once(" field location ["))
    {
        Some((before, _)) => before.to_owned(),
        None => line.to_owned(),
    };
    lines.map(plain).collect()
}

#[test]
fn as_babeltrace2_says_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = [
        packet([10, 20], 0, 0, &[&[11, 0, 0, 0xAB, 1, 255], b"\x0c\0\x01hi\0\x01\x02"]),
        packet([30, 40], 3, 2, &[&[31, 0, 7, 9, 1, 2], &[32, 1, 2, 7, 8]]),
        packet([41, 50], 4, 3, &[]),
    ];
    write(folder.path(), METADATA.as_bytes(), &data.concat());
    let ours = details(folder.path(), false);
    assert!(ours.contains("Selector field location [Event payload: tag])"), "{ours}");
    assert!(ours.contains("Length field location [Event specific context: n])"), "{ours}");
    let theirs = Command::new("babeltrace2").arg(folder.path()).args(["-c", "sink.text.details"]).output();
    match theirs {
        Ok(theirs) => assert_eq!(common(&ours), common(&String::from_utf8(theirs.stdout).unwrap())),
        Err(_) => tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        ),
    }
    let compact = details(folder.path(), true);
    assert!(compact.contains("[30 5,030,000,000] {0 0 0} Packet beginning\n"), "{compact}");
    assert!(compact.contains("{0 0 0} Discarded packets (1 packets)\n"), "{compact}");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let class = r#""type": "null-terminated-string""#;
    ctf2(folder.path(), &[("a", class), ("b\\u001b[2J", class)], b"x\x1b[2J\ny\0z\0");
    let text = details(folder.path(), false);
    assert!(text.contains("    a: x\\u{1b}[2J\\ny\n    b\\u{1b}[2J: z\n"), "{text}");
    assert!(!text.contains('\x1b'));
}

/// A CTF 2 trace with an event of these members.
fn ctf2(folder: &Path, members: &[(&str, &str)], data: &[u8]) {
    let members: Vec<_> = members
        .iter()
        .map(|(name, class)| format!(r#"{{"name": "{name}", "field-class": {{{class}}}}}"#))
        .collect();
    let metadata = format!(
        "\x1e{{\"type\": \"preamble\", \"version\": 2}}\n\x1e{{\"type\": \"data-stream-class\"}}\n\
         \x1e{{\"type\": \"event-record-class\", \"name\": \"e\", \"payload-field-class\": \
         {{\"type\": \"structure\", \"member-classes\": [{}]}}}}\n",
        members.join(",")
    );
    write(folder, metadata.as_bytes(), data);
}

const MEMBERS: [(&str, &str); 9] = [
    ("flag", r#""type": "fixed-length-boolean", "length": 8, "byte-order": "little-endian""#),
    ("bits", r#""type": "fixed-length-bit-array", "length": 16, "byte-order": "big-endian""#),
    (
        "map",
        r#""type": "fixed-length-bit-map", "length": 8, "byte-order": "little-endian",
            "flags": {"low": [[0, 1]], "high": [[7, 7]]}"#,
    ),
    ("big", r#""type": "variable-length-signed-integer", "mappings": {"minus": [[-5, -1]]}"#),
    ("half", r#""type": "fixed-length-floating-point-number", "length": 16, "byte-order": "little-endian""#),
    ("wide", r#""type": "null-terminated-string", "encoding": "utf-16be""#),
    ("blob", r#""type": "static-length-blob", "length": 2, "media-type": "a/b""#),
    (
        "maybe",
        r#""type": "optional", "selector-field-location": {"path": ["flag"]},
            "field-class": {"type": "variable-length-unsigned-integer"}"#,
    ),
    (
        "one",
        r#""type": "variant", "selector-field-location": {"path": ["big"]}, "options": [
            {"name": "x", "selector-field-ranges": [[-9, -1], [7, 7]], "field-class": {"type": "structure"}}]"#,
    ),
];

#[test]
fn every_field_class_of_ctf_2() {
    let folder = tempfile::tempdir().unwrap();
    let event =
        |flag: u8| [&[flag, 0x12, 0x34, 0x81, 0x7E, 0, 0x3E][..], b"\0h\0i\0\0", &[0xAB, 0xCD]].concat();
    ctf2(folder.path(), &MEMBERS, &[event(1), vec![0x85, 0x01], event(0)].concat());
    let text = details(folder.path(), false);
    let fields = text.split("Payload:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    assert_eq!(
        fields,
        "    flag: Yes\n    bits: 0x1234\n    map: 0x81\n    big: -2\n    half: 1.500000\n    wide: hi\n    blob: ab cd\n    \
         maybe: 133\n    one: Empty"
    );
    assert!(text.contains("maybe: None\n"), "{text}");
    for line in [
        "flag: Boolean",
        "bits: Bit array",
        "low: [0, 1]",
        "big: Signed enumeration (64-bit, Base 10, 1 mapping):",
        "minus: [-5, -1]",
        "half: Single-precision real",
        "wide: String",
        "maybe: Option (boolean selector) (Selector field location [Event payload: flag]):",
        "Content: Unsigned integer (64-bit, Base 10)",
        "one: Variant (signed integer selector) (1 option, Selector field location [Event payload: big]):",
        "x: [-9, -1] [7]: Structure (0 members)",
    ] {
        assert!(text.lines().any(|found| found.trim() == line), "{line}\n{text}");
    }

    let print = |format: Format, predicate: Option<&str>| {
        let predicate = predicate.map(|text| text.parse::<Predicate>().unwrap());
        let mut out = (Vec::new(), Vec::new());
        let recording = Recording::open(&[folder.path()]).unwrap();
        Listing { format, filter: Filter { predicate, ..Filter::default() }, ..Listing::default() }
            .print(&recording, &mut out)
            .unwrap();
        String::from_utf8(out.0).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        print(Format::Text, None)[1],
        "e: { flag = false, bits = 0x1234, map = ( \"low\", \"high\" : container = 0x81 ), big = ( \"minus\" : container = -2 ), \
         half = 1.5, wide = \"hi\", blob = { 0xAB, 0xCD }, maybe = <none>, one = { { } } }"
    );
    let json = &print(Format::Json, None)[1];
    let payload = &json[json.find("\"payload\":").unwrap()..];
    assert_eq!(
        payload,
        "\"payload\":{\"flag\":false,\"bits\":4660,\"map\":{\"value\":129,\"flags\":[\"low\",\"high\"]},\
         \"big\":{\"value\":-2,\"labels\":[\"minus\"]},\"half\":1.5,\"wide\":\"hi\",\"blob\":\"abcd\",\"maybe\":null,\
         \"one\":{\"x\":{}}}}"
    );
    for (predicate, count) in [
        ("wide == 'hi'", 2),
        ("len(wide) == 2 && wide =~ 'h?'", 2),
        ("flag == 1", 1),
        ("maybe > 100", 1),
        ("map & 0x80 && big == 'minus'", 2),
        ("half > 1.6", 0),
    ] {
        assert_eq!(print(Format::Text, Some(predicate)).len(), count, "{predicate}");
    }
}
