//! Print forms: `region {region:#x} attached`. This module parses them and checks what it can without knowing
//! the fields' types; readers of traces do the printing.

/// The requirements of a print form for one field.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub field: String,
    /// `x`, `X`, `o` or `b`: the field must be an integer.
    pub based: bool,
    /// A precision: the field must be a floating-point number or a text.
    pub precise: bool,
}

/// The fields that a print form shows.
///
/// # Errors
/// A message for the author of the form that says what is wrong.
pub(crate) fn parse(form: &str) -> Result<Vec<Use>, String> {
    let mut uses = Vec::new();
    let mut rest = form;
    while let Some(at) = rest.find(['{', '}']) {
        let (brace, after) = rest[at..].split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            rest = after;
            continue;
        }
        if brace == "}" {
            return Err("`}` without `{` in a print form; write `}}` for the brace itself".into());
        }
        let Some((inner, after)) = after.split_once('}') else {
            return Err("`{` without `}` in a print form; write `{{` for the brace itself".into());
        };
        uses.push(parse_use(inner)?);
        rest = after;
    }
    Ok(uses)
}

fn parse_use(inner: &str) -> Result<Use, String> {
    let (field, spec) = inner.split_once(':').unwrap_or((inner, ""));
    if field.is_empty() {
        return Err("`{}` in a print form needs the name of a field".into());
    }
    let unknown = || {
        format!(
            "`{spec}` is not a format that print forms know; they know `[<|^|>][#][0][width][.precision][x|X|o|b]`"
        )
    };
    let rest = spec.strip_prefix(['<', '^', '>']).unwrap_or(spec);
    let (alternate, rest) = rest.strip_prefix('#').map_or((false, rest), |rest| (true, rest));
    let (_, rest) = split_number(rest).ok_or_else(unknown)?;
    let (precise, rest) = match rest.strip_prefix('.') {
        Some(rest) => match split_number(rest).ok_or_else(unknown)? {
            (true, rest) => (true, rest),
            (false, _) => return Err(unknown()),
        },
        None => (false, rest),
    };
    let based = matches!(rest, "x" | "X" | "o" | "b");
    let sensible = if based { !precise } else { rest.is_empty() && !alternate };
    if !sensible {
        return Err(unknown());
    }
    Ok(Use { field: field.into(), based, precise })
}

/// Whether a number of at most three digits comes first, and the rest; `None` if it has more digits.
fn split_number(text: &str) -> Option<(bool, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (digits <= 3).then(|| (digits > 0, &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::{Use, parse};

    fn field(name: &str) -> Use {
        Use { field: name.into(), based: false, precise: false }
    }

    #[test]
    fn fields_are_found() {
        assert_eq!(parse("no fields, {{braces}}"), Ok(vec![]));
        assert_eq!(parse("{a}{b} {{{c}}}"), Ok(vec![field("a"), field("b"), field("c")]));
        assert_eq!(parse("{a:#018x}"), Ok(vec![Use { based: true, ..field("a") }]));
        assert_eq!(parse("{a:>8.3} {b:<5}"), Ok(vec![Use { precise: true, ..field("a") }, field("b")]));
    }

    #[test]
    fn mistakes_are_refused() {
        for form in ["{", "}", "{a", "a}", "{}", "{:x}", "{a:?}", "{a:+}", "{a:e}", "{a:.x}", "{a:1000}"] {
            assert!(parse(form).is_err(), "{form}");
        }
        for form in ["{a:#}", "{a:.2x}", "{a:*>3}", "{a:xx}", "{a:{w}}"] {
            assert!(parse(form).is_err(), "{form}");
        }
    }
}
