//! `flame` starts to count the samples of an area by call chain: what `tracewing profile` draws as a flame
//! graph.

use super::ask::{Refusal, parsed, ready, refused};
use super::jobs::Started;
use super::statistics::chosen;
use crate::jobs::Job;
use crate::recording::Viewed;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tracewing_analysis::profile::{Frames, Image, Profile, Samples, Shown};
use tracewing_index::{Row, RowKind};
use tracewing_programs::symbols::{Named, Symbols};
use tracewing_trace::{Filter, Recording, TimePoint};
use tracewing_units::Duration;

/// Most nodes of an answer: those with fewest samples are left out.
const MOST: usize = 5000;
/// Functions within so many others are counted with the last of them.
const DEEPEST: usize = 128;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    from: Duration,
    to: Duration,
    /// All threads if it is missing. A process stands for its threads, and CPUs for what ran on them.
    rows: Option<Vec<u32>>,
}

#[derive(Debug, Serialize)]
struct Answer {
    samples: u64,
    /// How often samples were taken, if the recording says.
    hertz: u64,
    nodes: Vec<Node>,
    /// Nodes that are left out.
    left_out: usize,
    /// Files that are not those that were recorded: their functions have no names.
    replaced: Vec<String>,
}

/// A function, or a process, with the samples in it and in what it called; those below it follow it.
#[derive(Debug, Serialize)]
struct Node {
    depth: usize,
    name: String,
    samples: u64,
    /// The samples in itself.
    own: u64,
}

#[derive(Debug, Default)]
struct Tree {
    samples: u64,
    own: u64,
    below: BTreeMap<String, Tree>,
}

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { from, to, rows } = parsed(body)?;
    let ready = ready(viewed)?;
    let at = |time| ready.index.tail().begin.checked_add(time).map(TimePoint::Absolute);
    let (Some(begin), Some(end), true) = (at(from), at(to), from < to) else {
        return Err(refused("there is no such window"));
    };
    let mut filter = Filter { from: Some(begin), to: Some(end), ..Filter::default() };
    let chosen = rows.map(|rows| chosen(ready, rows)).transpose()?;
    let kinds = |row: &Row| match (row.kind, row.parent) {
        (_, Some(parent)) if row.is_part() => ready.index.row(parent).kind,
        _ => row.kind,
    };
    let (mut tids, mut cpus) = (BTreeSet::new(), BTreeSet::new());
    for id in chosen.iter().flatten() {
        match kinds(ready.index.row(*id)) {
            RowKind::Thread(tid) => _ = tids.insert(tid),
            RowKind::Cpu(cpu) => _ = cpus.insert(cpu),
            _ => {}
        }
    }
    if chosen.is_some() && tids.is_empty() && cpus.is_empty() {
        return Err(refused("samples are of threads and CPUs"));
    }
    // Where threads are chosen, CPUs choose nothing further.
    match tids.is_empty() {
        true => filter.cpus = cpus.into_iter().map(|cpu| cpu..=cpu).collect(),
        false => filter.tids = tids.into_iter().collect(),
    }
    let recording = viewed.recording.clone();
    let work = move |job: &Job| {
        let answer = count(job, &recording, &filter)?;
        serde_json::to_value(answer).map_err(|error| error.to_string())
    };
    Ok(Reply::json(&Started { job: viewed.jobs.start(work) }))
}

fn count(job: &Job, recording: &Recording, filter: &Filter) -> Result<Answer, String> {
    let mut profile = Profile::new();
    let ran = tracewing_analysis::run(recording, filter, &mut profile, &mut |progress| job.watch(progress));
    let ran = ran.map_err(|error| error.to_string())?;
    if ran.stopped {
        return Err("it was stopped".to_owned());
    }
    let (found, replaced) = named(profile.finish(&ran));
    let mut tree = Tree::default();
    for line in found.folded() {
        // Names may have spaces.
        if let Some((chain, samples)) = line.rsplit_once(' ')
            && let Ok(samples) = samples.parse()
        {
            tree.add(chain, samples);
        }
    }
    let (nodes, left_out) = tree.nodes();
    Ok(Answer { samples: tree.samples, hertz: found.samples().hertz, nodes, left_out, replaced })
}

/// Samples with the names of their functions, and the files that are not those that were recorded.
fn named(samples: Samples) -> (Shown, Vec<String>) {
    let (mut symbols, mut replaced) = (Symbols::new(), BTreeSet::new());
    let named = samples.name(&mut |Image { path, build_id }, offset| {
        if symbols.is_replaced(path, build_id) {
            replaced.insert(path.clone());
        }
        let (name, near) = match symbols.function_at(path, build_id, offset) {
            Some(Named::Function(name)) => (Some(name), None),
            Some(Named::Near(name)) => (None, Some(name)),
            None => (None, None),
        };
        Frames { inlined: symbols.inlined_at(path, build_id, offset), name, near }
    });
    (named, replaced.into_iter().collect())
}

impl Tree {
    fn add(&mut self, chain: &str, samples: u64) {
        let mut at = self;
        at.samples = at.samples.saturating_add(samples);
        for name in chain.split(';').take(DEEPEST) {
            at = at.below.entry(name.to_owned()).or_default();
            at.samples = at.samples.saturating_add(samples);
        }
        at.own = at.own.saturating_add(samples);
    }

    /// The nodes, each before those below it, as far as they have enough samples; and how many have not.
    fn nodes(&self) -> (Vec<Node>, usize) {
        let mut all = Vec::new();
        self.collect(0, &mut all);
        let left_out = all.len().saturating_sub(MOST);
        if left_out > 0 {
            let mut samples: Vec<u64> = all.iter().map(|node| node.samples).collect();
            samples.sort_unstable_by(|one, other| other.cmp(one));
            let least = samples[MOST];
            all.retain(|node| node.samples > least);
        }
        let count = all.len();
        (all, if left_out > 0 { left_out + MOST - count } else { 0 })
    }

    fn collect(&self, depth: usize, all: &mut Vec<Node>) {
        let mut below: Vec<_> = self.below.iter().collect();
        below.sort_by_key(|(name, tree)| (std::cmp::Reverse(tree.samples), *name));
        for (name, tree) in below {
            all.push(Node { depth, name: name.clone(), samples: tree.samples, own: tree.own });
            tree.collect(depth + 1, all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_fewest_samples_and_is_counted() {
        let mut tree = Tree::default();
        for number in 0..2 * MOST as u64 {
            tree.add(&format!("shop-1;main;work {number}"), 1 + number % 7);
        }
        tree.add("shop-1;main", 5);
        let (nodes, left_out) = tree.nodes();
        assert_eq!(nodes.len() + left_out, 2 * MOST + 2);
        assert!(nodes.len() <= MOST);
        assert_eq!((nodes[0].name.as_str(), nodes[0].depth, nodes[0].own), ("shop-1", 0, 0));
        assert_eq!((nodes[1].name.as_str(), nodes[1].depth, nodes[1].own), ("main", 1, 5));
        assert!(nodes[2..].iter().all(|node| node.depth == 2 && node.samples > 3));
        assert!(nodes[2..].is_sorted_by(|one, other| one.samples >= other.samples));
    }

    #[test]
    fn no_chain_is_too_deep() {
        let mut tree = Tree::default();
        tree.add(&["f"; 100_000].join(";"), 3);
        let (nodes, left_out) = tree.nodes();
        assert_eq!((nodes.len(), left_out, nodes[DEEPEST - 1].own), (DEEPEST, 0, 3));
    }
}
