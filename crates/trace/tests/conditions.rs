//! Conditions on classes of which each has a field otherwise: with another type, without a value, inside of
//! others, or not at all.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tracewing_trace::{Filter, Listing, Predicate, Recording};

fn member(name: &str, class: Value) -> Value {
    json!({"name": name, "field-class": class})
}

fn structure(members: &[Value]) -> Value {
    json!({"type": "structure", "member-classes": members})
}

fn byte() -> Value {
    json!({"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian", "alignment": 8})
}

fn signed_byte(with: Value) -> Value {
    let mut class = json!({"type": "fixed-length-signed-integer", "length": 8, "byte-order": "little-endian", "alignment": 8});
    class.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
    class
}

fn text() -> Value {
    json!({"type": "null-terminated-string"})
}

fn array(length: u8, element: Value) -> Value {
    json!({"type": "static-length-array", "length": length, "element-field-class": element})
}

/// A field that is there if the member `selector` of the payload is not 0.
fn optional(selector: &str, class: Value) -> Value {
    json!({
        "type": "optional", "field-class": class, "selector-field-ranges": [[1, 255]],
        "selector-field-location": {"origin": "event-record-payload", "path": [selector]},
    })
}

fn classes() -> Vec<(&'static str, Vec<Value>)> {
    let real = json!({"type": "fixed-length-floating-point-number", "length": 32, "byte-order": "little-endian", "alignment": 8});
    vec![
        ("integer", vec![member("a", byte())]),
        ("text", vec![member("a", text())]),
        ("state", vec![member("a", signed_byte(json!({"mappings": {"run": [[0, 0]], "idle": [[1, 1]]}})))]),
        ("real", vec![member("a", real)]),
        ("array", vec![member("a", array(2, byte()))]),
        ("other", vec![member("b", byte())]),
        (
            "optional",
            vec![
                member("has", byte()),
                member("more", byte()),
                member("number", optional("has", byte())),
                member("word", optional("has", text())),
                member("both", optional("has", optional("more", byte()))),
                member("list", array(2, optional("has", byte()))),
                member(
                    "inner",
                    optional(
                        "has",
                        structure(&[
                            member("fixed", array(2, byte())),
                            member("deep", optional("more", byte())),
                        ]),
                    ),
                ),
            ],
        ),
        ("names", vec![member("point", structure(&[member("x", byte())])), member("point_x", byte())]),
        ("flat", vec![member("http_status", byte())]),
    ]
}

const EVENTS: [&[u8]; 12] = [
    &[0, 7],
    &[1, b'7', 0],
    &[2, 1],
    // 7.0
    &[3, 0, 0, 0xe0, 0x40],
    &[4, 7, 7],
    &[5, 7],
    // has, more, number, word, both, list, inner: fixed and deep
    &[6, 1, 1, 5, b'x', b'y', 0, 6, 8, 9, 2, 3, 4],
    &[6, 1, 0, 5, 0, 8, 9, 2, 3],
    &[6, 0, 1],
    &[6, 0, 0],
    &[7, 1, 2],
    &[8, 200],
];

fn write(folder: &Path) {
    let id = json!({"name": "id", "field-class": {
        "type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian", "alignment": 8,
        "roles": ["event-record-class-id"],
    }});
    let mut fragments = vec![
        json!({"type": "preamble", "version": 2}),
        json!({"type": "data-stream-class", "event-record-header-field-class": structure(&[id])}),
    ];
    fragments.extend(classes().iter().enumerate().map(|(id, (name, members))| {
        json!({"type": "event-record-class", "id": id, "name": name, "payload-field-class": structure(members)})
    }));
    let metadata: String = fragments.iter().map(|fragment| format!("\x1e{fragment}\n")).collect();
    fs::write(folder.join("metadata"), metadata).unwrap();
    fs::write(folder.join("stream"), EVENTS.concat()).unwrap();
}

