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
        Times are CPU time of the measured threads, so that other programs on the machine do not count; ratios are \
        taken round by round, so that what changes on the machine from one round to the next cancels out. Figures \
        are medians over the rounds; the spread is from the least round to the most. Your machine has other \
        figures: run it there.\n"
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
        Every recorder keeps a flight recorder of 4 sub-buffers of 1 MiB for each CPU, and every event carries a time \
        stamp, the thread id and two `u64`, unless its row says otherwise. All run on CPU {}, in bursts of as many events \
        as fit into a sub-buffer, one side after the other, {} bursts a round; rows that no bound looks at are in \
        every sixth. Counted is the emitting thread alone, not what a tracer does in threads and processes of its own \
        (tracing-chrome formats its text in one). The schemes are those that the papers compare with, written for this purpose \
        (`bench/src/baseline`); they record into memory of one process and leave out losses, readers and nesting.\n\n\
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
        The CPU time of all threads, divided by their events, in ns; in brackets, divided by what an `rdtsc` costs as \
        many threads in a loop of nothing else.\n\n![cost by threads](performance/threads.svg)\n"
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
        One thread emits as fast as it can; what the recorder cannot keep up with is lost, and counted. Beside it, in \
        turn, a plain loop of 1 MiB writes to a file in the same folder. Before each run the page cache was {cache}. \
        Of what a recording has kept, 4 MiB are not counted, since its buffer may have been written out after the end. \
        Unlike the rest, this is time on the wall, of two processes that want a CPU each: it needs a machine with nothing \
        else to do.\n\n\
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
        Each of a process's first {} events timed by itself, in ns, with a fence and `rdtsc` on both sides: the row \
        \"nothing\" is what that costs. All rounds together, each in new processes. Interrupts and other programs are in it; \
        page faults and system calls are those of the measured thread, in its first event + in all others, over all \
        rounds.\n\n![latency](performance/latency.svg)\n",
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
