//! The payload of events, for every type of field, against bytes put together by hand as
//! `tracewing_abi::schema` specifies them, and against a reader that knows only the class description.

use proptest::prelude::*;
use std::borrow::Cow;
use std::num::{NonZeroI16, NonZeroU64};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tracewing::__private::to_bytes;
use tracewing::{Event, EventField};
use tracewing_abi::schema::{Class, Scalar, Shape};

/// Joins pieces of expected bytes.
macro_rules! bytes {
    ($($piece:expr),* $(,)?) => {{
        let mut all: Vec<u8> = Vec::new();
        $(all.extend_from_slice(&$piece[..]);)*
        all
    }};
}

/// Takes a payload apart by its class's description: the bytes of each field's values, without counts and
/// marks.
fn read(class: &Class<'_>, mut payload: &[u8]) -> Vec<Vec<u8>> {
    let mut take = |len: usize| {
        let (head, rest) = payload.split_at_checked(len).expect("payload is too short");
        payload = rest;
        head.to_vec()
    };
    let fields = class.fields.iter().map(|field| {
        let size = field.scalar.size();
        match field.shape {
            Shape::One | Shape::Enumeration => take(size),
            Shape::Array => take(size * field.length as usize),
            Shape::Slice => {
                let count = take(2);
                take(size * usize::from(u16::from_le_bytes([count[0], count[1]])))
            }
            Shape::Optional => match take(1)[..] {
                [0] => Vec::new(),
                [1] => take(size),
                ref other => panic!("mark {other:?}"),
            },
            Shape::Text => {
                let mut text = Vec::new();
                loop {
                    match take(1)[0] {
                        0 => break text,
                        byte => text.push(byte),
                    }
                }
            }
        }
    });
    let fields: Vec<_> = fields.collect();
    assert!(payload.is_empty(), "{} bytes too many", payload.len());
    fields
}

#[derive(Event)]
struct Integers {
    a: u8,
    b: u16,
    c: u32,
    d: u64,
    e: u128,
    f: usize,
    g: i8,
    h: i16,
    i: i32,
    j: i64,
    k: i128,
    l: isize,
    m: NonZeroU64,
    n: NonZeroI16,
}

#[test]
fn integers() {
    let event = Integers {
        a: 0xa1,
        b: 0xb1b2,
        c: 0xc1c2_c3c4,
        d: 0xd1d2_d3d4_d5d6_d7d8,
        e: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
        f: 0xf1f2,
        g: -2,
        h: -3,
        i: -4,
        j: -5,
        k: -6,
        l: -7,
        m: NonZeroU64::new(9).unwrap(),
        n: NonZeroI16::new(-9).unwrap(),
    };
    let expected = bytes![
        [0xa1],
        [0xb2, 0xb1],
        [0xc4, 0xc3, 0xc2, 0xc1],
        [0xd8, 0xd7, 0xd6, 0xd5, 0xd4, 0xd3, 0xd2, 0xd1],
        [0x10, 0x0f, 0x0e, 0x0d, 0x0c, 0x0b, 0x0a, 9, 8, 7, 6, 5, 4, 3, 2, 1],
        [0xf2, 0xf1, 0, 0, 0, 0, 0, 0],
        [0xfe],
        [0xfd, 0xff],
        [0xfc, 0xff, 0xff, 0xff],
        [0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        [0xfa],
        [0xff; 15],
        [0xf9],
        [0xff; 7],
        [9, 0, 0, 0, 0, 0, 0, 0],
        [0xf7, 0xff],
    ];
    assert_eq!(to_bytes(&event), expected);
    use Scalar::*;
    let scalars: Vec<_> = Integers::class().description().fields.iter().map(|field| field.scalar).collect();
    assert_eq!(scalars, [U8, U16, U32, U64, U128, U64, I8, I16, I32, I64, I128, I64, U64, I16]);
}

#[derive(Event)]
struct Others {
    truth: bool,
    lie: bool,
    single: f32,
    double: f64,
    ascii: char,
    wide: char,
    time: Duration,
    eternity: Duration,
}

#[test]
fn other_single_values() {
    let event = Others {
        truth: true,
        lie: false,
        single: -2.5,
        double: 1.0,
        ascii: 'x',
        wide: '€',
        time: Duration::from_micros(3),
        eternity: Duration::MAX,
    };
    let expected = bytes![
        [1],
        [0],
        [0, 0, 0x20, 0xc0],
        [0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
        [b'x', 0, 0, 0],
        [0xe2, 0x82, 0xac, 0],
        3000_u64.to_le_bytes(),
        [0xff; 8],
    ];
    assert_eq!(to_bytes(&event), expected);
    assert_eq!(Others::class().description().fields[6].unit, "ns");
}

#[derive(Event)]
struct Texts<'a> {
    borrowed: &'a str,
    owned: String,
    cow: Cow<'a, str>,
    boxed: Box<str>,
    between: u16,
    shared: Arc<str>,
    twice: &'a &'a str,
    counted: Rc<String>,
}

#[test]
fn texts_end_with_nul() {
    let event = Texts {
        borrowed: "",
        owned: "two".into(),
        cow: Cow::Borrowed("drei"),
        boxed: "vier".into(),
        between: 0x1234,
        shared: "ünf".into(),
        twice: &"",
        counted: Rc::new("acht".into()),
    };
    let expected =
        bytes![b"\0", b"two\0", b"drei\0", b"vier\0", [0x34, 0x12], "ünf\0".as_bytes(), b"\0", b"acht\0"];
    assert_eq!(to_bytes(&event), expected);
}

#[derive(Event)]
struct Text<'a> {
    text: &'a str,
    end: u8,
}

