//! The user's request, parsed: `PROGRAM:FUNCTION+OFF%return ARG…` and `PROGRAM:PROVIDER:NAME ARG…`.

use crate::probes::{ArgumentFault, Error, RequestFault, Syntax};

/// A probe at an instruction of a program or library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AtFunction {
    pub(crate) program: String,
    pub(crate) place: Place,
    /// Bytes from the function's beginning.
    pub(crate) offset: u64,
    pub(crate) at_return: bool,
    pub(crate) arguments: Vec<RequestedValue>,
}

/// Place of the probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Function(String),
    /// An address, as in the file's headers.
    Address(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Usdt {
    /// The program; if `None`, the program that the recording starts and its libraries.
    pub(crate) program: Option<String>,
    /// Patterns for provider and name.
    pub(crate) provider: String,
    pub(crate) name: String,
    /// The arguments to record; all of them if empty.
    pub(crate) arguments: Vec<RequestedValue>,
}

/// A value to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestedValue {
    /// The value as the user wrote it.
    pub(crate) text: String,
    /// Name of the field.
    pub(crate) name: String,
    pub(crate) source: Source,
    /// The kernel's name of its type; `None` for the type in the program.
    pub(crate) kind: Option<String>,
}

/// Location of the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A variable, or a member of its value or of what it points to.
    Variable { name: String, members: Vec<Member> },
    /// The function's return value.
    Return,
    /// An expression in the kernel's syntax: `%di`, `+8(%si)`, `$comm`, `@+16`.
    Kernel(String),
}

/// A step from a value to one of its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// `->`: the value is a pointer to the structure.
    pub(crate) through_pointer: bool,
}

impl AtFunction {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let wrong =
            |fault: fn(_) -> _| Error::Request { text: text.to_owned(), reason: fault(Syntax::Function) };
        let mut words = words(text).into_iter();
        let first = words.next().ok_or_else(|| wrong(RequestFault::Syntax))?;
        let (program, place) = first.split_once(':').ok_or_else(|| wrong(RequestFault::NoColon))?;
        let (place, at_return) = match place.strip_suffix("%return") {
            Some(place) => (place, true),
            None => (place, false),
        };
        // `operator+` ends with one.
        let plus = place.rfind('+').and_then(|at| Some((&place[..at], number(&place[at + 1..])?)));
        let (place, offset) = plus.unwrap_or((place, 0));
        if program.is_empty() || place.is_empty() {
            return Err(wrong(RequestFault::Syntax));
        }
        if at_return && offset != 0 {
            return Err(wrong(RequestFault::OffsetAndReturn));
        }
        let place = match place.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            Some(address) => Place::Address(address),
            None => Place::Function(place.to_owned()),
        };
        let arguments = arguments(text, words)?;
        Ok(Self { program: program.to_owned(), place, offset, at_return, arguments })
    }
}

impl Usdt {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Request { text: text.to_owned(), reason: RequestFault::Syntax(Syntax::Usdt) };
        let mut words = words(text).into_iter();
        let mut parts = words.next().ok_or_else(wrong)?.rsplitn(3, ':');
        let (name, provider, program) = (parts.next(), parts.next(), parts.next());
        let (Some(name), Some(provider)) = (name, provider) else { return Err(wrong()) };
        if name.is_empty() || provider.is_empty() || program == Some("") {
            return Err(wrong());
        }
        let arguments = arguments(text, words)?;
        let (provider, name) = (provider.to_owned(), name.to_owned());
        Ok(Self { program: program.map(str::to_owned), provider, name, arguments })
    }
}

fn arguments<'a>(request: &str, words: impl Iterator<Item = &'a str>) -> Result<Vec<RequestedValue>, Error> {
    let mut arguments: Vec<RequestedValue> = Vec::new();
    for word in words {
        let requested = RequestedValue::parse(request, word)?;
        if arguments.iter().any(|other| other.name == requested.name) {
            return Err(Error::Argument {
                probe: request.to_owned(),
                argument: word.to_owned(),
                reason: ArgumentFault::SecondName { name: requested.name, text: word.to_owned() }.into(),
            });
        }
        arguments.push(requested);
    }
    Ok(arguments)
}

