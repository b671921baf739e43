//! `graph` starts to find what called what in an area, and how long that took: what `tracewing functions`
//! draws as a flame graph.

use super::area::Area;
use super::ask::{Refusal, parsed, ready};
use super::flame::{Names, Node, Tree};
use super::jobs;
use crate::jobs::Job;
use crate::recording::Viewed;
use crate::reply::Reply;
use serde::Serialize;
use std::collections::HashMap;
use tracewing_analysis::{CallNode, Function, Functions};
use tracewing_programs::symbols::Symbols;
use tracewing_trace::{Filter, Recording};
use tracewing_units::Duration;

/// Times are in nanoseconds in place of samples.
#[derive(Debug, Serialize)]
struct Answer {
    samples: u64,
    nodes: Vec<Node>,
    left_out: usize,
    /// Why nothing is known.
    note: Option<&'static str>,
}

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let area: Area = parsed(body)?;
    let filter = area.threads(&*ready(viewed)?, "calls of functions")?;
    let recording = viewed.recording();
    jobs::start(viewed, move |job| find(job, &recording, &filter))
}

fn find(job: &Job, recording: &Recording, filter: &Filter) -> Result<Answer, String> {
    let mut functions = Functions::new();
    let ran = tracewing_analysis::run(recording, filter, &mut functions, &mut |progress| job.watch(progress));
    let ran = ran.map_err(|error| error.to_string())?;
    job.go_on()?;
    let (mut symbols, mut known) = (Symbols::new(), HashMap::new());
    let found = functions.finish(&ran, &mut |function| match function {
        Function::Named(name) => name.clone(),
        Function::InMemory(address) => format!("{address:#x}"),
        Function::InFile { path, .. } if job.is_stopped() => path.clone(),
        Function::InFile { path, address } => {
            let name = known.entry((path.clone(), *address)).or_insert_with(|| symbols.name(path, *address));
            name.clone()
        }
    });
    let note = (ran.recorded.lacks_ends_of_functions || ran.torn || ran.some_cpus).then_some(
        "How long calls took is unknown: the recording lacks some ends of functions, or only CPUs are selected",
    );
    let (mut tree, mut names) = (Tree::default(), Names::default());
    if note.is_none() {
        add(&mut tree, &mut names, &mut Vec::new(), &found.graph, job)?;
    }
    let (nodes, left_out) = tree.nodes(&names.all, job)?;
    Ok(Answer { samples: tree.samples, nodes, left_out, note })
}

/// Adds the time of a call that is not that of a function it calls.
fn add(
    tree: &mut Tree,
    names: &mut Names,
    chain: &mut Vec<u32>,
    node: &CallNode,
    job: &Job,
) -> Result<(), String> {
    job.go_on()?;
    let below: Duration = node.below.values().map(|below| below.total_ns).sum();
    tree.add(chain.iter().copied(), (node.total_ns - below).as_ns());
    for (name, below) in &node.below {
        chain.push(names.number(name.clone()));
        add(tree, names, chain, below, job)?;
        chain.pop();
    }
    Ok(())
}
