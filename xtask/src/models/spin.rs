//! One run of Spin: generates the checker for a variant of a model, builds and runs it, and parses its
//! report.
//!
//! Spin writes a C program (`pan.c`) that searches the model's states. Its report is text; the lines read
//! here are stable since Spin 4. An error leaves a trail, which Spin replays with the model's `printf` lines:
//! the last of them, `violated: …`, names the property.

use super::catalogue::{Expected, Run};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Memory that one search may take, in MiB. One that needs more fails.
const MEMORY: u32 = 6_000;
/// Steps that a run of the model may have. A search that meets a longer one fails.
const DEPTH: u32 = 2_000_000;

/// A statement of a model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Statement {
    /// Line of the model's file.
    pub line: u32,
    /// The statement, as Spin prints it.
    pub text: String,
}

/// What a run gave.
#[derive(Debug, Default)]
pub struct Outcome {
    /// In what way it did not end as expected.
    pub failure: Option<String>,
    /// States visited.
    pub states: u64,
    /// Time of generating, building and searching.
    pub seconds: f64,
    /// What the model prints on the way to the error.
    pub interleaving: Vec<String>,
    /// Statements that no state reached.
    pub unreached: BTreeSet<Statement>,
    /// Lines of the model's file that are part of this variant.
    pub lines: BTreeSet<u32>,
}

/// Does `run`, with the models in `sources`, in a subfolder of `folder`.
pub fn run(run: &Run, sources: &Path, folder: &Path) -> Result<Outcome> {
    let begin = Instant::now();
    let file = format!("{}.pml", run.model);
    let folder = folder.join(format!("{} {}", run.model, run.name).replace([' ', ',', ':'], "-"));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for name in [&file, "common.h", "check.h"] {
        std::fs::copy(sources.join(name), folder.join(name))
            .with_context(|| format!("cannot copy {name}"))?;
    }
    let defines: Vec<String> = run.defines.iter().map(|define| format!("-D{define}")).collect();
    let generated = output(Command::new("spin").arg("-a").args(&defines).arg(&file).current_dir(&folder))?;
    if generated.contains("Error") || !folder.join("pan.c").is_file() {
        bail!("Spin does not take the model:\n{generated}");
    }
    let mut build = Command::new("gcc");
    build.args(["-w", "-DCOLLAPSE", &format!("-DMEMLIM={MEMORY}")]);
    // Optimising what Spin generates takes ten seconds, more than most searches.
    build.arg(if run.is_big { "-O2" } else { "-O0" });
    build.args(match run.expected {
        Expected::Proof | Expected::Fault(_) => &["-DSAFETY"][..],
        // Breadth first gives the shortest interleaving, the one to print.
        Expected::Race(_) => &["-DSAFETY", "-DBFS"],
        Expected::Ends | Expected::Endless => &["-DNP"],
    });
    let built = output(build.args(["-o", "pan", "pan.c"]).current_dir(&folder))?;
    if !folder.join("pan").is_file() {
        bail!("gcc does not take what Spin generated:\n{built}");
    }
    let mut search = Command::new(folder.join("pan"));
    search.arg(format!("-m{DEPTH}")).current_dir(&folder);
    if matches!(run.expected, Expected::Ends | Expected::Endless) {
        search.arg("-l");
    }
    let report = output(&mut search)?;
    let mut outcome = read(&report);
    if folder.join(format!("{file}.trail")).is_file() {
        let mut replay = Command::new("spin");
        replay.args(["-T", "-B", "-t"]).args(&defines).arg(&file).current_dir(&folder);
        outcome.interleaving = printed_lines(&output(&mut replay)?);
    }
    outcome.failure = failure(run.expected, &report, &outcome);
    outcome.lines = lines(&file, &defines, &folder)?;
    outcome.seconds = begin.elapsed().as_secs_f64();
    Ok(outcome)
}

/// Standard output and error of a command, whatever its status: the programs here say in words what happened.
fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_owned();
    let output =
        command.output().with_context(|| format!("cannot start {}", Path::new(&program).display()))?;
    Ok([output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat())
}

/// The numbers and the unreached statements in a checker's report.
fn read(report: &str) -> Outcome {
    let mut outcome = Outcome::default();
    for line in report.lines().map(str::trim) {
        if let Some((states, _)) = line.split_once(" states, stored") {
            outcome.states = states.parse().unwrap_or(0);
        }
        outcome.unreached.extend(unreached(line));
    }
    outcome
}

