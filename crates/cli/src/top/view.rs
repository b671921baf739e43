//! The tables of `tracewing top`, each one of another command's.

use crate::output::print_note;
use crate::style::WARNING;
use crate::table::{Head, Table, TableOptions, heads, milliseconds};
use crate::{breakdown, locks, tasks, threads};
use clap::ValueEnum;
use std::io::{Result, Write};
use std::time::Duration;
use tracewing_analysis::Window;
use tracewing_trace::Zone;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum View {
    /// Threads: time running, ready, blocked, and on what
    #[default]
    Threads,
    /// Tasks: polls, and waits for them
    Tasks,
    /// Locks: waits, holds, owners
    Locks,
    /// System calls of each process
    Calls,
}

impl View {
    pub const ALL: [View; 4] = [View::Threads, View::Tasks, View::Locks, View::Calls];

    /// Its member in JSON.
    pub fn name(self) -> &'static str {
        match self {
            View::Threads => "threads",
            View::Tasks => "tasks",
            View::Locks => "locks",
            View::Calls => "calls",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            View::Calls => "system calls",
            _ => self.name(),
        }
    }

    pub fn heads(self) -> Vec<Head> {
        match self {
            View::Threads => heads(threads::live_columns()),
            View::Tasks => heads(tasks::live_columns()),
            View::Locks => heads(locks::live_columns()),
            View::Calls => heads(breakdown::live_columns()),
        }
    }

    /// Why a table of a window is empty, and what to do.
    fn why_empty(self) -> &'static str {
        match self {
            View::Threads => "no event of a thread in this time",
            View::Tasks => {
                "no event of a task in this time; programs whose tasks are instrumented record them (tracewing-tokio)"
            }
            View::Locks => {
                "no event about a lock in this time; `tracewing record --locks` records the locks of a command"
            }
            View::Calls => "no system call in this time",
        }
    }

    /// Prints the table of a window, for a width.
    pub fn print(
        self,
        out: &mut impl Write,
        window: &Window,
        options: &TableOptions,
        width: Option<usize>,
    ) -> Result<()> {
        let table = self.table(window, options, width);
        match table.is_empty() {
            true => print_note(out, self.why_empty()),
            false => table.print(out),
        }
    }

    /// The table of a window, for a width.
    pub fn table(self, window: &Window, options: &TableOptions, width: Option<usize>) -> Table {
        match self {
            View::Threads => threads::live_table(window, options, width),
            View::Tasks => tasks::live_table(window, options, width),
            View::Locks => locks::live_table(window, options, width),
            View::Calls => breakdown::live_table(window, options, width),
        }
    }
}

/// When a window was, and what is missing in it. `age`: since its end.
pub fn headline(window: &Window, age: Option<Duration>, is_late: bool) -> String {
    let ran = &window.ran;
    let seconds = age.map_or("-".to_owned(), |age| format!("{:.1} s", age.as_secs_f64()));
    let age = match is_late {
        true if age.is_none() => format!("{WARNING}late{WARNING:#}"),
        true => format!("{WARNING}{seconds} late{WARNING:#}"),
        false => format!("up to {seconds} ago"),
    };
    let unknown = match ran.lost_parts {
        0 => String::new(),
        parts => format!(", and an unknown number in {parts} places"),
    };
    format!(
        "{}   {} ms, {age}   lost: {} events{unknown}",
        Zone::Local.format(ran.end_ns),
        milliseconds(ran.duration_ns()),
        ran.lost_events
    )
}
