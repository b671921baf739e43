//! The field cases: a trace with one event, whose payload has one member, and that field printed.

use super::field_text::FieldText;
use super::{Case, fits};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::sync::Arc;
use tracewing_ctf::decode::{Decoder, Step, StreamReader};
use tracewing_ctf::metadata;
use tracewing_ctf::model::Scope;

/// The cases in `folder`; their names say whether they are to fail.
pub fn cases(folder: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for path in super::folders(folder)? {
        let name = super::file_name(&path);
        cases.push(Case {
            name: format!("fields/{name}"),
            run: Box::new(move || run(&path, name.contains("-fail-"))),
        });
    }
    Ok(cases)
}

fn run(case: &Path, fails: bool) -> Result<()> {
    let expect = case.join("expect");
    let expected = std::fs::read_to_string(&expect).with_context(|| format!("{}", expect.display()))?;
    match (root(&case.join("trace")), fails) {
        (Ok(text), false) if text == expected => Ok(()),
        (Ok(text), false) => bail!("expected\n{expected}but got\n{text}"),
        (Err(error), false) => Err(error),
        (Ok(text), true) => bail!("it is to be refused ({}), but gives\n{text}", expected.trim()),
        (Err(error), true) => fits(&error.to_string(), &expected),
    }
}

/// The field, printed; a later error counts.
fn root(trace: &Path) -> Result<String> {
    let class = metadata::parse(&std::fs::read(trace.join("metadata"))?)?;
    let mut reader = StreamReader::new(Decoder::new(Arc::new(class))?, std::fs::read(trace.join("data"))?);
    let mut text = None;
    loop {
        match reader.advance()? {
            Step::Event if text.is_none() => {
                let mut printer = FieldText::default();
                reader.event().visit(Scope::Payload, &mut printer);
                text = Some(printer.finish());
            }
            Step::End => return text.context("there is no event"),
            Step::Event | Step::Packet | Step::PacketEnd => {}
        }
    }
}
