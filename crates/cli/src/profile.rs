//! `tracewing profile`: in which functions programs and the kernel were when samples were taken, and how they
//! came there.

mod rows;

use crate::flame_graph;
use crate::format::TableFormat;
use crate::input::{Input, conclude};
use crate::losses;
use crate::no_result::{How, Needed, say};
use crate::output::{print_note, print_warning, shown};
use crate::parts::{EACH, Part, explain_missing};
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Cell, Table, TableOptions, heads, period};
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::io::{Result as IoResult, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracewing_analysis::profile::{Frames, Group, Image, Profile, Row, Samples, Shown};
use tracewing_programs::symbols::{Named, Symbols};
use tracewing_vocabulary::profile;

const HELP: &str = "\
Examples:
  tracewing record --profile -o my-trace -- ./server
  tracewing profile my-trace
  tracewing profile my-trace --tree
  tracewing profile my-trace --flame-graph server.svg
  tracewing profile my-trace --process shop --where '$mode == \"syscall\"' --from +1s --to +2s

Times are the number of samples multiplied by their period, in ns in JSON and CSV. Names of functions come from the \
files at the recorded paths, if these have not changed since.
";

/// What `tracewing profile` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&views())))]
pub struct Args {
    /// What each row describes
    #[arg(long, value_enum, default_value_t)]
    by: By,

    /// Print call trees instead: from where programs begin (callees), or from the functions to
    /// their callers (callers)
    #[arg(long, value_name = "WHICH", num_args = 0..=1, default_missing_value = "callees", require_equals = true)]
    tree: Option<Tree>,

    /// Leave out branches of trees with less than PERCENT of the process's samples, and in text also
    /// processes with less than PERCENT of all samples
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    least: f64,

    /// Treat functions that the compiler inlined as parts of their callers
    #[arg(long)]
    no_inline: bool,

    /// Draw a flame graph into FILE instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tree", "counters"])]
    flame_graph: Option<PathBuf>,

    /// Print the values of counters instead; of the filters, only --from and --to apply to them
    #[arg(long, conflicts_with = "tree")]
    counters: bool,

    #[command(flatten)]
    table: TableOptions,

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
    names: &[profile::Sample::NAME],
    how: How::Option("--profile", "no thread ran long enough for a sample"),
};

const COUNTERS: Needed = Needed { what: "with counters", names: &[profile::Counters::NAME], how: NEEDED.how };

/// Events about samples that a recording may lack.
const PARTS: [Part; 4] = [
    Part {
        what: "mappings of files (profile:mapping)",
        names: &[profile::Mapping::NAME],
        without: "which functions of programs the samples are in is not known, nor which call chains are cut",
        has_all: EACH,
    },
    Part {
        what: "functions of the kernel (profile:kernel_symbol)",
        names: &[profile::KernelSymbol::NAME],
        without: "they have no names",
        has_all: EACH,
    },
    Part {
        what: "names and programs of threads (profile:thread)",
        names: &[profile::Thread::NAME],
        without: "which file a process executes is not known, and names may be missing",
        has_all: EACH,
    },
    Part {
        what: "new processes (profile:fork)",
        names: &[profile::Fork::NAME],
        without: "which functions they are in is not known before they map files themselves",
        has_all: EACH,
    },
];

/// How there would be all of [`PARTS`].
const RECORD_ALL: &str = "`tracewing record --profile` records all of them.";

/// Said of samples whose periods no processor can have had.
const TOO_LONG: &str = "Samples stand for more time than was recorded: that time is unknown (-)";

/// Said of counters whose growth is unknown.
const CONTRADICTORY: &str = "Values of counters went back, or grew faster than any machine counts: by how much \
                             these counters have grown is unknown (-).";

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut profile = Profile::new();
    let ran = args.input.analyse(&mut profile)?;
    let found = named(profile.finish(&ran), !args.no_inline);
    let mut out = screen::stdout(args.table.format().into());
    let is_empty = found.count() == 0;
    match (&args.flame_graph, args.tree) {
        (Some(_), _) if is_empty => bail!(NEEDED.why_empty(&args.input, &ran)?),
        (Some(path), _) => draw(&found, path, &mut out)?,
        _ if args.counters => {
            let counters = args.table.layout(&rows::counter_columns())?.table(&found.samples().counters);
            print(args, &counters, "counters", &found, &mut out)?;
        }
        (None, Some(tree)) => {
            let lines = found.tree(tree == Tree::Callers, args.least);
            let tree = args.table.layout(&rows::tree_columns())?.table(&lines);
            print(args, &tree, "tree", &found, &mut out)?;
        }
        (None, None) => {
            let group = match args.by {
                By::Function => Group::Function,
                By::Object => Group::Object,
                By::Thread => Group::Thread,
            };
            let rows = found.histogram(group);
            if rows.iter().any(|row| !rows::has_possible_time(row, &found)) {
                print_warning(TOO_LONG);
            }
            match args.table.format() {
                TableFormat::Table => print_histograms(args, &rows, &found, &mut out)?,
                _ => {
                    let layout = args.table.layout(&rows::columns_of(args.by, &found))?;
                    let table = layout.table(&rows::lines(&rows, &found));
                    print(args, &table, "profile", &found, &mut out)?;
                }
            }
        }
    }
    if args.counters && found.samples().counters.iter().any(|(_, grown)| grown.is_none()) {
        say(&mut out, args.table.format(), CONTRADICTORY)?;
    }
    match args.counters {
        true if found.samples().counters.is_empty() => {
            COUNTERS.explain(&mut out, args.table.format(), &args.input, &ran)?;
        }
        false if is_empty => NEEDED.explain(&mut out, args.table.format(), &args.input, &ran)?,
        false => explain_missing(&PARTS, RECORD_ALL, &mut out, args.table.format(), &args.input)?,
        true => {}
    }
    out.flush()?;
    Ok(conclude(ran))
}

