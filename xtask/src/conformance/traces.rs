//! Whole traces: read to their end, or refused; printed in detail where the reference's details are there.

use super::{Case, fits};
use anyhow::{Context, Result, bail, ensure};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use tracewing_trace::{Merge, Message, Recording, TimeRange, print_details};

/// The cases below `folder`/traces, by CTF version.
pub fn cases(folder: &Path) -> Result<Vec<Case>> {
    let expectations = Expectations::find(&folder.join("expect"))?;
    let mut cases = Vec::new();
    for version in super::folders(&folder.join("traces"))? {
        let number = super::file_name(&version);
        for outcome in ["succeed", "fail"] {
            for trace in super::folders(&version.join(outcome))? {
                let name = super::file_name(&trace);
                let expected = expectations.of(&name, &number);
                let twin = folder.join("traces/1").join(outcome).join(&name);
                cases.push(Case {
                    name: format!("traces/{number}/{outcome}/{name}"),
                    run: Box::new(move || match (outcome, &expected) {
                        ("fail", expected) => refused(&trace, expected.as_deref()),
                        (_, Some(expected)) => same_details(&trace, expected),
                        (_, None) => same_count(&trace, &twin),
                    }),
                });
            }
        }
    }
    Ok(cases)
}

/// The files with the reference's details, by name without ending.
struct Expectations(HashMap<String, PathBuf>);

impl Expectations {
    fn find(folder: &Path) -> Result<Self> {
        let mut files = HashMap::new();
        if folder.is_dir() {
            for entry in std::fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
                let path = entry.with_context(|| format!("{}", folder.display()))?.path();
                files.insert(path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), path);
            }
        }
        Ok(Expectations(files))
    }

    /// That of a trace: the one for its version and the later interface before others.
    fn of(&self, name: &str, version: &str) -> Option<PathBuf> {
        let endings =
            [format!("-ctf{version}-mip1"), format!("-ctf{version}"), "-mip1".to_owned(), String::new()];
        let names = endings.iter().map(|ending| format!("trace-{name}{ending}"));
        names.chain([name.to_owned()]).find_map(|name| self.0.get(&name).cloned())
    }
}

/// The details of a trace, and the error that ended them, if one did.
fn details(trace: &Path, compact: bool) -> (String, Result<(), tracewing_trace::Error>) {
    let mut out = Vec::new();
    let outcome =
        Recording::open(&[trace]).and_then(|recording| print_details(&recording, &mut out, compact));
    (String::from_utf8_lossy(&out).into_owned(), outcome)
}

fn same_details(trace: &Path, expect: &Path) -> Result<()> {
    let expected = std::fs::read_to_string(expect).with_context(|| format!("{}", expect.display()))?;
    // Some hold only the lines of one kind of message, out of a compact listing.
    let kind = |line: &str| line.split_once("} ").map_or(String::new(), |(_, kind)| kind.to_owned());
    let kinds: HashSet<String> = expected.lines().map(kind).collect();
    let some = |text: &str| -> String {
        text.lines().filter(|line| kinds.contains(&kind(line))).flat_map(|line| [line, "\n"]).collect()
    };
    let excerpt = !expected.contains("Trace class") && !expected.is_empty();
    let (text, outcome) = details(trace, excerpt);
    outcome?;
    if expected.is_empty() {
        return Ok(());
    }
    same_text(&if excerpt { some(&text) } else { text }, &expected)
}

/// Fails at the first line that differs.
fn same_text(text: &str, expected: &str) -> Result<()> {
    let (mut ours, mut theirs) = (text.lines(), expected.lines());
    for number in 1.. {
        match (ours.next(), theirs.next()) {
            (None, None) => break,
            (ours, theirs) if ours == theirs => {}
            (ours, theirs) => {
                let shown =
                    |line: Option<&str>| line.map_or("the end".to_owned(), |line| format!("`{line}`"));
                bail!("details differ in line {number}: expected {}, got {}", shown(theirs), shown(ours));
            }
        }
    }
    Ok(())
}

/// Without the reference's details, the number of events is to be that of babeltrace2, or of the same trace
/// of version 1.
fn same_count(trace: &Path, twin: &Path) -> Result<()> {
    let events = count(trace)?;
    let (text, outcome) = details(trace, true);
    outcome?;
    let printed = text.lines().filter(|line| line.contains("} Event")).count() as u64;
    ensure!(printed == events, "{events} events, but the details show {printed}");
    let expected = match babeltrace2_count(trace) {
        Some(count) => count,
        None if twin.is_dir() && twin != trace => count(twin).context("its twin of version 1")?,
        None => return Ok(()),
    };
    ensure!(events == expected, "{events} events, expected {expected}");
    Ok(())
}

fn count(trace: &Path) -> Result<u64> {
    let recording = Recording::open(&[trace])?;
    let mut merge = Merge::new(&recording, TimeRange::ALL);
    let mut events = 0;
    while let Some(message) = merge.advance()? {
        events += u64::from(matches!(message, Message::Event(_)));
    }
    Ok(events)
}

/// The events that babeltrace2 finds; `None` where it is not installed or does not read the trace.
fn babeltrace2_count(trace: &Path) -> Option<u64> {
    // Names and values may have line ends, so that lines are no count.
    let counter = ["--component=sink.utils.counter", "--params=step=+0"];
    let output = Command::new("babeltrace2").arg(trace).args(counter).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line =
        text.lines().find(|line| line.contains("Event message")).filter(|_| output.status.success())?;
    line.split_whitespace().next()?.replace(',', "").parse().ok()
}

/// Checks that such a trace is refused; its valid part may be read first.
fn refused(trace: &Path, expect: Option<&Path>) -> Result<()> {
    let (text, outcome) = details(trace, false);
    let Err(error) = outcome else { bail!("it is to be refused, but gives\n{text}") };
    let Some(expect) = expect else { return fits(&error.to_string(), "") };
    let expected = std::fs::read_to_string(expect).with_context(|| format!("{}", expect.display()))?;
    same_text(&text, &expected)
}
