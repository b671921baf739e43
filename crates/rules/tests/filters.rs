//! Predicates as a program evaluates them: compiled, on payloads.

mod common;

use common::{accepts, as_view, class, field, labelled, words};
use tracewing_abi::schema::{Field, Scalar, Shape};
use tracewing_rules::Predicate;
use tracewing_rules::filter::{Context, MAX_FILTER, evaluate};
use tracewing_units::{Cpu, Pid, Tid};

const CONTEXT: Context = Context { tid: Tid(11), pid: Pid(10), cpu: Cpu(3) };

fn fields() -> Vec<Field<'static>> {
    vec![
        field("depth", Shape::One, Scalar::U32),
        field("customer", Shape::Text, Scalar::U8),
        field("delta", Shape::One, Scalar::I16),
        field("maybe", Shape::Optional, Scalar::U64),
        field("sizes", Shape::Slice, Scalar::U16),
        Field { length: 3, ..field("grid", Shape::Array, Scalar::I8) },
        field("ratio", Shape::One, Scalar::F32),
        field("letter", Shape::One, Scalar::Char),
        labelled("state", Scalar::I8, &[(u64::MAX, "gone"), (0, "idle"), (1, "running"), (2, "run-down")]),
        field("wide", Shape::One, Scalar::I128),
        field("note", Shape::Text, Scalar::U8),
        field("huge", Shape::One, Scalar::U64),
        field("ok", Shape::One, Scalar::Bool),
    ]
}

/// depth 7, customer "x", delta -5, maybe 9 or none, sizes [1, 500], grid [-1, 0, 1], ratio 0.5, letter 'ü',
/// state running, wide -2^100, note "to be, or not", huge 2^63 + 1, ok.
fn payload(maybe: bool) -> Vec<u8> {
    let mut bytes = 7_u32.to_le_bytes().to_vec();
    bytes.extend(b"x\0");
    bytes.extend((-5_i16).to_le_bytes());
    bytes.push(maybe.into());
    if maybe {
        bytes.extend(9_u64.to_le_bytes());
    }
    bytes.extend(2_u16.to_le_bytes());
    bytes.extend([1, 0, 0xf4, 1]);
    bytes.extend([0xff, 0, 1]);
    bytes.extend(0.5_f32.to_le_bytes());
    bytes.extend("ü\0\0".as_bytes());
    bytes.push(1);
    bytes.extend((-(1_i128 << 100)).to_le_bytes());
    bytes.extend(b"to be, or not\0");
    bytes.extend(((1_u64 << 63) + 1).to_le_bytes());
    bytes.push(1);
    bytes
}

fn compile(text: &str) -> Result<Vec<u8>, String> {
    let predicate = Predicate::parse(text).map_err(|error| error.to_string())?;
    as_view(&class(&fields()), |view| predicate.compile(view).map_err(|error| error.to_string()))
}

#[test]
fn quantities_are_compared_in_the_units_of_fields() {
    let with_unit = |name, scalar, unit| Field { unit, ..field(name, Shape::One, scalar) };
    let fields = [
        with_unit("wait", Scalar::U64, "us"),
        with_unit("mean", Scalar::F64, "ms"),
        with_unit("size", Scalar::U32, "bytes"),
        with_unit("turns", Scalar::U64, "cycles"),
        with_unit("plain", Scalar::U64, ""),
    ];
    let mut payload = 1500_u64.to_le_bytes().to_vec();
    payload.extend(2.5_f64.to_le_bytes());
    payload.extend(65_536_u32.to_le_bytes());
    payload.extend(9_u64.to_le_bytes());
    payload.extend(2_000_000_000_u64.to_le_bytes());
    let compile = |text: &str| {
        let predicate = Predicate::parse(text).unwrap();
        as_view(&class(&fields), |view| predicate.compile(view).map_err(|error| error.to_string()))
    };
    for (text, expected) in [
        ("wait == 1.5ms && 1.5ms == wait && wait == 1500us && wait == 1_500_000ns", true),
        ("wait > 1.5ms", false),
        ("wait > 1499.9us && wait < 1500.1us && wait != 1500.1us", true),
        ("wait < 1s && wait < 2min && wait < 1h && wait > -1s", true),
        ("mean == 2500us && mean > 2ms", true),
        ("size == 64K && size == 64KiB && size < 0.1M && size >= 65536B", true),
        ("plain == 2s && plain > 1.9s", true),
    ] {
        assert_eq!(accepts(&compile(text).unwrap(), &payload, &CONTEXT), expected, "{text}");
    }
    for (text, why) in [
        ("turns > 1s", "`turns` is in cycles and cannot be compared with 1s"),
        ("wait > 1K", "`wait` is in us and cannot be compared with 1K"),
    ] {
        assert!(compile(text).unwrap_err().contains(why), "{text}");
    }
    for text in ["wait > 1sec", "wait > 1.5.2ms", "wait > 0x1s", "wait > 1e3s", "wait > 1 s", "wait & 1s"] {
        assert!(Predicate::parse(text).is_err(), "{text}");
    }
}