#[test]
fn texts_end_before_their_first_nul() {
    for (text, expected) in [("ab\0cd", "ab\0"), ("\0", "\0"), ("a\0", "a\0"), ("a\0b\0c", "a\0")] {
        assert_eq!(to_bytes(&Text { text, end: 0xee }), bytes![expected.as_bytes(), [0xee]], "{text:?}");
    }
}

#[derive(Event)]
struct Sequences<'a> {
    bytes: &'a [u8],
    vector: Vec<u16>,
    reals: &'a [f32],
    boxed: Box<[i64]>,
    truths: &'a [bool],
    wide: Cow<'a, [u128]>,
    mutable: &'a mut [i8],
}

#[test]
fn sequences_are_counted() {
    let event = Sequences {
        bytes: &[1, 2, 3],
        vector: vec![0x0102, 0x0304],
        reals: &[],
        boxed: Box::new([-1]),
        truths: &[true, false],
        wide: Cow::Owned(vec![5]),
        mutable: &mut [-1, -2],
    };
    let expected = bytes![
        [3, 0, 1, 2, 3],
        [2, 0, 2, 1, 4, 3],
        [0, 0],
        [1, 0],
        [0xff; 8],
        [2, 0, 1, 0],
        [1, 0],
        5_u128.to_le_bytes(),
        [2, 0, 0xff, 0xfe],
    ];
    assert_eq!(to_bytes(&event), expected);
}

#[test]
fn a_sequence_beyond_its_count_keeps_its_true_length() {
    #[derive(Event)]
    struct Long {
        bytes: Vec<u8>,
    }
    assert_eq!(to_bytes(&Long { bytes: vec![0; 65535] }).len(), 2 + 65535);
    assert_eq!(to_bytes(&Long { bytes: vec![0; 65537] }).len(), 2 + 65537);
}

#[derive(Event)]
struct Arrays<'a> {
    none: [u64; 0],
    small: [u16; 3],
    exactly_small: [u64; 8],
    large: [u32; 17],
    after: u8,
    elsewhere: &'a [u8; 1000],
    adjacent: [i8; 65],
}

#[test]
fn arrays_have_no_count() {
    let event = Arrays {
        none: [],
        small: [1, 2, 3],
        exactly_small: [7; 8],
        large: [0x0a0b_0c0d; 17],
        after: 0xee,
        elsewhere: &[0xcc; 1000],
        adjacent: [-1; 65],
    };
    let expected = bytes![
        [1, 0, 2, 0, 3, 0],
        7_u64.to_le_bytes().repeat(8),
        [0x0d, 0x0c, 0x0b, 0x0a].repeat(17),
        [0xee],
        [0xcc; 1000],
        [0xff; 65],
    ];
    assert_eq!(to_bytes(&event), expected);
    let lengths: Vec<_> = Arrays::class().description().fields.iter().map(|field| field.length).collect();
    assert_eq!(lengths, [0, 3, 8, 17, 0, 1000, 65]);
}

#[derive(Event)]
struct Options {
    a: Option<u32>,
    b: Option<u32>,
    c: Option<f64>,
    d: Option<char>,
    e: Option<NonZeroU64>,
    f: Option<bool>,
}

#[test]
fn options_are_marked() {
    let event = Options { a: Some(5), b: None, c: None, d: Some('d'), e: NonZeroU64::new(6), f: Some(true) };
    let expected = bytes![[1, 5, 0, 0, 0], [0], [0], [1, b'd', 0, 0, 0], [1, 6, 0, 0, 0, 0, 0, 0, 0], [1, 1]];
    assert_eq!(to_bytes(&event), expected);
}

