//! Writes the page: tables in Markdown.

use super::report::rate;
use super::{Events, PEERS, Results, TASKS};
use crate::compare::bounds::Bound;
use anyhow::{Context, Result};
use std::fmt::{self, Write as _};
use std::path::Path;

const PAGE: &str = "performance-tasks.md";

pub fn write(results: &Results, bounds: &[Bound], folder: &Path) -> Result<()> {
    let mut text = String::new();
    writeln!(
        text,
        "# What recording tasks costs\n\n\
        Written by `cargo xtask bench tasks --page`. The program is Sumtime of *An Efficient Multi-level Trace \
        Toolkit for Multi-threaded Applications* (Danjean, Wacrenier, Namyst, 2005, section 3.3): a binary tree of \
        {} tasks, which do nothing but spawn, join and add, so that no other work hides the cost. Times are CPU \
        time of the thread that runs the tasks (with two workers, of the process), not of tracers' own threads and \
        processes. All sides are measured in turn, round by round; overhead is taken round by round, too. Figures \
        are medians, with the 95 % interval of the median in parentheses. Other machines have other figures: run \
        the command on yours.\n\n\
        | | |\n|---|---|",
        TASKS
    )?;
    for (word, value) in &results.machine {
        writeln!(text, "| {word} | {value} |")?;
    }
    write_bounds(&mut text, bounds)?;
    write_sides(&mut text, results)?;
    write_paper(&mut text, results)?;
    write_peers(&mut text, results)?;
    let path = folder.join(PAGE);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn write_bounds(text: &mut String, bounds: &[Bound]) -> fmt::Result {
    writeln!(text, "\n## What is required\n\n| | required | measured | |\n|---|---|---|---|")?;
    for Bound { what, limit, measured, holds } in bounds {
        let verdict = if *holds { "holds" } else { "**fails**" };
        writeln!(text, "| {what} | {limit} | {measured} | {verdict} |")?;
    }
    Ok(())
}

/// What a task costs with each tracer.
fn write_sides(text: &mut String, results: &Results) -> fmt::Result {
    writeln!(
        text,
        "\n## A task\n\n\
        `creations and switches` are those of tasks; `scheduling events` are the tasks' own (`user_thread:*`) and \
        the kernel's switches and wake-ups; `all events` are these, every system call and interrupt, and entry and \
        exit of every function of the program, which is built for that (`#[tracewing::traced]`). tracewing records \
        into a flight recorder, dial9 into a file, and tokio-console's subscriber for a client that never connects. \
        Each other tracer is compared with plain tokio in a build of its own.\n\n\
        | | ns a task | overhead, % |\n|---|--:|--:|"
    )?;
    for side in &results.sides {
        let overhead = results.overhead(side.key).map_or_else(String::new, |overhead| {
            let (least, most) = overhead.interval();
            format!("{:+.1} ({least:+.1} to {most:+.1})", overhead.median())
        });
        writeln!(text, "| {} | {:.1} | {overhead} |", side.title, side.cost.median())?;
    }
    writeln!(
        text,
        "\n| on one thread | events a task | bytes a task | million events/s |\n|---|--:|--:|--:|"
    )?;
    for Events { key, events, bytes } in &results.events {
        let rate = rate(results, key, *events);
        writeln!(text, "| {key} | {events:.2} | {bytes:.0} | {rate:.1} |")?;
    }
    Ok(())
}

fn write_paper(text: &mut String, results: &Results) -> fmt::Result {
    writeln!(
        text,
        "\n## Compared with the paper\n\n\
        The paper's Table 2 is about Marcel's threads on a machine of its time (two Xeons of 2.8 GHz). The rows are \
        the same degrees of recording here and there; the first row of the paper is context switches alone.\n\n\
        | | the paper | here |\n|---|--:|--:|"
    )?;
    for (key, paper) in [("switches", 23), ("scheduling", 23), ("all", 80)] {
        let overhead = results.overhead(key).map_or(f64::NAN, |overhead| overhead.median());
        writeln!(text, "| {key} | +{paper} % | {overhead:+.1} % |")?;
    }
    Ok(())
}

fn write_peers(text: &mut String, results: &Results) -> fmt::Result {
    writeln!(
        text,
        "\n## Compared with other tracers\n\n\
        dial9's hooks record creations and polls, but not wakes, as `switches` does. Its own `spawn` also records \
        wakes.\n\n\
        | their overhead divided by tracewing's | |\n|---|--:|"
    )?;
    for pair @ (peer, degree) in PEERS {
        if let Some(ratio) = results.ratio(pair) {
            writeln!(text, "| {peer} / {degree} | {ratio:.2} |")?;
        }
    }
    Ok(())
}
