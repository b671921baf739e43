//! `tracewing functions --replay`: each call, with how long it took.
//!
//! Lines are in the order of time. Whether a function calls others, and so has a line for its end, is known
//! only later: lines wait for that, at most some ten thousand of them.

use super::{NEEDED, Names};
use crate::format::TableFormat;
use crate::input::{Input, conclude};
use crate::output::shown;
use crate::screen::{self, Form};
use crate::table::period;
use anyhow::Result;
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use tracewing_analysis::{Analysis, Call, Calls, FunctionId, Loss, ThreadKey};
use tracewing_trace::super_trace::{Change, Fold, Scope, Seen};
use tracewing_units::{Duration, Tid, Timestamp};

/// Lines that wait.
const MOST: usize = 1 << 14;

/// Maximum indentation of callees, in columns.
const FURTHEST: usize = 200;

pub fn run(input: &Input, rows: usize) -> Result<ExitCode> {
    let mut out = BufWriter::new(screen::stdout(Form::Text));
    writeln!(out, "{:>10}  {:>8}  function", "duration", "thread")?;
    let mut replay = Replay {
        calls: Calls::default(),
        lines: Lines {
            out,
            left: rows,
            names: Names::default(),
            waiting: VecDeque::new(),
            gone: 0,
            open: HashMap::new(),
            written: Ok(()),
        },
    };
    let ran = input.analyse(&mut replay)?;
    let Replay { calls, mut lines } = replay;
    lines.print_all(&calls);
    lines.written?;
    if calls.count() == 0 {
        NEEDED.explain(&mut lines.out, TableFormat::Table, input, &ran)?;
    }
    lines.out.flush()?;
    Ok(conclude(ran))
}

struct Replay<W> {
    calls: Calls,
    lines: Lines<W>,
}

struct Lines<W> {
    out: W,
    /// Number of lines still to be printed.
    left: usize,
    names: Names,
    waiting: VecDeque<Line>,
    /// How many have gone before those.
    gone: usize,
    /// By thread: its last line, if that is of a function that has just begun.
    open: HashMap<ThreadKey, usize>,
    written: io::Result<()>,
}

struct Line {
    tid: Tid,
    depth: usize,
    function: FunctionId,
    what: What,
}

/// What a line shows.
#[derive(Clone, Copy, PartialEq)]
enum What {
    /// The beginning of a function, whose end is still unknown.
    Begin,
    /// One that calls others.
    Open,
    /// All of it.
    Leaf {
        ns: Duration,
    },
    End {
        ns: Duration,
    },
}

impl<W: Write> Fold for Replay<W> {
    fn change(&mut self, _: Change<'_>) {}
}

impl<W: Write> Analysis for Replay<W> {
    const AT_ONCE: bool = true;

    fn is_done(&self) -> bool {
        self.lines.written.is_err() || self.lines.left == 0
    }

    #[inline(always)]
    fn input(&mut self, input: tracewing_analysis::Input<'_>) {
        use tracewing_analysis::Input;
        match input {
            Input::Event(seen) => self.event(seen),
            Input::Lost(lost) => self.lost(lost),
            Input::LossOver { time } => self.loss_over(time),
            _ => {}
        }
    }
}

impl<W: Write> Replay<W> {
    fn event(&mut self, seen: &Seen<'_>) {
        let lines = &mut self.lines;
        self.calls.event(seen, &mut |thread, time, call| lines.call(thread, time, call));
        lines.print_decided(&self.calls);
    }

    fn lost(&mut self, lost: &Loss) {
        if matches!(lost.scope, Scope::User) {
            self.calls.lost(lost.from);
        }
    }

    fn loss_over(&mut self, time: Timestamp) {
        self.calls.lost(time);
    }
}

impl<W: Write> Lines<W> {
    fn call(&mut self, thread: ThreadKey, time: Timestamp, call: Call) {
        let begun =
            self.open.remove(&thread).and_then(|number| self.waiting.get_mut(number.checked_sub(self.gone)?));
        let (_, tid) = thread;
        match call {
            Call::Begins { function, depth } => {
                begun.into_iter().for_each(|line| line.what = What::Open);
                self.open.insert(thread, self.gone + self.waiting.len());
                self.waiting.push_back(Line { tid, depth, function, what: What::Begin });
            }
            Call::Ends { function, depth, begin, .. } => {
                let ns = time - begin;
                match begun {
                    Some(line) => line.what = What::Leaf { ns },
                    None => self.waiting.push_back(Line { tid, depth, function, what: What::End { ns } }),
                }
            }
        }
    }

    /// Prints what is known, or has waited for too long.
    fn print_decided(&mut self, calls: &Calls) {
        while let Some(first) = self.waiting.front()
            && (first.what != What::Begin || self.waiting.len() > MOST)
        {
            self.print_first(calls);
        }
    }

    /// Prints the rest.
    fn print_all(&mut self, calls: &Calls) {
        while !self.waiting.is_empty() {
            self.print_first(calls);
        }
    }

    fn print_first(&mut self, calls: &Calls) {
        let Some(line) = self.waiting.pop_front() else { return };
        self.gone += 1;
        if self.left == 0 || self.written.is_err() {
            return;
        }
        self.left -= 1;
        let name = self.names.of(&calls.function(line.function));
        let name = shown(name.strip_suffix(')').map_or(&name, |_| name.split('(').next().unwrap_or(&name)));
        let space = (2 * line.depth).min(FURTHEST);
        let (duration, text) = match line.what {
            What::Begin | What::Open => (String::new(), format!("{name}() {{")),
            What::Leaf { ns } => (period(ns), format!("{name}();")),
            What::End { ns } => (period(ns), format!("}} /* {name} */")),
        };
        self.written = writeln!(self.out, "{duration:>10}  {:>8}  {:space$}{text}", line.tid, "");
    }
}
