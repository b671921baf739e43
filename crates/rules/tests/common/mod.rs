//! Classes and events for the tests, as a program sends them.

use tracewing_abi::atomic::AtomicU64;
use tracewing_abi::message::{ClassesWriter, decode_classes};
use tracewing_abi::schema::{Class, ClassView, Field, Label, Level, Scalar, Shape};
use tracewing_rules::filter::{Context, evaluate};

/// A field without unit and labels.
pub fn field(name: &str, shape: Shape, scalar: Scalar) -> Field<'_> {
    Field::plain(name, shape, scalar)
}

/// An enumeration with these labels.
#[allow(dead_code, reason = "not all tests have one")]
pub fn labelled<'a>(name: &'a str, scalar: Scalar, labels: &'a [Label<'a>]) -> Field<'a> {
    Field { labels, ..field(name, Shape::Enumeration, scalar) }
}

/// A class with these fields.
pub fn class<'a>(fields: &'a [Field<'a>]) -> Class<'a> {
    Class {
        name: "shop:order",
        level: Level::Info,
        major: 5,
        description: "",
        print: "",
        file: "",
        line: 0,
        fields,
    }
}

/// Calls `check` with the class as the recorder sees it.
pub fn as_view<R>(class: &Class<'_>, check: impl FnOnce(&ClassView<'_>) -> R) -> R {
    let mut buffer = vec![0; 1 << 16];
    let mut writer = ClassesWriter::new(&mut buffer).unwrap();
    writer.push(class).unwrap();
    let message = writer.finish();
    let bytes = decode_classes(message).unwrap().next().unwrap().unwrap();
    check(&ClassView::decode(bytes).unwrap())
}

/// The words of a filter.
pub fn words(bytes: &[u8]) -> Vec<AtomicU64> {
    let (words, rest) = bytes.as_chunks::<8>();
    assert!(rest.is_empty());
    words.iter().map(|word| AtomicU64::new(u64::from_le_bytes(*word))).collect()
}

/// The filter's answer for a payload in one piece.
#[allow(dead_code, reason = "not all tests need it")]
pub fn accepts(filter: &[u8], payload: &[u8], context: &Context) -> bool {
    evaluate(&words(filter), std::iter::once(payload), context)
}
