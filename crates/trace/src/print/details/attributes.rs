//! User attributes.

use super::page::{Page, decimal};
use super::values::real;
use tracewing_ctf::model::{Attribute, Attributes};

/// User attributes, in the order of their names.
pub(super) fn attributes(page: &mut Page, attributes: &Attributes) {
    if attributes.is_empty() {
        return;
    }
    page.begin_line();
    page.text("User attributes:");
    entries(page, attributes.namespaces());
    page.newline();
}

pub(super) fn entries(page: &mut Page, entries: &[(String, Attribute)]) {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by(|left, right| left.0.cmp(&right.0));
    page.indented(|page| {
        for (name, value) in entries {
            page.newline();
            page.begin_line();
            page.text(&format!("{name}:"));
            attribute(page, value);
        }
    });
}

fn attribute(page: &mut Page, value: &Attribute) {
    let text = match value {
        Attribute::Null => "Null".to_owned(),
        Attribute::Boolean(truth) => if *truth { "Yes" } else { "No" }.to_owned(),
        Attribute::Integer(number) => decimal((*number).into()),
        Attribute::Unsigned(number) => decimal((*number).into()),
        Attribute::Real(number) => real(*number),
        Attribute::String(text) => text.clone(),
        Attribute::Map(map) if !map.is_empty() => return entries(page, map),
        Attribute::Array(items) if !items.is_empty() => {
            page.text(&format!(" Length {}:", decimal(items.len() as i128)));
            return page.indented(|page| {
                for (index, item) in items.iter().enumerate() {
                    page.newline();
                    page.begin_line();
                    page.text(&format!("[{}]:", decimal(index as i128)));
                    attribute(page, item);
                }
            });
        }
        Attribute::Array(_) | Attribute::Map(_) => "Empty".to_owned(),
    };
    page.text(&format!(" {text}"));
}