/// The samples, with the names that files have for functions, and for those inlined into them.
fn named(samples: Samples, inlined: bool) -> Shown {
    let mut symbols = Symbols::new();
    let mut others = BTreeSet::new();
    let named = samples.name(&mut |image, offset| {
        if symbols.is_replaced(&image.path, &image.build_id) {
            others.insert(image.path.clone());
        }
        let Image { path, build_id } = image;
        let (name, near) = match symbols.function_at(path, build_id, offset) {
            Some(Named::Function(name)) => (Some(name), None),
            Some(Named::Near(name)) => (None, Some(name)),
            None => (None, None),
        };
        let inlined = if inlined { symbols.inlined_at(path, build_id, offset) } else { Vec::new() };
        Frames { inlined, name, near }
    });
    for path in others {
        print_warning(&format!(
            "{path} is not the file that was recorded (its build id differs), so its functions have no names"
        ));
    }
    named
}

fn print(args: &Args, table: &Table, name: &str, found: &Shown, out: &mut impl Write) -> Result<()> {
    let samples = found.samples();
    let (chains, cut) = found.chains();
    let members = [
        ("duration_ns", Cell::Ns(samples.duration_ns)),
        ("samples", Cell::Count(found.count())),
        ("lost_samples", losses::events(&samples.lost)),
        ("least_lost_samples", Cell::Count(samples.lost.least_events)),
        ("chains", Cell::Count(chains)),
        ("cut_chains", cut.map_or(Cell::None, Cell::Count)),
        ("trigger", samples.trigger.as_str().into()),
        ("hertz", Cell::Count(samples.hertz)),
    ];
    table.write(out, args.table.format(), (name, &members), |out| print_totals(out, found))?;
    Ok(())
}

/// As in Figure 6 of K42's paper: a histogram for each process, with the program that it runs.
fn print_histograms(args: &Args, rows: &[Row], found: &Shown, out: &mut impl Write) -> Result<()> {
    let layout = args.table.layout(&rows::columns_of(args.by, found))?;
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
        let program = found.program(first.process).map(|path| format!(", program {path}"));
        let title = format!("process {process}{name}{}", program.unwrap_or_default());
        writeln!(out, "{}: {}", shown(&title), samples(first.of))?;
        layout.table(&rows::lines(rows, found)).print(out)?;
        writeln!(out)?;
    }
    if others.0 > 0 {
        writeln!(
            out,
            "Not shown: {} with {} in total (--least 0 shows them)",
            processes(others.0),
            samples(others.1)
        )?;
    }
    Ok(print_totals(out, found)?)
}

pub fn views() -> Vec<View> {
    vec![
        View::new("profile", heads(rows::columns(By::Function))),
        View::new("profile --by object", heads(rows::columns(By::Object))),
        View::new("profile --by thread", heads(rows::columns(By::Thread))),
        View::new("profile --tree", heads(rows::tree_columns())),
        View::new("profile --counters", heads(rows::counter_columns())),
    ]
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
        "{} of {} in {} ({}, {} Hz), {} lost",
        samples(found.count()),
        processes(found.processes()),
        period(all.duration_ns),
        all.trigger,
        all.hertz,
        losses::number(&all.lost)
    )?;
    match found.chains() {
        (_, None | Some(0)) => Ok(()),
        (chains, Some(cut)) => {
            let cause = match all.copies_stacks {
                true => {
                    "stacks that are larger than their copies (--call-graph dwarf,60K copies most), or code without unwind \
                     tables"
                }
                false => {
                    "functions that were compiled without frame pointers (record with --call-graph dwarf)"
                }
            };
            print_note(out, &format!("{cut} of {chains} call chains of programs are cut short by {cause}"))
        }
    }
}
