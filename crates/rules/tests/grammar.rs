//! Which texts are predicates and which are not, and the messages for the latter.

use proptest::prelude::*;
use tracewing_rules::{Predicate, PredicateFault};

#[test]
fn what_is_wrong_is_said_and_shown() {
    for (text, expected) in [
        ("", "expected a field or a value\n  \n  ^"),
        ("depth > && x", "expected a field or a value\n  depth > && x\n          ^"),
        ("depth >", "expected a field or a value\n  depth >\n         ^"),
        ("depth = 3", "write `==` to compare\n  depth = 3\n        ^"),
        ("a | b", "write `||` for \"or\"\n  a | b\n    ^"),
        ("a and b", "write `&&` for \"and\"\n  a and b\n    ^"),
        ("a or b", "write `||` for \"or\"\n  a or b\n    ^"),
        ("a b", "expected `&&`, `||` or the end\n  a b\n    ^"),
        ("(a", "expected `)`\n  (a\n    ^"),
        ("a)", "this `)` closes nothing\n  a)\n   ^"),
        ("1 < a < 3", "comparisons cannot be chained: write `a < b && b < c`\n  1 < a < 3\n        ^"),
        ("!a == 3", "write `!(a == b)` to negate a comparison\n  !a == 3\n     ^"),
        ("(a && b) == 3", "only a field or a value can be compared\n  (a && b) == 3\n  ^"),
        ("a =~ b", "expected a pattern in quotes, as in \"shop-*\"\n  a =~ b\n       ^"),
        ("a & b", "expected the bits as an integer, as in `flags & 0x10`\n  a & b\n      ^"),
        ("a & -1", "the bits are a number that is not negative\n  a & -1\n      ^"),
        ("3 & 1", "`&` takes bits of a field, as in `(flags & 6) == 2`\n  3 & 1\n    ^"),
        ("a[x]", "expected the element's number, from 0 on\n  a[x]\n    ^"),
        ("a[-1]", "no field has so many elements\n  a[-1]\n    ^"),
        ("a[4294967296]", "no field has so many elements\n  a[4294967296]\n    ^"),
        ("len(a[0])", "an element has no length\n  len(a[0])\n          ^"),
        ("a. > 3", "expected a name\n  a. > 3\n     ^"),
        ("$ > 3", "expected a name\n  $ > 3\n    ^"),
        ("grüße == \"x", "this text has no end\n  grüße == \"x\n           ^"),
        (
            "a == 12x",
            "this is not a number; units are ns, us, ms, s, min and h, and for sizes B, K, M, G, KiB, MiB and GiB\n  \
             a == 12x\n       ^",
        ),
        ("a == #", "this character has no meaning here\n  a == #\n       ^"),
        ("a &&\nb ==", "expected a field or a value\n  b ==\n      ^"),
    ] {
        let error = Predicate::parse(text).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let far = format!("{} = 3", "x".repeat(500));
    let error = Predicate::parse(&far).unwrap_err();
    assert_eq!(error.position(), 501);
    assert!(error.to_string().lines().all(|line| line.len() < 130));
}

#[test]
fn size_and_depth_are_bounded() {
    let nested = |depth: usize| Predicate::parse(&format!("{}a{}", "(".repeat(depth), ")".repeat(depth)));
    assert!(nested(64).is_ok());
    assert_eq!(nested(65).unwrap_err().fault(), &PredicateFault::Depth);
    assert_eq!(Predicate::parse(&"!".repeat(4000)).unwrap_err().fault(), &PredicateFault::Depth);
    assert!(Predicate::parse(&"a".repeat(4096)).is_ok());
    assert_eq!(Predicate::parse(&"a".repeat(4097)).unwrap_err().fault(), &PredicateFault::Length(4096));
    assert!(Predicate::parse(&vec!["a"; 1000].join("||")).is_ok());
}

#[test]
fn a_field_may_have_the_name_of_a_function() {
    for text in
        ["len > 3", "len == len(len)", "$len", "_a.b_2.é[0x10]", "true", "a == true", "(((a)) & 3) == 2"]
    {
        Predicate::parse(text).unwrap_or_else(|error| panic!("{error}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_a_predicate_or_none(text in ".{0,60}") {
        check(&text);
    }

    #[test]
    fn any_words_are_a_predicate_or_none(words in proptest::collection::vec(word(), 0..24)) {
        check(&words.concat());
    }
}

fn word() -> impl Strategy<Value = String> {
    const WORDS: [&str; 36] = [
        "a", "len", "len(", "$", "tid", ".", "[", "]", "(", ")", "&&", "||", "!", "==", "!=", "<", "<=", ">",
        ">=", "=~", "!~", "&", "\"x\"", "'*'", "'", "\\", "1", "-", "0x", "1.5", "1e", "_", " ", "\n", "é",
        "true",
    ];
    proptest::sample::select(WORDS.map(str::to_owned).to_vec())
}

fn check(text: &str) {
    match Predicate::parse(text) {
        Ok(predicate) => assert_eq!(predicate.as_str(), text),
        Err(error) => {
            assert!(text.is_char_boundary(error.position()), "{error}");
            let shown = error.to_string();
            assert!(!shown.contains('\t') && shown.ends_with('^'), "{shown}");
        }
    }
}
