//! CTF 1.8 metadata that says more than is known, or in the way that other readers accept: it is read, with a
//! warning if something is ignored.

use std::sync::Arc;
use std::time::{Duration, Instant};
use tracewing_ctf::decode::{Decoder, Step, StreamReader, Value};
use tracewing_ctf::model::{FieldClass, Scope, TraceClass};
use tracewing_ctf::{Error, metadata, tsdl};
use tracewing_units::{Cycles, Timestamp};

const TRACE: &str = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };\n";

fn parse(text: &str) -> Result<TraceClass, Error> {
    metadata::parse(format!("{TRACE}{text}").as_bytes())
}

fn warnings(text: &str) -> Vec<String> {
    metadata::parse_with_warnings(format!("{TRACE}{text}").as_bytes()).unwrap().1
}

#[test]
fn unknown_attributes_are_named() {
    let text = "typealias integer { size = 8; aa = bb; } := byte;
clock { name = c; color = red; };
stream { weight = 1; more := struct { byte x; }; };
event { fields := struct { byte a; string { kind = x; } s; floating_point { exp_dig = 8; mant_dig = 24; x = 1; } f; };
    tail := struct { byte x; }; mood.now = 3; name = e; };";
    let expected = [
        "line 2, column 31: unknown attribute `aa` of `integer`",
        "line 3, column 19: unknown attribute `color` of `clock`",
        "line 4, column 10: unknown attribute `weight` of `stream`",
        "line 4, column 30: unknown attribute `more` of `stream`",
        "line 5, column 45: unknown attribute `kind` of `string`",
        "line 5, column 105: unknown attribute `x` of `floating_point`",
        "line 6, column 13: unknown attribute `tail` of `event`",
        "line 6, column 33: unknown attribute `mood.now` of `event`",
    ];
    assert_eq!(warnings(text), expected.map(|line| format!("metadata, {line}; it is ignored")));
    assert!(parse(text).is_ok());
    let many: String = (0..100).map(|number| format!(" a{number} = 1;")).collect();
    let lines = warnings(&format!("stream {{{many} }};"));
    assert_eq!((lines.len(), lines[20].as_str()), (21, "metadata: 80 more warnings"));
    assert_eq!(warnings("env { anything = 1; };"), [""; 0]);
}

/// What LTTng wrote has nothing that is unknown.
#[test]
fn bytes_after_the_last_metadata_packet_are_ignored() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/lttng-ust-kinds");
    let whole = std::fs::read(format!("{folder}/metadata")).unwrap();
    let (class, warnings) = metadata::parse_with_warnings(&whole).unwrap();
    assert_eq!(warnings, [""; 0]);
    for rest in [vec![7; 1], vec![7; 36], vec![7; 64], vec![0; 4096]] {
        let (again, warnings) = metadata::parse_with_warnings(&[&whole[..], &rest].concat()).unwrap();
        let warning =
            format!("metadata, byte {}: {} bytes after the last packet are ignored", whole.len(), rest.len());
        assert_eq!((again == class, warnings), (true, vec![warning]));
    }
    // This is a packet that has been damaged.
    let error = metadata::parse(&[&whole[..], &[7; 4], &whole[4..]].concat()).unwrap_err().to_string();
    assert!(error.contains("magic 0x07070707"), "{error}");
}

#[test]
fn metadata_packets_are_in_the_byte_order_of_the_trace() {
    for (order, fits) in [("le", true), ("be", false)] {
        let text = format!("/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = {order}; }};");
        let size = (37 + text.len() as u32) * 8;
        let mut packet = 0x75D1_1D57_u32.to_le_bytes().to_vec();
        packet.extend([0; 20]);
        packet.extend([size.to_le_bytes(), size.to_le_bytes()].concat());
        packet.extend([0, 0, 0, 1, 8]);
        packet.extend(text.as_bytes());
        let error = metadata::parse(&packet).err().map(|error| error.to_string());
        let message = "the metadata's packets are not in the trace's `byte_order`";
        assert_eq!(error.is_some_and(|error| error.contains(message)), !fits);
    }
}

#[test]
fn a_clock_may_begin_before_its_origin() {
    let clock = |text: &str| {
        parse(&format!("clock {{ name = c; {text} }};")).map(|class| class.clock_classes[0].clone())
    };
    let offsets = |text| clock(text).map(|clock| (clock.offset_seconds, clock.offset_cycles.0));
    assert_eq!(offsets("offset = -1000;"), Ok((-1, 999_999_000)));
    assert_eq!(offsets("offset = -2000; freq = 1000;"), Ok((-2, 0)));
    assert_eq!(offsets("offset_s = 10; offset = -1; freq = 1000;"), Ok((9, 999)));
    assert_eq!(offsets("offset = -9223372036854775808; freq = 1;"), Ok((i64::MIN, 0)));
    assert_eq!(offsets("offset = 18446744073709551615;"), Ok((0, u64::MAX)));
    assert_eq!(
        clock("offset_s = -1; offset = -1000;").unwrap().time(Cycles(2_000)),
        Some(Timestamp::from_ns(-999_999_000))
    );
    let error = offsets("offset_s = -9223372036854775808; offset = -1;").unwrap_err().to_string();
    assert!(error.contains("64 bits of seconds"), "{error}");
    assert!(offsets("offset = -9223372036854775809;").is_err());
}

