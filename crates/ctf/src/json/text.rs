//! JSON as text.

use std::fmt::Write;

use crate::model::Attribute;

/// Appends a value, indented by two blanks per level; short values without objects are written on one line.
pub(super) fn write_value(out: &mut String, value: &Attribute, depth: usize) {
    match value {
        Attribute::Null => out.push_str("null"),
        Attribute::Boolean(value) => {
            let _ = write!(out, "{value}");
        }
        Attribute::Integer(value) => {
            let _ = write!(out, "{value}");
        }
        Attribute::Unsigned(value) => {
            let _ = write!(out, "{value}");
        }
        // `Debug` keeps a point or an exponent, so that it is read as a real again.
        Attribute::Real(value) => {
            let _ = write!(out, "{value:?}");
        }
        Attribute::String(text) => quoted(out, text),
        Attribute::Array(elements) => {
            let flat = elements.iter().all(is_flat);
            let items = elements.iter().map(|element| (None, element));
            write_items(out, ['[', ']'], items, depth, flat);
        }
        Attribute::Map(entries) => {
            let items = entries.iter().map(|(name, value)| (Some(name.as_str()), value));
            write_items(out, ['{', '}'], items, depth, entries.is_empty());
        }
    }
}

fn write_items<'v>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl Iterator<Item = (Option<&'v str>, &'v Attribute)>,
    depth: usize,
    flat: bool,
) {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    out.push(open);
    for (index, (name, value)) in items.enumerate() {
        if index > 0 {
            out.push_str(if flat { ", " } else { "," });
        }
        if !flat {
            line(out, depth + 1);
        }
        if let Some(name) = name {
            quoted(out, name);
            out.push_str(": ");
        }
        write_value(out, value, depth + 1);
    }
    if !flat {
        line(out, depth);
    }
    out.push(close);
}

/// Whether a value fits in a line: no object, nor an array of them.
fn is_flat(value: &Attribute) -> bool {
    match value {
        Attribute::Map(_) => false,
        Attribute::Array(elements) => elements.iter().all(is_flat),
        _ => true,
    }
}

/// Appends a JSON string.
fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
