//! `tracewing functions --replay`: each call, with how long it took; in two lines if it calls others.
//!
//! Lines are in the order of time. Whether a function calls others, and so has a line for its end, is known
//! only later: lines wait for that, at most some ten thousand of them.

use super::{NEEDED, Names};
use crate::format::TableFormat;
use crate::input::{Input, conclude};
use crate::screen;
use crate::table::{self, Cell, Column, TableOptions, columns};
use anyhow::Result;
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use tracewing_analysis::{Analysis, Call, Calls, FunctionId, Loss, ThreadKey};
use tracewing_trace::Zone;
use tracewing_trace::super_trace::{Change, Fold, Part, Seen};
use tracewing_units::{Duration, Timestamp};

/// Maximum number of lines that wait for the end of their call.
const MOST: usize = 1 << 14;

/// Maximum indentation of callees, in columns.
const FURTHEST: usize = 200;

pub fn columns() -> Vec<Column<Shown>> {
    columns! { shown: Shown;
        period(10) "duration" "duration_ns" high, "how long the call took, in the line in which it ends"
            => shown.line.what.duration();
        number(8) "thread" "tid" key, "thread id" => shown.line.thread.1.into();
        text "function" "function" key + shrinking, "the function; in text, below its callers"
            => shown.name.as_str().into(), in_text: shown.text().into();
        text "part" "part" extra, "beginning or end of a call that contains others, or the whole of a call that does not"
            => shown.line.what.name().into();
        number "depth" "depth" extra, "number of functions around the call"
            => Cell::Count(shown.line.depth as u64);
        clock "begin" "begin_ns" extra, "when the call began" => Cell::Time(shown.line.begin, shown.zone);
        number "process" "process" extra, "id of the thread's process" => shown.line.thread.0.into();
    }
}

pub fn run(input: &Input, options: &TableOptions) -> Result<ExitCode> {
    let format = options.format();
    let mut out = BufWriter::new(screen::stdout(format.into()));
    let table = table::Lines::new(&columns(), &options.choice, format.into())?;
    table.begin(&mut out)?;
    let mut replay = Replay {
        calls: Calls::default(),
        lines: Lines {
            out,
            table,
            zone: input.zone(),
            left: options.first.rows(),
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
    lines.table.end(&mut lines.out)?;
    if calls.count() == 0 {
        let format = if format == TableFormat::Table { format } else { TableFormat::Json };
        NEEDED.explain(&mut lines.out, format, input, &ran)?;
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
    table: table::Lines<Shown>,
    zone: Zone,
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
    thread: ThreadKey,
    depth: usize,
    begin: Timestamp,
    function: FunctionId,
    what: What,
}

/// A line that is printed.
pub struct Shown {
    line: Line,
    name: String,
    zone: Zone,
}

impl Shown {
    fn text(&self) -> String {
        let name =
            self.name.strip_suffix(')').and_then(|_| self.name.split('(').next()).unwrap_or(&self.name);
        let space = (2 * self.line.depth).min(FURTHEST);
        let text = match self.line.what {
            What::Begin | What::Open => format!("{name}() {{"),
            What::Leaf { .. } => format!("{name}();"),
            What::End { .. } => format!("}} /* {name} */"),
        };
        format!("{:space$}{text}", "")
    }
}

/// What a line shows.
#[derive(Clone, Copy, PartialEq)]
enum What {
    /// The beginning of a function, whose end is still unknown.
    Begin,
    /// One that calls others.
    Open,
    /// A call that called nothing: begin and end on one line.
    Leaf {
        /// `None` where events were lost in it, so that the end may be another call's.
        ns: Option<Duration>,
    },
    End {
        /// As for `Leaf`.
        ns: Option<Duration>,
    },
}

impl What {
    fn duration(self) -> Cell {
        match self {
            What::Begin | What::Open => Cell::Blank,
            What::Leaf { ns } | What::End { ns } => ns.map_or(Cell::None, Cell::Period),
        }
    }

    fn name(self) -> &'static str {
        match self {
            What::Begin | What::Open => "begin",
            What::Leaf { .. } => "whole",
            What::End { .. } => "end",
        }
    }
}

impl<W: Write> Fold for Replay<W> {
    fn change(&mut self, _: Change<'_>) {}
}

impl<W: Write> Analysis for Replay<W> {
    const AT_ONCE: bool = true;

    const EARLIER: bool = true;

    const CONTINUES: bool = true;

    fn can_take(&self, parts: &[Part]) -> bool {
        Calls::has_part(parts)
    }

    fn take(&mut self, parts: &[Part]) -> bool {
        self.calls.take_part(parts)
    }

    fn is_done(&self) -> bool {
        self.lines.written.is_err() || self.lines.left == 0
    }

    #[inline(always)]
    fn input(&mut self, input: tracewing_analysis::Input<'_>) {
        use tracewing_analysis::Input;
        match input {
            Input::Earlier(seen) => self.calls.earlier(seen),
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
        if lost.tears_programs() {
            self.calls.lost(lost.from);
        }
    }

    fn loss_over(&mut self, time: Timestamp) {
        self.calls.loss_over(time);
    }
}

impl<W: Write> Lines<W> {
    fn call(&mut self, thread: ThreadKey, time: Timestamp, call: Call) {
        let begun =
            self.open.remove(&thread).and_then(|number| self.waiting.get_mut(number.checked_sub(self.gone)?));
        match call {
            Call::Begins { function, depth, .. } => {
                begun.into_iter().for_each(|line| line.what = What::Open);
                self.open.insert(thread, self.gone + self.waiting.len());
                self.waiting.push_back(Line { thread, depth, begin: time, function, what: What::Begin });
            }
            Call::Ends { function, depth, begin, certain, .. } => {
                // Where events were lost, it may be another call that ended.
                let ns = certain.is_none().then_some(time - begin);
                match begun {
                    Some(line) => line.what = What::Leaf { ns },
                    None => {
                        let what = What::End { ns };
                        self.waiting.push_back(Line { thread, depth, begin, function, what });
                    }
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
        let shown = Shown { line, name, zone: self.zone };
        self.written = self.table.row(&mut self.out, &shown);
    }
}
