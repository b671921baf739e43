//! The babeltrace project's CTF 1.8 cases, where `../shared/ctf-conformance` has them.

mod common;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracewing_ctf::decode::{Compound, Decoder, Step, StreamReader, Value, Visitor};
use tracewing_ctf::model::{DisplayBase, IntegerClass, Scope};
use tracewing_ctf::{Error, tsdl};

fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/ctf-conformance").join(folder);
    let Ok(entries) = folder.canonicalize().and_then(std::fs::read_dir) else {
        eprintln!("skipped: there is no ../shared/ctf-conformance");
        return Vec::new();
    };
    let mut cases: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

/// Prints a field as the cases' `expect` files do, blanks apart.
#[derive(Default)]
struct Printer {
    out: String,
    /// What stands before each field in the compounds around.
    around: Vec<Lead>,
}

#[derive(Clone, Copy)]
enum Lead {
    Name,
    Dash,
    Nothing,
}

impl Printer {
    fn name(&mut self, name: Option<&str>) {
        match (self.around.last(), name) {
            (Some(Lead::Dash), _) => self.out.push_str(" -"),
            (Some(Lead::Name), Some(name)) => {
                let _ = write!(self.out, " {name}:");
            }
            _ => {}
        }
    }
}

fn integer(value: i128, class: &IntegerClass) -> String {
    match class.base {
        DisplayBase::Binary => format!(" 0b{value:b}"),
        DisplayBase::Octal => format!(" 0o{value:o}"),
        DisplayBase::Decimal => format!(" {value}"),
        DisplayBase::Hexadecimal => format!(" 0x{value:x}"),
    }
}

impl Visitor for Printer {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        self.name(name);
        self.out += &match value {
            Value::Unsigned(value, class) => integer(value.into(), class),
            Value::Signed(value, class) => integer(value.into(), class),
            Value::UnsignedEnumeration(value, class) => integer(value.into(), &class.integer),
            Value::SignedEnumeration(value, class) => integer(value.into(), &class.integer),
            Value::Float32(value) => format!(" {value:.6}"),
            Value::Float64(value) => format!(" {value:.6}"),
            Value::Text(bytes) => format!(" \"{}\"", String::from_utf8_lossy(bytes)),
            other => panic!("CTF 1.8 has no {other:?}"),
        };
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        self.name(name);
        let (empty, lead) = match compound {
            Compound::Structure(class) => (class.members.is_empty(), Lead::Name),
            Compound::Array { length } => (length == 0, Lead::Dash),
            Compound::Variant { .. } => (false, Lead::Nothing),
            Compound::Optional { .. } => panic!("CTF 1.8 has no optional"),
        };
        if empty {
            self.out.push_str(" ∅");
        }
        self.around.push(lead);
    }

    fn end(&mut self, _: Compound<'_>) {
        self.around.pop();
    }
}

/// The first event's payload, or the first error.
fn root(trace: &Path) -> Result<String, Error> {
    let class = tsdl::parse(&std::fs::read(trace.join("metadata")).unwrap())?;
    let printed = tsdl::print(&class);
    assert_eq!(tsdl::parse(printed.as_bytes()).expect(&printed), class, "{printed}");
    let mut reader =
        StreamReader::new(Decoder::new(Arc::new(class))?, std::fs::read(trace.join("data")).unwrap());
    let mut text = None;
    loop {
        match reader.advance()? {
            Step::Event => {
                let mut printer = Printer::default();
                reader.event().visit(Scope::Payload, &mut printer);
                text.get_or_insert(printer.out);
            }
            Step::End => return Ok(text.unwrap_or_default()),
            Step::Packet | Step::PacketEnd => {}
        }
    }
}

#[test]
fn fields() {
    let mut failures = String::new();
    for case in cases("fields") {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("ctf-1") {
            continue;
        }
        let expected = std::fs::read_to_string(case.join("expect")).unwrap();
        let result = root(&case.join("trace"));
        let same = |text: &str| text.split_whitespace().eq(expected.split_whitespace());
        match result {
            Ok(text) if name.contains("-pass-") && same(&text) => {}
            Err(_) if name.contains("-fail-") => {}
            other => {
                let _ = writeln!(failures, "{name}\n--- expected\n{expected}\n--- got\n{other:?}");
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Folders below `folder` with a metadata file.
fn traces(folder: &Path, found: &mut Vec<PathBuf>) {
    if folder.join("metadata").is_file() {
        found.push(folder.to_owned());
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            traces(&entry.path(), found);
        }
    }
}

#[test]
fn good_traces() {
    let mut found = Vec::new();
    cases("traces/1/succeed").iter().for_each(|case| traces(case, &mut found));
    for trace in found {
        common::same_as_babeltrace(&trace);
    }
}

#[test]
fn bad_traces() {
    let mut found = Vec::new();
    cases("traces/1/fail").iter().for_each(|case| traces(case, &mut found));
    for trace in found {
        let (text, error) = common::print_trace(&trace);
        assert!(error.is_some(), "{} printed\n{text}", trace.display());
    }
}
