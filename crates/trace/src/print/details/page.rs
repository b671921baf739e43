//! Indented text, and numbers with separators between groups of digits. Control characters of a trace's texts
//! are escaped.

use crate::append::quote::shown;

#[derive(Debug, Default)]
pub(super) struct Page {
    out: String,
    indent: usize,
}

impl Page {
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    pub(super) fn text(&mut self, text: &str) {
        self.out.push_str(&shown(text));
    }

    /// The last part of a line.
    pub(super) fn end_line(&mut self, text: &str) {
        self.text(text);
        self.newline();
    }

    pub(super) fn newline(&mut self) {
        self.out.push('\n');
    }

    pub(super) fn begin_line(&mut self) {
        self.out.extend(std::iter::repeat_n(' ', self.indent));
    }

    pub(super) fn line(&mut self, text: &str) {
        self.begin_line();
        self.end_line(text);
    }

    /// What `write` writes is one level further in.
    pub(super) fn indented(&mut self, write: impl FnOnce(&mut Self)) {
        self.deeper();
        write(self);
        self.shallower();
    }

    pub(super) fn deeper(&mut self) {
        self.indent += 2;
    }

    pub(super) fn shallower(&mut self) {
        self.indent -= 2;
    }
}

/// A number in base 10; up to four digits are not grouped.
pub(super) fn decimal(number: i128) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let digits = number.unsigned_abs().to_string();
    if digits.len() <= 4 { format!("{sign}{digits}") } else { format!("{sign}{}", grouped(&digits, 3, ',')) }
}

/// A number in base 16; one in base 2 is shown so, too.
pub(super) fn hexadecimal(number: i128) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}0x{}", grouped(&format!("{:x}", number.unsigned_abs()), 4, ':'))
}

/// A number in base 8.
pub(super) fn octal(number: i128) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}0{}", grouped(&format!("{:o}", number.unsigned_abs()), 3, ':'))
}

fn grouped(digits: &str, size: usize, separator: char) -> String {
    let mut out = String::with_capacity(2 * digits.len());
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(size) {
            out.push(separator);
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_in_groups() {
        let numbers = [0, 9999, 10_000, -15_062, 1_000_000_000];
        assert_eq!(numbers.map(decimal), ["0", "9999", "10,000", "-15,062", "1,000,000,000"]);
        assert_eq!([0, 0xFFFF, 0x1_0000].map(hexadecimal), ["0x0", "0xffff", "0x1:0000"]);
        assert_eq!([7, 0o1234, -8].map(octal), ["07", "01:234", "-010"]);
    }
}
