//! Mistakes in declarations are refused with a message at the right place.

#[test]
fn messages_say_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/messages/*.rs");
}
