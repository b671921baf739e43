//! Whole traces: read to their end, or refused; printed in detail where the reference's details are there.

use super::Case;
use anyhow::{Context, Result, bail, ensure};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use tracewing_oracle::{Comparison, compare_events};
use tracewing_trace::{Listing, Merge, Message, Recording, TimeRange, print_details};

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
                let case = format!("traces/{number}/{outcome}/{name}");
                cases.push(Case {
                    name: case.clone(),
                    run: Box::new(move || match (outcome, &expected) {
                        ("fail", expected) => refused(&trace, &case, expected.as_deref()),
                        (_, Some(expected)) => same_details(&trace, expected),
                        (_, None) => same_events(&trace, &twin),
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

/// Without the reference's details, the events are to be those of babeltrace2, or of the same trace of
/// version 1; where neither can be read, as many as the details show.
fn same_events(trace: &Path, twin: &Path) -> Result<()> {
    let (text, outcome) = details(trace, true);
    outcome?;
    let printed = text.lines().filter(|line| line.contains("} Event")).count() as u64;
    let events = count(trace)?;
    ensure!(printed == events, "{events} events, but the details show {printed}");
    match compare_events(trace)? {
        Comparison::Same => Ok(()),
        Comparison::Different(difference) => bail!("events differ from babeltrace2's{difference}"),
        Comparison::NoReference if twin.is_dir() && twin != trace => {
            same_text(&listed(trace)?, &listed(twin).context("its twin of version 1")?)
        }
        Comparison::NoReference => Ok(()),
    }
}

/// The events, as text.
fn listed(trace: &Path) -> Result<String> {
    let mut out = (Vec::new(), Vec::new());
    Listing::default().print(&Recording::open(&[trace])?, &mut out)?;
    Ok(String::from_utf8_lossy(&out.0).into_owned())
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

/// Checks that such a trace is refused for the reason that is listed; its valid part may be read first.
fn refused(trace: &Path, case: &str, expect: Option<&Path>) -> Result<()> {
    let (text, outcome) = details(trace, false);
    let Err(error) = outcome else { bail!("it is to be refused, but gives\n{text}") };
    let error = error.to_string();
    match reason(case) {
        Some(reason) => ensure!(error.contains(reason), "refused, but not for `{reason}`: {error}"),
        None => bail!("why it is to be refused is not listed in refused.txt; it is for\n{error}"),
    }
    let Some(expect) = expect else { return Ok(()) };
    let expected = std::fs::read_to_string(expect).with_context(|| format!("{}", expect.display()))?;
    same_text(&text, &expected)
}

/// Where and why a case is to be refused.
fn reason(case: &str) -> Option<&'static str> {
    let lines = include_str!("refused.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(": ")).find(|(name, _)| *name == case).map(|(_, reason)| reason)
}
