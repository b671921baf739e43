//! An event's print form: text with `{field}` in it, as its author wrote it, in the syntax of Rust's
//! `format!`.
//!
//! Inside the braces: a field's name, then after a colon
//! `[[fill]<^>][+][#][0][width][.precision][x|X|o|b|e|?]`. Width and precision are numbers; `{{` and `}}`
//! stand for braces.

use crate::append::quote::shown;
use std::io::Write;

/// A print form, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PrintForm(pub(crate) Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text as it is.
    Literal(String),
    Field(String, Spec),
}

/// How a value is formatted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spec {
    fill: char,
    align: Option<Align>,
    plus: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    radix: Radix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Centre,
    Right,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Radix {
    Default,
    LowerHex,
    UpperHex,
    Octal,
    Binary,
    Exponent,
}

impl Spec {
    const PLAIN: Spec = Spec {
        fill: ' ',
        align: None,
        plus: false,
        alternate: false,
        zero: false,
        width: 0,
        precision: None,
        radix: Radix::Default,
    };

    /// Whether a number is to be shown in a base of its own.
    pub(crate) fn is_numeric(&self) -> bool {
        self.radix != Radix::Default
    }
}

/// What formatting must know of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scalar<'a> {
    /// An integer: its value, and its size in bits.
    Integer(i128, u32),
    /// A floating point number.
    Real(f64),
    /// Anything that has been made text already.
    Text(&'a str),
}

/// Widest field that is filled up, in characters; a trace cannot ask for more.
const MAX_WIDTH: usize = 1000;

impl PrintForm {
    /// Reads a print form; `None` where it is not in the syntax above.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            if brace == "}" {
                return None;
            }
            let (inside, after) = rest.split_once('}')?;
            rest = after;
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            let (name, spec) = inside.split_once(':').unwrap_or((inside, ""));
            let name = name.trim();
            if name.is_empty() || name.contains('{') {
                return None;
            }
            pieces.push(Piece::Field(name.to_owned(), parse_spec(spec.trim_end())?));
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Some(PrintForm(pieces))
    }
}

fn parse_spec(text: &str) -> Option<Spec> {
    let mut spec = Spec::PLAIN;
    let align = |char| match char {
        '<' => Some(Align::Left),
        '^' => Some(Align::Centre),
        '>' => Some(Align::Right),
        _ => None,
    };
    let mut rest = text;
    let mut chars = text.chars();
    let (first, second) = (chars.next(), chars.next());
    if let (Some(fill), Some(align)) = (first, second.and_then(align)) {
        (spec.fill, spec.align) = (fill, Some(align));
        rest = &rest[fill.len_utf8() + 1..];
    } else if let Some(align) = first.and_then(align) {
        spec.align = Some(align);
        rest = &rest[1..];
    }
    let flag = |rest: &mut &str, char: char| match rest.strip_prefix(char) {
        Some(after) => {
            *rest = after;
            true
        }
        None => false,
    };
    spec.plus = flag(&mut rest, '+');
    spec.alternate = flag(&mut rest, '#');
    spec.zero = flag(&mut rest, '0');
    let number = |rest: &mut &str| {
        let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        *rest = after;
        number.parse::<usize>().ok().filter(|number| *number <= MAX_WIDTH)
    };
    if rest.starts_with(|char: char| char.is_ascii_digit()) {
        spec.width = number(&mut rest)?;
    }
    if flag(&mut rest, '.') {
        spec.precision = Some(number(&mut rest)?);
    }
    spec.radix = match rest {
        "" | "?" => Radix::Default,
        "x" => Radix::LowerHex,
        "X" => Radix::UpperHex,
        "o" => Radix::Octal,
        "b" => Radix::Binary,
        "e" => Radix::Exponent,
        _ => return None,
    };
    Some(spec)
}

