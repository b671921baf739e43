//! Fields with their values.

use super::page::{Page, decimal, hexadecimal, octal};
use tracewing_ctf::decode::{Compound, Value, Visitor};
use tracewing_ctf::model::{DisplayBase, IntegerClass};

/// Writes the fields that it is shown, each on a line of its own, which it begins.
pub(super) struct Values<'p> {
    page: &'p mut Page,
    /// By compound around the next field: the next element's index; `None` where there are names.
    around: Vec<Option<u64>>,
    /// Whether the next field's line has begun: it is in an optional or a variant.
    begun: bool,
}

impl<'p> Values<'p> {
    pub(super) fn new(page: &'p mut Page) -> Self {
        Values { page, around: vec![None], begun: false }
    }

    fn begin_line(&mut self, name: Option<&str>) {
        if std::mem::take(&mut self.begun) {
            return;
        }
        self.page.newline();
        self.page.begin_line();
        match self.around.last_mut() {
            Some(Some(index)) => {
                self.page.text(&format!("[{}]:", decimal((*index).into())));
                *index += 1;
            }
            _ => self.page.text(&format!("{}:", name.unwrap_or_default())),
        }
    }
}

impl Visitor for Values<'_> {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        let roles = match &value {
            Value::Unsigned(_, class) => class.roles,
            Value::UnsignedEnumeration(_, class) => class.integer.roles,
            _ => Default::default(),
        };
        if !roles.is_empty() {
            return;
        }
        self.begin_line(name);
        self.page.text(" ");
        let text = match value {
            Value::Unsigned(number, class) => integer(number.into(), class),
            Value::Signed(number, class) => integer(number.into(), class),
            Value::UnsignedEnumeration(number, class) => integer(number.into(), &class.integer),
            Value::SignedEnumeration(number, class) => integer(number.into(), &class.integer),
            Value::BitArray(bits, _) | Value::BitMap(bits, _) => hexadecimal(bits.into()),
            Value::Boolean(truth) => if truth { "Yes" } else { "No" }.to_owned(),
            Value::Float32(_) | Value::Float64(_) | Value::Float128(_) => {
                real(value.real().unwrap_or(f64::NAN))
            }
            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Value::WideText(text) => text.to_string(),
            Value::Blob([]) => "Empty".to_owned(),
            Value::Blob(bytes) => {
                let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                digits.join(" ")
            }
        };
        self.page.text(&text);
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        self.begin_line(name);
        let index = match compound {
            Compound::Structure(class) => {
                if class.members.is_empty() {
                    self.page.text(" Empty");
                }
                None
            }
            Compound::Array { length: 0 } => {
                self.page.text(" Empty");
                Some(0)
            }
            Compound::Array { length } => {
                self.page.text(&format!(" Length {}:", decimal(length.into())));
                Some(0)
            }
            Compound::Optional { present: false } => return self.page.text(" None"),
            Compound::Optional { present: true } | Compound::Variant { .. } => {
                self.begun = true;
                return;
            }
        };
        self.around.push(index);
        self.page.deeper();
    }

    fn end(&mut self, compound: Compound<'_>) {
        if matches!(compound, Compound::Structure(_) | Compound::Array { .. }) {
            self.around.pop();
            self.page.shallower();
        }
    }
}

fn integer(number: i128, class: &IntegerClass) -> String {
    match class.base {
        DisplayBase::Decimal => decimal(number),
        DisplayBase::Octal => octal(number),
        DisplayBase::Binary | DisplayBase::Hexadecimal => hexadecimal(number),
    }
}

/// As C's `%f`.
pub(super) fn real(number: f64) -> String {
    match number {
        number if number.is_nan() => if number.is_sign_negative() { "-nan" } else { "nan" }.to_owned(),
        number => format!("{number:.6}"),
    }
}
