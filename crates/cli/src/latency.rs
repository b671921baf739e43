//! `tracewing latency`: how long it takes from one event to another, as tables, JSON or CSV.

mod args;
mod rows;
mod worst;

pub use args::Args;

use crate::across;
use crate::format::TableFormat;
use crate::input::{Input, conclude, warn_of_losses};
use crate::no_result::{ANY, say};
use crate::output::{print_warning, shown};
use crate::parts::{Part, RECORD_KERNEL, RECORD_TASKS, Wakeless, explain_missing};
use crate::progress::Watch;
use crate::screen;
use crate::table::reference::View;
use crate::table::{Cell, Column, First, Head, Layout, Table, check, heads, write_json};
use anyhow::{Result, bail, ensure};
use args::Show;
use serde::Serialize;
use std::collections::HashMap;
use std::io::{Result as IoResult, Write};
use std::process::ExitCode;
use tracewing_analysis::{self as analysis, Latency, LatencyTable, Period, Question, Ran};
use tracewing_rules::{Glob, Scope, Variable};
use tracewing_trace::super_trace::Column as Derived;
use tracewing_trace::{Filter, TimePoint};

/// Events for the worst periods that a recording may lack.
const PARTS: [Part; 4] = [
    Part::switches("what threads did in the worst periods is unknown"),
    Part::system_calls("what threads did on CPUs in the worst periods is `running`"),
    Part::wakes("when threads were blocked or ready in the worst periods, and what woke them, is unknown"),
    Part::interrupts("their time in the worst periods is attributed to the threads that they interrupted"),
];

/// The same of tasks.
const TASK_WAKES: Part = Part::task_wakes(
    "in the worst periods, a task is `blocked` during waits that it reports, until its next poll, though it may have \
     been ready earlier; the rest of its time between polls is unknown",
);

/// What that means for tasks that only hooks know.
const HOOKED: &str = "a task is then `blocked` during waits that it reports, until its next poll, though it may have been ready \
                      earlier; the rest of its time between polls is unknown";

/// Of periods that a filter tears.
const LEFT_OUT: &str = "periods are left out, since only one of their events is on the chosen CPUs (with $cpu in --match, each CPU is paired alone)";

/// The same of an extract, or a condition, where it is not known what is on other CPUs.
const EXTRACT: &str =
    "Periods may be wrong: only some CPUs were read, and begins or ends on others may belong to these.";

const TASK_SWITCHES: Part = Part::task_switches("which task a period belongs to is unknown");

