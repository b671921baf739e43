//! Prints whole traces as babeltrace2's text output does, so that the two can be compared.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tracewing_ctf::decode::{Compound, Decoder, Event, Step, StreamReader, Value, Visitor};
use tracewing_ctf::model::{DisplayBase, EnumerationClass, IntegerClass, Scope};
use tracewing_ctf::{Error, tsdl};

/// Asserts that every event of a trace is decoded as babeltrace2 does; skips, and is false, if babeltrace2 is
/// absent or cannot read it.
pub fn same_as_babeltrace(trace: &Path) -> bool {
    let run = Command::new("babeltrace2")
        .arg(trace)
        .args(["-c", "sink.text.pretty"])
        .args(["-p", "clock-cycles=yes,no-delta=yes,field-default=\"hide\",name-default=\"hide\",name-payload=yes,name-context=yes"])
        .output();
    let Ok(run) = run else {
        tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
        return false;
    };
    let (text, error) = print_trace(trace);
    assert!(
        error.is_none(),
        "{}: {}",
        trace.display(),
        error.map(|error| error.to_string()).unwrap_or_default()
    );
    if !run.status.success() {
        tracewing_testing::skip(
            tracewing_testing::Cause::Listed("reader's version"),
            format_args!("this babeltrace2 cannot read {}", trace.display()),
        );
        return false;
    }
    let expected = String::from_utf8_lossy(&run.stdout).into_owned();
    // Streams are merged by time there, and printed one after the other here.
    let (mut expected, mut got): (Vec<_>, Vec<_>) = (expected.lines().collect(), text.lines().collect());
    expected.sort_unstable();
    got.sort_unstable();
    for (expected, got) in expected.iter().zip(&got) {
        assert_eq!(got, expected, "{}", trace.display());
    }
    assert_eq!(got.len(), expected.len(), "{}", trace.display());
    true
}

/// The events of all streams of a trace up to the first error, a line each, and that error.
pub fn print_trace(trace: &Path) -> (String, Option<Error>) {
    let mut text = String::new();
    let result = print_into(trace, &mut text);
    (text, result.err())
}

fn print_into(trace: &Path, text: &mut String) -> Result<(), Error> {
    let class = tsdl::parse(&std::fs::read(trace.join("metadata")).unwrap())?;
    let printed = tsdl::print(&class);
    assert_eq!(tsdl::parse(printed.as_bytes()).expect(&printed), class, "{printed}");
    let decoder = Decoder::new(Arc::new(class))?;
    let mut streams: Vec<_> = std::fs::read_dir(trace).unwrap().map(|entry| entry.unwrap().path()).collect();
    streams.retain(|path| path.is_file() && !path.ends_with("metadata"));
    streams.sort();
    for stream in streams {
        let mut reader = StreamReader::new(decoder.clone(), std::fs::read(stream).unwrap());
        loop {
            match reader.advance()? {
                Step::Event => print_event(reader.event(), text),
                Step::End => break,
                Step::Packet | Step::PacketEnd => {}
            }
        }
    }
    Ok(())
}

fn print_event(event: Event<'_>, text: &mut String) {
    if let Some(cycles) = event.clock_value() {
        let _ = write!(text, "[{cycles:020}] ");
    }
    let _ = write!(text, "{}: ", event.class().name.as_deref().unwrap_or("<unknown>"));
    let mut any = false;
    for scope in [Scope::PacketContext, Scope::CommonContext, Scope::SpecificContext, Scope::Payload] {
        let mut line = Line { text: String::new(), around: vec![Around::Scope(scope)], index: vec![0] };
        event.visit(scope, &mut line);
        if event.has_scope(scope) && (scope != Scope::PacketContext || !line.text.is_empty()) {
            let _ = match line.text.as_str() {
                "" => write!(text, "{}{{ }}", if any { ", " } else { "" }),
                fields => write!(text, "{}{{ {fields} }}", if any { ", " } else { "" }),
            };
            any = true;
        }
    }
    text.push('\n');
}

