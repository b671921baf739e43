//! Reads from an event's print format what its fields mean: the labels of a number and whether it is shown in
//! hexadecimal.
//!
//! A print format is C source as text, `"fmt", arg, arg…`, that the kernel compiled
//! (`include/trace/stages/`); only two forms are looked for, everything else is passed over:
//!
//! - `__print_symbolic(REC->field, { value, "label" }, …)`: the field is an enumeration. Taken only when
//!   every value is a constant expression in digits; names of C enumerators that the kernel left unresolved
//!   cannot be known here.
//! - `%x` or `%p` whose argument is `REC->field`, perhaps cast: the field is hexadecimal.
//!
//! `__print_flags` is left alone: a combination of flags has no label, so an enumeration would not be
//! lossless.

/// Labels by value, in the kernel's order.
pub type Labels = Vec<(i64, String)>;

/// What a print format says of an event's fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints {
    labels: Vec<(String, Labels)>,
    hex: Vec<String>,
}

impl Hints {
    /// Reads a print format. What it cannot read gives no hint.
    pub fn parse(print: &str) -> Self {
        let mut hints = Self::default();
        let mut rest = print;
        while let Some(at) = rest.find("__print_symbolic(") {
            rest = &rest[at + "__print_symbolic(".len()..];
            if let Some((field, labels)) = symbolic(rest)
                && hints.labels(field).is_none()
            {
                hints.labels.push((field.to_owned(), labels));
            }
        }
        let mut parts = arguments(print);
        if let Some(format) = parts.next() {
            // Adjacent string literals are one; quotes do not disturb the search for conversions.
            let mut conversions = conversions(format);
            for argument in parts {
                let Some(conversion) = conversions.next() else { break };
                if let (b'x' | b'X' | b'p', Some(field)) = (conversion, field_of(argument)) {
                    hints.hex.push(field.to_owned());
                }
            }
        }
        hints
    }

    /// The labels of a field, if it is an enumeration.
    pub fn labels(&self, field: &str) -> Option<&Labels> {
        self.labels.iter().find(|(name, _)| name == field).map(|(_, labels)| labels)
    }

    /// Whether the kernel prints a field in hexadecimal.
    pub fn is_hex(&self, field: &str) -> bool {
        self.hex.iter().any(|name| name == field)
    }
}

/// `REC->field` inside any parentheses and casts.
fn field_of(expression: &str) -> Option<&str> {
    let mut rest = expression.trim();
    loop {
        if let Some(name) = rest.strip_prefix("REC->") {
            let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            return (plain && !name.is_empty()).then_some(name);
        }
        let close = closing(rest)?;
        let inner = rest[1..close].trim();
        let after = rest[close + 1..].trim();
        rest = if after.is_empty() {
            inner
        } else if is_type(inner) {
            after
        } else {
            return None;
        };
    }
}

/// Whether the text between two parentheses is a C type, which makes it a cast.
fn is_type(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b' ' | b'*'))
}

/// Where the parenthesis or brace that begins `text` is closed.
fn closing(text: &str) -> Option<usize> {
    if !text.starts_with(['(', '{']) {
        return None;
    }
    let mut depth = 0usize;
    for (at, byte) in outside_strings(text) {
        match byte {
            b'(' | b'{' => depth += 1,
            b')' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The bytes of `text` that do not lie in a string literal, with their positions.
fn outside_strings(text: &str) -> impl Iterator<Item = (usize, u8)> + '_ {
    let (mut inside, mut escaped) = (false, false);
    text.bytes().enumerate().filter(move |&(_, byte)| {
        let was = inside;
        match (inside, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => inside = !inside,
            _ => {}
        }
        !was && !inside
    })
}

/// Splits at the commas outside of strings, parentheses and braces; ends where a parenthesis is closed that
/// was not opened.
fn arguments(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut depth = 0usize;
        for (at, byte) in outside_strings(text) {
            match byte {
                b'(' | b'{' => depth += 1,
                b')' | b'}' if depth == 0 => {
                    rest = None;
                    return Some(&text[..at]);
                }
                b')' | b'}' => depth -= 1,
                b',' if depth == 0 => {
                    rest = Some(&text[at + 1..]);
                    return Some(&text[..at]);
                }
                _ => {}
            }
        }
        rest = None;
        Some(text)
    })
}

