//! Samples by function: the histogram, call trees, and folded stacks.

use std::collections::{BTreeMap, HashMap, HashSet};

use tracewing_units::{Pid, Tid, Timestamp};

use super::function::{Frames, Function};
use super::samples::{Image, Samples, Stack, Weight};

/// What each row of the histogram is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Group {
    /// One row per function.
    #[default]
    Function,
    /// A file, or the kernel.
    Object,
    /// One row per thread.
    Thread,
}

/// A line of the histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The process.
    pub process: Option<Pid>,
    /// Its name, or nothing.
    pub process_name: String,
    /// The thread, if rows are about threads.
    pub tid: Option<Tid>,
    /// The function, if rows are about functions; for objects, a function without a name.
    pub function: Function,
    /// Samples in the function itself.
    pub own: u64,
    /// Samples in it and what it has called.
    pub total: u64,
    /// The periods of its own samples: ns or cycles.
    pub period: u64,
    /// Samples of its process.
    pub of: u64,
}

/// A line of a call tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeLine {
    /// The process.
    pub process: Option<Pid>,
    /// Its name, or nothing.
    pub process_name: String,
    /// How far from the root, which has 0.
    pub depth: usize,
    /// The function.
    pub function: Function,
    /// Samples in it, called so.
    pub own: u64,
    /// Samples in it and what it has called.
    pub total: u64,
    /// Samples of its process.
    pub of: u64,
}

/// Samples as they are shown.
#[derive(Debug)]
pub struct Shown {
    samples: Samples,
    /// Without duplicates.
    functions: Vec<Function>,
    /// By number of the code, the innermost first.
    of_code: Vec<Vec<u32>>,
}

impl Samples {
    /// Gives names to functions. `frames` is asked for those at an offset of a file.
    pub fn name(self, frames: &mut dyn FnMut(&Image, u64) -> Frames) -> Shown {
        let functions = self.codes.functions(frames);
        Shown::new(self, functions)
    }
}

#[derive(Debug, Default)]
struct Node {
    own: u64,
    total: u64,
    below: BTreeMap<u32, Node>,
}

impl Shown {
    pub(super) fn new(samples: Samples, of_codes: Vec<Vec<Function>>) -> Self {
        let mut functions = Vec::new();
        let mut numbers: HashMap<Function, u32> = HashMap::new();
        let mut number = |function: Function| {
            *numbers.entry(function).or_insert_with_key(|function| {
                functions.push(function.clone());
                functions.len() as u32 - 1
            })
        };
        let of_code = of_codes.into_iter().map(|frames| frames.into_iter().map(&mut number).collect());
        let of_code = of_code.collect();
        Self { samples, functions, of_code }
    }

    /// The samples, and everything else that was found.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// Number of samples of all processes.
    pub fn count(&self) -> u64 {
        self.samples.stacks.values().map(|weight| weight.samples).sum()
    }

    /// Processes that have samples.
    pub fn processes(&self) -> usize {
        self.samples.stacks.keys().map(|stack| stack.process).collect::<HashSet<_>>().len()
    }

    /// How many samples have a program's call chain, and how many of these chains do not lead to where a
    /// program or a thread begins: somewhere on the way is a function that has no frame pointer. `None` where
    /// mappings are not recorded.
    pub fn chains(&self) -> (u64, Option<u64>) {
        let mut chains = (0, 0);
        for (stack, weight) in &self.samples.stacks {
            let program = &stack.codes[stack.user_from..];
            if !program.is_empty() {
                chains.0 += weight.samples;
                chains.1 += if self.is_whole(program) { 0 } else { weight.samples };
            }
        }
        (chains.0, (!self.samples.lacks_mappings).then_some(chains.1))
    }

    /// Whether a program's chain leads to its beginning. The functions around a thread's first one may
    /// themselves be cut.
    fn is_whole(&self, program: &[u32]) -> bool {
        const OUTERMOST: usize = 4;
        let callers = program.get(1..).unwrap_or_default();
        let function = |code: &u32| self.frames(*code).last().map(|last| self.function(*last));
        let named = program.iter().rev().take(OUTERMOST).filter_map(function);
        named.filter(|function| function.own_name().is_some()).any(Function::is_root)
            || callers.last().and_then(function).is_some_and(Function::is_root)
    }

