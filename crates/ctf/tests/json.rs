//! CTF 2 metadata that is taken, and metadata that is refused with the place and the reason; what the shared
//! cases of the babeltrace project do not cover.

use std::sync::Arc;

use tracewing_ctf::decode::{Decoder, Step, StreamReader, Value};
use tracewing_ctf::model::{
    Attribute, BitOrder, ClockOrigin, DisplayBase, Encoding, EnvValue, FieldClass, Origin, Scope, TraceClass,
    Version,
};
use tracewing_ctf::{Error, metadata};
use tracewing_units::Cycles;

const U8: &str = r#"{"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian", "alignment": 8}"#;

/// A preamble and fragments.
fn stream(fragments: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for fragment in std::iter::once(&r#"{"type": "preamble", "version": 2}"#).chain(fragments) {
        bytes.push(0x1E);
        bytes.extend(fragment.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

fn parse(fragments: &[&str]) -> Result<TraceClass, Error> {
    metadata::parse(&stream(fragments))
}

/// A trace class whose one event has these members.
fn with_payload(members: &str) -> Vec<u8> {
    let payload = format!(r#"{{"type": "structure", "member-classes": [{members}]}}"#);
    let event = format!(r#"{{"type": "event-record-class", "payload-field-class": {payload}}}"#);
    stream(&[r#"{"type": "data-stream-class"}"#, &event])
}

fn member(name: &str, class: &str) -> String {
    format!(r#"{{"name": "{name}", "field-class": {class}}}"#)
}

/// What `event` says of each event of a data stream.
fn read<T>(metadata: &[u8], data: &[u8], event: impl Fn(&StreamReader<&[u8]>) -> T) -> Result<Vec<T>, Error> {
    let class = metadata::parse(metadata)?;
    let mut reader = StreamReader::new(Decoder::new(Arc::new(class))?, data);
    let mut seen = Vec::new();
    loop {
        match reader.advance()? {
            Step::Event => seen.push(event(&reader)),
            Step::End => return Ok(seen),
            Step::Packet | Step::PacketEnd => {}
        }
    }
}

#[test]
fn fragments_say_everything_about_a_trace() {
    let class = parse(&[
        r#"{"type": "trace-class", "namespace": "n", "name": "t", "uid": "u", "environment": {"a": "x", "b": -5},
            "attributes": {"n": {"deep": [1, true, null, 2.5, {"k": 18446744073709551615}]}}}"#,
        r#"{"type": "clock-class", "id": "c", "name": "clock", "frequency": 1000, "precision": 3, "accuracy": 4,
            "origin": {"name": "o", "uid": "1"}, "offset-from-origin": {"seconds": -2, "cycles": 999}}"#,
        r#"{"type": "clock-class", "id": "d", "frequency": 1, "origin": "unix-epoch"}"#,
        r#"{"type": "data-stream-class", "id": 7, "name": "s", "default-clock-class-id": "c"}"#,
        r#"{"type": "event-record-class", "id": 9, "data-stream-class-id": 7, "name": "e",
            "attributes": {"lttng.org,2009": {"log-level": "debug:line", "emf-uri": "http://x"}}}"#,
    ])
    .unwrap();
    assert_eq!(
        (class.version, class.namespace.as_deref(), class.uid.as_deref()),
        (Version::V2, Some("n"), Some("u"))
    );
    assert_eq!(class.env("b"), Some(&EnvValue::Integer(-5)));
    let Some(Attribute::Array(deep)) = class.attributes.get("n", "deep") else { panic!("{class:?}") };
    assert_eq!(deep[3], Attribute::Real(2.5));
    assert_eq!(deep[4], Attribute::Map(vec![("k".to_owned(), Attribute::Unsigned(u64::MAX))]));
    let clock = &class.clock_classes[0];
    assert_eq!((clock.precision, clock.accuracy), (Some(Cycles(3)), Some(Cycles(4))));
    assert_eq!((clock.offset_seconds, clock.offset_cycles), (-2, Cycles(999)));
    assert!(matches!(&clock.origin, ClockOrigin::Custom { namespace: None, name, .. } if name == "o"));
    let other = &class.clock_classes[1];
    assert_eq!((&other.name, other.precision, &other.origin), (&None, None, &ClockOrigin::UnixEpoch));
    let stream = &class.data_stream_classes[0];
    assert_eq!((stream.id, stream.default_clock.as_deref()), (7, Some("c")));
    let event = &stream.event_record_classes[0];
    assert_eq!((event.id, event.log_level, event.emf_uri.as_deref()), (9, Some(13), Some("http://x")));
}

#[test]
fn aliases_stand_for_classes_and_other_aliases() {
    let alias = format!(r#"{{"type": "field-class-alias", "name": "u8", "field-class": {U8}}}"#);
    let class = parse(&[
        &alias,
        r#"{"type": "field-class-alias", "name": "byte", "field-class": "u8"}"#,
        r#"{"type": "field-class-alias", "name": "point", "field-class": {"type": "structure", "minimum-alignment": 32,
            "member-classes": [{"name": "x", "field-class": "byte", "attributes": {"a": 1}}]}}"#,
        r#"{"type": "data-stream-class", "event-record-common-context-field-class": "point"}"#,
    ])
    .unwrap();
    let context = class.data_stream_classes[0].common_context.as_ref().unwrap();
    assert_eq!((context.alignment(), context.members[0].attributes.is_empty()), (32, false));
    assert!(matches!(&context.members[0].class, FieldClass::Integer(class) if class.size == 8));
}

#[test]
fn what_is_wrong_is_shown_where_it_is() {
    let error = parse(&[r#"{"type": "data-stream-class", "id": -1}"#]).unwrap_err().to_string();
    let lines: Vec<_> = error.lines().collect();
    assert_eq!(
        lines[0],
        "metadata, line 2, column 38: fragment 2: expected an integer from 0 to 18446744073709551615, found `-1`"
    );
    assert_eq!(lines[1], "   {\"type\": \"data-stream-class\", \"id\": -1}");
    assert_eq!(lines[2].find('^'), lines[1].find("-1"));
}

#[test]
fn what_the_specification_forbids_is_refused() {
    let dsc = r#"{"type": "data-stream-class"}"#;
    let clock = r#"{"type": "clock-class", "id": "c", "frequency": 5}"#;
    for (fragments, cause) in [
        (&[][..], "expected a data stream class fragment"),
        (&[dsc, dsc], "a second data stream class with the id 0"),
        (&[r#"{"type": "preamble", "version": 2}"#], "a second preamble"),
        (&[r#"{"type": "event-record-class"}"#], "there is no data stream class with the id 0 before this"),
        (
            &[dsc, r#"{"type": "event-record-class"}"#, r#"{"type": "event-record-class"}"#],
            "a second event record class",
        ),
        (&[dsc, r#"{"type": "trace-class"}"#], "before all data stream classes"),
        (&[clock, clock], "a second clock class"),
        (&[r#"{"type": "clock-class", "id": "c", "frequency": 0}"#], "an integer from 1"),
        (&[r#"{"type": "clock-class", "id": "c"}"#], "no `frequency`"),
        (
            &[r#"{"type": "clock-class", "id": "c", "frequency": 5, "offset-from-origin": {"cycles": 5}}"#],
            "less than a second",
        ),
        (
            &[r#"{"type": "data-stream-class", "default-clock-class-id": "c"}"#],
            "no clock class with the id `c`",
        ),
        (&[r#"{"type": "data-stream-class", "nmae": "x"}"#], "there is no property `nmae`"),
        (&[r#"{"type": "data-stream-class", "id": 1.0}"#], "expected an integer"),
        (&[r#"{"type": "data-stream-class", "id": 1, "id": 2}"#], "a second `id`"),
        (&[r#"{"type": "data-stream-class", "extensions": {"x": {"y": 1}}}"#], "extensions of `x`"),
        (&[r#"{"type": "data-stream-class""#], "this is not JSON"),
        (&[r#"{"type": "stream"}"#], "unknown fragment type `stream`"),
        (&["[]"], "expected an object, found `[]`"),
    ] {
        let error = parse(fragments).unwrap_err().to_string();
        assert!(error.contains(cause), "{fragments:?}: {error}");
    }
    for (class, cause) in [
        (r#""u8""#, "no field class alias called `u8`"),
        (r#"{"type": "integer"}"#, "unknown field class type `integer`"),
        (r#"{"type": "fixed-length-boolean", "length": 65, "byte-order": "big-endian"}"#, "from 1 to 64"),
        (r#"{"type": "fixed-length-boolean", "length": 8}"#, "no `byte-order`"),
        (
            r#"{"type": "fixed-length-boolean", "length": 8, "byte-order": "le"}"#,
            "\"little-endian\", \"big-endian\"",
        ),
        (
            r#"{"type": "fixed-length-boolean", "length": 8, "byte-order": "big-endian", "alignment": 3}"#,
            "a power of two",
        ),
        (
            r#"{"type": "fixed-length-bit-map", "length": 8, "byte-order": "big-endian", "flags": {}}"#,
            "at least one flag",
        ),
        (
            r#"{"type": "fixed-length-floating-point-number", "length": 80, "byte-order": "big-endian"}"#,
            "80 bits",
        ),
        (r#"{"type": "variable-length-signed-integer", "roles": ["data-stream-id"]}"#, "no property `roles`"),
        (r#"{"type": "variable-length-unsigned-integer", "roles": ["x"]}"#, "packet-magic-number"),
        (r#"{"type": "variable-length-unsigned-integer", "mappings": {"a": []}}"#, "at least one range"),
        (
            r#"{"type": "variable-length-unsigned-integer", "mappings": {"a": [[2, 1]]}}"#,
            "from 2 to 1 is empty",
        ),
        (r#"{"type": "variable-length-unsigned-integer", "preferred-display-base": 3}"#, "base 3"),
        (r#"{"type": "null-terminated-string", "encoding": "latin-1"}"#, "utf-32le"),
        (
            r#"{"type": "dynamic-length-blob", "length-field-location": {"path": []}}"#,
            "at the end of the path",
        ),
        (
            r#"{"type": "dynamic-length-blob", "length-field-location": {"path": ["a", null]}}"#,
            "at the end of the path",
        ),
        (
            r#"{"type": "variant", "selector-field-location": {"path": ["s"]}, "options": []}"#,
            "at least one option",
        ),
        (
            r#"{"type": "variant", "selector-field-location": {"path": ["s"]}, "options": [
                {"selector-field-ranges": [[1, 5]], "field-class": {"type": "structure"}},
                {"selector-field-ranges": [[7, 7], [5, 6]], "field-class": {"type": "structure"}}]}"#,
            "[5, 6] selects another option already",
        ),
        (
            r#"{"type": "variant", "selector-field-location": {"path": ["s"]}, "options": [
                {"selector-field-ranges": [[1, 100], [2, 3]], "field-class": {"type": "structure"}},
                {"selector-field-ranges": [[-5, 0], [50, 60]], "field-class": {"type": "structure"}}]}"#,
            "[50, 60] selects another option already",
        ),
    ] {
        let error = metadata::parse(&with_payload(&member("f", class))).unwrap_err().to_string();
        assert!(error.contains(cause), "{class}: {error}");
    }
    let twice = [member("f", U8), member("f", U8)].join(",");
    assert!(
        metadata::parse(&with_payload(&twice))
            .unwrap_err()
            .to_string()
            .contains("a second member called `f`")
    );
}

#[test]
fn the_beginning_is_a_record_separator_and_a_preamble() {
    for (bytes, cause) in [
        (&b"\x1e{\"type\": \"trace-class\"}"[..], "expected the preamble"),
        (b"\x1e{\"type\": \"preamble\", \"version\": 3}", "expected CTF version 2"),
        (b"\x1e{\"type\": \"preamble\", \"version\": 2, \"uuid\": [1]}", "16 bytes"),
        (b"\x1e\x1e \n", "there is no fragment"),
        (b"\x1e{\"type\": \"\xff\"}", "not UTF-8"),
        (b"{\"type\": \"preamble\", \"version\": 2}", "neither CTF 1.8 nor CTF 2"),
    ] {
        let error = metadata::parse(bytes).unwrap_err().to_string();
        assert!(error.contains(cause), "{}: {error}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn roles_need_what_they_speak_of() {
    let header = |roles: &str, length: u32| {
        format!(
            r#"{{"type": "trace-class", "packet-header-field-class": {{"type": "structure", "member-classes": [
                {{"name": "x", "field-class": {{"type": "static-length-blob", "length": {length}, "roles": [{roles}]}}}}]}}}}"#
        )
    };
    let error = |header: &str| parse(&[header]).unwrap_err().to_string();
    assert!(error(&header(r#""metadata-stream-uuid""#, 15)).contains("16 bytes, not 15"));
    assert!(error(&header(r#""metadata-stream-uuid""#, 16)).contains("needs a UUID in the preamble"));
    let stamp = U8.replace('}', r#", "roles": ["default-clock-timestamp"]}"#);
    let error_of_context = |class: &str| {
        error(&format!(
            r#"{{"type": "data-stream-class", "packet-context-field-class": {{"type": "structure", "member-classes": [{}]}}}}"#,
            member("t", class)
        ))
    };
    assert!(error_of_context(&stamp).contains("needs a default clock class"));
    // Each scope has its own roles.
    let error = metadata::parse(&with_payload(&member("t", &stamp))).unwrap_err().to_string();
    assert!(error.contains("`default-clock-timestamp` is not for fields of this scope"), "{error}");
    let id = U8.replace('}', r#", "roles": ["event-record-class-id"]}"#);
    let error = error_of_context(&id);
    assert!(error.contains("`event-record-class-id` is not for fields of this scope"), "{error}");
    let uuid = U8.replace('}', r#", "roles": ["metadata-stream-uuid"]}"#);
    assert!(error_of_context(&uuid).contains("expected \"packet-magic-number\""));
}

#[test]
fn what_differs_from_the_default_is_kept() {
    let class = r#"{"type": "fixed-length-signed-integer", "length": 12, "byte-order": "big-endian",
        "bit-order": "first-to-last", "preferred-display-base": 16, "mappings": {"a": [[-1, 2], [9, 9]]}}"#;
    let class = metadata::parse(&with_payload(&member("f", class))).unwrap();
    let payload = class.data_stream_classes[0].event_record_classes[0].payload.as_ref().unwrap();
    let FieldClass::Enumeration(class) = &payload.members[0].class else { panic!("{payload:?}") };
    let integer = &class.integer;
    assert_eq!((integer.size, integer.align, integer.signed), (12, 1, true));
    assert_eq!((integer.bit_order, integer.base), (Some(BitOrder::FirstToLast), DisplayBase::Hexadecimal));
    assert_eq!(class.mappings[0].ranges, [(-1, 2), (9, 9)]);
    let string = r#"{"type": "dynamic-length-string", "encoding": "utf-16le",
        "length-field-location": {"origin": "packet-context", "path": ["a", "b"]}}"#;
    let class = metadata::parse(&with_payload(&member("f", string))).unwrap();
    let payload = class.data_stream_classes[0].event_record_classes[0].payload.as_ref().unwrap();
    let FieldClass::DynamicString(class) = &payload.members[0].class else { panic!("{payload:?}") };
    assert_eq!(
        (class.encoding, class.length.origin),
        (Encoding::Utf16Le, Origin::Scope(Scope::PacketContext))
    );
}

#[test]
fn a_length_may_be_in_any_option_of_a_variant() {
    let option = |range: u32, bits: u32| {
        let class = U8.replace(": 8, \"byte", &format!(": {bits}, \"byte"));
        format!(r#"{{"selector-field-ranges": [[{range}, {range}]], "field-class": {class}}}"#)
    };
    let variant = format!(
        r#"{{"type": "variant", "selector-field-location": {{"path": ["which"]}}, "options": [{}, {}]}}"#,
        option(0, 8),
        option(1, 16)
    );
    let blob = r#"{"type": "dynamic-length-blob", "length-field-location": {"path": ["length"]}}"#;
    let members = [member("which", U8), member("length", &variant), member("bytes", blob)].join(",");
    let blobs =
        read(&with_payload(&members), &[0, 1, b'a', 1, 2, 0, b'b', b'c', 0, 0], |reader| {
            match reader.event().field(Scope::Payload, "bytes") {
                Some(Value::Blob(bytes)) => bytes.to_vec(),
                other => panic!("{other:?}"),
            }
        });
    assert_eq!(blobs.unwrap(), [&b"a"[..], b"bc", b""]);
}

#[test]
fn a_reference_may_lead_out_of_structures_and_into_the_one_around() {
    let inner = r#"{"type": "structure", "member-classes": [{"name": "text", "field-class":
        {"type": "dynamic-length-string", "length-field-location": {"path": [null, "length"]}}}]}"#;
    let members = [member("length", U8), member("inner", inner)].join(",");
    assert_eq!(read(&with_payload(&members), b"\x02hi\x00\x01x", |_| ()).unwrap().len(), 3);
    // From the root of the scope, through the structure that is being decoded.
    let inner = format!(
        r#"{{"type": "structure", "member-classes": [{}, {{"name": "text", "field-class": {{"type": "dynamic-length-string",
            "length-field-location": {{"origin": "event-record-payload", "path": ["inner", "length"]}}}}}}]}}"#,
        member("length", U8)
    );
    assert_eq!(read(&with_payload(&member("inner", &inner)), b"\x02hi\x00", |_| ()).unwrap().len(), 2);
    // Nothing contains the scope's own structure; what comes later cannot be looked at.
    for path in [r#"[null, "length"]"#, r#"["later"]"#] {
        let text =
            format!(r#"{{"type": "dynamic-length-string", "length-field-location": {{"path": {path}}}}}"#);
        let members = [member("length", U8), member("text", &text), member("later", U8)].join(",");
        let error = read(&with_payload(&members), b"\x00\x00", |_| ()).unwrap_err().to_string();
        assert!(error.contains("not an earlier field"), "{error}");
    }
}

#[test]
fn fields_that_exclude_each_other_share_what_is_kept_of_them() {
    // Each option has a length and a string of that length; the BLOB after them has the length of the option
    // that is present.
    let option = |range: u32, bits: u32| {
        let length = U8.replace(": 8, \"byte", &format!(": {bits}, \"byte"));
        let text = r#"{"type": "dynamic-length-string", "length-field-location": {"path": ["length"]}}"#;
        let members = [member("length", &length), member("text", text)].join(",");
        format!(
            r#"{{"selector-field-ranges": [[{range}, {range}]], "field-class":
                {{"type": "structure", "member-classes": [{members}]}}}}"#
        )
    };
    let variant = format!(
        r#"{{"type": "variant", "selector-field-location": {{"path": ["which"]}}, "options": [{}, {}]}}"#,
        option(0, 8),
        option(1, 16)
    );
    let blob = r#"{"type": "dynamic-length-blob", "length-field-location": {"path": ["either", "length"]}}"#;
    let members = [member("which", U8), member("either", &variant), member("bytes", blob)].join(",");
    let data = [0, 1, b'a', b'x', 1, 2, 0, b'b', b'c', b'y', b'z'];
    let blobs =
        read(&with_payload(&members), &data, |reader| match reader.event().field(Scope::Payload, "bytes") {
            Some(Value::Blob(bytes)) => bytes.to_vec(),
            other => panic!("{other:?}"),
        });
    assert_eq!(blobs.unwrap(), [&b"x"[..], b"yz"]);
}

#[test]
fn what_cannot_be_decoded_is_shown_in_its_fragment() {
    let text = r#"{"type": "dynamic-length-string", "length-field-location": {"path": ["later"]}}"#;
    let text = with_payload(&[member("text", text), member("later", U8)].join(","));
    let error = Decoder::new(Arc::new(metadata::parse(&text).unwrap())).unwrap_err();
    let error = error.in_metadata(&text).to_string();
    let fragments = text.iter().filter(|byte| **byte == 0x1E).count();
    assert!(
        error.contains(&format!(
            ": fragment {fragments}: event \"\" (id 0), field `text`: its length `later`"
        )),
        "{error}"
    );
    // The caret stands below the path.
    let (shown, caret) = error.split_once('\n').unwrap().1.split_once('\n').unwrap();
    let marked: String = shown.chars().skip(caret.len() - 1).collect();
    assert!(marked.starts_with("[\"later\"]"), "{error}");
}

#[test]
fn a_length_is_not_in_an_array_that_has_been_decoded() {
    let element = format!(r#"{{"type": "structure", "member-classes": [{}]}}"#, member("length", U8));
    let array =
        format!(r#"{{"type": "static-length-array", "length": 2, "element-field-class": {element}}}"#);
    let blob = r#"{"type": "dynamic-length-blob", "length-field-location": {"path": ["array", "length"]}}"#;
    let members = [member("array", &array), member("bytes", blob)].join(",");
    let error = read(&with_payload(&members), &[0, 0], |_| ()).unwrap_err().to_string();
    assert!(error.contains("its length `array.length` is not an earlier field"), "{error}");
}

#[test]
fn selectors_are_of_the_right_kind() {
    let boolean = U8.replace("unsigned-integer", "boolean");
    let optional = |ranges: &str| {
        format!(
            r#"{{"type": "optional", "selector-field-location": {{"path": ["s"]}}, {ranges} "field-class": {U8}}}"#
        )
    };
    let ranges = r#""selector-field-ranges": [[1, 2]],"#;
    let both = |selector: &str, ranges: &str| {
        let members = [member("s", selector), member("o", &optional(ranges))].join(",");
        read(&with_payload(&members), &[0, 1, 7, 2, 9], |reader| {
            reader.event().field(Scope::Payload, "s").is_some()
        })
    };
    assert_eq!(both(&boolean, "").unwrap().len(), 3);
    assert_eq!(both(U8, ranges).unwrap().len(), 3);
    assert!(both(&boolean, ranges).unwrap_err().to_string().contains("its selector is a boolean"));
    assert!(both(U8, "").unwrap_err().to_string().contains("its selector is an integer"));
    assert!(
        both(r#"{"type": "null-terminated-string"}"#, "").unwrap_err().to_string().contains("no integer")
    );
}

#[test]
fn ids_that_are_not_given_are_0() {
    let event = |id: u32| {
        format!(
            r#"{{"type": "event-record-class", "id": {id}, "payload-field-class": {{"type": "structure",
        "member-classes": [{}]}}}}"#,
            member("a", U8)
        )
    };
    let bytes = stream(&[
        r#"{"type": "data-stream-class"}"#,
        r#"{"type": "data-stream-class", "id": 1}"#,
        &event(4),
        &event(0),
    ]);
    assert_eq!(read(&bytes, &[1, 2], |reader| reader.event().class().id).unwrap(), [0, 0]);
}

#[test]
fn deep_or_multiplied_classes_are_refused() {
    let mut class = U8.to_owned();
    for _ in 0..70 {
        class = format!(r#"{{"type": "static-length-array", "length": 1, "element-field-class": {class}}}"#);
    }
    assert!(
        metadata::parse(&with_payload(&member("f", &class))).unwrap_err().to_string().contains("64 deep")
    );
    let mut fragments =
        vec![format!(r#"{{"type": "field-class-alias", "name": "a0", "field-class": {U8}}}"#)];
    for level in 1..12 {
        let members: Vec<_> =
            (0..10).map(|i| member(&format!("m{i}"), &format!("\"a{}\"", level - 1))).collect();
        fragments.push(format!(
            r#"{{"type": "field-class-alias", "name": "a{level}", "field-class": {{"type": "structure", "member-classes": [{}]}}}}"#,
            members.join(",")
        ));
    }
    let fragments: Vec<&str> = fragments.iter().map(String::as_str).collect();
    assert!(parse(&fragments).unwrap_err().to_string().contains("consists of more than"));
    let deep = format!(
        r#"{{"type": "data-stream-class", "attributes": {{"n": {}1{}}}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert!(parse(&[&deep]).is_err());
}

#[test]
fn packets_of_metadata_are_joined() {
    let text = stream(&[r#"{"type": "data-stream-class"}"#]);
    let mut packed = Vec::new();
    for part in text.chunks(20) {
        packed.extend(0x75D1_1D57_u32.to_be_bytes());
        packed.extend([7; 16]);
        packed.extend(0_u32.to_be_bytes());
        packed.extend((8 * (37 + part.len() as u32)).to_be_bytes());
        packed.extend((8 * (40 + part.len() as u32)).to_be_bytes());
        packed.extend([0, 0, 0, 2, 0]);
        packed.extend(part);
        packed.extend([0; 3]);
    }
    assert_eq!(metadata::parse(&packed).unwrap(), metadata::parse(&text).unwrap());
}

#[test]
fn ranges_are_of_the_integers_that_there_can_be() {
    let integer = |kind: &str, range: &str| {
        format!(
            r#"{{"type": "fixed-length-{kind}-integer", "length": 8, "byte-order": "little-endian",
                "mappings": {{"x": [{range}]}}}}"#
        )
    };
    let map = |range: &str| {
        format!(
            r#"{{"type": "fixed-length-bit-map", "length": 8, "byte-order": "little-endian", "flags": {{"x": [{range}]}}}}"#
        )
    };
    let variable = r#"{"type": "variable-length-unsigned-integer", "mappings": {"x": [[-1, 1]]}}"#;
    for (class, is_good) in [
        (integer("unsigned", "[0, 18446744073709551615]"), true),
        (integer("unsigned", "[-1, 1]"), false),
        (integer("signed", "[-9223372036854775808, 9223372036854775807]"), true),
        (integer("signed", "[1, 9223372036854775808]"), false),
        (variable.to_owned(), false),
        (map("[0, 7]"), true),
        (map("[7, 8]"), false),
        (map("[-1, 0]"), false),
    ] {
        let parsed = metadata::parse(&with_payload(&member("a", &class)));
        assert_eq!(parsed.is_ok(), is_good, "{class}: {parsed:?}");
    }
}

#[test]
fn a_path_leads_to_a_field_whatever_is_there() {
    let length = |name: &str| format!(r#"{{"type": "structure", "member-classes": [{}]}}"#, member(name, U8));
    let variant = |names: [&str; 2]| {
        let options = names.map(length);
        format!(
            r#"{{"type": "variant", "selector-field-location": {{"path": ["which"]}}, "options": [
                {{"selector-field-ranges": [[0, 0]], "field-class": {}}},
                {{"selector-field-ranges": [[1, 1]], "field-class": {}}}]}}"#,
            options[0], options[1]
        )
    };
    let optional = format!(
        r#"{{"type": "optional", "selector-field-location": {{"path": ["which"]}}, "selector-field-ranges": [[1, 1]],
            "field-class": {}}}"#,
        length("n")
    );
    let blob = r#"{"type": "dynamic-length-blob", "length-field-location": {"path": ["middle", "n"]}}"#;
    for (middle, is_good) in
        [(length("n"), true), (variant(["n", "n"]), true), (variant(["n", "m"]), false), (optional, false)]
    {
        let members = [member("which", U8), member("middle", &middle), member("bytes", blob)].join(",");
        let read = read(&with_payload(&members), &[1, 1, b'x'], |_| ());
        assert_eq!(read.is_ok(), is_good, "{middle}: {read:?}");
    }
}
