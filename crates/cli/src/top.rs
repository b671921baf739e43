//! `tracewing top`: what a running recording shows of the last second, over and over: threads, tasks, locks
//! and system calls.
//!
//! | module | what |
//! |---|---|
//! | `source` | the recording, read window by window |
//! | `chosen` | the processes that are shown |
//! | `view` | the tables |
//! | `screen` | a terminal: what it had before, frames, keys |
//! | `shown` | what is on it, and what keys change |

mod chosen;
mod screen;
mod shown;
mod source;
mod view;

use crate::format::{TableFormat, TextFormat, TextFormatOption};
use crate::input::STOPPED;
use crate::losses;
use crate::options::Processes;
use crate::output::{print_warning, raise_file_limit};
use crate::owner::Which;
use crate::progress::Watch;
use crate::record::parse_seconds;
use crate::screen::{Form, stdout};
use crate::table::{Cell, Choice, First, Head, Sort, TableOptions, check, write_json};
use anyhow::{Result, ensure};
use screen::Live;
use shown::{Shown, Wish};
use source::Source;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tracewing_analysis::Window;
use tracewing_session::running::Kind;
use view::View;

/// Rows of a table that is printed over and over.
const ROWS: u64 = 10;
/// After this time, top says so if nothing has been recorded.
const SILENCE: Duration = Duration::from_secs(2);
/// Time between two looks at the recording, and at the keys.
const PAUSE: Duration = Duration::from_millis(100);
/// A window that ended longer ago when it was read is late: the usual time is 0.6 s.
const LATE: Duration = Duration::from_secs(2);

const HELP: &str = "\
Examples:
  tracewing top                                the only running recording of yours
  tracewing top server --show tasks            that of the command `server`
  tracewing top 4711 --sort ready -n 20        that of a process
  tracewing top --process 'worker-*'           only these processes of it
  tracewing top --for 10 --format json         one object per second

The table covers the last --interval and is about half a second late; the line above it says by how much. Before the \
first table, top reads what has been recorded so far. It reads the files of the recording, which is not disturbed. \
Events that were lost during the interval are counted above the table.

Keys: 1 threads, 2 tasks, 3 locks, 4 system calls; left and right choose the column to sort by, up and down scroll, q \
ends, also while top reads. If standard output is not a terminal, the table is printed after each interval, with ten \
rows unless -n says otherwise; JSON has all tables.

The columns are those of `tracewing threads`, `tasks`, `locks` and `breakdown`.";

/// What `tracewing top` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    processes: Processes,

    /// What is shown first
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    show: View,

    /// Time that each table covers
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, default_value = "1")]
    interval: Duration,

    /// End after SECONDS
    #[arg(long = "for", value_name = "SECONDS", value_parser = parse_seconds)]
    duration: Option<Duration>,

    #[command(flatten)]
    sort: Sort,

    #[command(flatten)]
    first: First,

    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    format: TextFormatOption,
}

impl Args {
    /// The options of tables in this format.
    fn table(&self, format: TableFormat) -> TableOptions {
        let Self { sort, first, choice, .. } = self;
        let mut table = TableOptions {
            sort: sort.clone(),
            first: *first,
            choice: choice.clone(),
            ..TableOptions::default()
        };
        table.format.format = format;
        table
    }
}

/// The columns of all of its tables.
pub fn heads() -> Vec<Head> {
    View::ALL.into_iter().flat_map(View::heads).collect()
}

pub fn run(args: &Args) -> Result<ExitCode> {
    check(&args.sort, &args.choice, &View::ALL.map(View::heads))?;
    ensure!(args.interval >= PAUSE, "--interval is too short: give at least 0.1");
    let running = args.which.find(Kind::Any)?;
    ensure!(
        !running.is_flight_recorder,
        "a flight recorder writes no events before a snapshot: take one with `tracewing snapshot`, and read that"
    );
    raise_file_limit();
    let watch = Watch::new()?;
    let mut source = Source::open(&running.output, args.interval)?;
    let is_live = args.format.format == TextFormat::Text && std::io::stdout().is_terminal();
    let mut output = match is_live {
        true => {
            let live = Live::enter()?;
            let shown = Shown::new(running.to_string(), args, live.has_keys());
            Output::Live(Box::new((live, shown)))
        }
        false => Output::Plain,
    };
    let end = show(args, &mut source, &mut output, &watch);
    drop(output);
    if !source.lost().is_nothing() {
        print_warning(&format!("{} were lost in the time that was shown", losses::text(&source.lost())));
    }
    end
}

enum Output {
    Live(Box<(Live, Shown)>),
    Plain,
}