    /// The functions at a place of code, by number, the innermost first.
    fn frames(&self, code: u32) -> &[u32] {
        &self.of_code[code as usize]
    }

    fn function(&self, number: u32) -> &Function {
        &self.functions[number as usize]
    }

    /// A stack's functions, by number, the innermost first.
    fn innermost_first<'s>(&'s self, stack: &'s Stack) -> impl DoubleEndedIterator<Item = u32> + 's {
        stack.codes.iter().flat_map(|code| self.frames(*code).iter().copied())
    }

    fn total_of_processes(&self) -> HashMap<Option<Pid>, u64> {
        let mut totals = HashMap::new();
        for (stack, weight) in &self.samples.stacks {
            *totals.entry(stack.process).or_default() += weight.samples;
        }
        totals
    }

    /// A thread's name, or nothing.
    pub fn thread_name(&self, tid: Option<Tid>) -> String {
        tid.and_then(|tid| self.samples.names.get(&tid)).cloned().unwrap_or_default()
    }

    fn process_name(&self, process: Option<Pid>) -> String {
        self.thread_name(process.map(Pid::first_thread))
    }

    /// The path of the program that a process executes, if reported.
    pub fn program(&self, process: Option<Pid>) -> Option<&str> {
        process.and_then(|process| self.samples.programs.get(&process)).map(String::as_str)
    }

