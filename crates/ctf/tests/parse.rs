//! TSDL by hand: what the grammar allows, and what errors say.

use std::sync::Arc;

use tracewing_ctf::decode::{Decoder, Event, PathStep, Step, StreamReader, Value};
use tracewing_ctf::model::{
    ByteOrder, ClockOrigin, DisplayBase, Encoding, FieldClass, FieldLocation, Scope, TraceClass,
};
use tracewing_ctf::{Error, tsdl};
use tracewing_units::Cycles;

const TRACE: &str = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = be; };\n";

fn parse(text: &str) -> Result<TraceClass, Error> {
    tsdl::parse([TRACE, text].concat().as_bytes())
}

/// The payload of the only event, parsed from the inside of its `struct`.
fn payload(members: &str) -> Vec<(String, FieldClass)> {
    let class = parse(&format!("event {{ fields := struct {{ {members} }}; }};")).unwrap();
    let payload = class.data_stream_classes[0].event_record_classes[0].payload.clone().unwrap();
    payload.members.into_iter().map(|member| (member.name, member.class)).collect()
}

fn integer(class: &FieldClass) -> &tracewing_ctf::model::IntegerClass {
    match class {
        FieldClass::Integer(class) => class,
        FieldClass::Enumeration(class) => &class.integer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn integers() {
    let fields = payload(
        "integer { size = 5; } a; integer { size = 0x10; byte_order = le; base = hex; signed = TRUE; } _b;
         integer { size = 020; align = 32; byte_order = network; base = 2; encoding = ASCII; } __c, d;
         const integer { size = 64ULL; signed = 0; byte_order = native; base = \"octal\"; } e;",
    );
    let names: Vec<_> = fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "b", "_c", "d", "e"]);
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|i| integer(&fields[i].1));
    assert_eq!((a.size, a.align, a.signed, a.byte_order), (5, 1, false, ByteOrder::Big));
    assert_eq!((b.size, b.align, b.signed, b.byte_order), (16, 8, true, ByteOrder::Little));
    assert_eq!((c.size, c.align, c.encoding, c.base), (16, 32, Encoding::Ascii, DisplayBase::Binary));
    assert_eq!(c, d);
    assert_eq!((e.size, e.signed, e.byte_order, e.base), (64, false, ByteOrder::Big, DisplayBase::Octal));
    assert_eq!(b.base, DisplayBase::Hexadecimal);
}

