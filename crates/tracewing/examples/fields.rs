//! Emits events with fields of every type that an event can have.

use std::time::Duration;

use tracewing::{Event, EventField, emit};

/// How far an order has come.
#[derive(Clone, Copy, EventField)]
#[repr(i16)]
enum State {
    Waiting,
    Packed = 7,
    #[event(name = "in transit")]
    InTransit = -3,
}

/// Integers of all sizes, at both ends of their ranges.
#[derive(Event)]
#[event(provider = "fields")]
struct Integers {
    a: u8,
    b: i8,
    c: u16,
    d: i16,
    e: u32,
    f: i32,
    g: u64,
    h: i64,
    i: u128,
    j: i128,
    k: usize,
    l: isize,
}

/// The same number in all bases.
#[derive(Event)]
#[event(
    provider = "fields",
    level = "debug",
    print = "{decimal} is {hexadecimal:#x}, {octal:#o} and {binary:#b}"
)]
struct Bases {
    decimal: u32,
    #[event(hex)]
    hexadecimal: u32,
    #[event(octal)]
    octal: u32,
    #[event(binary)]
    binary: u8,
    #[event(hex)]
    negative: i16,
}

/// Everything that is one value and no integer.
#[derive(Event)]
#[event(
    provider = "fields",
    level = "warn",
    ordered,
    print = "{letter} after {took}: {small} and {large}, {yes}/{no}"
)]
struct Values {
    yes: bool,
    no: bool,
    small: f32,
    large: f64,
    letter: char,
    state: State,
    took: Duration,
    #[event(unit = "bytes")]
    size: u64,
}

/// Text and numbers of lengths that only the event knows.
#[derive(Event)]
#[event(provider = "fields", level = "error")]
struct Sequences<'a> {
    text: &'a str,
    owned: String,
    bytes: &'a [u8],
    numbers: &'a [u32],
    signed: Vec<i64>,
    reals: &'a [f64],
    array: [i16; 3],
    matrix: [f32; 2],
    none: Option<u32>,
    some: Option<u64>,
    real: Option<f64>,
    after: u8,
}

/// Names that mean something in the metadata language.
#[derive(Event)]
#[event(provider = "fields")]
struct Keywords {
    event: u32,
    stream: u8,
    #[event(name = "struct")]
    kind: u16,
    _private: u32,
}

/// No field at all.
#[derive(Event)]
#[event(provider = "fields", level = "trace")]
struct Nothing;

/// Emits them all.
pub fn main() {
    emit!(Integers {
        a: u8::MAX,
        b: i8::MIN,
        c: u16::MAX,
        d: i16::MIN,
        e: u32::MAX,
        f: i32::MIN,
        g: u64::MAX,
        h: i64::MIN,
        i: u128::MAX - 1,
        j: -2,
        k: usize::MAX,
        l: -1,
    });
    emit!(Bases { decimal: 200, hexadecimal: 200, octal: 200, binary: 200, negative: -2 });
    for state in [State::Waiting, State::Packed, State::InTransit] {
        emit!(Values {
            yes: true,
            no: false,
            small: 1.5,
            large: -1e300,
            letter: 'é',
            state,
            took: Duration::from_micros(1500),
            size: 4096,
        });
    }
    for len in 1..4 {
        emit!(Sequences {
            text: "naïve \"quoted\"\ttext",
            owned: "x".repeat(len * 20),
            bytes: &[0, 127, 255][..len],
            numbers: &[1, 2, u32::MAX][..len],
            signed: vec![-1; len],
            reals: &[0.5, f64::MIN_POSITIVE, 1e21][..len],
            array: [-1, 0, 1],
            matrix: [0.25, -0.0],
            none: None,
            some: (len > 1).then_some(u64::MAX),
            real: Some(2.5),
            after: 255,
        });
    }
    emit!(Keywords { event: 1, stream: 2, kind: 3, _private: 4 });
    emit!(Nothing);
}