    /// The histogram: the process with most samples first, and what has most in it.
    pub fn histogram(&self, group: Group) -> Vec<Row> {
        type Key = (Option<Pid>, Option<Tid>, Option<Function>);
        let of = self.total_of_processes();
        let mut counts: HashMap<Key, (Weight, u64)> = HashMap::new();
        for (stack, weight) in &self.samples.stacks {
            let key = |function: u32| -> Key {
                let function = self.function(function);
                match group {
                    Group::Function => (stack.process, None, Some(function.clone())),
                    Group::Object => (stack.process, None, Some(Function::whole(None, &function.object))),
                    Group::Thread => (stack.process, stack.tid, None),
                }
            };
            let mut on_stack = HashSet::new();
            for (at, function) in self.innermost_first(stack).enumerate() {
                let key = key(function);
                let (own, total) = counts.entry(key.clone()).or_default();
                if at == 0 {
                    own.samples += weight.samples;
                    own.period = own.period.saturating_add(weight.period);
                }
                if on_stack.insert(key) {
                    *total += weight.samples;
                }
            }
        }
        let row = |((process, tid, function), (own, total)): (Key, (Weight, u64))| Row {
            process,
            process_name: self.process_name(process),
            tid,
            function: function.unwrap_or(Function::whole(None, "")),
            own: own.samples,
            total,
            period: own.period,
            of: of[&process],
        };
        let mut rows: Vec<Row> = counts.into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            let key = |row: &Row| (row.of, row.process, row.own, row.total);
            key(b).cmp(&key(a)).then_with(|| (&a.function, a.tid).cmp(&(&b.function, b.tid)))
        });
        rows
    }

    /// Call trees, one for each process: from where programs begin, or `inverted` from where samples were
    /// taken to their callers. What has less than `least` percent of its process' samples is left out.
    pub fn tree(&self, inverted: bool, least: f64) -> Vec<TreeLine> {
        let mut roots: HashMap<Option<Pid>, Node> = HashMap::new();
        for (stack, weight) in &self.samples.stacks {
            let mut node = roots.entry(stack.process).or_default();
            node.total += weight.samples;
            let mut functions: Vec<u32> = self.innermost_first(stack).collect();
            let mut innermost = 0;
            if !inverted {
                functions.reverse();
                innermost = functions.len().saturating_sub(1);
            }
            for (at, function) in functions.into_iter().enumerate() {
                node = node.below.entry(function).or_default();
                node.total += weight.samples;
                node.own += if at == innermost { weight.samples } else { 0 };
            }
        }
        let mut roots: Vec<_> = roots.into_iter().collect();
        roots.sort_by_key(|(process, root)| (std::cmp::Reverse(root.total), *process));
        let mut lines = Vec::new();
        for (process, root) in roots {
            let of = root.total;
            let process_name = self.process_name(process);
            let mut open = children(&root, 0);
            while let Some((number, node, depth)) = open.pop() {
                if (node.total as f64) * 100.0 < least * of as f64 {
                    continue;
                }
                lines.push(TreeLine {
                    process,
                    process_name: process_name.clone(),
                    depth,
                    function: self.function(number).clone(),
                    own: node.own,
                    total: node.total,
                    of,
                });
                open.extend(children(node, depth + 1));
            }
        }
        lines
    }

    /// Folded stacks, as flame graphs are drawn from: process and functions from the outermost, and the
    /// samples.
    pub fn folded(&self) -> Vec<String> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (process, functions, samples) in self.stacks() {
            let mut line = self.process_part(process);
            for function in functions {
                line.push(';');
                line.push_str(&self.function_part(function));
            }
            *counts.entry(line).or_default() += samples;
        }
        counts.into_iter().map(|(line, count)| format!("{line} {count}")).collect()
    }

    /// The stacks in no order, of which several may have the same names: the process, the numbers of
    /// functions from the outermost, and the samples.
    pub fn stacks(&self) -> impl Iterator<Item = (Option<Pid>, impl Iterator<Item = u32>, u64)> {
        let stacks = self.samples.stacks.iter();
        stacks.map(move |(stack, weight)| (stack.process, self.innermost_first(stack).rev(), weight.samples))
    }

    /// When samples were taken ([`Profile::with_times`](super::Profile::with_times)), by stack in no order:
    /// the process, the thread, the numbers of functions from the outermost, and the times on the recording's
    /// clock.
    pub fn times(
        &self,
    ) -> impl Iterator<Item = (Option<Pid>, Option<Tid>, impl Iterator<Item = u32>, &[Timestamp])> {
        let times = self.samples.times.iter();
        times.map(move |(stack, times)| {
            (stack.process, stack.tid, self.innermost_first(stack).rev(), times.as_slice())
        })
    }

    /// A process, as part of a folded stack.
    pub fn process_part(&self, process: Option<Pid>) -> String {
        match (self.process_name(process), process) {
            (name, Some(process)) if name.is_empty() => process.to_string(),
            (name, Some(process)) => format!("{}-{process}", part(&name)),
            (_, None) => "unknown".to_owned(),
        }
    }

    /// The function of a number, as part of a folded stack.
    pub fn function_part(&self, number: u32) -> String {
        part(&self.function(number).shown())
    }
}

/// What a part of a folded stack can be.
fn part(name: &str) -> String {
    name.replace([';', '\n'], ":")
}