/// The names of the events that satisfy a condition, and what is to be said of it.
fn listed(recording: &Recording, condition: &str) -> Result<(String, Option<String>), String> {
    let predicate = Some(Predicate::parse(condition).unwrap());
    let listing = Listing { filter: Filter { predicate, ..Filter::default() }, ..Listing::default() };
    let mut lines = Vec::new();
    listing.print(recording, &mut (&mut lines, Vec::new())).map_err(|error| error.to_string())?;
    let lines = String::from_utf8(lines).unwrap();
    let names: Vec<&str> = lines.lines().map(|line| line.split_once(':').unwrap().0).collect();
    Ok((names.join(" "), listing.filter.remark(recording)))
}

fn opened(check: impl FnOnce(&Recording)) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    check(&Recording::open(&[folder.path()]).unwrap());
}

#[test]
fn a_comparison_of_another_type_is_unknown() {
    opened(|recording| {
        for (condition, names) in [
            ("a == 7", "integer real"),
            ("a != 7", "state"),
            ("a == '7'", "text"),
            ("a == 'idle'", "state"),
            ("a != 'idle'", "text"),
            ("!(a == 'idle')", "text"),
            ("a =~ '*'", "text state"),
            ("a & 1", "integer state"),
            ("a[1] == 7", "array"),
            ("len(a) == 1", "text"),
            // True whatever the other side is.
            ("a == '7' || a == 7 || b == 7", "integer text real other"),
            ("a == 'idle' || a[0] > 6 || a < 2", "state array"),
            ("!(a == '7' && a == 7) || b == 7", "state other"),
            ("!(a == '8' && b == 7)", "text"),
        ] {
            assert_eq!(listed(recording, condition), Ok((names.to_owned(), None)), "{condition}");
        }
    });
}

#[test]
fn a_comparison_that_no_class_has_the_types_for_is_reported() {
    opened(|recording| {
        let (names, remark) = listed(recording, "b == 'x' || a == 7").unwrap();
        assert_eq!(names, "integer real");
        assert_eq!(
            remark.unwrap(),
            "a comparison of the condition is unknown for all events: event \"other\": `b` is an integer and \
             cannot be compared with a text"
        );
        let error = listed(recording, "a < 'x'").unwrap_err();
        assert!(error.contains("event \"text\": `a` is a text: compare it"), "{error}");
        let error = listed(recording, "a == 7 || nowhere == 7").unwrap_err();
        assert!(error.contains("no event has `nowhere`"), "{error}");
    });
}

#[test]
fn the_length_of_an_optional_field_is_whether_it_has_a_value() {
    opened(|recording| {
        let count = |condition: &str| {
            let (names, remark) = listed(recording, condition).expect(condition);
            assert_eq!(remark, None, "{condition}");
            assert!(names.split_whitespace().all(|name| name == "optional"), "{condition}: {names}");
            names.split_whitespace().count()
        };
        for (condition, events) in [
            ("len(number) == 1", 2),
            ("len(number) == 0", 2),
            ("len(word) == 1", 2),
            ("len(word) == 0", 2),
            ("len(both) == 1", 1),
            ("len(both) == 0", 3),
            ("len(inner) == 0", 2),
            // Without the structure, nothing in it is known.
            ("len(inner.deep) == 1", 1),
            ("len(inner.deep) == 0", 1),
            ("len(inner.fixed) == 2", 2),
            ("len(inner.fixed) != 9", 2),
            ("len(list) == 2", 4),
            ("list[1] == 9", 2),
            ("list[1] != 9", 0),
            ("number == 5 && both == 6", 1),
            ("word == ''", 1),
        ] {
            assert_eq!(count(condition), events, "{condition}");
        }
    });
}

#[test]
fn a_member_goes_before_a_field_of_its_flat_name() {
    opened(|recording| {
        for (condition, names) in [
            ("point.x == 1", "names"),
            ("point.x == 2", ""),
            ("point_x == 2", "names"),
            ("http.status == 200", "flat"),
        ] {
            assert_eq!(listed(recording, condition), Ok((names.to_owned(), None)), "{condition}");
        }
    });
}