impl RequestedValue {
    /// `[NAME=]SOURCE[:TYPE]`.
    fn parse(request: &str, text: &str) -> Result<Self, Error> {
        let wrong = |reason: ArgumentFault| Error::Argument {
            probe: request.to_owned(),
            argument: text.to_owned(),
            reason: reason.into(),
        };
        let (given, rest) = match text.split_once('=') {
            Some((name, rest)) => (Some(name), rest),
            None => (None, text),
        };
        let (source, kind) = match rest.rsplit_once(':') {
            Some((source, kind)) => (source, Some(kind.to_owned())),
            None => (rest, None),
        };
        let (name, source) = if source == "$retval" {
            ("retval", Source::Return)
        } else if source.starts_with(['%', '@', '$', '+', '-', '\\']) {
            let name = source.strip_prefix('$').or(given);
            (name.ok_or_else(|| wrong(ArgumentFault::NoName))?, Source::Kernel(source.to_owned()))
        } else {
            let (name, members) = chain(source).ok_or_else(|| wrong(ArgumentFault::NoVariable))?;
            let last = members.last().map_or(name, |member| member.name.as_str());
            let last = &source[source.len() - last.len()..];
            (last, Source::Variable { name: name.to_owned(), members })
        };
        let name = given.unwrap_or(name);
        if !is_identifier(name) {
            return Err(wrong(ArgumentFault::Name));
        }
        Ok(Self { text: text.to_owned(), name: name.to_owned(), source, kind })
    }
}

/// `a->b.c` as `a` and its members.
fn chain(text: &str) -> Option<(&str, Vec<Member>)> {
    let end = text.find(['.', '-']).unwrap_or(text.len());
    let (variable, mut rest) = text.split_at(end);
    let mut members = Vec::new();
    while !rest.is_empty() {
        let through_pointer = rest.starts_with("->");
        rest = rest.strip_prefix("->").or_else(|| rest.strip_prefix('.'))?;
        let end = rest.find(['.', '-']).unwrap_or(rest.len());
        members.push(Member { name: rest[..end].to_owned(), through_pointer });
        rest = &rest[end..];
    }
    let good = is_identifier(variable) && members.iter().all(|member| is_identifier(&member.name));
    good.then_some((variable, members))
}

pub(crate) fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Words between blanks; blanks within brackets are part of the word, as in `<A as B>::f` and `f(int, int)`.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut depth, mut begin) = (0_i32, None);
    let mut last = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            // Not the arrow before a member or a function's result.
            '>' if last == '-' => {}
            '>' | ')' | ']' => depth -= 1,
            _ => {}
        }
        match (c.is_whitespace() && depth <= 0, begin) {
            (true, Some(from)) => {
                words.push(&text[from..at]);
                begin = None;
            }
            (false, None) => begin = Some(at),
            _ => {}
        }
        last = c;
    }
    words.extend(begin.map(|from| &text[from..]));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(text: &str) -> AtFunction {
        AtFunction::parse(text).unwrap()
    }

    #[test]
    fn functions_offsets_and_returns() {
        let plain = probe("libc.so.6:malloc");
        assert_eq!((plain.program.as_str(), plain.offset, plain.at_return), ("libc.so.6", 0, false));
        assert_eq!(plain.place, Place::Function("malloc".to_owned()));
        assert_eq!(probe("p:f+0x10").offset, 16);
        assert_eq!(probe("p:f+16").offset, 16);
        assert_eq!(probe("p:operator+").place, Place::Function("operator+".to_owned()));
        assert!(probe("p:f%return").at_return);
        assert_eq!(probe("p:0x1f0").place, Place::Address(0x1f0));
        let rust = probe("shop:<shop::Queue as shop::Take<u8>>::take order");
        assert_eq!(rust.place, Place::Function("<shop::Queue as shop::Take<u8>>::take".to_owned()));
        assert_eq!(rust.arguments.len(), 1);
        for wrong in
            ["", "malloc", ":malloc", "p:", "p:f+4%return", "p:f a-b", "p:f %di", "p:f 1=%di", "p:f a b->a"]
        {
            assert!(AtFunction::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn arguments() {
        let names = |text: &str| {
            probe(text).arguments.into_iter().map(|requested| requested.name).collect::<Vec<_>>()
        };
        assert_eq!(
            names("p:f size a->b.c x=d.e $comm $retval q=+8(%si):string"),
            ["size", "c", "x", "comm", "retval", "q"]
        );
        let arguments = probe("p:f a->b.c:string q=+8(%si):x32").arguments;
        let members = [("b", true), ("c", false)]
            .map(|(name, through_pointer)| Member { name: name.to_owned(), through_pointer });
        assert_eq!(arguments[0].source, Source::Variable { name: "a".to_owned(), members: members.to_vec() });
        assert_eq!(arguments[0].kind.as_deref(), Some("string"));
        assert_eq!(arguments[1].source, Source::Kernel("+8(%si)".to_owned()));
        assert_eq!(arguments[1].kind.as_deref(), Some("x32"));
    }

    #[test]
    fn usdt() {
        let usdt = Usdt::parse("postgresql:query__* q=arg1:string").unwrap();
        assert_eq!(
            (usdt.program, usdt.provider.as_str(), usdt.name.as_str()),
            (None, "postgresql", "query__*")
        );
        assert_eq!(usdt.arguments[0].name, "q");
        assert_eq!(Usdt::parse("/lib/x:libc:setjmp").unwrap().program.as_deref(), Some("/lib/x"));
        assert!(Usdt::parse("setjmp").is_err() && Usdt::parse("libc:").is_err());
    }
}