#[test]
fn a_declaration_may_follow_a_body_at_once() {
    let class = parse(
        "typealias integer { size = 8; } := byte;
         struct one { byte a; } struct two { struct one b; } align(16)
         enum three : byte { c } variant four { byte c; }
         event { fields := struct {
             struct five { byte d; } struct six { byte e; }
             struct five f; struct six g; struct two h; enum three i; variant four <i> j; }; };",
    );
    let class = class.unwrap();
    let payload = class.data_stream_classes[0].event_record_classes[0].payload.as_ref().unwrap();
    let names: Vec<_> = payload.members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["f", "g", "h", "i", "j"]);
    let error = parse("event { fields := struct { struct { string a; } }; };").unwrap_err().to_string();
    assert!(error.contains("expected a name, found `}`"), "{error}");
}

#[test]
fn members_that_differ_by_underscores_only_keep_them() {
    let names = |members: &str| {
        let class = parse(&format!("event {{ fields := struct {{ {members} }}; }};")).unwrap();
        let printed = tsdl::print(&class);
        assert_eq!(tsdl::parse(printed.as_bytes()).expect(&printed), class);
        let payload = class.data_stream_classes[0].event_record_classes[0].payload.clone().unwrap();
        payload.members.into_iter().map(|member| member.name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("string field; string _field; string __field; string _x;"), "field _field __field x");
    assert_eq!(names("string _field; string field;"), "_field field");
    assert_eq!(names("string _seq; string __seq;"), "seq _seq");
    // What would be one of several fields is not guessed.
    let error = parse(
        "event { fields := struct { integer { size = 8; } n; integer { size = 8; } _n; string s[n]; }; };",
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("`n` may be several fields"), "{error}");
}

#[test]
fn a_typedefs_length_is_an_integer_further_out() {
    let class = parse(
        "typealias integer { size = 8; } := byte;
         event { fields := struct {
             byte len;
             typedef struct { byte a[len]; } list;
             struct { string len; list x; } field; }; };",
    )
    .unwrap();
    let decoder = Decoder::new(Arc::new(class)).unwrap();
    let mut reader = StreamReader::new(decoder.clone(), [2, b'h', 0, 7, 8]);
    let path = ["field", "x", "a"].map(tracewing_ctf::decode::PathStep::Name);
    let path = [path.as_slice(), &[tracewing_ctf::decode::PathStep::Index(1)]].concat();
    let second = decoder.path(0, 0, Scope::Payload, &path).unwrap();
    assert_eq!((reader.advance(), reader.advance()), (Ok(Step::Packet), Ok(Step::Event)));
    assert!(matches!(reader.event().at(&second), Some(Value::Unsigned(8, _))));
    assert_eq!((reader.advance(), reader.advance()), (Ok(Step::PacketEnd), Ok(Step::End)));
    // One that is nowhere an integer is named as it was.
    let text = "event { fields := struct { string len; string a[len]; }; };";
    let error = Decoder::new(Arc::new(parse(text).unwrap())).unwrap_err().to_string();
    assert!(error.contains("its length `len` is no integer"), "{error}");
}

#[test]
fn keywords_name_no_fields_and_no_blocks() {
    for text in [
        "typedef string A[typedef];",
        "struct s { string a; variant <variant> { string b; } v; };",
        "typealias string := trace;",
        "typealias string := event;",
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains("is a keyword"), "{text}: {error}");
    }
    let text = "typealias integer { size = 8; } := unsigned int; event { fields := struct { unsigned int _event; string s[_event]; }; };";
    let class = parse(text).unwrap();
    let payload = class.data_stream_classes[0].event_record_classes[0].payload.clone().unwrap();
    assert!(matches!(&payload.members[1].class, FieldClass::DynamicArray(_)));
}

/// The classes of the members of the only event's payload.
fn members(text: &str) -> Vec<FieldClass> {
    let class = parse(text).unwrap();
    let payload = class.data_stream_classes[0].event_record_classes[0].payload.clone().unwrap();
    payload.members.into_iter().map(|member| member.class).collect()
}

