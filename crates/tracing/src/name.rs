//! From the names of `tracing` to those of a trace: event classes are called `provider:event`, fields are
//! identifiers.
//!
//! | in `tracing` | in the trace |
//! |---|---|
//! | target `shop::orders` | provider `shop::orders` |
//! | event without a name of its own, in line 7 of `src/orders.rs` | event `orders.rs:7` |
//! | `name: "order placed"` | event `order_placed` |
//! | span `place` | events `place_new`, `place_enter` and so on ([`Occasion`](crate::site::Occasion)) |
//! | field `http.method` | field `http_method` |
//!
//! The originals are stored in the description of the class.

use std::borrow::Cow;
use tracewing_vocabulary::Field;
use tracing_core::Metadata;

/// Maximum length of each half of a class's name: both halves, with separator and suffix, are at most 255
/// bytes.
const LONGEST: usize = 120;

/// The name of the class of a call site's events; `suffix` selects one of a span's.
pub(crate) fn of_class(metadata: &Metadata<'_>, suffix: &str) -> String {
    let (target, event) = if is_of_log(metadata) {
        ("log", Cow::from(metadata.level().as_str().to_ascii_lowercase()))
    } else {
        (metadata.target(), of_event(metadata))
    };
    // A single colon ends the provider.
    let modules: Vec<_> = target.split("::").map(|part| replace(part, |c| matches!(c, '-' | '.'))).collect();
    let (provider, event) = (modules.join("::"), replace(&event, |c| matches!(c, '-' | '.' | ':')));
    format!("{}:{}{suffix}", tail(&provider), tail(&event))
}

/// Describes records of `log`, whichever way they come.
pub(crate) const RECORD_OF_LOG: &str = "record of the crate `log`";

/// Whether it is one of the five call sites through which the crate `tracing-log` forwards all records of
/// `log`.
pub(crate) fn is_of_log(metadata: &Metadata<'_>) -> bool {
    metadata.target() == "log" && metadata.fields().field("log.target").is_some()
}

/// The event's name: `tracing`'s `event src/orders.rs:7` without the folder.
fn of_event<'a>(metadata: &Metadata<'a>) -> Cow<'a, str> {
    let name = metadata.name();
    match (name.strip_prefix("event "), metadata.line()) {
        (Some(place), Some(line)) if place.ends_with(&format!(":{line}")) => {
            place.rsplit(['/', '\\']).next().unwrap_or(place).into()
        }
        _ => name.into(),
    }
}

/// The names of a call site's fields; none is in `taken` or occurs twice.
pub(crate) fn of_fields(metadata: &Metadata<'_>, taken: &[Field]) -> Vec<String> {
    let prefix = if is_of_log(metadata) { "log." } else { "" };
    let names = metadata.fields().iter().map(|field| field.name());
    to_differ(names.map(|name| name.strip_prefix(prefix).unwrap_or(name)), taken)
}

fn to_differ<'a>(names: impl IntoIterator<Item = &'a str>, taken: &[Field]) -> Vec<String> {
    let mut fields = Vec::<String>::new();
    for name in names {
        let name = name.strip_prefix("r#").unwrap_or(name);
        let mut field = replace(name, |_| false);
        if field.starts_with(|c: char| c.is_ascii_digit()) {
            field.insert(0, '_');
        }
        while taken.iter().any(|taken| taken.name == field) || fields.contains(&field) {
            field.push('_');
        }
        fields.push(field);
    }
    fields
}

/// Replaces every character that is not allowed, and an empty name, by `_`.
fn replace(name: &str, is_allowed: impl Fn(char) -> bool) -> String {
    if name.is_empty() {
        return "_".to_owned();
    }
    let replaced = name.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() || c == '_' || is_allowed(c) => c,
        _ => '_',
    });
    replaced.collect()
}

/// The end of a name that is too long: for a target, the innermost modules. All characters are of one byte; a
/// colon is never the first one.
fn tail(name: &str) -> &str {
    name[name.len().saturating_sub(LONGEST)..].trim_start_matches(':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_vocabulary::span::New;

    #[test]
    fn fields_become_identifiers_that_differ() {
        let names = ["http.method", "http-method", "r#type", "span", "2nd", "", "größe"];
        let fields = to_differ(names, New::FIELDS);
        assert_eq!(fields, ["http_method", "http_method_", "type", "span_", "_2nd", "_", "gr__e"]);
    }

    #[test]
    fn names_are_cut_from_the_left() {
        let long = replace(&"a".repeat(200), |_| false) + ".inner";
        assert!(tail(&long).len() == LONGEST && tail(&long).ends_with("a.inner"));
        assert_eq!((tail("short"), tail("::x")), ("short", "x"));
    }
}