#[test]
fn predicates_hold_as_written() {
    for (text, expected) in [
        ("depth > 3 && customer == \"x\"", true),
        ("depth > 7", false),
        ("3 < depth", true),
        ("depth >= 7 && depth <= 7 && depth == 7 && !(depth != 7)", true),
        ("depth == -1", false),
        ("depth > -1", true),
        ("depth < 99999999999999999999", true),
        ("depth > 6.5 && depth < 7.5 && depth != 7.5", true),
        ("depth & 3 == 3", true),
        ("depth & 8", false),
        ("(depth & 0xffffffffffffffffffff) == 7", true),
        ("customer == 'x'", true),
        ("customer == 'xy'", false),
        ("customer == ''", false),
        ("customer != 'y'", true),
        ("customer != 'x'", false),
        ("customer =~ \"[w-z]\"", true),
        ("customer !~ \"?\"", false),
        ("note == 'to be, or not'", true),
        ("note == 'to be, or no'", false),
        ("note == 'to be, or nots'", false),
        ("note == 'to be, or'", false),
        ("note == 'to be, o'", false),
        ("note =~ '*be*or*'", true),
        ("note =~ '*be*or'", false),
        ("note =~ 'to be, or not'", true),
        ("len(note) == 13 && len(customer) == 1", true),
        ("delta == -5", true),
        ("delta < 0", true),
        ("delta > 18446744073709551615", false),
        ("delta & 0xff == 0xfb", true),
        ("delta & 0xffffffffffffffff == 0xfffffffffffffffb", true),
        ("maybe == 9 && len(maybe) == 1", true),
        ("sizes[0] == 1 && sizes[1] == 500", true),
        ("sizes[2] == 0 || sizes[2] != 0", false),
        ("!(sizes[2] == 0)", false),
        ("!(sizes[2] == 0 || depth == 7)", false),
        ("!(sizes[2] == 0 && depth == 8)", true),
        ("elsewhere == 1 || depth == 7", true),
        ("!(elsewhere == 1 && depth == 8)", true),
        ("len(sizes) == 2 && len(grid) == 3", true),
        ("grid[0] == -1 && grid[1] == 0 && grid[2] == 1", true),
        ("ratio == 0.5 && ratio < 1 && ratio > 0", true),
        ("ratio != 0.5", false),
        ("letter == 'ü' && letter =~ '?' && letter != 'u'", true),
        ("letter == 'üb'", false),
        ("state == 'running'", true),
        ("state != 'running'", false),
        ("state == 'gone'", false),
        ("state =~ 'run*'", true),
        ("state !~ 'run*'", false),
        ("state =~ 'walk*'", false),
        ("state !~ 'walk*'", true),
        ("state == 1", true),
        ("wide < 0 && wide == -1267650600228229401496703205376", true),
        ("wide & 1", false),
        ("huge > 9223372036854775808", true),
        ("huge == 9223372036854775809", true),
        ("huge > delta && delta > wide && wide < huge", true),
        ("customer == letter", false),
        ("customer != letter", true),
        ("ratio == ratio", true),
        ("ok", true),
        ("!ok", false),
        ("ok == true", true),
        ("ok == false || ok != true", false),
        ("$tid == 11 && $pid == 10 && $cpu == 3", true),
        ("$event == 'shop:order' && $event =~ 'shop:*' && $level == 6", true),
        ("$level == 'info' && $level <= 'debug' && 'warn' < $level", true),
        ("$level <= 'warn'", false),
        ("true", true),
        ("false", false),
        ("1 < 2", true),
        ("'a' == 'b'", false),
        ("ok && (depth == 1 || customer == 'x') && !(note == '' || huge == 0)", true),
        ("(depth == 1 && note == 'a' || huge == 9223372036854775809) && note =~ 'to*'", true),
        ("(note == 'a' || depth == 7) && len(note) == 13 && delta == -5", true),
        ("(depth == 1 && note == 'a' && ok) || huge == 9223372036854775809", true),
        ("(depth == 7 || note == 'a' || ok) && huge == 9223372036854775809", true),
    ] {
        let filter = compile(text).unwrap();
        assert!(filter.len() <= MAX_FILTER);
        assert_eq!(accepts(&filter, &payload(true), &CONTEXT), expected, "{text}");
    }
}

#[test]
fn a_value_that_is_not_there_is_in_no_relation() {
    for (text, expected) in [
        ("maybe == 9", false),
        ("maybe != 9", false),
        ("!(maybe == 9)", false),
        ("!(maybe != 9)", false),
        ("!maybe", false),
        ("!(maybe == 9) || depth == 7", true),
        ("!(maybe == 9 && depth == 8)", true),
        ("maybe", false),
        ("maybe == maybe", false),
        ("maybe > -1", false),
        ("len(maybe) == 0", true),
        ("sizes[1] == 500 && depth == 7", true),
    ] {
        assert_eq!(accepts(&compile(text).unwrap(), &payload(false), &CONTEXT), expected, "{text}");
    }
}

