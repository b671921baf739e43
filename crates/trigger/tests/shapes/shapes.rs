//! Functions with a site, each next to the same function without: `NAME_with`, `NAME_light` and
//! `NAME_without`.

use std::hint::black_box;
use std::num::NonZeroU64;
use std::mem::MaybeUninit;
use tracewing_abi::schema::Class;
use tracewing_trigger::{Callee, Kind, Place, Site, cold, cold_call, is_on};

struct Here;

impl Place for Here {
    const SITE: &'static Site = &Site {
        class: &Class { line: line!(), ..Class::named("shapes:site") },
        owner: Site::no_owner,
        file: file!(),
        line: line!(),
        kind: Kind::Event,
    };
}

/// Whether there is a site, and what its code does: anything.
trait Sited {
    fn is_on() -> bool;
    fn record<const WORDS: usize>(words: [u64; WORDS]);
}

/// As in `fire!`.
struct With;
/// As in `emit!`.
struct Light;
struct Without;

impl Sited for With {
    #[inline(always)]
    fn is_on() -> bool {
        is_on::<Here>()
    }

    #[inline(always)]
    fn record<const WORDS: usize>(words: [u64; WORDS]) {
        cold(move || {
            black_box(words);
        });
    }
}

struct Recorded;

impl Callee for Recorded {
    /// # Safety
    /// No obligations.
    unsafe extern "C" fn call(first: *const (), second: *const u8) {
        black_box((first, second));
    }
}

impl Sited for Light {
    #[inline(always)]
    fn is_on() -> bool {
        is_on::<Here>()
    }

    #[inline(always)]
    fn record<const WORDS: usize>(words: [u64; WORDS]) {
        // SAFETY: the function only reads its arguments.
        unsafe { cold_call::<Recorded, WORDS>(std::ptr::null(), words.map(MaybeUninit::new)) }
    }
}

impl Sited for Without {
    #[inline(always)]
    fn is_on() -> bool {
        false
    }

    #[inline(always)]
    fn record<const WORDS: usize>(_: [u64; WORDS]) {}
}

macro_rules! site {
    ($S:ident, $($value:expr),+) => {
        if $S::is_on() {
            $S::record([$(Value::word($value)),+]);
        }
    };
}

/// A value that a site can report.
trait Value {
    fn word(self) -> u64;
}

macro_rules! values {
    ($($type:ty: $word:expr),+) => {
        $(impl Value for $type {
            #[inline(always)]
            fn word(self) -> u64 {
                $word(self)
            }
        })+
    };
}
values!(u64: u64::from, u32: u64::from, u8: u64::from, f64: f64::to_bits);

macro_rules! shapes {
    ($($name:ident, $with:ident, $light:ident, $without:ident: ($($argument:ident: $type:ty),*) -> $result:ty, |$S:ident| $body:block)+) => { $(
        #[inline(always)]
        fn $name<$S: Sited>($($argument: $type),*) -> $result $body

        #[unsafe(no_mangle)]
        #[inline(never)]
        pub fn $with($($argument: $type),*) -> $result {
            $name::<With>($($argument),*)
        }

        #[unsafe(no_mangle)]
        #[inline(never)]
        pub fn $light($($argument: $type),*) -> $result {
            $name::<Light>($($argument),*)
        }

        #[unsafe(no_mangle)]
        #[inline(never)]
        pub fn $without($($argument: $type),*) -> $result {
            $name::<Without>($($argument),*)
        }
    )+ };
}

#[inline(never)]
fn callee(value: u64) -> u64 {
    black_box(value)
}

#[inline(always)]
fn apply(times: NonZeroU64, mut each: impl FnMut(u64)) {
    let mut left = times.get();
    while {
        each(left);
        left -= 1;
        left != 0
    } {}
}

shapes! {
    leaf, leaf_with, leaf_light, leaf_without: (a: u64, b: u64) -> u64, |S| {
        site!(S, a, b);
        a.wrapping_mul(b) ^ 7
    }

    at_the_end, at_the_end_with, at_the_end_light, at_the_end_without: (a: u64, b: u64) -> u64, |S| {
        let result = a.wrapping_mul(b) ^ 7;
        site!(S, a, result);
        result
    }

    loop_body, loop_body_with, loop_body_light, loop_body_without: (first: u64, times: NonZeroU64) -> u64, |S| {
        let (mut value, mut left) = (first, times.get());
        loop {
            site!(S, value, left);
            value = callee(value.rotate_left(3) ^ left);
            left -= 1;
            if left == 0 {
                return value;
            }
        }
    }

    between_calls, between_calls_with, between_calls_light, between_calls_without: (a: u64, b: u64) -> u64, |S| {
        let first = callee(a);
        site!(S, b, first);
        first.wrapping_add(callee(b))
    }

    tail_call, tail_call_with, tail_call_light, tail_call_without: (a: u64) -> u64, |S| {
        site!(S, a);
        callee(a + 1)
    }

    closure, closure_with, closure_light, closure_without: (first: u64, times: NonZeroU64) -> u64, |S| {
        let mut value = first;
        apply(times, |index| {
            site!(S, value, index);
            value = callee(value ^ index);
        });
        value
    }

    branch, branch_with, branch_light, branch_without: (a: u64, b: u64) -> u64, |S| {
        if a < b {
            site!(S, a, b);
            callee(a).wrapping_mul(3)
        } else {
            callee(b) ^ 5
        }
    }

    two_sites, two_sites_with, two_sites_light, two_sites_without: (a: u64, b: u64) -> u64, |S| {
        site!(S, a);
        let c = a.wrapping_mul(b);
        site!(S, b, c);
        c ^ 7
    }

    floats, floats_with, floats_light, floats_without: (a: f64, b: f64, c: f64) -> f64, |S| {
        let product = a * b;
        site!(S, a, product);
        product / c + a
    }

    many_registers, many_registers_with, many_registers_light, many_registers_without:
        (a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> u64, |S| {
        let (first, second) = (a.wrapping_mul(b), c.wrapping_add(d));
        let (third, fourth) = (first.rotate_left(7), second.rotate_left(9));
        site!(S, first, second, third, fourth);
        (first ^ c).wrapping_mul(second ^ d).wrapping_mul(third ^ e).wrapping_mul(fourth ^ f)
    }

    // All values are needed on both sides.
    crossing, crossing_with, crossing_light, crossing_without: (a: u64, b: u64, c: u64, d: u64, e: u64) -> u64, |S| {
        let first = callee(a);
        site!(S, first, b, c, d, e);
        let second = callee(first ^ b);
        (second ^ c).wrapping_mul(second ^ d) ^ e
    }

    memory, memory_with, memory_light, memory_without: (a: u64, v: &mut u64, w: &mut u64) -> (), |S| {
        *v += a;
        site!(S, a);
        *w += a;
    }

    sum, sum_with, sum_light, sum_without: (values: &[u64]) -> u64, |S| {
        let mut sum = 0u64;
        for value in values {
            site!(S, *value);
            sum = sum.wrapping_add(*value);
        }
        sum
    }
}

/// A generic function, instantiated twice.
#[inline(always)]
fn generic<T: Into<u64> + Value + Copy, S: Sited>(value: T, times: u64) -> u64 {
    site!(S, value);
    value.into().wrapping_mul(times)
}

shapes! {
    generic_byte, generic_byte_with, generic_byte_light, generic_byte_without: (a: u8) -> u64, |S| { callee(generic::<u8, S>(a, 3)) }
    generic_word, generic_word_with, generic_word_light, generic_word_without: (a: u32) -> u64, |S| { callee(generic::<u32, S>(a, 3)) }
}
