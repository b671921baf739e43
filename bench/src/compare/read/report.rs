//! Prints what was measured, and writes it as a page.

use super::{Measured, Task};
use crate::compare::figures::Rounds;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

const PAGE: &str = "performance-read.md";

/// What is compared with what, and how many times as fast the second has to be.
const RATIOS: [(&str, Task, Task, Option<f64>); 8] = [
    ("every field, babeltrace2/tracewing", Task::TheirFields, Task::Fields, Some(20.0)),
    ("every field, babeltrace2/tracewing merged", Task::TheirFields, Task::Merged, Some(20.0)),
    ("text, babeltrace2/tracewing", Task::TheirText, Task::Text, Some(15.0)),
    ("events of a name, babeltrace2/tracewing", Task::TheirCount, Task::Count, None),
    ("list, one CPU/all CPUs", Task::Text, Task::TextOnAll, Some(1.6)),
    ("stats, one CPU/all CPUs", Task::Stats, Task::StatsOnAll, Some(1.6)),
    ("convert, one CPU/all CPUs", Task::Convert, Task::ConvertOnAll, Some(1.6)),
    ("every field/plain bytes", Task::Fields, Task::Bytes, None),
];

type Machine = [(&'static str, String)];

/// For a terminal; the ratios are the last lines.
pub fn print(machine: &Machine, measured: &[Measured]) {
    for (word, text) in machine {
        println!("{word}: {text}");
    }
    for trace in measured {
        println!("\n{}: {} events, {} bytes", trace.title, trace.events, trace.bytes);
        println!("{:50} {:>9} {:>9} {:>9} {:>9} {:>9}", "", "s", "min", "max", "ns/event", "peak MiB");
        for (task, ..) in &trace.tasks {
            let (median, least, most, ns, _, peak) = figures(trace, *task);
            println!("{:50} {median:9.3} {least:9.3} {most:9.3} {ns:9.1} {peak:9.1}", task.title());
        }
        for (title, ratio, _) in ratios(trace) {
            let (least, most) = ratio.range();
            println!("ratio {title}: {:.2} ({least:.2} to {most:.2})", ratio.median());
        }
    }
    println!();
    for Bound { title, least, ratio, holds } in bounds(measured) {
        let verdict = if holds { "holds" } else { "fails" };
        println!("required: {title}: {:.1}, at least {least}: {verdict}", ratio.median());
    }
    let first = |task, other| measured.first().and_then(|trace| trace.ratio(task, other));
    println!();
    for (name, task, other) in
        [("read", Task::TheirFields, Task::Fields), ("text", Task::TheirText, Task::Text)]
    {
        if let Some(ratio) = first(task, other) {
            println!("ratio babeltrace2/tracewing {name}: {:.1}", ratio.median());
        }
    }
}

/// Seconds (median, least, most), nanoseconds for an event, MB in a second, and most MiB.
fn figures(trace: &Measured, task: Task) -> (f64, f64, f64, f64, f64, f64) {
    let seconds = trace.seconds(task).unwrap_or_default();
    let (median, (least, most)) = (seconds.median(), seconds.range());
    let runs = trace.tasks.iter().filter(|(other, _)| *other == task).flat_map(|(_, runs)| runs);
    let peak = runs.map(|took| took.peak).fold(0.0, f64::max);
    (median, least, most, median * 1e9 / trace.events as f64, trace.bytes as f64 / 1e6 / median, peak)
}

/// What is required of a ratio.
struct Bound {
    title: String,
    least: f64,
    ratio: Rounds,
    holds: bool,
}

/// What is required, of every trace that babeltrace2 reads.
fn bounds(measured: &[Measured]) -> Vec<Bound> {
    let of_trace = |trace: &Measured| {
        let bounds = ratios(trace).into_iter().filter_map(|(title, ratio, least)| {
            let (title, least) = (format!("{}: {title}", trace.title), least?);
            Some(Bound { title, least, holds: ratio.median() >= least, ratio })
        });
        bounds.collect::<Vec<_>>()
    };
    measured.iter().flat_map(of_trace).collect()
}

fn ratios(trace: &Measured) -> Vec<(&'static str, Rounds, Option<f64>)> {
    let ratio = |(title, task, other, bound)| Some((title, trace.ratio(task, other)?, bound));
    RATIOS.into_iter().filter_map(ratio).collect()
}

pub fn write(machine: &Machine, measured: &[Measured], rounds: u32, folder: &Path) -> Result<()> {
    let mut text = String::new();
    writeln!(
        text,
        "# What reading costs\n\n\
        Written by `cargo xtask bench read --page`, which measured all sides in one run, in turn, round by round, \
        on one CPU if a row does not say otherwise, with the files in memory. Times are wall-clock times from the \
        start of the process to its end; ratios are taken round by round. Figures are medians over {rounds} rounds; \
        the spread is from the smallest to the largest round. Other machines have other figures: run the command on \
        yours. Where a bound is missed, [where reading spends its time](../explanation/reading.md) says why.\n\n| | |\n|---|---|"
    )?;
    for (word, value) in machine {
        writeln!(text, "| {word} | {value} |")?;
    }
    writeln!(text, "\n## What is required\n\n| | required | measured | spread | |\n|---|--:|--:|---|---|")?;
    for Bound { title, least, ratio, holds } in bounds(measured) {
        let (low, high) = ratio.range();
        let verdict = if holds { "holds" } else { "**fails**" };
        writeln!(text, "| {title} | {least} | {:.1} | {low:.1} to {high:.1} | {verdict} |", ratio.median())?;
    }
    for trace in measured {
        writeln!(
            text,
            "\n## {}{}\n\n{} events, {} bytes.\n\n\
            | | s | spread | ns per event | MB/s | peak MiB |\n|---|--:|--:|--:|--:|--:|",
            trace.title[..1].to_uppercase(),
            &trace.title[1..],
            trace.events,
            trace.bytes
        )?;
        for (task, ..) in &trace.tasks {
            let (median, least, most, ns, rate, peak) = figures(trace, *task);
            let title = task.title().replace('|', "\\|");
            writeln!(
                text,
                "| {title} | {median:.3} | {least:.3} to {most:.3} | {ns:.1} | {rate:.0} | {peak:.1} |"
            )?;
        }
        writeln!(text, "\n| ratio | | spread |\n|---|--:|--:|")?;
        for (title, ratio, _) in ratios(trace) {
            let (least, most) = ratio.range();
            writeln!(text, "| {title} | {:.2} | {least:.2} to {most:.2} |", ratio.median())?;
        }
    }
    let path = folder.join(PAGE);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
