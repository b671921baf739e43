//! The code of a site gets its values and leaves those of the surrounding code alone; an unwinder finds the
//! way out.

use std::backtrace::Backtrace;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tracewing_trigger::{Callee, cold, cold_call, cold_call_at};

static CALLS: Mutex<Vec<u64>> = Mutex::new(Vec::new());
/// Held by the tests that check it.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[derive(Clone, Copy)]
#[repr(align(32))]
struct Aligned(u64);

/// Clobbers every register that a function may clobber.
#[inline(never)]
fn busy(words: &[u64]) {
    let mut sum = black_box(1.5_f64);
    for value in words {
        sum = sum.mul_add(*value as f64, 1.0);
    }
    black_box(format!("{sum} {words:?}"));
    CALLS.lock().unwrap().extend_from_slice(words);
}

/// Many values live across the call, in registers of both kinds.
#[inline(never)]
fn around(v: [u64; 10], x: [f64; 4], call: impl FnOnce()) -> (u64, f64) {
    let [a, b, c, d, e, f, g, h, i, j] = black_box(v);
    let [w, y, z, q] = black_box(x);
    call();
    (
        a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j,
        w + 2.0 * y + 3.0 * z + 4.0 * q,
    )
}

#[test]
fn values_arrive_and_others_stay() {
    let numbers = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3];
    let floats = [2.0, 7.0, 1.0, 8.0];
    let expected = around(numbers, floats, || {});
    macro_rules! check {
        ($($word:ident)*) => {{
            $(let $word = black_box(u64::from(stringify!($word).as_bytes()[0]));)*
            assert_eq!(around(numbers, floats, || cold(move || busy(&[$($word),*]))), expected);
            let words: Vec<u64> = vec![$($word),*];
            assert_eq!(std::mem::take(&mut *CALLS.lock().unwrap()), words);
        }};
    }
    let _alone = ONE_AT_A_TIME.lock();
    check!();
    check!(a);
    check!(a b);
    check!(a b c);
    check!(a b c d);
    check!(a b c d e);
    check!(a b c d e f);
    // In memory from here on.
    check!(a b c d e f g);
    check!(a b c d e f g h);

    let (byte, half, aligned, text) = (7_u8, 300_u16, Aligned(9), String::from("owned"));
    let result = around(numbers, floats, || {
        cold(move || busy(&[byte.into(), half.into()]));
        cold(move || {
            assert_eq!(&raw const aligned as usize % 32, 0);
            busy(&[aligned.0, text.len() as u64]);
            drop(text);
        });
    });
    assert_eq!(result, expected);
    assert_eq!(std::mem::take(&mut *CALLS.lock().unwrap()), [7, 300, 9, 5]);
}

static SITE: AtomicUsize = AtomicUsize::new(0);

/// Takes the address before its words.
struct Sited;

impl Callee for Sited {
    /// # Safety
    /// Called by `cold_call`.
    unsafe extern "C" fn call(_: *const (), words: *const u8) {
        // SAFETY: what `cold_call` promises.
        SITE.store(unsafe { words.cast::<usize>().sub(1).read() }, Relaxed);
    }
}

/// Consumes the number of words in its first argument.
struct Recorder;

impl Callee for Recorder {
    /// # Safety
    /// There are `count` words.
    unsafe extern "C" fn call(count: *const (), words: *const u8) {
        let place = 0_u128;
        assert_eq!(&raw const place as usize % 16, 0, "the stack is not aligned");
        // SAFETY: the tests pass that many words.
        busy(unsafe { std::slice::from_raw_parts(words.cast(), count as usize) });
    }
}

#[test]
fn a_function_gets_its_words_and_other_values_stay() {
    let numbers = [2, 7, 1, 8, 2, 8, 1, 8, 2, 8];
    let floats = [3.0, 1.0, 4.0, 1.0];
    let expected = around(numbers, floats, || {});
    macro_rules! check {
        ($($word:ident)*) => {{
            let expected_words: Vec<u64> = vec![$(u64::from(stringify!($word).as_bytes()[0])),*];
            $(let $word = black_box(u64::from(stringify!($word).as_bytes()[0]));)*
            let (words, count) = ([$(MaybeUninit::new($word)),*], expected_words.len() as *const ());
            // SAFETY: the count matches the words.
            assert_eq!(around(numbers, floats, || unsafe { cold_call::<Recorder, _>(count, words) }), expected);
            assert_eq!(std::mem::take(&mut *CALLS.lock().unwrap()), expected_words);
            // SAFETY: takes no words.
            unsafe { cold_call::<Sited, _>(std::ptr::null(), words) };
            let site = SITE.load(Relaxed);
            let calls = a_function_gets_its_words_and_other_values_stay as fn() as usize;
            assert!(cfg!(not(target_arch = "x86_64")) || site.wrapping_sub(calls) < 1 << 20, "{site:#x}");
            let pointer = words.as_ptr().cast();
            // SAFETY: likewise.
            assert_eq!(around(numbers, floats, || unsafe { cold_call_at::<Recorder>(count, pointer) }), expected);
            assert_eq!(std::mem::take(&mut *CALLS.lock().unwrap()), expected_words);
        }};
    }
    let _alone = ONE_AT_A_TIME.lock();
    check!();
    check!(a);
    check!(a b);
    check!(a b c);
    check!(a b c d);
    check!(a b c d e);
    check!(a b c d e f);
    // In memory from here on.
    check!(a b c d e f g);
}

/// Writes a back trace to the text that its argument points to.
struct Trace;

impl Callee for Trace {
    /// # Safety
    /// The first argument is the address of a text that nothing else uses.
    unsafe extern "C" fn call(text: *const (), _: *const u8) {
        // SAFETY: the test's text.
        unsafe { *text.cast::<String>().cast_mut() = Backtrace::force_capture().to_string() };
    }
}

#[inline(never)]
fn calls_a_function(text: &mut String, depth: u64) {
    let words = [MaybeUninit::new(depth), MaybeUninit::new(depth + 1)];
    // SAFETY: the text is borrowed until this returns.
    unsafe { cold_call::<Trace, 2>((&raw const *text).cast(), words) };
    black_box(depth);
}

#[inline(never)]
fn further_out(text: &mut String, depth: u64) {
    in_the_middle(text, black_box(depth));
    black_box(depth);
}

#[inline(never)]
fn in_the_middle(text: &mut String, depth: u64) {
    let place = &raw mut *text as usize;
    // SAFETY: the text is borrowed until this returns.
    cold(move || unsafe { *(place as *mut String) = format!("{depth} {}", Backtrace::force_capture()) });
    black_box(depth);
}

#[test]
fn the_stack_can_be_unwound() {
    let mut text = String::new();
    further_out(&mut text, 1);
    for function in ["in_the_middle", "further_out", "the_stack_can_be_unwound"] {
        assert!(text.contains(function), "{function} is missing in {text}");
    }
}

#[test]
fn the_stack_can_be_unwound_from_a_function() {
    let mut text = String::new();
    calls_a_function(&mut text, black_box(1));
    for function in ["calls_a_function", "the_stack_can_be_unwound_from_a_function"] {
        assert!(text.contains(function), "{function} is missing in {text}");
    }
}
