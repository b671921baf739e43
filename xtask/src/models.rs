//! `cargo xtask models`: proofs about the ring that examine every interleaving, and the seeded faults that
//! they must find.
//!
//! `catalogue.rs` lists the runs, `spin.rs` does one of them with Spin; `loom.rs` runs the ring's own code
//! under loom. What the models show, and what not, is described in docs/explanation/models.md and at the head
//! of each model.
//!
//! A run only succeeds if it ends as the catalogue says: a proof without error and with its whole state space
//! searched, a seeded fault with the property that the catalogue names. And every statement of a model must
//! be reached in at least one of its proofs.

mod catalogue;
mod loom;
mod spin;

use crate::packages;
use anyhow::{Result, bail};
use catalogue::{Expected, RUNS, Run};
use clap::Args;
use spin::{Outcome, Statement};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// What `cargo xtask models` accepts.
#[derive(Args)]
pub struct Options {
    /// Only what takes a second or two each, as `cargo xtask test` does
    #[arg(long)]
    quick: bool,
    /// Only the runs whose model or variant contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
}

/// The quick form, a step of `cargo xtask test`.
pub fn quick() -> Result<()> {
    run(&Options { quick: true, filter: None })
}

/// Runs all that was asked for; fails if one run ended otherwise than the catalogue says.
pub fn run(options: &Options) -> Result<()> {
    packages::ensure(packages::FOR_MODELS)?;
    let is_chosen = |run: &&Run| {
        (run.quick || !options.quick)
            && options.filter.as_ref().is_none_or(|text| run.model.contains(text) || run.name.contains(text))
    };
    let runs: Vec<&Run> = RUNS.iter().filter(is_chosen).collect();
    let begin = Instant::now();
    println!("{:10} {:44} {:>12} {:>8}  outcome", "model", "variant", "states", "seconds");
    let outcomes = in_parallel(&runs)?;
    let mut failures = outcomes.iter().filter(|(_, outcome)| outcome.failure.is_some()).count();
    let unreached = never_reached(&outcomes);
    for (model, statement) in &unreached {
        println!("{model}.pml:{}: reached in no proof: {}", statement.line, statement.text);
    }
    failures += unreached.len();
    let states: u64 = outcomes.iter().map(|(_, outcome)| outcome.states).sum();
    println!("{} runs, {states} states, {:.0} s", runs.len(), begin.elapsed().as_secs_f64());
    let loom = if options.filter.is_none() { loom::run(options.quick) } else { Ok(()) };
    if failures > 0 {
        bail!("{failures} of the models' results are not as expected");
    }
    loom
}

/// Does the runs, as many at once as there are processors, up to two: some take a gigabyte or two.
fn in_parallel<'a>(runs: &[&'a Run]) -> Result<Vec<(&'a Run, Outcome)>> {
    let folder = crate::steps::target_folder()?.join("models");
    let sources = crate::root()?.join("models/spin");
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get().min(2));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(run) = runs.get(next.fetch_add(1, Relaxed)) {
                    let outcome = spin::run(run, &sources, &folder).unwrap_or_else(|error| Outcome {
                        failure: Some(format!("{error:#}")),
                        ..Outcome::default()
                    });
                    print!("{}", line(run, &outcome));
                    outcomes.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((*run, outcome));
                }
            });
        }
    });
    Ok(outcomes.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// A line of the table, and the interleaving where the catalogue wants it shown.
fn line(run: &Run, outcome: &Outcome) -> String {
    let result = match (&outcome.failure, run.expected) {
        (Some(failure), _) => format!("NOT AS EXPECTED: {failure}"),
        (None, Expected::Proof | Expected::Ends) => "proved".to_owned(),
        (None, Expected::Endless) => "found: a run that does not end".to_owned(),
        (None, Expected::Fault(property) | Expected::Race(property)) => format!("found: {property}"),
    };
    let mut text = format!(
        "{:10} {:44} {:>12} {:>8.1}  {result}\n",
        run.model, run.name, outcome.states, outcome.seconds
    );
    if matches!(run.expected, Expected::Race(_)) || outcome.failure.is_some() {
        for step in &outcome.interleaving {
            text.push_str(&format!("    {step}\n"));
        }
    }
    text
}

/// Statements that no proof of their model reached although their line is part of a proof; only of models all
/// of whose proofs were run.
fn never_reached(outcomes: &[(&Run, Outcome)]) -> BTreeSet<(&'static str, Statement)> {
    let is_proof = |run: &Run| matches!(run.expected, Expected::Proof | Expected::Ends);
    let proofs = outcomes.iter().filter(|(run, _)| is_proof(run));
    let mut by_model: BTreeMap<&'static str, Vec<&Outcome>> = BTreeMap::new();
    for (run, outcome) in proofs {
        by_model.entry(run.model).or_default().push(outcome);
    }
    let mut never = BTreeSet::new();
    for (model, proofs) in by_model {
        if proofs.len() < RUNS.iter().filter(|run| run.model == model && is_proof(run)).count() {
            continue;
        }
        let candidates: BTreeSet<&Statement> = proofs.iter().flat_map(|proof| &proof.unreached).collect();
        let reached = |statement: &Statement| {
            proofs
                .iter()
                .any(|proof| proof.lines.contains(&statement.line) && !proof.unreached.contains(statement))
        };
        never.extend(candidates.into_iter().filter(|s| !reached(s)).map(|s| (model, s.clone())));
    }
    never
}