/// A type that is declared as `const` may have another layout than the plain one of its name.
#[test]
fn a_constant_type_is_not_the_plain_one() {
    let both = members(
        "typealias integer { size = 32; } := const int;\ntypealias integer { size = 8; } := int;\n\
         event { name = e; fields := struct { const int a; int b; const int c[2]; }; };\n",
    );
    assert!(matches!(&both[0], FieldClass::Integer(class) if class.size == 32), "{both:?}");
    assert!(matches!(&both[1], FieldClass::Integer(class) if class.size == 8), "{both:?}");
    assert!(matches!(&both[2], FieldClass::StaticArray(class) if class.element == both[0]), "{both:?}");
    // Where there is no such type, the plain one is meant.
    let plain = members(
        "typealias integer { size = 8; } := int;\nevent { name = e; fields := struct { const int a; }; };\n",
    );
    assert!(matches!(&plain[0], FieldClass::Integer(class) if class.size == 8), "{plain:?}");
}

/// As for babeltrace2.
#[test]
fn a_type_may_be_declared_after_the_block_that_uses_it() {
    let late = members(
        "event { name = e; fields := struct { struct s a; enum k b; }; };\n\
         struct s { integer { size = 32; } x; };\nenum k : integer { size = 8; } { X };\n",
    );
    assert!(matches!(&late[0], FieldClass::Structure(class) if class.members.len() == 1), "{late:?}");
    assert!(matches!(&late[1], FieldClass::Enumeration(_)), "{late:?}");
    let twice = "struct s { integer { size = 8; } x; };\nevent { name = e; fields := struct s; };\n\
                 struct s { integer { size = 32; } x; };\n";
    let error = parse(twice).unwrap_err().to_string();
    assert!(error.contains("declared twice"), "{error}");
}

#[test]
fn an_event_without_a_name_is_read_with_a_warning() {
    let text = "event { id = 3; fields := struct { integer { size = 8; } a; }; };\n";
    assert_eq!(warnings(text), ["metadata, line 2, column 1: this event has no `name`"]);
    // Written anew, it has one that readers accept, and that is none.
    let written = tsdl::print(&parse(text).unwrap());
    let (class, warnings) = metadata::parse_with_warnings(written.as_bytes()).unwrap();
    assert_eq!(warnings, [""; 0], "{written}");
    assert_eq!(class.data_stream_classes[0].event_record_classes[0].name, None);
}

/// Which option is there would be a guess.
#[test]
fn a_tags_value_selects_one_option() {
    let variant = |a: &str, b: &str| {
        let text = format!(
            "event {{ name = e; fields := struct {{ \
             enum : integer {{ size = 8; signed = true; }} {{ A = {a}, B = {b}, C = -5 ... 20 }} t; \
             variant <t> {{ integer {{ size = 8; }} A; integer {{ size = 32; }} B; }} v; }}; }};\n"
        );
        Decoder::new(Arc::new(parse(&text).unwrap())).map(|_| ())
    };
    // A label that is no option may share its values.
    assert_eq!(variant("-2 ... 3", "4 ... 9"), Ok(()));
    assert_eq!(variant("4 ... 9", "-2 ... 3"), Ok(()));
    for (a, b) in [("-2 ... 4", "4 ... 9"), ("4 ... 9", "-2 ... 4"), ("0 ... 9", "5"), ("5", "0 ... 9")] {
        let error = variant(a, b).unwrap_err().to_string();
        assert!(error.contains("a value of its tag selects both"), "{error}");
    }
}

/// The least time of three to parse and compile a trace class with so many data stream classes, each with a
/// clock and an event of this id.
fn time(streams: u64, event: u64) -> Duration {
    let mut text = TRACE.to_owned() + "typealias integer { size = 8; } := byte;\n";
    for id in 0..streams {
        text += &format!("clock {{ name = c{id}; }};\n");
        text += &format!(
            "stream {{ id = {id}; event.header := struct {{ integer {{ size = 8; map = clock.c{id}.value; }} t; byte id; }}; }};\n"
        );
        text += &format!("event {{ stream_id = {id}; id = {event}; fields := struct {{ byte a; }}; }};\n");
    }
    let text = text.replace(
        "byte_order = le;",
        "byte_order = le; packet.header := struct { integer { size = 32; } stream_id; };",
    );
    let once = || {
        let begin = Instant::now();
        Decoder::new(Arc::new(metadata::parse(text.as_bytes()).unwrap())).unwrap();
        begin.elapsed()
    };
    (0..3).map(|_| once()).min().unwrap_or_default()
}

/// Eight times as many take eight times as long, and not 64 times; and a large id in each takes no table of
/// as many entries.
#[test]
fn many_data_stream_classes_take_linear_time() {
    let (few, many) = (time(1_000, 65_535), time(8_000, 65_535));
    assert!(many < few * 24, "{few:?} for 1,000, {many:?} for 8,000");
    let small = time(8_000, 1);
    assert!(many < small * 6, "{many:?} with large ids, {small:?} with small ones");
}
