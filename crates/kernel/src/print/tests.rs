//! Print formats as kernels have them, and near misses.

use super::*;
use proptest::prelude::*;

fn labels(print: &str, field: &str) -> Option<Vec<(i64, &'static str)>> {
    let leak = |l: &(i64, String)| (l.0, &*l.1.clone().leak());
    Hints::parse(print).labels(field).map(|labels| labels.iter().map(leak).collect())
}

#[test]
fn labels_are_read_from_print_symbolic() {
    let print = r#""vec=%u [action=%s]", REC->vec, __print_symbolic(REC->vec, { 0, "HI" }, { 1, "TIMER" })"#;
    assert_eq!(labels(print, "vec"), Some(vec![(0, "HI"), (1, "TIMER")]));
    let joined =
        r#""%s", __print_symbolic(REC->reason, { 0, "KVM_EXIT_" "UNKNOWN" }, { (1u << 3), "a, b" })"#;
    assert_eq!(labels(joined, "reason"), Some(vec![(0, "KVM_EXIT_UNKNOWN"), (8, "a, b")]));
    let nested = r#""%s", REC->x ? __print_symbolic((int)REC->x, {-1, "minus"}, {-1, "again"}) : "none""#;
    assert_eq!(labels(nested, "x"), Some(vec![(-1, "minus")]));
}

#[test]
fn labels_with_unknown_values_or_of_expressions_are_left_alone() {
    let unknown = r#""%s", __print_symbolic(REC->err, { 1, "one" }, { VMXERR_X, "X" })"#;
    assert_eq!(labels(unknown, "err"), None);
    let expression = r#""%s", __print_symbolic(REC->a & 7, { 1, "one" })"#;
    assert_eq!(labels(expression, "a"), None);
    assert_eq!(labels(r#""%s", __print_symbolic(REC->a"#, "a"), None);
}

#[test]
fn hexadecimal_is_taken_from_the_conversion_of_the_very_field() {
    let hints = Hints::parse(
        r#""a=%d b=0x%08lx 100%% c=%*pbl d=%s e=%ps", REC->a, ((unsigned long)(REC->b)), 3, __get_x(c), "%x", (void *)REC->e"#,
    );
    let hex: Vec<_> = ["a", "b", "c", "d", "e"].into_iter().filter(|f| hints.is_hex(f)).collect();
    assert_eq!(hex, ["b", "e"]);
}

#[test]
fn constants_are_computed_as_c_computes_them() {
    for (text, expected) in [
        ("7", Some(7)),
        ("0x10", Some(16)),
        ("010", Some(8)),
        ("1UL << 4 | 1", Some(17)),
        ("( int) (( __kernel_rwf_t)0x00000001)", Some(1)),
        ("((((1))) << (3))", Some(8)),
        ("-2", Some(-2)),
        ("~0xf & 0xff", Some(0xf0)),
        ("2 + 3 * 4 - 1", Some(13)),
        ("0xffffffffffffffffULL", None),
        ("FOO", None),
        ("1 << 64", None),
        ("", None),
        ("1 2", None),
    ] {
        assert_eq!(constant(text), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_harm(text in "\\PC{0,200}") {
        Hints::parse(&text);
    }

    #[test]
    fn any_near_miss_is_read_without_harm(parts in proptest::collection::vec(proptest::sample::select(vec![
        "__print_symbolic(", "REC->", "x", "{", "}", "(", ")", ",", "\"", "\\", "1", "<<", "-", "~", "%", "int", " ",
    ]), 0..60)) {
        let text: String = parts.concat();
        Hints::parse(&text);
        constant(&text);
    }
}