/// The nodes below one, that with most samples last.
fn children(node: &Node, depth: usize) -> Vec<(u32, &Node, usize)> {
    let mut below: Vec<_> = node.below.iter().map(|(number, node)| (*number, node, depth)).collect();
    below.sort_by_key(|(number, node, _)| (node.total, std::cmp::Reverse(*number)));
    below
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Code, Codes};
    use super::*;

    /// Samples of a program with functions `a`, `b`, ... at offsets 0, 1, ... of a file.
    fn shown(stacks: &[(Pid, &[u64], u64)], names: &[&str]) -> Shown {
        let mut codes = Codes::default();
        codes.images.push(Image { path: "/bin/x".to_owned(), build_id: String::new() });
        let stack = |(process, offsets, samples): &(Pid, &[u64], u64)| {
            let number = |offset: &u64| codes.number(Code::File { image: 0, offset: *offset });
            let codes = offsets.iter().map(number).collect();
            let stack =
                Stack { process: Some(*process), tid: Some(process.first_thread()), codes, user_from: 0 };
            (stack, Weight { samples: *samples, period: 10 * samples })
        };
        let stacks = stacks.iter().map(stack).collect();
        let samples = Samples {
            stacks,
            times: HashMap::new(),
            codes,
            programs: HashMap::new(),
            names: HashMap::from([(Tid(1), "one".to_owned())]),
            counters: Vec::new(),
            trigger: "cpu-clock".to_owned(),
            hertz: 100,
            copies_stacks: false,
            lacks_mappings: false,
            lost: tracewing_trace::Losses::default(),
            duration_ns: tracewing_units::Duration::ZERO,
        };
        // Functions with a slash are inlined into the last one.
        samples.name(&mut |_, offset| {
            let mut frames: Vec<_> = names
                .get(offset as usize)
                .map(|name| name.split('/').map(str::to_owned).collect())
                .unwrap_or_default();
            let name = frames.pop();
            Frames { inlined: frames, name, near: None }
        })
    }

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        let shown = shown(&[(Pid(1), &[1, 1, 0], 5), (Pid(1), &[0], 2), (Pid(2), &[1], 30)], &["main", "f"]);
        let rows: Vec<_> = shown
            .histogram(Group::Function)
            .into_iter()
            .map(|row| (row.process, row.function.shown(), row.own, row.total, row.of, row.period))
            .collect();
        let expected = [
            (Some(Pid(2)), "f".to_owned(), 30, 30, 30, 300),
            (Some(Pid(1)), "f".to_owned(), 5, 5, 7, 50),
            (Some(Pid(1)), "main".to_owned(), 2, 7, 7, 20),
        ];
        assert_eq!(rows, expected);
        assert_eq!((shown.count(), shown.processes()), (37, 2));
    }

    #[test]
    fn trees_grow_from_both_ends() {
        let shown = shown(
            &[(Pid(1), &[2, 1, 0], 6), (Pid(1), &[1, 0], 3), (Pid(1), &[2, 0], 1)],
            &["main", "f", "g"],
        );
        let tree = |inverted, least| -> Vec<_> {
            let lines = shown.tree(inverted, least).into_iter();
            lines.map(|line| (line.depth, line.function.shown(), line.own, line.total)).collect()
        };
        let line = |depth, name: &str, own, total| (depth, name.to_owned(), own, total);
        let down = [line(0, "main", 0, 10), line(1, "f", 3, 9), line(2, "g", 6, 6), line(1, "g", 1, 1)];
        assert_eq!(tree(false, 0.0), down);
        assert_eq!(tree(false, 20.0), down[..3]);
        let up = [
            line(0, "g", 7, 7),
            line(1, "f", 0, 6),
            line(2, "main", 0, 6),
            line(1, "main", 0, 1),
            line(0, "f", 3, 3),
            line(1, "main", 0, 3),
        ];
        assert_eq!(tree(true, 0.0), up);
        assert_eq!(shown.folded(), ["one-1;main;f 3", "one-1;main;f;g 6", "one-1;main;g 1"]);
    }

    #[test]
    fn inlined_functions_are_called_by_those_that_contain_them() {
        let shown = shown(&[(Pid(1), &[1, 0], 4), (Pid(1), &[2, 0], 1)], &["main", "h/g/f", "f"]);
        assert_eq!(shown.folded(), ["one-1;main;f 1", "one-1;main;f;g (inlined);h (inlined) 4"]);
        let rows = shown.histogram(Group::Function);
        let rows: Vec<_> = rows.iter().map(|row| (row.function.shown(), row.own, row.total)).collect();
        let row = |name: &str, own, total| (name.to_owned(), own, total);
        let expected =
            [row("h (inlined)", 4, 4), row("f", 1, 5), row("main", 0, 5), row("g (inlined)", 0, 4)];
        assert_eq!(rows, expected);
        let objects = shown.histogram(Group::Object);
        assert_eq!((objects[0].own, objects[0].total, objects.len()), (5, 5, 1));
        assert_eq!(shown.chains(), (5, Some(0)));
    }

    #[test]
    fn chains_that_do_not_lead_to_the_begin_are_cut() {
        let shown = shown(&[(Pid(1), &[1, 0], 4), (Pid(1), &[1], 2), (Pid(1), &[1, 9], 3)], &["main", "f"]);
        assert_eq!(shown.chains(), (9, Some(5)));
    }
}
