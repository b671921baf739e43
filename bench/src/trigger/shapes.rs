//! Functions of several shapes, each compiled without a site and with a disabled `emit!`. A second copy of
//! the former shows how precisely two times can be compared here.

use crate::copies::{ALIGNMENT, Code, Copies, PAGE};
use crate::orders::cpu_time;
use anyhow::{Context, Result, bail, ensure};
use std::hint::black_box;
use tracewing::{Event, emit};

/// How often each is measured in a round, in turn; the least figure counts.
const REPEATS: usize = 9;

/// Values that a function goes through in one call, where it goes through some.
const VALUES: u64 = 256;

/// What is at the place of the site.
trait Variant {
    fn pass(first: u64, second: u64);
}

struct Nothing;
impl Variant for Nothing {
    #[inline(always)]
    fn pass(_: u64, _: u64) {}
}

/// What would be recorded if it were ever enabled.
#[derive(Event)]
#[event(provider = "bench")]
struct Passed {
    first: u64,
    second: u64,
}

struct Off;
impl Variant for Off {
    #[inline(always)]
    fn pass(first: u64, second: u64) {
        emit!(Passed { first, second });
    }
}

/// Mixes a value: a few operations, each of which waits for the one before.
#[inline(always)]
fn mix(value: u64, by: u64) -> u64 {
    (value ^ by).rotate_left(23).wrapping_mul(0x9e37_79b9).wrapping_add(by)
}

/// No branch: what a small function does.
#[inline(always)]
fn straight<V: Variant>(a: u64, b: u64) -> u64 {
    let mixed = mix(mix(a, b), b >> 3);
    V::pass(mixed, b);
    mix(mix(mixed, b << 7), a)
}

/// A loop with some work, a site in each turn.
#[inline(always)]
fn tight<V: Variant>(a: u64, b: u64) -> u64 {
    let mut value = a;
    for index in 0..VALUES {
        value = mix(value, index ^ b);
        V::pass(value, index);
    }
    value
}

/// A loop over memory with a choice that depends on the data; `b` is the address of [`VALUES`] values.
#[inline(always)]
fn memory<V: Variant>(a: u64, b: u64) -> u64 {
    let (mut least, mut sum) = (u64::MAX, a);
    for index in 0..VALUES as usize {
        // SAFETY: the caller gives the address of that many values.
        let value = unsafe { (b as *const u64).add(index).read() };
        least = least.min(value);
        V::pass(least, value);
        sum = mix(mix(sum, value), least);
    }
    sum
}

/// Two calls with a site between them; `b` is a function's address.
#[inline(always)]
fn calls<V: Variant>(a: u64, b: u64) -> u64 {
    // SAFETY: the caller gives the address of such a function.
    let callee = unsafe { std::mem::transmute::<u64, extern "C" fn(u64) -> u64>(b) };
    let first = callee(a);
    V::pass(a, first);
    callee(first.wrapping_add(a))
}

/// A loop so small that the compiler vectorises it, as long as nothing else is in it.
#[inline(always)]
fn vectors<V: Variant>(a: u64, b: u64) -> u64 {
    let mut sum = a;
    for index in 0..VALUES as usize {
        // SAFETY: the caller gives the address of that many values.
        let value = unsafe { (b as *const u64).add(index).read() };
        V::pass(sum, value);
        sum = sum.wrapping_add(value);
    }
    sum
}

extern "C" fn callee(value: u64) -> u64 {
    mix(value, value >> 9)
}

/// A function and the bytes of its code, which are a section by themselves.
struct Compiled {
    function: Code,
    code: &'static [u8],
}

/// The variants of a shape, each in a section whose beginning and end the linker names.
macro_rules! compiled {
    ($shape:ident: $($variant:ident $section:literal $start:ident $stop:ident),+) => {
        [$({
            #[unsafe(link_section = $section)]
            #[inline(never)]
            extern "C" fn function(a: u64, b: u64) -> u64 {
                $shape::<$variant>(a, b)
            }
            unsafe extern "C" {
                static $start: u8;
                static $stop: u8;
            }
            // SAFETY: the linker sets both to begin and end of the section.
            let code = unsafe {
                let length = (&raw const $stop).offset_from_unsigned(&raw const $start);
                std::slice::from_raw_parts(&raw const $start, length)
            };
            // The compiler would drop a function that is only copied.
            Compiled { function: black_box(function), code }
        }),+]
    };
}

