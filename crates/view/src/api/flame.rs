//! `flame` starts to count the samples of an area by call chain: what `tracewing profile` draws as a flame
//! graph.

use super::area::Area;
use super::ask::{Refusal, parsed, ready};
use super::jobs;
use crate::jobs::Job;
use crate::recording::Viewed;
use crate::reply::Reply;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter;
use tracewing_analysis::profile::{Frames, Image, Profile, Samples, Shown};
use tracewing_programs::symbols::{Named, Symbols};
use tracewing_trace::{Filter, Recording};
use tracewing_units::Pid;

/// Most nodes of an answer: those with fewest samples are left out.
const MOST: usize = 5000;
/// Functions within so many others are counted with the last of them.
pub(super) const DEEPEST: usize = 128;

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
    /// Of a single sample that has hit code in a file.
    hit: Option<Hit>,
}

/// The source of code in a file.
#[derive(Debug, Serialize)]
struct Hit {
    /// As `file:line`.
    source: Option<String>,
    /// Why it is unknown.
    why: Option<String>,
}

/// A function, or a process, with the samples in it and in what it called; those below it follow it.
#[derive(Debug, Serialize)]
pub(super) struct Node {
    depth: usize,
    name: String,
    samples: u64,
    /// The samples in itself.
    own: u64,
}

/// Nodes have numbers instead of names: there may be very many.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) samples: u64,
    own: u64,
    below: BTreeMap<u32, Tree>,
}

/// What a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Process(Option<Pid>),
    /// Its number among those that were found.
    Function(u32),
}

/// The names of nodes: what has the same name has one number.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) all: Vec<String>,
    numbers: HashMap<String, u32>,
    of: HashMap<Part, u32>,
}

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let area: Area = parsed(body)?;
    let filter = area.threads(&*ready(viewed)?, "samples")?;
    let recording = viewed.recording();
    jobs::start(viewed, move |job| count(job, &recording, &filter))
}

fn count(job: &Job, recording: &Recording, filter: &Filter) -> Result<Answer, String> {
    let mut profile = Profile::new();
    let ran = tracewing_analysis::run(recording, filter, &mut profile, &mut |progress| job.watch(progress));
    let ran = ran.map_err(|error| error.to_string())?;
    job.go_on()?;
    let (samples, mut symbols) = (profile.finish(&ran), Symbols::new());
    let hit = samples.hit().map(|(image, offset)| Hit::of(&mut symbols, image, offset));
    let (found, replaced) = named(job, &mut symbols, samples);
    let (mut tree, mut names) = (Tree::default(), Names::default());
    for (process, functions, samples) in found.stacks() {
        job.go_on()?;
        let process = names.of(Part::Process(process), || found.process_part(process));
        let function = |number| names.of(Part::Function(number), || found.function_part(number));
        tree.add(iter::once(process).chain(functions.map(function)), samples);
    }
    let (nodes, left_out) = tree.nodes(&names.all, job)?;
    Ok(Answer { samples: tree.samples, hertz: found.samples().hertz, nodes, left_out, replaced, hit })
}

