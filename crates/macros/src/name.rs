//! Rules for the names of events and fields, and default names.

use proc_macro2::Span;
use syn::{Error, Result};

/// Checks a part of an event's full name.
pub(crate) fn check_event_part(name: &str, span: Span, colon_allowed: bool) -> Result<()> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c) || (c == ':' && colon_allowed);
    if name.is_empty() {
        return Err(Error::new(span, "a name has at least one character"));
    }
    match name.chars().find(|c| !allowed(*c)) {
        None => Ok(()),
        Some(':') => {
            Err(Error::new(span, "a provider has no `:` in its name; the event's name goes into `name`"))
        }
        Some(other) => Err(Error::new(
            span,
            format!(
                "{other:?} in a name; names of events are made of ASCII letters, digits, `_`, `-` and `.`"
            ),
        )),
    }
}

/// Checks the name of a field.
pub(crate) fn check_field(name: &str, span: Span) -> Result<()> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins_well = name.starts_with(|c: char| !c.is_ascii_digit());
    if begins_well && name.chars().all(allowed) {
        return Ok(());
    }
    Err(Error::new(
        span,
        format!("`{name}` cannot name a field in a trace: ASCII letters, digits and `_`, no digit first"),
    ))
}

/// Checks text that the metadata shows in one line between quotation marks: units and labels.
pub(crate) fn check_text(text: &str, span: Span) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::new(span, "empty text"));
    }
    match text.chars().find(|c| c.is_control() || matches!(c, '"' | '\\')) {
        None => Ok(()),
        Some(other) => Err(Error::new(span, format!("{other:?} is not possible here"))),
    }
}

/// Converts `HttpRequest` and `HTTPRequest` to `http_request`.
pub(crate) fn snake_case(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, &c) in characters.iter().enumerate() {
        let previous = at.checked_sub(1).map(|before| characters[before]);
        let next_is_lower = characters.get(at + 1).is_some_and(|next| next.is_lowercase());
        let begins_word =
            c.is_uppercase() && previous.is_some_and(|p| p != '_' && (!p.is_uppercase() || next_is_lower));
        if begins_word {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::snake_case;

    #[test]
    fn words_of_type_names() {
        for (name, expected) in [
            ("Enqueued", "enqueued"),
            ("HttpRequest", "http_request"),
            ("HTTPRequest", "http_request"),
            ("Step2Done", "step2_done"),
            ("IoURing", "io_u_ring"),
            ("already_snake", "already_snake"),
            ("Odd_Name", "odd_name"),
            ("X", "x"),
        ] {
            assert_eq!(snake_case(name), expected);
        }
    }
}