/// The fields of a scope on one line.
struct Line {
    text: String,
    around: Vec<Around>,
    /// How many fields each compound around has had.
    index: Vec<usize>,
}

#[derive(PartialEq)]
enum Around {
    Scope(Scope),
    Structure,
    Array,
    Variant,
    /// Fields of packet contexts that babeltrace2 takes for itself.
    Hidden,
}

impl Line {
    fn lead(&mut self, name: Option<&str>) -> bool {
        let own = [
            "packet_size",
            "content_size",
            "timestamp_begin",
            "timestamp_end",
            "events_discarded",
            "packet_seq_num",
        ];
        if self.around.contains(&Around::Hidden) {
            return false;
        }
        let index = self.index.last_mut().unwrap();
        match self.around.last() {
            Some(Around::Scope(Scope::PacketContext)) if name.is_some_and(|name| own.contains(&name)) => {
                return false;
            }
            Some(Around::Variant) => return true,
            _ => {}
        }
        if *index > 0 {
            self.text.push_str(", ");
        }
        *index += 1;
        let index = *index - 1;
        match (self.around.last(), name) {
            (Some(Around::Array), _) => {
                let _ = write!(self.text, "[{index}] = ");
            }
            (_, Some(name)) => {
                let _ = write!(self.text, "{name} = ");
            }
            _ => {}
        }
        true
    }

    fn enumeration(&mut self, value: i128, class: &EnumerationClass) {
        let labels: Vec<_> = class.labels(value).map(quote).collect();
        let label = match labels.as_slice() {
            [] => "<unknown>".to_owned(),
            labels => labels.join(", "),
        };
        let _ = write!(self.text, "( {label} : container = {} )", integer(value, &class.integer));
    }
}

fn integer(value: i128, class: &IntegerClass) -> String {
    let bits = value as u128 & (u128::MAX >> (128 - class.size));
    match class.base {
        DisplayBase::Binary => format!("0b{bits:0width$b}", width = class.size as usize),
        DisplayBase::Octal => format!("0{:o}", bits & u128::from(u64::MAX)),
        DisplayBase::Decimal => value.to_string(),
        DisplayBase::Hexadecimal => format!("0x{bits:X}"),
    }
}

fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '"' | '\'' | '?' | '\\' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl Visitor for Line {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        if !self.lead(name) {
            return;
        }
        match value {
            Value::Unsigned(value, class) => self.text += &integer(value.into(), class),
            Value::Signed(value, class) => self.text += &integer(value.into(), class),
            Value::UnsignedEnumeration(value, class) => self.enumeration(value.into(), class),
            Value::SignedEnumeration(value, class) => self.enumeration(value.into(), class),
            Value::Float32(value) => self.text += &general(value.into()),
            Value::Float64(value) => self.text += &general(value),
            Value::Text(bytes) => self.text += &quote(&String::from_utf8_lossy(bytes)),
            other => panic!("CTF 1.8 has no {other:?}"),
        }
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        if !self.lead(name) {
            self.around.push(Around::Hidden);
            return;
        }
        let (around, open) = match compound {
            Compound::Structure(class) if class.members.is_empty() => (Around::Structure, "{"),
            Compound::Structure(_) => (Around::Structure, "{ "),
            Compound::Array { length: 0 } => (Around::Array, "["),
            Compound::Array { .. } => (Around::Array, "[ "),
            Compound::Variant { .. } => (Around::Variant, "{ "),
            Compound::Optional { .. } => panic!("CTF 1.8 has no optional"),
        };
        self.text.push_str(open);
        self.around.push(around);
        self.index.push(0);
    }

    fn end(&mut self, compound: Compound<'_>) {
        if self.around.pop() == Some(Around::Hidden) {
            return;
        }
        self.index.pop();
        self.text.push_str(if matches!(compound, Compound::Array { .. }) { " ]" } else { " }" });
    }
}

/// C's `%g`.
fn general(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned();
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        trim(&format!("{value:.*}", (5 - exponent) as usize))
    } else {
        format!("{}e{}{:02}", trim(digits), if exponent < 0 { '-' } else { '+' }, exponent.abs())
    }
}