/// Samples with the names of their functions, and the files that are not those that were recorded. When the
/// job is stopped, no further names are looked for.
pub(super) fn named(job: &Job, symbols: &mut Symbols, samples: Samples) -> (Shown, Vec<String>) {
    let mut replaced = BTreeSet::new();
    let named = samples.name(&mut |Image { path, build_id }, offset| {
        if job.is_stopped() {
            return Frames::default();
        }
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

impl Hit {
    fn of(symbols: &mut Symbols, Image { path, build_id }: &Image, offset: u64) -> Self {
        let source = symbols.line_at(path, build_id, offset).map(|(file, line)| format!("{file}:{line}"));
        let why = match source {
            Some(_) => None,
            None if symbols.is_replaced(path, build_id) => {
                Some(format!("{path} is not the file that was recorded"))
            }
            None => Some(format!("no debug information of {path} covers this code")),
        };
        Hit { source, why }
    }
}

impl Names {
    /// The number of what has a name.
    pub(super) fn of(&mut self, part: Part, name: impl FnOnce() -> String) -> u32 {
        if let Some(number) = self.of.get(&part) {
            return *number;
        }
        let number = self.number(name());
        self.of.insert(part, number);
        number
    }

    pub(super) fn number(&mut self, name: String) -> u32 {
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.all.push(name.clone());
            self.all.len() as u32 - 1
        })
    }
}

impl Tree {
    pub(super) fn add(&mut self, chain: impl Iterator<Item = u32>, samples: u64) {
        let mut at = self;
        at.samples = at.samples.saturating_add(samples);
        for number in chain.take(DEEPEST) {
            at = at.below.entry(number).or_default();
            at.samples = at.samples.saturating_add(samples);
        }
        at.own = at.own.saturating_add(samples);
    }

    /// The nodes, each before those below it, as far as they have enough samples; and how many have not.
    pub(super) fn nodes(&self, names: &[String], job: &Job) -> Result<(Vec<Node>, usize), String> {
        let mut counts = Vec::new();
        self.counts(&mut counts, job)?;
        let least = match counts.len() > MOST {
            true => *counts.select_nth_unstable_by_key(MOST, |count| Reverse(*count)).1,
            false => 0,
        };
        let mut nodes = Vec::new();
        self.collect(0, least, names, &mut nodes);
        let left_out = counts.len() - nodes.len();
        Ok((nodes, left_out))
    }

    /// The samples of each node below.
    fn counts(&self, all: &mut Vec<u64>, job: &Job) -> Result<(), String> {
        job.go_on()?;
        for tree in self.below.values() {
            all.push(tree.samples);
            tree.counts(all, job)?;
        }
        Ok(())
    }

    /// The nodes below that have more samples than `least`: none below another one has more than that one.
    fn collect(&self, depth: usize, least: u64, names: &[String], all: &mut Vec<Node>) {
        let name = |number: u32| &names[number as usize];
        let mut below: Vec<_> = self.below.iter().filter(|(_, tree)| tree.samples > least).collect();
        below.sort_by_key(|(number, tree)| (Reverse(tree.samples), name(**number)));
        for (number, tree) in below {
            all.push(Node { depth, name: name(*number).clone(), samples: tree.samples, own: tree.own });
            tree.collect(depth + 1, least, names, all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Chains {
        tree: Tree,
        names: Names,
    }

    impl Chains {
        fn add(&mut self, chain: &str, samples: u64) {
            self.tree.add(chain.split(';').map(|name| self.names.number(name.to_owned())), samples);
        }

        fn nodes(&self) -> (Vec<Node>, usize) {
            self.tree.nodes(&self.names.all, &Job::default()).unwrap()
        }
    }

    #[test]
    fn what_is_left_out_has_fewest_samples_and_is_counted() {
        let mut chains = Chains::default();
        for number in 0..2 * MOST as u64 {
            chains.add(&format!("shop-1;main;work {number}"), 1 + number % 7);
        }
        chains.add("shop-1;main", 5);
        let (nodes, left_out) = chains.nodes();
        assert_eq!(nodes.len() + left_out, 2 * MOST + 2);
        assert!(nodes.len() <= MOST);
        assert_eq!((nodes[0].name.as_str(), nodes[0].depth, nodes[0].own), ("shop-1", 0, 0));
        assert_eq!((nodes[1].name.as_str(), nodes[1].depth, nodes[1].own), ("main", 1, 5));
        assert!(nodes[2..].iter().all(|node| node.depth == 2 && node.samples > 3));
        assert!(nodes[2..].is_sorted_by(|one, other| one.samples >= other.samples));
    }

    #[test]
    fn no_chain_is_too_deep() {
        let mut chains = Chains::default();
        chains.add(&["f"; 100_000].join(";"), 3);
        let (nodes, left_out) = chains.nodes();
        assert_eq!((nodes.len(), left_out, nodes[DEEPEST - 1].own), (DEEPEST, 0, 3));
    }

    #[test]
    fn what_has_the_same_name_is_one_and_has_it_once() {
        let mut names = Names::default();
        let parts = [Part::Function(0), Part::Function(7), Part::Function(0), Part::Process(None)];
        assert_eq!(parts.map(|part| names.of(part, || "f".to_owned())), [0; 4]);
        assert_eq!(names.of(Part::Function(1), || "g".to_owned()), 1);
        assert_eq!(names.all, ["f", "g"]);
        let known = names.of(Part::Function(1), || unreachable!("its name is known"));
        assert_eq!(known, 1);
    }

    #[test]
    fn the_source_of_code_is_found_or_it_is_said_why_not() {
        let path = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
        let function = Hit::of as *const () as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        // Of the mapping that has the function: its begin and end, and its offset in the file.
        let offset = maps.lines().find_map(|line| {
            let [range, _, offset] = line.split(' ').take(3).collect::<Vec<_>>()[..] else { return None };
            let (begin, end) = range.split_once('-')?;
            let [begin, end, offset] =
                [begin, end, offset].map(|text| u64::from_str_radix(text, 16).unwrap());
            (begin..end).contains(&function).then(|| function - begin + offset)
        });
        let hit = |path: &str, build_id: &str| {
            let image = Image { path: path.to_owned(), build_id: build_id.to_owned() };
            Hit::of(&mut Symbols::new(), &image, offset.unwrap())
        };
        let found = hit(&path, "");
        let (file, line) = found.source.as_deref().unwrap().rsplit_once(':').unwrap();
        assert!(file.ends_with("crates/view/src/api/flame.rs"), "{found:?}");
        let text = include_str!("flame.rs").lines().nth(line.parse::<usize>().unwrap() - 1).unwrap();
        assert!(text.contains("fn of(symbols"), "{text}");
        assert_eq!(found.why, None);
        let other = hit(&path, "0123");
        assert!(other.source.is_none() && other.why.unwrap().ends_with("is not the file that was recorded"));
        let absent = hit("/no/such/file", "");
        assert_eq!(absent.why.as_deref(), Some("no debug information of /no/such/file covers this code"));
    }

    #[test]
    fn a_stopped_job_has_no_tree() {
        let mut chains = Chains::default();
        chains.add("shop-1;main", 5);
        let job = Job::default();
        assert!(chains.tree.nodes(&chains.names.all, &job).is_ok());
        job.stop();
        assert!(chains.tree.nodes(&chains.names.all, &job).is_err());
    }
}