#[test]
fn a_comparison_of_another_type_is_unknown() {
    for (text, expected) in [
        ("depth == 'x' || delta == -5", true),
        ("!(depth == 'x') || delta == -6", false),
        ("depth != 'x' || delta == -6", false),
        ("!(depth == 'x' && delta == -6)", true),
        ("!(state == 'walking') || delta == -6", false),
        ("len(depth) == 1 || sizes == 3 || customer || ratio & 1 || delta == -5", true),
        ("!(customer < 'x' || grid[3] == 1) || delta == -5", true),
    ] {
        assert_eq!(accepts(&compile(text).unwrap(), &payload(true), &CONTEXT), expected, "{text}");
    }
}

#[test]
fn what_a_comparison_leaves_out_is_still_found_by_the_next_one() {
    // The second comparison needs the position after "sizes", which the first computes only if "maybe" is
    // present.
    for text in ["maybe == grid[0] || grid[0] == -1", "maybe != grid[0] || (ratio > 1 || grid[2] == 1)"] {
        assert!(accepts(&compile(text).unwrap(), &payload(false), &CONTEXT), "{text}");
    }
}

#[test]
fn a_character_ends_after_four_bytes() {
    let fields = [field("letter", Shape::One, Scalar::Char), field("next", Shape::Text, Scalar::U8)];
    let payload = "😀 and more\0".as_bytes();
    for (text, expected) in [("letter == '😀'", true), ("letter =~ '?'", true), ("next == ' and more'", true)]
    {
        let predicate = Predicate::parse(text).unwrap();
        let filter = as_view(&class(&fields), |view| predicate.compile(view)).unwrap();
        assert_eq!(accepts(&filter, payload, &CONTEXT), expected, "{text}");
    }
}

#[test]
fn an_integer_that_no_real_number_is_lies_between_two() {
    let fields = [field("real", Shape::One, Scalar::F64)];
    let payload = 9007199254740992_f64.to_le_bytes();
    for (text, expected) in [
        ("real < 9007199254740993", true),
        ("real >= 9007199254740993", false),
        ("real == 9007199254740993", false),
        ("real != 9007199254740993", true),
        ("real > 9007199254740991", true),
        ("real >= 9007199254740992", true),
    ] {
        let predicate = Predicate::parse(text).unwrap();
        let filter = as_view(&class(&fields), |view| predicate.compile(view)).unwrap();
        assert_eq!(accepts(&filter, &payload, &CONTEXT), expected, "{text}");
    }
}

#[test]
fn what_does_not_fit_the_class_is_said() {
    for (text, expected) in [
        (
            "dept > 3",
            "it has no `dept` (it has depth, customer, delta, maybe, sizes, grid, ratio, letter, state, wide, note, huge, …)",
        ),
        ("$cpux == 3", "it has no `$cpux` (it has $tid, $pid, $cpu, $event, $level)"),
        ("$level == 'loud'", "`$level` has no label \"loud\" (it has error, warn, info, debug, trace)"),
        ("customer > 3", "`customer` is a text and cannot be compared with an integer"),
        ("customer < 'x'", "`customer` is a text: compare it with `==`, `!=`, `=~` or `!~`"),
        ("depth == 'x'", "`depth` is an integer and cannot be compared with a text"),
        ("depth =~ 'x'", "`depth` is an integer: only texts match patterns"),
        ("customer", "`customer` is a text: compare it with something"),
        (
            "sizes == 3",
            "`sizes` has several values: ask for one of them, as in `sizes[0]`, or for `len(sizes)`",
        ),
        ("grid[3] == 3", "`grid[3]`: the array has 3 values"),
        ("depth[0] == 3", "`depth[0]`: the field has a single value"),
        ("len(depth) == 3", "`len(depth)`: the field has no length"),
        ("state == 'walking'", "`state` has no label \"walking\" (it has gone, idle, running, run-down)"),
        ("ratio & 3", "`ratio` is a floating-point number: `&` takes bits of integers"),
        ("ratio == depth", "`ratio` is a floating-point number and cannot be compared with an integer"),
    ] {
        assert_eq!(compile(text).unwrap_err(), format!("event \"shop:order\": {expected}"), "{text}");
    }
    let long = vec!["depth == 1"; 70].join(" || ");
    assert!(compile(&long).unwrap_err().contains("too large"));
    assert!(compile(&format!("customer == '{}'", "x".repeat(1100))).unwrap_err().contains("too large"));
}

#[test]
fn a_payload_may_come_in_pieces() {
    let payload = payload(true);
    let filter = compile(
        "depth == 7 && customer == 'x' && delta == -5 && maybe == 9 && sizes[1] == 500 && ratio == 0.5 && letter == 'ü' \
         && wide < 0 && note == 'to be, or not' && note =~ '*be*' && huge > 1 && ok",
    )
    .unwrap();
    let program = words(&filter);
    for size in 1..payload.len() {
        let pieces = payload.chunks(size).flat_map(|piece| [piece, &[]]);
        assert!(evaluate(&program, pieces, &CONTEXT), "pieces of {size} bytes");
    }
    for length in 0..payload.len() {
        assert!(!evaluate(&program, payload[..length].chunks(5), &CONTEXT), "the first {length} bytes");
    }
}