/// A value's sign, the prefix of its radix, and the rest, unpadded.
fn parts(spec: &Spec, scalar: Scalar<'_>) -> (&'static str, &'static str, String) {
    let mut sign = "";
    let mut prefix = "";
    let body = match scalar {
        Scalar::Integer(value, bits) => {
            let pattern = value as u128 & (u128::MAX >> (128 - bits.clamp(1, 128)));
            let (text, alternate) = match spec.radix {
                Radix::LowerHex => (format!("{pattern:x}"), "0x"),
                Radix::UpperHex => (format!("{pattern:X}"), "0x"),
                Radix::Octal => (format!("{pattern:o}"), "0o"),
                Radix::Binary => (format!("{pattern:b}"), "0b"),
                Radix::Default => (value.unsigned_abs().to_string(), ""),
                Radix::Exponent => (format!("{:e}", value.unsigned_abs()), ""),
            };
            if spec.alternate {
                prefix = alternate;
            }
            if alternate.is_empty() && value < 0 {
                sign = "-";
            } else if spec.plus {
                sign = "+";
            }
            text
        }
        Scalar::Real(value) => {
            if value.is_sign_negative() && !value.is_nan() {
                sign = "-";
            } else if spec.plus && !value.is_nan() {
                sign = "+";
            }
            match (spec.radix, spec.precision) {
                (Radix::Exponent, Some(precision)) => format!("{:.precision$e}", value.abs()),
                (Radix::Exponent, None) => format!("{:e}", value.abs()),
                (_, Some(precision)) => format!("{:.precision$}", value.abs()),
                (_, None) => value.abs().to_string(),
            }
        }
        Scalar::Text(text) => shown(text).chars().take(spec.precision.unwrap_or(usize::MAX)).collect(),
    };
    (sign, prefix, body)
}

pub(crate) fn format(out: &mut Vec<u8>, spec: &Spec, scalar: Scalar<'_>) {
    let (sign, prefix, body) = parts(spec, scalar);
    let numeric = !matches!(scalar, Scalar::Text(_));
    let length = sign.len() + prefix.len() + body.chars().count();
    let missing = spec.width.saturating_sub(length);
    let fill = |out: &mut Vec<u8>, char: char, count: usize| {
        for _ in 0..count {
            // Writing to memory cannot fail.
            let _ = write!(out, "{char}");
        }
    };
    if spec.zero && numeric {
        out.extend_from_slice(sign.as_bytes());
        out.extend_from_slice(prefix.as_bytes());
        fill(out, '0', missing);
        return out.extend_from_slice(body.as_bytes());
    }
    let before = match spec.align.unwrap_or(if numeric { Align::Right } else { Align::Left }) {
        Align::Left => 0,
        Align::Centre => missing / 2,
        Align::Right => missing,
    };
    fill(out, spec.fill, before);
    for part in [sign, prefix, &body] {
        out.extend_from_slice(part.as_bytes());
    }
    fill(out, spec.fill, missing - before);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(form: &str, scalar: Scalar<'_>) -> Option<String> {
        let mut out = Vec::new();
        for piece in PrintForm::parse(form)?.0 {
            match piece {
                Piece::Literal(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Field(_, spec) => format(&mut out, &spec, scalar),
            }
        }
        Some(String::from_utf8(out).unwrap())
    }

    /// The standard library is the oracle.
    #[test]
    fn integers_as_the_standard_library_has_them() {
        macro_rules! check {
            ($($form:literal),*) => {
                for v in [0_i32, 7, -1, i32::MAX, i32::MIN] {
                    $(assert_eq!(print($form, Scalar::Integer(i128::from(v), 32)), Some(format!($form, v = v)));)*
                }
            };
        }
        check!(
            "{v}", "{v:?}", "{v:#x}", "{v:x}", "{v:X}", "{v:#o}", "{v:#b}", "{v:>8}", "{v:<8}|", "{v:*^9}",
            "{v:08}"
        );
        check!("{v:+}", "{v:#010x}", "{v:12}", "{{{v}}}", "a{v}b{v:5}c", "{v:é<14}");
    }

    #[test]
    fn reals_and_text_as_the_standard_library_has_them() {
        macro_rules! check {
            ($values:expr, $wrap:expr, $($form:literal),*) => {
                for v in $values {
                    $(assert_eq!(print($form, $wrap(v)), Some(format!($form, v = v)));)*
                }
            };
        }
        check!(
            [0.0, 1.5, -2.25, 1e300, f64::INFINITY],
            Scalar::Real,
            "{v}",
            "{v:.2}",
            "{v:+.1}",
            "{v:e}",
            "{v:010.3}"
        );
        check!(["", "abc", "gr\u{fc}n"], Scalar::Text, "{v}", "{v:>5}", "{v:-^9}", "{v:.2}", "{v:6}|");
    }

    #[test]
    fn what_is_no_print_form_is_refused() {
        for form in ["{", "}", "{}", "{a", "a}", "{a:q}", "{a:99999}", "{a:.}", "{a{b}", "{:x}"] {
            assert_eq!(PrintForm::parse(form), None, "{form}");
        }
    }
}