/// The conversion letters of a `printf` format, in the order of their arguments; a `*` takes one too.
fn conversions(format: &str) -> impl Iterator<Item = u8> + '_ {
    let mut bytes = format.bytes().peekable();
    let mut open = false;
    std::iter::from_fn(move || {
        loop {
            let byte = bytes.next()?;
            match (open, byte) {
                (false, b'%') => {
                    open = bytes.next_if_eq(&b'%').is_none();
                }
                (true, b'*') => return Some(byte),
                (true, b'0'..=b'9' | b'.' | b'-' | b'+' | b' ' | b'#' | b'l' | b'h' | b'z' | b'j' | b't') => {
                }
                (true, _) => {
                    open = false;
                    return Some(byte);
                }
                (false, _) => {}
            }
        }
    })
}

/// The field and the labels of a `__print_symbolic(` whose argument list `text` begins with.
fn symbolic(text: &str) -> Option<(&str, Labels)> {
    let mut arguments = arguments(text);
    let field = field_of(arguments.next()?)?;
    let mut labels: Labels = Vec::new();
    for pair in arguments {
        let pair = pair.trim();
        let inner = pair.get(1..closing(pair)?)?;
        let mut parts = self::arguments(inner);
        let value = constant(parts.next()?)?;
        let label = literals(parts.next()?)?;
        if labels.iter().all(|(known, _)| *known != value) {
            labels.push((value, label));
        }
    }
    (!labels.is_empty()).then_some((field, labels))
}

/// The text of adjacent string literals.
fn literals(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.trim().chars();
    let mut inside = false;
    while let Some(c) = chars.next() {
        match (inside, c) {
            (_, '"') => inside = !inside,
            (true, '\\') => out.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                c @ ('"' | '\\' | '\'') => c,
                _ => return None,
            }),
            (true, c) => out.push(c),
            (false, c) if c.is_whitespace() => {}
            (false, _) => return None,
        }
    }
    (!inside).then_some(out)
}

/// Value of a constant C expression of numbers, `~`, `-`, `<<`, `>>`, `|`, `&`, `^`, `+`, `*`, casts and
/// parentheses.
fn constant(text: &str) -> Option<i64> {
    let mut parser = Constant { text: text.trim(), depth: 0 };
    let value = parser.binary(0)?;
    parser.text.is_empty().then(|| i64::try_from(value).ok())?
}

struct Constant<'a> {
    text: &'a str,
    depth: usize,
}

/// Binary operators, loosest first, as C binds them.
const OPERATORS: [&[&str]; 6] = [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*"]];

impl Constant<'_> {
    fn take(&mut self, token: &str) -> bool {
        match self.text.strip_prefix(token) {
            Some(rest) => {
                self.text = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn binary(&mut self, level: usize) -> Option<i128> {
        let Some(operators) = OPERATORS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|o| self.take(o)) {
            let right = self.binary(level + 1)?;
            let shift = u32::try_from(right).ok().filter(|&s| s < 64);
            left = match *operator {
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "<<" => left.checked_mul(1 << shift?)?,
                ">>" => left >> shift?,
                "+" => left.checked_add(right)?,
                "-" => left.checked_sub(right)?,
                _ => left.checked_mul(right)?,
            };
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<i128> {
        // Hostile nesting must not exhaust the stack.
        if self.depth > 64 {
            return None;
        }
        self.depth += 1;
        let value = if self.take("-") {
            self.unary()?.checked_neg()
        } else if self.take("~") {
            Some(!self.unary()?)
        } else if self.text.starts_with('(') {
            let close = closing(self.text)?;
            let inner = self.text[1..close].trim();
            self.text = self.text[close + 1..].trim_start();
            if is_type(inner) {
                self.unary()
            } else {
                let mut parser = Constant { text: inner, depth: self.depth };
                let value = parser.binary(0)?;
                parser.text.is_empty().then_some(value)
            }
        } else {
            self.number()
        };
        self.depth -= 1;
        value
    }

    fn number(&mut self) -> Option<i128> {
        let end = self.text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.text.len());
        let (word, rest) = self.text.split_at(end);
        self.text = rest.trim_start();
        let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
        let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16),
            None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(&digits[1..], 8),
            None => digits.parse(),
        };
        value.ok().map(i128::from)
    }
}

#[cfg(test)]
mod tests;