#[derive(EventField)]
#[repr(i16)]
enum Signed {
    Below = -2,
    Above = 300,
    Next,
}

#[derive(EventField)]
#[repr(u64)]
enum Wide {
    Top = u64::MAX,
}

#[derive(EventField)]
enum Plain {
    #[event(name = "the first")]
    First,
    r#Second,
}

#[derive(Event)]
struct Enums<'a> {
    below: Signed,
    above: Signed,
    next: &'a Signed,
    wide: Wide,
    first: Plain,
    second: Plain,
}

#[test]
fn enumerations_have_their_size_and_labels() {
    let event = Enums {
        below: Signed::Below,
        above: Signed::Above,
        next: &Signed::Next,
        wide: Wide::Top,
        first: Plain::First,
        second: Plain::Second,
    };
    let expected = bytes![[0xfe, 0xff], [0x2c, 1], [0x2d, 1], [0xff; 8], [0; 4], [1, 0, 0, 0]];
    assert_eq!(to_bytes(&event), expected);

    let fields = Enums::class().description().fields;
    assert!(fields.iter().all(|field| field.shape == Shape::Enumeration));
    assert_eq!(fields[0].scalar, Scalar::I16);
    assert_eq!(fields[0].labels, [(-2_i64 as u64, "Below"), (300, "Above"), (301, "Next")]);
    assert_eq!(fields[3].scalar, Scalar::U64);
    assert_eq!(fields[3].labels, [(u64::MAX, "Top")]);
    assert_eq!(fields[4].scalar, Scalar::I32);
    assert_eq!(fields[4].labels, [(0, "the first"), (1, "Second")]);
}

#[test]
fn events_without_fields_are_empty() {
    #[derive(Event)]
    struct Unit;
    #[derive(Event)]
    struct Braces {}
    #[derive(Event)]
    struct AllSkipped {
        #[event(skip)]
        _secret: std::fs::File,
    }
    assert!(to_bytes(&Unit).is_empty());
    assert!(to_bytes(&Braces {}).is_empty());
    assert!(to_bytes(&AllSkipped { _secret: std::fs::File::open("/dev/null").unwrap() }).is_empty());
}

#[test]
fn a_reference_to_an_event_is_that_event() {
    let event = Text { text: "x", end: 1 };
    assert_eq!(to_bytes(&&event), to_bytes(&event));
    assert!(std::ptr::eq(<&Text>::class(), Text::class()));
}

#[derive(Event)]
struct Mixed<'a> {
    a: Option<u16>,
    text: &'a str,
    b: Option<u64>,
    c: Option<i8>,
    bytes: &'a [u8],
    numbers: &'a [u32],
    d: u64,
    large: [u16; 40],
    last: Option<f32>,
    tail: &'a str,
}

proptest! {
    /// All positions after an `Option` shift; whether it is present or not, the description says how to read
    /// it.
    #[test]
    fn mixed_events_read_as_they_were_written(
        a: Option<u16>, text: String, b: Option<u64>, c: Option<i8>, bytes: Vec<u8>, numbers: Vec<u32>, d: u64,
        large: [u16; 32], last: Option<f32>, tail: String,
    ) {
        let mut padded = [0_u16; 40];
        padded[..32].copy_from_slice(&large);
        let event = Mixed { a, text: &text, b, c, bytes: &bytes, numbers: &numbers, d, large: padded, last, tail: &tail };
        let cut = |text: &str| text.split('\0').next().unwrap_or("").as_bytes().to_vec();
        let expected = vec![
            a.map_or(vec![], |v| v.to_le_bytes().to_vec()),
            cut(&text),
            b.map_or(vec![], |v| v.to_le_bytes().to_vec()),
            c.map_or(vec![], |v| v.to_le_bytes().to_vec()),
            bytes.clone(),
            numbers.iter().flat_map(|v| v.to_le_bytes()).collect(),
            d.to_le_bytes().to_vec(),
            padded.iter().flat_map(|v| v.to_le_bytes()).collect(),
            last.map_or(vec![], |v| v.to_le_bytes().to_vec()),
            cut(&tail),
        ];
        prop_assert_eq!(read(Mixed::class().description(), &to_bytes(&event)), expected);
    }

    #[test]
    fn characters_are_padded_utf8(wide: char) {
        #[derive(Event)]
        struct Character {
            wide: char,
        }
        let mut expected = wide.to_string().into_bytes();
        expected.resize(4, 0);
        prop_assert_eq!(to_bytes(&Character { wide }), expected);
    }
}