fn show(args: &Args, source: &mut Source, output: &mut Output, watch: &Watch) -> Result<ExitCode> {
    let begin = Instant::now();
    let (mut next, mut is_silent) = (begin, matches!(output, Output::Plain));
    output.draw()?;
    loop {
        let is_over = args.duration.is_some_and(|duration| begin.elapsed() >= duration);
        source.look()?;
        let is_due = Instant::now() >= next || is_over || source.has_ended();
        let (window, wish) = if is_due { window(source, output, watch)? } else { (None, Wish::Nothing) };
        if wish == Wish::End {
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(mut window) = window {
            chosen::keep(&mut window, &args.processes.patterns());
            next = Instant::now() + args.interval;
            output.take(args, window, source.late())?;
            is_silent = false;
        }
        if is_silent && (is_over || source.has_ended() || begin.elapsed() >= SILENCE) {
            print_warning("no event has been recorded so far");
            is_silent = false;
        }
        if watch.is_stopped() {
            return Ok(ExitCode::from(STOPPED));
        }
        if source.has_ended() {
            print_end(output)?;
            return Ok(ExitCode::SUCCESS);
        }
        if is_over || output.wait(PAUSE)? == Wish::End {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// The next window, if there is one, and what keys ask for meanwhile: on a busy machine, it may take long.
fn window(source: &mut Source, output: &mut Output, watch: &Watch) -> Result<(Option<Window>, Wish)> {
    let (mut looked, mut wish) = (Instant::now(), Ok(Wish::Nothing));
    output.reads(true);
    let window = source.window(&mut || {
        if looked.elapsed() >= PAUSE {
            (wish, looked) = (output.wait(Duration::ZERO), Instant::now());
        }
        watch.is_stopped() || !matches!(wish, Ok(Wish::Nothing | Wish::Redraw))
    })?;
    output.reads(false);
    Ok((window, wish?))
}

fn print_end(output: &mut Output) -> Result<()> {
    if let Output::Live(both) = output {
        both.1.ends();
    }
    output.draw()?;
    if let Output::Live(both) = output {
        both.0.leave()?;
    }
    print_warning("the recording has ended");
    Ok(())
}

impl Output {
    fn take(&mut self, args: &Args, window: Window, late: Option<Duration>) -> Result<()> {
        match self {
            Output::Live(both) => {
                both.1.take(window, late);
                self.draw()
            }
            Output::Plain if args.format.format == TextFormat::Json => print_json(args, &window, late),
            Output::Plain => print_text(args, &window, late),
        }
    }

    fn reads(&mut self, is_reading: bool) {
        if let Output::Live(both) = self {
            both.1.reads(is_reading);
        }
    }

    /// Shows on a terminal what is known now.
    fn draw(&mut self) -> Result<()> {
        if let Output::Live(both) = self {
            let (live, shown) = &mut **both;
            let size = live.size();
            live.draw(&shown.frame(size)?)?;
        }
        Ok(())
    }

    /// Waits for a key, and does what it asks for, and those that were typed after it.
    fn wait(&mut self, time: Duration) -> Result<Wish> {
        let Output::Live(both) = self else {
            std::thread::sleep(time);
            return Ok(Wish::Nothing);
        };
        let (live, shown) = &mut **both;
        let (mut wish, mut time) = (Wish::Nothing, time);
        while let Some(key) = live.key(time)? {
            time = Duration::ZERO;
            match shown.key(key) {
                Wish::End => return Ok(Wish::End),
                Wish::Redraw => wish = Wish::Redraw,
                Wish::Nothing => {}
            }
        }
        if wish == Wish::Redraw || live.is_other() || shown.is_old() {
            self.draw()?;
        }
        Ok(wish)
    }
}

/// One line: an object with the window's times, what is missing in it, and all tables.
fn print_json(args: &Args, window: &Window, late: Option<Duration>) -> Result<()> {
    let options = args.table(TableFormat::Json);
    let tables = View::ALL.map(|view| (view.name(), view.table(window, &options, None)));
    let ran = &window.ran;
    let members = [
        ("begin_ns", Cell::Number(ran.begin_ns.as_ns())),
        ("end_ns", Cell::Number(ran.end_ns.as_ns())),
        ("late_ns", Cell::count(late.map(|late| late.as_nanos() as u64))),
        ("lost_events", losses::events(&ran.lost())),
        ("least_lost_events", Cell::Count(ran.lost_events)),
        ("losses_of_unknown_size", Cell::Count(ran.lost_parts)),
    ];
    let mut out = stdout(Form::Json);
    write_json(&mut out, &tables, &members)?;
    Ok(out.flush()?)
}

fn print_text(args: &Args, window: &Window, late: Option<Duration>) -> Result<()> {
    let mut options = args.table(TableFormat::Table);
    options.first.count.get_or_insert(ROWS);
    let mut out = stdout(Form::Text);
    writeln!(out, "{}", view::headline(window, late, late.is_some_and(|late| late > LATE)))?;
    args.show.print(&mut out, window, &options, crate::terminal::width())?;
    writeln!(out)?;
    Ok(out.flush()?)
}
