//! `tracewing profile`: in which functions programs and the kernel were when samples were taken, and how they came there.

use crate::flame_graph;
use crate::format::TableFormat;
use crate::input::{Input, conclude};
use crate::nothing::{How, Needed};
use crate::output::{print_warning, shown};
use crate::screen;
use crate::table::{Cell, Head, Order, Table, figure, hidden, milliseconds, text};
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::io::{Result as IoResult, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracewing_analysis::profile::{Function, Group, Profile, Row, Samples, Shown, TreeLine};
use tracewing_symbols::Symbols;

/// What `tracewing profile` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing record --profile -o my-trace -- ./server
  tracewing profile my-trace
  tracewing profile my-trace --tree
  tracewing profile my-trace --flame-graph server.svg
  tracewing profile my-trace --process server --where '$call == \"futex\"' --from +1s --to +2s

own counts the samples in a function, total those in it and in what it has called. Times are what the samples stand for, in ns \
in JSON and CSV. Names of functions come from the files that lie at the paths of the recording now, if they are still the same.")]
pub struct Args {
    /// What a line stands for, in its process
    #[arg(long, value_enum, default_value_t)]
    by: By,

    /// Print call trees instead: from where programs begin (callees), or from the functions to who called them (callers)
    #[arg(long, value_name = "WHICH", num_args = 0..=1, default_missing_value = "callees", require_equals = true)]
    tree: Option<Tree>,

    /// Leave out of trees what has less than PERCENT of its process' samples, and of tables for people processes that have less
    /// of all
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    least: f64,

    /// Draw a flame graph into FILE instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tree", "counters"])]
    flame_graph: Option<PathBuf>,

    /// Print instead what counters have counted: of the whole recording, whatever the filter says but --from and --to
    #[arg(long, conflicts_with = "tree")]
    counters: bool,

    #[command(flatten)]
    order: Order,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,

    #[command(flatten)]
    input: Input,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum By {
    /// A function
    #[default]
    Function,
    /// A file that functions are in, or the kernel
    Object,
    /// A thread
    Thread,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Tree {
    Callees,
    Callers,
}

const NEEDED: Needed = Needed {
    what: "with samples",
    names: &["profile:sample"],
    how: How::Option("--profile", "nothing ran for long enough to be met"),
};

const COUNTERS: Needed = Needed { what: "with counters", names: &["profile:counters"], how: NEEDED.how };

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut profile = Profile::new();
    let ran = args.input.analyse(&mut profile)?;
    let found = named(profile.finish(&ran));
    let mut out = screen::stdout(args.format.into());
    let is_empty = found.count() == 0;
    match (&args.flame_graph, args.tree) {
        (Some(_), _) if is_empty => bail!(NEEDED.why_nothing(&args.input, &ran)?),
        (Some(path), _) => draw(&found, path, &mut out)?,
        _ if args.counters => print(args, counters(&found), "counters", &found, &mut out)?,
        (None, Some(tree)) => {
            let lines = found.tree(tree == Tree::Callers, args.least);
            print(args, of_tree(&lines, args.format), "tree", &found, &mut out)?;
        }
        (None, None) => {
            let group = match args.by {
                By::Function => Group::Function,
                By::Object => Group::Object,
                By::Thread => Group::Thread,
            };
            let rows = found.histogram(group);
            match args.format {
                TableFormat::Table => print_histograms(args, &rows, &found, &mut out)?,
                _ => print(args, of_rows(&rows, args.by, &found, args.format), "profile", &found, &mut out)?,
            }
        }
    }
    match args.counters {
        true if found.samples().counters.is_empty() => {
            COUNTERS.tell(&mut out, args.format, &args.input, &ran)?;
        }
        false if is_empty => NEEDED.tell(&mut out, args.format, &args.input, &ran)?,
        _ => {}
    }
    out.flush()?;
    Ok(conclude(ran))
}

/// The samples, with the names that files have for functions.
fn named(samples: Samples) -> Shown {
    let mut symbols = Symbols::new();
    let mut others = BTreeSet::new();
    let named = samples.name(&mut |image, offset| {
        if symbols.is_another(&image.path, &image.build_id) {
            others.insert(image.path.clone());
        }
        symbols.at_offset(&image.path, &image.build_id, offset).map(|symbol| symbol.name.to_owned())
    });
    for path in others {
        print_warning(&format!(
            "{path} is not the file that was recorded (its build id is another): no names of its functions"
        ));
    }
    named
}

fn print(args: &Args, mut table: Table, name: &str, found: &Shown, out: &mut impl Write) -> Result<()> {
    table.arrange(&args.order)?;
    let samples = found.samples();
    let (chains, cut) = found.chains();
    let members = [
        ("duration_ns", Cell::Ns(samples.duration_ns)),
        ("samples", Cell::Count(found.count())),
        ("lost", Cell::Count(samples.lost)),
        ("chains", Cell::Count(chains)),
        ("cut_chains", Cell::Count(cut)),
        ("trigger", samples.trigger.as_str().into()),
        ("hertz", Cell::Count(samples.hertz)),
    ];
    table.write(out, args.format, (name, &members), |out| print_totals(out, found))?;
    Ok(())
}

/// As in Figure 6 of K42's paper: a histogram for each process, with the program that it runs.
fn print_histograms(args: &Args, rows: &[Row], found: &Shown, out: &mut impl Write) -> Result<()> {
    let all = found.count();
    // How many processes are left out, and their samples.
    let mut others = (0, 0);
    for rows in rows.chunk_by(|a, b| a.process == b.process) {
        let Some(first) = rows.first() else { continue };
        if (first.of as f64) * 100.0 < args.least * all as f64 {
            others = (others.0 + 1, others.1 + first.of);
            continue;
        }
        let process = first.process.map_or("unknown".to_owned(), |process| process.to_string());
        let name =
            if first.process_name.is_empty() { String::new() } else { format!(" ({})", first.process_name) };
        let program = found.program(first.process).map(|path| format!(", mapped file {path}"));
        let title = format!("process {process}{name}{}", program.unwrap_or_default());
        writeln!(out, "{}: {}", shown(&title), samples(first.of))?;
        let mut table = of_rows(rows, args.by, found, args.format);
        table.arrange(&args.order)?;
        let names: Vec<_> = IN_HISTOGRAM.iter().copied().chain(["thread", "thread_name"]).collect();
        table.keep(|head| names.contains(&head.name));
        table.print(out)?;
        writeln!(out)?;
    }
    if others.0 > 0 {
        writeln!(
            out,
            "{} more with {} together (--least 0 has them)",
            processes(others.0),
            samples(others.1)
        )?;
    }
    Ok(print_totals(out, found)?)
}

/// The columns that a histogram of one process has.
const IN_HISTOGRAM: [&str; 7] =
    ["own", "own_percent", "total", "total_percent", "time_ns", "function", "object"];

fn of_rows(rows: &[Row], by: By, found: &Shown, format: TableFormat) -> Table {
    // For people the file's name will do.
    let object = |function: &Function| match format {
        TableFormat::Table => function.object_name().into(),
        _ => function.object.as_str().into(),
    };
    let is_time = found.samples().trigger != "cycles";
    let what: &[Head] = match by {
        By::Function => &[text("function", "function"), text("object", "object")],
        By::Object => &[text("object", "object")],
        By::Thread => &[figure("thread", "thread"), text("name", "thread_name")],
    };
    let figures = [
        figure("process", "process"),
        text("name", "name"),
        hidden("program"),
        figure("own", "own"),
        figure("%", "own_percent"),
        figure("total", "total"),
        figure("%", "total_percent"),
        if is_time { figure("time", "time_ns") } else { figure("cycles", "cycles") },
    ];
    let mut table = Table::by_position([&figures[..], what].concat());
    for row in rows {
        let what = match by {
            By::Function => vec![Cell::Text(row.function.shown()), object(&row.function)],
            By::Object => vec![object(&row.function)],
            By::Thread => vec![row.tid.into(), Cell::Text(found.thread_name(row.tid))],
        };
        let figures = vec![
            row.process.into(),
            row.process_name.as_str().into(),
            found.program(row.process).map_or(Cell::None, Cell::from),
            Cell::Count(row.own),
            percent(row.own, row.of),
            Cell::Count(row.total),
            percent(row.total, row.of),
            if is_time { Cell::Period(row.period) } else { Cell::Count(row.period) },
        ];
        table.push([figures, what].concat());
    }
    table
}

fn of_tree(lines: &[TreeLine], format: TableFormat) -> Table {
    let mut table = Table::by_position([
        figure("process", "process"),
        text("name", "name"),
        figure("total", "total"),
        figure("%", "total_percent"),
        figure("own", "own"),
        hidden("depth"),
        text("function", "function"),
        hidden("object"),
    ]);
    for line in lines {
        // For people the depth is seen.
        let indentation = if format == TableFormat::Table { "  ".repeat(line.depth) } else { String::new() };
        table.push(vec![
            line.process.into(),
            line.process_name.as_str().into(),
            Cell::Count(line.total),
            percent(line.total, line.of),
            Cell::Count(line.own),
            Cell::Count(line.depth as u64),
            Cell::Text(format!("{indentation}{}", line.function.shown())),
            line.function.object.as_str().into(),
        ]);
    }
    table
}

fn counters(found: &Shown) -> Table {
    let mut table = Table::by_position([text("counter", "counter"), figure("value", "value")]);
    for (name, value) in &found.samples().counters {
        table.push(vec![name.as_str().into(), Cell::Count(*value)]);
    }
    table
}

fn percent(part: u64, of: u64) -> Cell {
    Cell::Rate(part as f64 * 100.0 / of.max(1) as f64)
}

fn draw(found: &Shown, path: &Path, out: &mut impl Write) -> Result<()> {
    flame_graph::write(path, "tracewing profile", "samples", &found.folded())?;
    writeln!(out, "{}: a flame graph of {}", shown(&path.display().to_string()), samples(found.count()))?;
    Ok(print_totals(out, found)?)
}

fn samples(count: u64) -> String {
    if count == 1 { "1 sample".to_owned() } else { format!("{count} samples") }
}

fn processes(count: usize) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

fn print_totals(out: &mut impl Write, found: &Shown) -> IoResult<()> {
    let all = found.samples();
    if found.count() == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "{} of {} in {} ms ({}, {} Hz), {} lost",
        samples(found.count()),
        processes(found.processes()),
        milliseconds(all.duration_ns),
        all.trigger,
        all.hertz,
        all.lost
    )?;
    match found.chains() {
        (_, 0) => Ok(()),
        (chains, cut) => writeln!(
            out,
            "{cut} of {chains} call chains of programs are cut: some function on the way was compiled without frame pointers"
        ),
    }
}
