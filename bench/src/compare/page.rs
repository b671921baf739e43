//! Writes the page: tables in Markdown, and plots in the same folder.

use crate::compare::bounds::{self, Bound};
use crate::compare::disk::Side;
use crate::compare::figures::{Rounds, percentile};
use crate::compare::latency::SHARES;
use crate::compare::plot;
use crate::compare::record::Results;
use crate::compare::threads::THREADS;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

/// The page's name, and its plots' folder.
const PAGE: &str = "performance.md";
const PLOTS: &str = "performance";

/// Writes `performance.md` and `performance/*.svg` into a folder.
pub fn write(results: &Results, bounds: &[Bound], folder: &Path) -> Result<()> {
    let plots = folder.join(PLOTS);
    std::fs::create_dir_all(&plots).with_context(|| format!("cannot create {}", plots.display()))?;
    let mut text = String::new();
    introduction(&mut text, results, bounds)?;
    if results.events.is_some() {
        events(&mut text, results, &plots)?;
    }
    if results.threads.is_some() {
        threads(&mut text, results, &plots)?;
    }
    if results.disk.is_some() {
        disk(&mut text, results, &plots)?;
    }
    if results.latency.is_some() {
        latency(&mut text, results, &plots)?;
    }
    let path = folder.join(PAGE);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn introduction(text: &mut String, results: &Results, bounds: &[Bound]) -> Result<()> {
    writeln!(
        text,
        "# What recording costs\n\n\
        Written by `cargo xtask bench record --page`, which measured all sides in one run, in turn, round by round. \
        Times are CPU time of the measured threads, so other programs on the machine do not count. Ratios are taken \
        round by round, so changes of the machine between rounds cancel out. Figures are medians over the rounds; \
        the spread is from the smallest to the largest round. Other machines have other figures: run the command on \
        yours.\n"
    )?;
    writeln!(text, "| | |\n|---|---|")?;
    for (word, value) in &results.machine {
        writeln!(text, "| {word} | {value} |")?;
    }
    writeln!(text, "\n## What is required\n\n| | required | measured (spread) | |\n|---|---|---|---|")?;
    for Bound { what, limit, measured, holds } in bounds {
        let verdict = if *holds { "holds" } else { "**fails**" };
        writeln!(text, "| {what} | {limit} | {measured} | {verdict} |")?;
    }
    Ok(())
}

fn events(text: &mut String, results: &Results, plots: &Path) -> Result<()> {
    let Some(events) = &results.events else { return Ok(()) };
    plot::events(events, &plots.join("events.svg"))?;
    writeln!(
        text,
        "\n## One event, one thread\n\n\
        Every recorder keeps a flight recorder of 4 sub-buffers of 1 MiB for each CPU, and every event carries a \
        time stamp, the thread id and two `u64`, unless its row says otherwise. All run on CPU {}, one side after \
        the other, {} bursts per round, each of as many events as fit into a sub-buffer; rows that no requirement \
        uses are measured in every sixth burst. Only the emitting thread is measured, not what a tracer does in its \
        own threads and processes (tracing-chrome formats its text in one). The other schemes are those that the \
        papers compare with, written for this purpose (`bench/src/baseline`); they record into memory of one \
        process and leave out losses, readers and nesting.\n\n\
        ![ns for one event](performance/events.svg)\n\n| | ns | spread |\n|---|--:|--:|",
        events.cpu, events.bursts
    )?;
    for (group, rows) in events.groups() {
        writeln!(text, "| **{group}** | | |")?;
        for row in rows {
            writeln!(text, "| {} | {} |", row.title, cells(&row.rounds))?;
        }
    }
    for ratio in bounds::ratios(events) {
        writeln!(text, "| ratio {} | {} |", ratio.name, cells(&ratio.rounds))?;
    }
    Ok(())
}

fn threads(text: &mut String, results: &Results, plots: &Path) -> Result<()> {
    let Some(threads) = &results.threads else { return Ok(()) };
    plot::threads(threads, &plots.join("threads.svg"))?;
    writeln!(
        text,
        "\n## Several threads\n\n\
        The CPU time of all threads, divided by their events, in ns. In parentheses: divided by the cost of an \
        `rdtsc` in a loop of nothing else, with the same number of threads.\n\n![cost by \
        threads](performance/threads.svg)\n"
    )?;
    write!(text, "| threads |")?;
    THREADS.iter().try_for_each(|threads| write!(text, " {threads} |"))?;
    write!(text, "\n|---|")?;
    THREADS.iter().try_for_each(|_| write!(text, "--:|"))?;
    writeln!(text)?;
    for series in &threads.series {
        write!(text, "| {} |", series.title)?;
        let units = threads.in_rdtsc(series.key).unwrap_or_default();
        for (cost, units) in series.cost.iter().zip(&units) {
            write!(text, " {:.1} ({:.2}) |", cost.median(), units.median())?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn disk(text: &mut String, results: &Results, plots: &Path) -> Result<()> {
    let Some(disk) = &results.disk else { return Ok(()) };
    plot::disk(disk, &plots.join("disk.svg"))?;
    let cache = if disk.dropped { "dropped" } else { "written out, not dropped (that needs root)" };
    writeln!(
        text,
        "\n## To disk\n\n\
        One thread emits as fast as it can. What the recorder cannot write in time is lost, and counted. This takes \
        turns with a plain loop that writes 1 MiB at a time to a file in the same folder. The page cache is {cache} \
        before each run. 4 MiB of each recording are not counted, since its buffer may have been written after the \
        end. Unlike the rest, these are wall-clock times of two processes that need a CPU each, so the machine must \
        be idle otherwise.\n\n\
        ![bytes kept per second](performance/disk.svg)\n\n| | median | spread |\n|---|--:|--:|\n\
        | plain loop, MB/s | {} |",
        cells(&disk.plain.times(1e-6))
    )?;
    let mut side = |name: &str, side: &Side| -> Result<()> {
        writeln!(text, "| {name}, MB/s | {} |", cells(&side.kept.times(1e-6)))?;
        writeln!(text, "| {name}, % of events kept | {} |", cells(&side.share.times(100.0)))?;
        writeln!(text, "| {name}, bytes per event | {} |", cells(&side.event_bytes))?;
        Ok(())
    };
    side("tracewing", &disk.own)?;
    if let Some(lttng) = &disk.lttng {
        side("LTTng-UST", lttng)?;
    }
    Ok(())
}

fn latency(text: &mut String, results: &Results, plots: &Path) -> Result<()> {
    let Some(latency) = &results.latency else { return Ok(()) };
    plot::latency(latency, results.frequency, &plots.join("latency.svg"))?;
    writeln!(
        text,
        "\n## Single events\n\n\
        Each of a process's first {} events is timed by itself, in ns, with a fence and `rdtsc` on both sides; the \
        row \"nothing\" is what that costs. The figures are of all rounds together, each in new processes, and \
        include interrupts and other programs. Page faults and system calls are those of the measured thread over \
        all rounds: in its first event + in all others.\n\n![latency](performance/latency.svg)\n",
        latency.events
    )?;
    write!(text, "| |")?;
    SHARES.iter().try_for_each(|(name, _)| write!(text, " {name} |"))?;
    write!(text, " page faults | system calls |\n|---|")?;
    SHARES.iter().try_for_each(|_| write!(text, "--:|"))?;
    writeln!(text, "--:|--:|")?;
    for distribution in &latency.distributions {
        write!(text, "| {} |", distribution.title)?;
        for (_, share) in SHARES {
            let cycles = f64::from(percentile(&distribution.samples, *share));
            write!(text, " {:.0} |", cycles / results.frequency)?;
        }
        let pair = |(first, others)| format!("{first} + {others}");
        let calls = distribution.system_calls.map_or("not counted".to_owned(), pair);
        writeln!(text, " {} | {calls} |", pair(distribution.faults))?;
    }
    Ok(())
}

fn cells(rounds: &Rounds) -> String {
    let (least, most) = rounds.range();
    format!("{:.2} | {least:.2} to {most:.2}", rounds.median())
}