pub fn run(args: &Args) -> Result<ExitCode> {
    let format = args.format.format;
    let show = parts_to_show(args)?;
    check(&args.sort, &args.choice, &show.iter().map(|part| heads_of(*part)).collect::<Vec<_>>())?;
    let question = Question {
        begin: args.begin.clone(),
        end: args.end.clone(),
        by: args.matched.clone(),
        group: args.by.clone(),
        nesting: args.nested.into(),
        worst: if show.contains(&Show::Worst) { args.worst } else { 0 },
    };
    let (table, ran) = find(&question, &args.input)?;
    let mut out = screen::stdout(format.into());
    match format {
        TableFormat::Table => print(&mut out, &table, &show, args)?,
        TableFormat::Json => write_document(&mut out, &table, &show, args)?,
        TableFormat::Csv => show.iter().try_for_each(|part| of_part(*part, &table, args).csv(&mut out))?,
    }
    let periods = table.distribution.count + table.unmatched_begins + table.unmatched_ends;
    if periods + table.without_key == 0
        && let Some(why) = ANY.why_no_event(&args.input)?
    {
        say(&mut out, format, &why)?;
    }
    explain_left_out(args, &mut out)?;
    if show.contains(&Show::Worst) && table.worst.iter().any(|period| period.lwp.is_some()) {
        explain_missing(&PARTS, RECORD_KERNEL, &mut out, format, &args.input)?;
    }
    explain_tasks(args, show.contains(&Show::Worst), &table, &ran, &mut out)?;
    out.flush()?;
    if !ran.stopped {
        warn_of_locks(&table, &args.input)?;
    }
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

/// Says what is not known of tasks, where the answer has any.
fn explain_tasks(
    args: &Args,
    shows_worst: bool,
    table: &LatencyTable,
    ran: &Ran,
    out: &mut impl Write,
) -> Result<()> {
    let tasks = || table.worst.iter().filter_map(|period| period.user_thread.as_ref());
    let has_tasks = shows_worst && tasks().next().is_some();
    let is_task =
        |variable: &Variable| variable.scope == Scope::Context && variable.name == Derived::Task.name();
    let by_task = args.by.iter().any(is_task);
    let mut wakeless = Wakeless::default();
    if has_tasks {
        let mut each: HashMap<_, (bool, bool)> = HashMap::new();
        for task in tasks() {
            let (lacks_wakes, hooked) = each.entry(&task.actor).or_default();
            *lacks_wakes |= task.wakeups.is_none();
            *hooked |= task.hooked;
        }
        let counts = each.values().map(|(lacks_wakes, hooked)| (1, *lacks_wakes, *hooked));
        wakeless = Wakeless::of(counts, ran, &args.input)?;
        wakeless.explain(HOOKED, out, args.format.format)?;
    }
    let parts =
        [(wakeless.unrecorded, TASK_WAKES), (by_task && ran.recorded.lacks_user_switches, TASK_SWITCHES)];
    let parts: Vec<Part> = parts.into_iter().filter(|(lacks, _)| *lacks).map(|(_, part)| part).collect();
    explain_missing(&parts, RECORD_TASKS, out, args.format.format, &args.input)
}

/// Says which begins and ends of periods an extract leaves out.
fn explain_left_out(args: &Args, out: &mut impl Write) -> Result<()> {
    let (recording, _) = args.input.open()?;
    let left_out = recording.left_out();
    for (what, pattern) in [("begin", &args.begin), ("end", &args.end)] {
        let name = pattern.name();
        if left_out.iter().any(|class| Glob::new(name).matches(class)) {
            let why = format!(
                "The recording lacks some events {}: periods that they {what} are missing.",
                shown(name)
            );
            say(out, args.format.format, &why)?;
        }
    }
    Ok(())
}

const EVERYTHING: [Show; 4] = [Show::Figures, Show::Groups, Show::Histogram, Show::Worst];

/// The tables to print: those that `--show` names, otherwise all that the other options produce.
fn parts_to_show(args: &Args) -> Result<Vec<Show>> {
    let show = match (&args.show[..], args.format.format) {
        ([_, _, ..], TableFormat::Csv) => {
            bail!("CSV is one table: give --show one of figures, groups, histogram, worst")
        }
        ([], TableFormat::Csv) if args.by.is_empty() => vec![Show::Figures],
        ([], TableFormat::Csv) => vec![Show::Groups],
        ([], TableFormat::Json) => EVERYTHING.to_vec(),
        ([], TableFormat::Table) => {
            let mut show = EVERYTHING.to_vec();
            show.retain(|part| match part {
                Show::Groups => !args.by.is_empty(),
                Show::Worst => args.worst > 0,
                _ => true,
            });
            show
        }
        (show, _) => show.to_vec(),
    };
    let is_asked = args.show.contains(&Show::Groups);
    ensure!(!is_asked || !args.by.is_empty(), "--show groups needs --by, which says what a group is");
    Ok(show)
}

/// Finds the periods, and in a second pass over the recording what the longest ones consist of: which these
/// are is known only at the end of the first.
fn find(question: &Question, input: &Input) -> Result<(LatencyTable, Ran)> {
    let (recording, filter) = input.open()?;
    let watch = Watch::new()?;
    let mut latency = Latency::new(question, recording)?.filtered(question, &filter, recording)?;
    let remarks = [&question.begin, &question.end].into_iter().filter_map(|side| side.remark(recording));
    remarks.for_each(|line| print_warning(&line));
    let mut ran = analysis::run(recording, &filter, &mut latency, &mut |progress| watch.show(progress))?;
    let (mut table, mut episodes) = latency.finish();
    if let Some(until) = episodes.until().filter(|_| !ran.stopped) {
        let (from, to) = (filter.from, Some(TimePoint::Absolute(until)));
        let filter = Filter { from, to, zone: filter.zone, ..Filter::default() };
        let again = analysis::run(recording, &filter, &mut episodes, &mut |progress| watch.show(progress))?;
        if !again.stopped {
            episodes.finish(&mut table, &again);
        }
        ran.failure = ran.failure.or(again.failure);
    }
    Ok((table, ran))
}

/// Warns of locks that were held across an `.await` while the worst periods lasted, if their tasks waited for
/// such.
fn warn_of_locks(table: &LatencyTable, input: &Input) -> Result<()> {
    let waits_for = |period: &Period, kind: &str| {
        let task = period.user_thread.as_ref();
        task.is_some_and(|task| task.times.blocked_on.iter().any(|part| part.on.as_deref() == Some(kind)))
    };
    let waits = || table.worst.iter().filter(|period| period.user_thread.is_some());
    let [Some(from), Some(to)] =
        [waits().map(|period| period.begin.ns).min(), waits().map(|period| period.end.ns).max()]
    else {
        return Ok(());
    };
    let filter = Filter {
        from: Some(TimePoint::Absolute(from)),
        to: Some(TimePoint::Absolute(to)),
        ..Filter::default()
    };
    across::warn(input, &filter, |across| {
        waits().any(|period| period.end.process == across.process && waits_for(period, across.kind))
    })
}

fn print(out: &mut impl Write, table: &LatencyTable, show: &[Show], args: &Args) -> IoResult<()> {
    for (place, part) in show.iter().enumerate() {
        if place > 0 {
            writeln!(out)?;
        }
        match part {
            Show::Worst if args.choice.columns.is_empty() => worst::print(out, table, &args.input)?,
            show => of_part(*show, table, args).print(out)?,
        }
    }
    let LatencyTable { distribution, unmatched_begins, unmatched_ends, .. } = table;
    writeln!(
        out,
        "\n{} periods; unmatched: {unmatched_begins} begin events, {unmatched_ends} end events",
        distribution.count
    )?;
    let remarks = [
        (table.without_key, "begins or ends have nothing to match them by"),
        (table.across_losses, "periods have losses of events in them, and may be wrong"),
        (table.across_left_out.unwrap_or(0), LEFT_OUT),
        (table.forgotten, "begins were dropped, as too many were open at once"),
    ];
    for (count, remark) in remarks.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "{count} {remark}")?;
    }
    if table.across_left_out.is_none() && distribution.count > 0 {
        writeln!(out, "{EXTRACT}")?;
    }
    if distribution.quantile_error > 0.0 {
        writeln!(out, "The quantiles are within {} %.", distribution.quantile_error * 100.0)?;
    }
    Ok(())
}