/// A line like `publish.pml:119, state 71, "consumed = 1"`. The ends of processes that never end, and the
/// statements that report a violated property, are meant to be unreached.
fn unreached(line: &str) -> Option<Statement> {
    let (place, statement) = line.split_once(", state ")?;
    let line = place.rsplit_once(':')?.1.parse().ok()?;
    let text = statement.split_once(", ")?.1.trim_matches('"').to_owned();
    let meant = ["-end-", "printf('violated: ", "assert(0)"].iter().any(|start| text.starts_with(start));
    (!meant).then_some(Statement { line, text })
}

/// The lines that the model itself printed in a replay.
fn printed_lines(replay: &str) -> Vec<String> {
    let spins = |line: &&str| line.starts_with("spin:") || line.starts_with("#processes") || line.is_empty();
    replay
        .lines()
        .map(str::trim_end)
        .take_while(|line| !line.starts_with("spin: trail ends"))
        .filter(|l| !spins(l))
        .map(str::to_owned)
        .collect()
}

/// In what way a run did not end as expected.
fn failure(expected: Expected, report: &str, outcome: &Outcome) -> Option<String> {
    let complaint = report.lines().find(|line| line.starts_with("pan:1: ") || line.contains("error:"));
    match expected {
        Expected::Proof | Expected::Ends => {
            // Each of these says that a part of the state space was left out.
            let partial = [
                "Search not completed",
                "max search depth too small",
                "out of memory",
                "truncated",
                "hash factor",
            ];
            let left_out = partial.iter().find(|words| report.contains(**words));
            if !report.contains("errors: 0") {
                return Some(complaint.unwrap_or("the checker ended without a result").to_owned());
            }
            left_out.map(|words| format!("not everything was searched: {words}"))
        }
        Expected::Endless => {
            (!report.contains("non-progress cycle")).then(|| "no cycle was found".to_owned())
        }
        Expected::Fault(property) | Expected::Race(property) => {
            if !report.contains("errors: 1") {
                return Some("the fault was not found".to_owned());
            }
            let violated = outcome.interleaving.iter().rev().find_map(|line| line.strip_prefix("violated: "));
            let found = violated.or(complaint).unwrap_or("an error without a name");
            (!found.contains(property)).then(|| format!("found by another property: {found}"))
        }
    }
}

/// The lines of `file` that the preprocessor leaves in this variant.
fn lines(file: &str, defines: &[String], folder: &Path) -> Result<BTreeSet<u32>> {
    let mut command = Command::new("gcc");
    command.args(["-E", "-x", "c"]).args(defines).arg(OsStr::new(file)).current_dir(folder);
    let (mut lines, mut number, mut inside) = (BTreeSet::new(), 0, false);
    for text in output(&mut command)?.lines() {
        if let Some(marker) = text.strip_prefix("# ") {
            let mut words = marker.split(' ');
            number = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            inside = words.next() == Some(&format!("\"{file}\""));
            continue;
        }
        if inside && !text.trim().is_empty() {
            lines.insert(number);
        }
        number += 1;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROOF: &str = "State-vector 88 byte, depth reached 3605, errors: 0\n  6217942 states, stored\n\
        unreached in proctype Writer\n\tpublish.pml:119, state 71, \"printf('violated: x\\n')\"\n\
        \tpublish.pml:121, state 72, \"consumed[c] = (q+1)\"\n\tpublish.pml:130, state 80, \"-end-\"\n\t(3 of 377 states)\n";

    #[test]
    fn a_report_is_read() {
        let outcome = read(PROOF);
        assert_eq!(outcome.states, 6_217_942);
        let text = "consumed[c] = (q+1)".to_owned();
        assert_eq!(outcome.unreached, BTreeSet::from([Statement { line: 121, text }]));
        assert_eq!(failure(Expected::Proof, PROOF, &outcome), None);
    }

    #[test]
    fn a_proof_must_be_complete() {
        let outcome = read(PROOF);
        for words in ["error: max search depth too small\n", "Warning: Search not completed\n"] {
            assert!(failure(Expected::Proof, &format!("{words}{PROOF}"), &outcome).is_some());
        }
        assert!(failure(Expected::Proof, "", &outcome).is_some());
        assert!(failure(Expected::Proof, "pan:1: invalid end state\nerrors: 1", &outcome).is_some());
    }

    #[test]
    fn a_fault_must_be_found_by_its_property() {
        let mut outcome = read("errors: 1");
        outcome.interleaving =
            printed_lines("a: does\nviolated: order is kept\nspin: trail ends\nviolated: not this");
        assert_eq!(failure(Expected::Fault("order is kept"), "errors: 1", &outcome), None);
        assert!(failure(Expected::Fault("another"), "errors: 1", &outcome).is_some());
        assert!(failure(Expected::Fault("order is kept"), "errors: 0", &outcome).is_some());
    }
}