/// The shapes by name, and what they want as second argument.
#[rustfmt::skip]
fn compiled(shape: &str) -> Result<([Compiled; 2], Second)> {
    Ok(match shape {
        "straight" => (compiled!(straight:
            Nothing "bench_straight_nothing" __start_bench_straight_nothing __stop_bench_straight_nothing,
            Off "bench_straight_off" __start_bench_straight_off __stop_bench_straight_off
        ), Second::Counter),
        "tight" => (compiled!(tight:
            Nothing "bench_tight_nothing" __start_bench_tight_nothing __stop_bench_tight_nothing,
            Off "bench_tight_off" __start_bench_tight_off __stop_bench_tight_off
        ), Second::Counter),
        "memory" => (compiled!(memory:
            Nothing "bench_memory_nothing" __start_bench_memory_nothing __stop_bench_memory_nothing,
            Off "bench_memory_off" __start_bench_memory_off __stop_bench_memory_off
        ), Second::Values),
        "calls" => (compiled!(calls:
            Nothing "bench_calls_nothing" __start_bench_calls_nothing __stop_bench_calls_nothing,
            Off "bench_calls_off" __start_bench_calls_off __stop_bench_calls_off
        ), Second::Function),
        "vectors" => (compiled!(vectors:
            Nothing "bench_vectors_nothing" __start_bench_vectors_nothing __stop_bench_vectors_nothing,
            Off "bench_vectors_off" __start_bench_vectors_off __stop_bench_vectors_off
        ), Second::Values),
        other => bail!("unknown shape `{other}`"),
    })
}

/// What a shape takes as its second argument.
#[derive(Clone, Copy)]
enum Second {
    /// Any number.
    Counter,
    /// The address of values.
    Values,
    /// The address of a function.
    Function,
}

/// Measures all variants of a shape, copied to the same position in pages of their own; `rest` is
/// `NAME POSITION`.
pub fn run(count: u64, rest: &str) -> Result<String> {
    let (name, position) = rest.split_once(' ').context("which shape, and where?")?;
    let position: usize = position.parse().context("no position")?;
    ensure!(position.is_multiple_of(ALIGNMENT) && position < PAGE, "no position in a page");
    let (variants, second) = compiled(name)?;
    let [nothing, off] = variants;
    let mut copies = Copies::new()?;
    let functions = if cfg!(debug_assertions) {
        // Not optimised, they call helpers that are only where they are.
        [nothing.function, off.function, nothing.function]
    } else {
        // Nor shall one of them always be in the same page.
        let page = |index| (index + position / ALIGNMENT) % 3;
        // SAFETY: each is one whole function. Everything that it executes while its site is off lies within
        // it: it calls only through an address that it is given, and has no data.
        let mut place = |index, code| unsafe { copies.place(page(index), position, code) };
        [place(0, nothing.code)?, place(1, off.code)?, place(2, nothing.code)?]
    };
    let values: Vec<u64> = (0..VALUES).map(|index| mix(index, 77)).collect();
    let second = match second {
        Second::Counter => 3,
        Second::Values => values.as_ptr() as u64,
        Second::Function => callee as *const () as u64,
    };
    let expected = (nothing.function)(5, second);
    ensure!(functions.iter().all(|function| function(5, second) == expected), "a copy does something else");
    let mut least = [u64::MAX; 3];
    for repeat in 0..REPEATS {
        for turn in 0..functions.len() {
            let index = (repeat + turn) % functions.len();
            least[index] = least[index].min(time(functions[index], second, count));
        }
    }
    Ok(least.map(|ns| ns.to_string()).join(" "))
}

/// CPU time in nanoseconds of `count` calls, each of which depends on the previous one.
#[inline(never)]
fn time(function: Code, second: u64, count: u64) -> u64 {
    let mut value = 1;
    let begin = cpu_time();
    for _ in 0..count {
        value = black_box(function)(value, second);
    }
    let end = cpu_time();
    black_box(value);
    end - begin
}
