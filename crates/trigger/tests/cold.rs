//! What runs behind a site gets its values and leaves those of the code around it alone; whoever unwinds the stack
//! finds the way out.

use std::backtrace::Backtrace;
use std::hint::black_box;
use std::sync::Mutex;
use tracewing_trigger::cold;

static TOLD: Mutex<Vec<u64>> = Mutex::new(Vec::new());

#[derive(Clone, Copy)]
#[repr(align(32))]
struct Aligned(u64);

/// Clobbers whatever a function may clobber.
#[inline(never)]
fn busy(told: &[u64]) {
    let mut sum = black_box(1.5_f64);
    for value in told {
        sum = sum.mul_add(*value as f64, 1.0);
    }
    black_box(format!("{sum} {told:?}"));
    TOLD.lock().unwrap().extend_from_slice(told);
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
            let told: Vec<u64> = vec![$($word),*];
            assert_eq!(std::mem::take(&mut *TOLD.lock().unwrap()), told);
        }};
    }
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
    let told = around(numbers, floats, || {
        cold(move || busy(&[byte.into(), half.into()]));
        cold(move || {
            assert_eq!(&raw const aligned as usize % 32, 0);
            busy(&[aligned.0, text.len() as u64]);
            drop(text);
        });
    });
    assert_eq!(told, expected);
    assert_eq!(std::mem::take(&mut *TOLD.lock().unwrap()), [7, 300, 9, 5]);
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