#[test]
fn names_are_looked_up_outwards_and_may_be_shadowed() {
    let class = parse(
        "typealias integer { size = 8; } := unsigned char;
         typedef unsigned char byte, pair[2];
         typealias integer { size = 32; } := int;
         struct named { byte inner; } align(16);
         event {
             typedef int byte;
             fields := struct {
                 struct named s; byte b; pair p;
                 enum { A, B = 4 ... 6, C, \"A\" = 'x', } e;
                 variant options { int A; struct { } B; unsigned char C; };
                 variant options <e> v;
             };
         };",
    )
    .unwrap();
    let members = &class.data_stream_classes[0].event_record_classes[0].payload.as_ref().unwrap().members;
    let FieldClass::Structure(named) = &members[0].class else { panic!() };
    assert_eq!((named.min_align, integer(&named.members[0].class).size), (16, 8));
    assert_eq!(integer(&members[1].class).size, 32);
    assert_eq!(members[2].class, FieldClass::array(named.members[0].class.clone(), 2));
    let FieldClass::Enumeration(labels) = &members[3].class else { panic!() };
    let ranges: Vec<_> = labels.mappings.iter().map(|m| (m.label.as_str(), m.ranges.clone())).collect();
    assert_eq!(ranges, [("A", vec![(0, 0), (120, 120)]), ("B", vec![(4, 6)]), ("C", vec![(7, 7)])]);
    let FieldClass::Variant(variant) = &members[4].class else { panic!() };
    assert_eq!((variant.tag.clone(), variant.options.len()), (FieldLocation::from("e"), 3));
}

#[test]
fn locations() {
    let fields = payload(
        "integer { size = 8; } n; string a[n][3]; string b[stream.event.context._x.y]; string c[event.fields.n];",
    );
    assert_eq!(fields[1].1, FieldClass::sequence(FieldClass::array(FieldClass::string(), 3), "n"));
    let place = |scope, path: &[&str]| FieldLocation::absolute(scope, path.iter().copied());
    assert_eq!(
        fields[2].1,
        FieldClass::sequence(FieldClass::string(), place(Scope::CommonContext, &["x", "y"]))
    );
    assert_eq!(fields[3].1, FieldClass::sequence(FieldClass::string(), place(Scope::Payload, &["n"])));
}

#[test]
fn everything_else_a_document_may_hold() {
    let class = parse(
        "// a comment \u{1f389}
         env { s = \"a\\tb\\x41\\101c\"; n = 4; n = -5; big = 18446744073709551615; };
         clock { name = \"c\"; uuid = \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\"; freq = 1000; offset_s = -3; offset = 5;
                 precision = 7; absolute = TRUE; description = d; unknown = 1; };
         callsite { name = \"x\"; nested { }; func = \"f\"; };
         stream { event.header := struct { integer { size = 8; } id; integer { size = 8; map = clock.c.value; } t; }; };
         event { name = \"prov:a\"; id = 3; loglevel = 13; model.emf.uri = \"http://x\"; context := struct { string s; }; };;
         event { name = b.c; id = 4; fields := struct { string for; }; };",
    )
    .unwrap();
    assert_eq!(class.env("s"), Some(&"a\tbAAc".into()));
    assert_eq!((class.env("n"), class.env("big")), (Some(&(-5).into()), Some(&(-1).into())));
    let clock = &class.clock_classes[0];
    assert_eq!(
        (clock.frequency, clock.offset_seconds, clock.offset_cycles.0, clock.precision),
        (1000, -3, 5, Some(Cycles(7)))
    );
    assert_eq!((clock.origin.clone(), clock.uuid.unwrap()[15]), (ClockOrigin::UnixEpoch, 0x64));
    let events = &class.data_stream_classes[0].event_record_classes;
    assert_eq!((events[0].name.as_deref(), events[0].id, events[0].log_level), (Some("prov:a"), 3, Some(13)));
    assert_eq!((events[1].name.as_deref(), events[1].emf_uri.as_deref()), (Some("b.c"), None));
}

#[test]
fn errors_say_where_and_what() {
    let error = parse("event {\n\tfields := struct { uint8_t a; };\n};").unwrap_err();
    let first = "metadata, line 3, column 21: there is no field class called `uint8_t`";
    let shown = format!("{first}\n   fields := struct {{ uint8_t a; }};\n{}^", " ".repeat(22));
    assert_eq!(error.to_string(), shown);
    for (text, cause) in [
        ("event { fields := struct { string a }; };", "expected `;`, found `}`"),
        ("event { fields := struct { string _a; string _a; }; };", "a second member called `_a`"),
        ("event { fields := struct { integer { align = 8; } a; }; };", "no `size`"),
        ("event { fields := struct { integer { size = 65; } a; }; };", "65 bits"),
        ("event { fields := struct { integer { size = 8; align = 3; } a; }; };", "power of two"),
        ("event { fields := struct { integer { size = 8; size = 8; } a; }; };", "given twice"),
        (
            "event { fields := struct { integer { size = 8; map = clock.x.value; } a; }; };",
            "no clock called `x`",
        ),
        (
            "event { fields := struct { floating_point { exp_dig = 1; mant_dig = 2; } a; }; };",
            "expected 8 and 24",
        ),
        ("event { fields := struct { enum : integer { size = 4; } { A = 16 } a; }; };", "holds 0 to 15"),
        (
            "typealias string := s; event { fields := struct { enum : s { A } a; }; };",
            "container is an integer",
        ),
        ("event { fields := struct { enum : enum : string { A } a; }; };", "expected an integer"),
        ("event { fields := struct { variant { string a; } v; }; };", "has no tag"),
        // Also where no event uses them.
        ("struct s { string n; variant <n> { string a; } v; };", "the tag `n` is not an enumeration"),
        (
            "struct s { integer { size = 8; } _n; variant v <n> { } v; };",
            "the tag `_n` is not an enumeration",
        ),
        (
            "struct s { enum : integer { size = 8; } { \" a \", b } n; variant <n> { string a; } v; };",
            "no option of this variant is a label of its tag `n`",
        ),
        ("typealias string := s; typedef string a[s];", "`s` is a type; expected a length"),
        ("env { a = \"x\" \"y\"; };", "expected `;`"),
        (
            "clock { name = c; freq = 1; }; clock { name = d; freq = 1; };
             stream { event.header := struct { integer { size = 8; map = clock.c.value; } a;
             struct { integer { size = 8; map = clock.d.value; } b[2]; } c; }; };",
            "stream 0 has stamps of the clocks `c` and `d`; expected one clock",
        ),
        ("event { fields := string; };", "expected a `struct`"),
        ("event { fields := struct { string; }; };", "expected a name, found `;`"),
        ("event { fields := struct { string a; ", "the end of the metadata"),
        ("event { id = 1; stream_id = 7; };", "stream 7, which does not exist"),
        ("event { }; event { };", "has no `id`"),
        ("stream { }; stream { };", "a second stream with id 0"),
        ("trace { major = 1; minor = 8; byte_order = le; };", "a second `trace`"),
        ("env { a = \"x\n\"; };", "no end"),
        ("/* never closed", "no end"),
        ("clock { freq = 0; };", "not 0"),
        ("clock { freq = 99999999999999999999; };", "not an integer of 64 bits"),
        ("nonsense;", "expected `trace`, `env`"),
        (
            "stream { packet.context := struct { integer { size = 8; signed = true; } content_size; }; };",
            "`content_size` must be an unsigned integer",
        ),
        ("stream { packet.context := struct { string packet_size; }; };", "must be an unsigned integer"),
        ("stream { packet.context := struct { string timestamp_end; }; };", "must be an unsigned integer"),
        (
            "stream { event.header := struct { integer { size = 8; signed = true; } id; }; };",
            "`id` must be an unsigned integer",
        ),
        (
            "clock { name = c; }; event { fields := struct { integer { size = 8; map = clock.c.v; } a; }; };",
            "expected `clock.NAME.value`",
        ),
        ("env { a = @; };", "unexpected character '@'"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(cause), "{text}\n{error}");
    }
    let without =
        |text: &str| tsdl::parse(format!("/* CTF 1.8 */ {text}").as_bytes()).unwrap_err().to_string();
    assert!(without("").contains("no `trace` block"));
    assert!(without("trace { major = 1; minor = 8; };").contains("no `byte_order`"));
    let header = "packet.header := struct { string a; integer { size = 32; } magic; };";
    let late = without(&format!("trace {{ major = 1; minor = 8; byte_order = le; {header} }};"));
    assert!(late.contains("`magic` must be the first field"), "{late}");
    assert!(without("trace { major = 2; minor = 0; byte_order = le; };").contains("version 2.0"));
    let byte = "integer { size = 8; }";
    for (member, is_good) in [
        ("integer { size = 32; } magic;".to_owned(), true),
        ("integer { size = 16; } magic;".to_owned(), false),
        ("string magic;".to_owned(), false),
        (format!("{byte} uuid[16];"), true),
        (format!("{byte} uuid[8];"), false),
        (format!("{byte} length; {byte} uuid[length];"), false),
        ("integer { size = 16; } uuid[16];".to_owned(), false),
        ("string uuid;".to_owned(), false),
        (format!("{byte} stream_id;"), true),
        ("string stream_id;".to_owned(), false),
        ("integer { size = 8; signed = true; } stream_instance_id;".to_owned(), false),
    ] {
        let header = format!("packet.header := struct {{ {member} }};");
        let text = format!("/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = le; {header} }};");
        match tsdl::parse(text.as_bytes()) {
            Ok(_) => assert!(is_good, "{member}"),
            Err(error) => assert!(!is_good && error.to_string().contains("must be"), "{member}: {error}"),
        }
    }
}

#[test]
fn a_clock_may_be_named_without_its_value() {
    let class = parse(
        "clock { name = c; };
         stream { event.header := struct { integer { size = 8; map = clock.c; } t; }; }; event { };",
    );
    assert_eq!(class.unwrap().data_stream_classes[0].default_clock.as_deref(), Some("c"));
}

#[test]
fn hostile_nesting_is_refused() {
    let deep = format!("event {{ fields := {} }};", "struct { ".repeat(100_000));
    assert!(parse(&deep).unwrap_err().to_string().contains("nested more than"));
    let deep = format!("event {{ fields := {} }};", "enum : ".repeat(100_000));
    assert!(parse(&deep).unwrap_err().to_string().contains("expected an integer"));
    let deep = format!("event {{ fields := struct {{ string a{}; }}; }};", "[2]".repeat(100_000));
    assert!(parse(&deep).unwrap_err().to_string().contains("nested more than"));
    let doubling: String =
        (0..40).map(|i| format!("struct s{} {{ struct s{i} a; struct s{i} b; }};\n", i + 1)).collect();
    let error = parse(&format!("struct s0 {{ string s; }};\n{doubling}")).unwrap_err().to_string();
    assert!(error.contains("consists of more than"), "{error}");
}

#[test]
fn what_cannot_be_decoded_is_refused_before_decoding() {
    for (members, cause) in [
        ("string a[n]; integer { size = 8; } n;", "field `a`: its length `n` is not an earlier field"),
        ("string n; string a[n];", "no integer"),
        ("integer { size = 8; signed = 1; } n; string a[n];", "signed"),
        ("struct { integer { size = 8; } n; } h; variant <h.n> { string a; } v;", "not an enumeration"),
    ] {
        let class = parse(&format!("event {{ name = e; fields := struct {{ {members} }}; }};")).unwrap();
        let error = Decoder::new(Arc::new(class)).unwrap_err().to_string();
        assert!(error.contains(cause) && error.contains("event \"e\""), "{members}\n{error}");
    }
    let class = parse("event { id = 1; }; event { id = 2; };").unwrap();
    assert!(Decoder::new(Arc::new(class)).unwrap_err().to_string().contains("no `id`"));
}

#[test]
fn what_cannot_be_decoded_is_shown_in_the_text() {
    for (text, shown) in [
        (
            "event { name = e; fields := struct {\n\tstruct { string s[stream.event.header.x]; } a; }; };",
            "line 2, column 20: event \"e\" (id 0), field `s`: its length `x` is not an earlier field; \
             expected an integer before it\n   struct { string s[stream.event.header.x]; } a; }; };\n                     ^",
        ),
        (
            "typealias struct {\n string s[n]; } := t;\nevent { name = e; fields := struct { t t; }; };",
            "line 2, column 11: event \"e\" (id 0), field `s`: its length `n`",
        ),
        (
            "event { fields := struct { enum : integer { size = 8; } { a } n;\n variant <m> { string a; } v; }; };",
            "line 2, column 11: event \"\" (id 0), field `v`: its tag `m` is not an earlier field",
        ),
        (
            "event { fields := struct { struct { integer { size = 8; } n; } h;\n variant <h.n> { string a; } v; }; };",
            "line 2, column 25: event \"\" (id 0), field `v`: the tag is not an enumeration",
        ),
        (
            "stream { event.header := struct { integer { size = 8; } id; }; };\nevent { id = 1; };\n event { id = 1; };",
            "line 3, column 2: event \"\" (id 1): two events have the id 1\n   event { id = 1; };\n   ^",
        ),
        (
            "event { id = 1; };\nevent { id = 2; };",
            "line 2, column 1: stream 0: several events, but the event header has no `id`",
        ),
        (
            "stream { id = 1; };\nstream { id = 2; };",
            "line 2, column 1: the packet header: several streams, but the packet header has no `stream_id`",
        ),
    ] {
        let text = format!("/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = be; }};\n{text}");
        let class = tsdl::parse(text.as_bytes()).unwrap();
        let error = Decoder::new(Arc::new(class)).unwrap_err();
        let error = error.in_metadata(text.as_bytes()).to_string();
        let line = shown.find(',').map(|at| shown["line ".len()..at].parse::<u32>().unwrap() + 1).unwrap();
        let shown = format!("metadata, line {line}{}", &shown[shown.find(',').unwrap()..]);
        assert!(error.starts_with(&shown), "{error}\n{shown}");
    }
}

#[test]
fn byte_order_changes_only_between_bytes() {
    let number = |size: u32, order| format!("integer {{ size = {size}; align = 1; byte_order = {order}; }}");
    for (first, second, same) in [("le", "be", false), ("be", "le", false), ("le", "le", true)] {
        for (size, whole) in [(4, false), (8, true)] {
            let members = format!("{} a; struct {{ {} b; }} s;", number(size, first), number(size, second));
            let class = parse(&format!("event {{ fields := struct {{ {members} }}; }};")).unwrap();
            let data = vec![0x21; size as usize / 4];
            let mut reader = StreamReader::new(Decoder::new(Arc::new(class)).unwrap(), data);
            assert_eq!(reader.advance(), Ok(Step::Packet));
            match reader.advance() {
                Ok(Step::Event) => assert!(same || whole, "{members}"),
                other => {
                    assert!(other.unwrap_err().to_string().contains("field `b`: its byte order"), "{members}")
                }
            }
        }
    }
}

#[test]
fn hostile_lengths_end_quickly() {
    // Sequences of nothing, nested: 2^32 elements of 2^32 elements of no size.
    let class = parse(
        "event { fields := struct { integer { size = 64; } n; struct { struct { } none[n]; } some[n]; }; };",
    )
    .unwrap();
    let decoder = Decoder::new(Arc::new(class)).unwrap();
    for length in [3_u64, 64, 65, 1 << 32, u64::MAX] {
        let mut reader = StreamReader::new(decoder.clone(), length.to_be_bytes());
        assert_eq!(reader.advance(), Ok(Step::Packet));
        match length {
            0..=65 => assert_eq!(reader.advance(), Ok(Step::Event)),
            _ => assert!(reader.advance().unwrap_err().to_string().contains("no room")),
        }
    }
}

#[test]
fn an_absurd_number_of_elements_without_size_is_refused() {
    for (length, is_good) in [("1000", true), ("18446744073709551615", false)] {
        let nested = "struct { struct { } none[1000]; } some[2000]";
        for members in [format!("struct {{ }} none[{length}]"), nested.to_owned()] {
            let text = format!("event {{ fields := struct {{ integer {{ size = 8; }} x; {members}; }}; }};");
            let decoder = Decoder::new(Arc::new(parse(&text).unwrap())).unwrap();
            let mut reader = StreamReader::new(decoder, vec![1; 1 << 16]);
            assert_eq!(reader.advance(), Ok(Step::Packet));
            let step = reader.advance();
            assert_eq!(step.is_ok(), is_good && members != nested, "{members}: {step:?}");
        }
    }
}

#[test]
fn packet_errors_say_where_after_what_came_before() {
    let class = parse("event { fields := struct { integer { size = 16; } a; string s; }; };").unwrap();
    let mut reader = StreamReader::new(Decoder::new(Arc::new(class)).unwrap(), *b"\0\x01hi\0\0\x02ho");
    assert_eq!(reader.advance(), Ok(Step::Packet));
    assert_eq!(reader.advance(), Ok(Step::Event));
    assert_eq!(reader.event().field(Scope::Payload, "s"), Some(Value::Text(b"hi")));
    assert_eq!(
        reader.advance().unwrap_err().to_string(),
        "packet 0 at byte 0: event payload, field `s`: a string without end (at byte 7, bit 0)"
    );
    assert_eq!(reader.advance(), Ok(Step::End));
}

#[test]
fn the_clock_continues_from_the_end_of_the_packet_before() {
    let class = parse(
        "clock { name = c; };
         stream { packet.context := struct { integer { size = 8; } packet_size; integer { size = 16; } timestamp_end; };
                  event.header := struct { integer { size = 8; map = clock.c.value; } t; }; };
         event { };",
    )
    .unwrap();
    let data = [32, 3, 5, 250, 32, 4, 0, 6];
    let mut reader = StreamReader::new(Decoder::new(Arc::new(class)).unwrap(), data);
    let mut stamps = Vec::new();
    loop {
        match reader.advance().unwrap() {
            Step::Event => stamps.push(reader.event().clock_value().unwrap().0),
            Step::End => break,
            Step::Packet | Step::PacketEnd => {}
        }
    }
    assert_eq!(stamps, [250, 0x306]);
}

#[test]
fn a_stream_read_packet_by_packet_is_the_same() {
    let class = parse(
        "clock { name = c; };
         stream { packet.context := struct { integer { size = 8; } packet_size; integer { size = 8; } events_discarded; };
                  event.header := struct { integer { size = 8; map = clock.c.value; } t; }; };
         event { };",
    )
    .unwrap();
    let decoder = Decoder::new(Arc::new(class)).unwrap();
    let data = [32, 0, 250, 255, 24, 2, 1, 40, 2, 3, 2, 1];
    let mut whole = StreamReader::new(decoder.clone(), &data[..]);
    let mut parts = StreamReader::new(decoder, &data[..4]);
    for (from, to) in [(0, 4), (4, 7), (7, 12)] {
        let index = parts.packet().index + u64::from(from > 0);
        // First a prefix that holds no more than the context, then all of it.
        parts.replace(&data[from..from + 2], from as u64, index);
        assert_eq!(parts.advance(), Ok(Step::Packet));
        assert_eq!(parts.packet().packet_bits, (to - from) as u64 * 8);
        parts.replace(&data[from..to], from as u64, index);
        loop {
            let (a, b) = (whole.advance().unwrap(), parts.advance().unwrap());
            assert_eq!((a, whole.packet()), (b, parts.packet()));
            match a {
                Step::Event => assert_eq!(whole.event().clock_value(), parts.event().clock_value()),
                Step::PacketEnd => break,
                _ => {}
            }
        }
    }
    // 250, 255, wrapped twice and once more.
    assert_eq!(parts.event().clock_value(), Some(Cycles(3 * 256 + 1)));
    assert_eq!(parts.packet().discarded_events, None);
    assert_eq!(whole.advance(), Ok(Step::End));
}

#[test]
fn lines_may_be_continued() {
    let class =
        parse("event { name = \"a\\\nb\"; fields := struct { integer { \\\r\n size = 8; } x; }; };").unwrap();
    let event = &class.data_stream_classes[0].event_record_classes[0];
    assert_eq!(event.name.as_deref(), Some("ab"));
    assert!(parse("event { \\ fields := struct { }; };").is_err());
}

#[test]
fn a_named_structure_may_be_aligned_where_it_is_used() {
    let text = "struct s { integer { size = 8; } a; };
        event { fields := struct { struct s align(32) x; struct s y; }; };";
    let class = parse(text).unwrap();
    let payload = class.data_stream_classes[0].event_record_classes[0].payload.as_ref().unwrap();
    assert_eq!(payload.members.iter().map(|member| member.class.alignment()).collect::<Vec<_>>(), [32, 8]);
}

#[test]
fn stamps_get_the_only_clock_or_a_default_one() {
    let stream = "stream { event.header := struct { integer { size = 32; } timestamp; };
        packet.context := struct { integer { size = 64; } timestamp_begin; integer { size = 64; } other; }; };";
    let clock = |name: &str| format!("clock {{ name = {name}; freq = 10; }};");
    let mapped = |clocks: &str| {
        let class = parse(&format!("{clocks} {stream}")).unwrap();
        let class_of = &class.data_stream_classes[0];
        let context = class_of.packet_context.as_ref().unwrap();
        let of =
            |index: usize| integer(&context.members[index].class).mapped_clock.as_deref().map(str::to_owned);
        (class_of.default_clock.clone(), of(0), of(1), class.clock_classes.len())
    };
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(mapped(""), (name("default"), name("default"), None, 1));
    assert_eq!(mapped(&clock("c")), (name("c"), name("c"), None, 1));
    assert_eq!(mapped(&(clock("c") + &clock("d"))), (None, None, None, 2));
}

#[test]
fn paths_lead_into_sequences_and_variants() {
    let metadata = b"/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };
        typealias integer { size = 8; align = 8; } := u8;
        event { name = e; fields := struct {
            u8 count;
            struct { u8 length; u8 bytes[length]; } items[count];
            enum : u8 { small, large } tag;
            variant <tag> { u8 small; struct { u8 low; u8 high; } large; } size;
        }; };";
    let decoder = Decoder::new(Arc::new(tsdl::parse(metadata).unwrap())).unwrap();
    let path = |steps: &[PathStep<'_>]| decoder.path(0, 0, Scope::Payload, steps);
    let (name, index) = (PathStep::Name, PathStep::Index);
    let deep = path(&[name("items"), index(1), name("bytes"), index(2)]).unwrap();
    let small = path(&[name("size"), name("small")]).unwrap();
    let high = path(&[name("size"), name("large"), name("high")]).unwrap();
    for wrong in
        [&[name("itens")][..], &[name("count"), index(0)], &[index(0)], &[name("size"), name("huge")]]
    {
        assert_eq!(path(wrong), None);
    }
    // Two items of one and three bytes, and a small size; one item of no bytes, and a large one.
    let data = [2, 1, 10, 3, 20, 21, 22, 0, 5, 1, 0, 1, 6, 7];
    let mut reader = StreamReader::new(decoder.clone(), data);
    let mut found = Vec::new();
    while reader.advance().unwrap() != Step::End {
        let each = |event: Event<'_>| {
            found.push([&deep, &small, &high].map(|path| match event.at(path) {
                Some(Value::Unsigned(value, _)) => Some(value),
                None => None,
                other => panic!("{other:?}"),
            }));
        };
        reader.for_each_in_packet(each).unwrap();
    }
    assert_eq!(found, [[Some(22), Some(5), None], [None, None, Some(7)]]);
}

/// What follows is the next packet, whose beginning is not to be measured as an event record.
#[test]
fn the_last_event_record_can_be_read_after_its_packet() {
    let byte = "integer { size = 8; align = 8; }";
    let class = parse(&format!(
        "stream {{ packet.context := struct {{ {byte} zero; {byte} content_size; {byte} packet_size; }};
            event.header := struct {{ {byte} id; }}; }};
        event {{ id = 0; fields := struct {{ string s; {byte} n; }}; }};"
    ))
    .unwrap();
    let packet = |text: &str| [&[0, 72, 72, 0], text.as_bytes(), &[0, 9]].concat();
    let mut data = ["abc", "def", "ghi"].map(packet).concat();
    data.extend([0; 40]);
    let decoder = Decoder::new(Arc::new(class)).unwrap();
    let mut reader = StreamReader::new(decoder, data);
    for expected in ["abc", "def", "ghi"] {
        for step in [Step::Packet, Step::Event, Step::PacketEnd] {
            assert_eq!(reader.advance(), Ok(step));
        }
        let event = reader.event();
        let fields = event.record_fields().unwrap();
        assert_eq!(fields[0].value(event.record().unwrap()), Some(Value::Text(expected.as_bytes())));
    }
}