pub fn views() -> Vec<View> {
    vec![
        View::new("latency", heads(rows::columns_of_all())),
        View::new("latency --by", heads(rows::columns_of_groups())),
        View::new("latency --show histogram", heads(rows::columns_of_bins())),
        View::new("latency --show worst", heads(rows::columns_of_worst())),
    ]
}

fn heads_of(part: Show) -> Vec<Head> {
    match part {
        Show::Figures => heads(rows::columns_of_all()),
        Show::Groups => heads(rows::columns_of_groups()),
        Show::Histogram => heads(rows::columns_of_bins()),
        Show::Worst => heads(rows::columns_of_worst()),
    }
}

/// A part of the output as a table.
fn of_part(part: Show, table: &LatencyTable, args: &Args) -> Table {
    match part {
        Show::Figures => layout(args, &rows::columns_of_all()).table(&[rows::all(table)]),
        Show::Groups => {
            layout(args, &rows::columns_of_groups()).table(&rows::groups(&table.groups, &args.by))
        }
        Show::Histogram => layout(args, &rows::columns_of_bins()).table(&rows::bins(&table.distribution)),
        Show::Worst => layout(args, &rows::columns_of_worst()).table(&rows::worst(table, args.input.zone())),
    }
}

fn layout<R>(args: &Args, columns: &[Column<R>]) -> Layout<R> {
    Layout::of_part(columns, &args.sort, First::default(), &args.choice, args.format.format)
}

/// A value of the JSON document.
#[derive(Serialize)]
#[serde(untagged)]
enum Member<'t> {
    Figure(Cell),
    Rows(Table),
    /// All that is known of them, which is more than the columns have.
    Periods(&'t [Period]),
}

/// One object: the figures are its members, all else are lists in it.
fn write_document(out: &mut impl Write, table: &LatencyTable, show: &[Show], args: &Args) -> IoResult<()> {
    let mut members = Vec::new();
    if show.contains(&Show::Figures) {
        let figures = of_part(Show::Figures, table, args).into_members();
        members.extend(figures.map(|(name, cell)| (name, Member::Figure(cell))));
    }
    let lists = [(Show::Histogram, "histogram"), (Show::Groups, "groups"), (Show::Worst, "worst")];
    for (part, name) in lists.into_iter().filter(|(part, _)| show.contains(part)) {
        let list = match part {
            Show::Worst if args.choice.columns.is_empty() => Member::Periods(&table.worst),
            part => Member::Rows(of_part(part, table, args)),
        };
        members.push((name, list));
    }
    let tables: &[(&str, Table)] = &[];
    write_json(out, tables, &members)
}
