//! The figures as a page, which is what a terminal gets, too.

use super::side::{LTTNG, LTTNG_DAEMON};
use super::{Attached, Recorded, Results, Start};
use crate::compare::figures::Rounds;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

const PAGE: &str = "performance-attach.md";

/// Writes the page into a folder.
pub fn write(results: &Results, folder: &Path) -> Result<()> {
    let path = folder.join(PAGE);
    std::fs::write(&path, text(results)?).with_context(|| format!("cannot write {}", path.display()))
}

pub fn text(results: &Results) -> Result<String> {
    let mut text = String::new();
    writeln!(
        text,
        "# What recording a running program costs\n\n\
        Written by `cargo xtask bench attach --page`: one C program, built plain, with tracewing and with LTTng-UST. All took \
        turns, round by round. Figures are medians over the rounds; the spread is from the least round to the most.\n"
    )?;
    writeln!(text, "| | |\n|---|---|")?;
    for (word, value) in &results.machine {
        writeln!(text, "| {word} | {value} |")?;
    }
    if let Some(version) = &results.lttng {
        writeln!(text, "| LTTng | {version} |")?;
    }
    writeln!(
        text,
        "\n## What it costs while nothing records\n\n\
        A program that waits for the end of its input. Memory is its share of resident pages (Pss).\n\n\
        | | start to exit, ms | threads | descriptors | system calls | memory, MiB |\n|---|--:|--:|--:|--:|--:|"
    )?;
    for Start { title, time, census } in &results.starts {
        let calls = census.system_calls.map_or("-".to_owned(), |calls| calls.to_string());
        let (threads, files) = (census.threads, census.descriptors);
        let resident = census.resident as f64 / 1024.0;
        writeln!(text, "| {title} | {} | {threads} | {files} | {calls} | {resident:.2} |", figure(time, 3))?;
    }
    writeln!(
        text,
        "\n## Recorded while it runs\n\n\
        The program does something each millisecond. Times are from the start of `tracewing record --pid`. Memory is for each process, \
        of 20 that are recorded together: what it has more than before, and of the recorder.\n\n\
        | | first event of the kernel, ms | first event of its own, ms | longest stop, ms | process, MiB | recorder, MiB |\n\
        |---|--:|--:|--:|--:|--:|"
    )?;
    for recorded in &results.recorded {
        writeln!(text, "{}", row(recorded))?;
    }
    writeln!(text)?;
    for lttng in [LTTNG, LTTNG_DAEMON] {
        if let Some(ratio) = results.ratio(lttng) {
            let (least, most) = ratio.range();
            writeln!(
                text,
                "start to exit, added to the plain program: {lttng}/tracewing {:.2} x ({least:.2} to {most:.2})\n",
                ratio.median()
            )?;
        }
    }
    Ok(text.trim_end().to_owned() + "\n")
}

fn row(recorded: &Recorded) -> String {
    let times = |of: fn(&Attached) -> Option<f64>| {
        let all: Vec<f64> = recorded.rounds.iter().filter_map(of).collect();
        if all.is_empty() { "-".to_owned() } else { figure(&Rounds(all), 2) }
    };
    let (kernel, program) = (times(|one| one.kernel), times(|one| one.program));
    let stopped = times(|one| one.stopped);
    let mib = |kib: f64| format!("{:.2}", kib / 1024.0);
    let (process, recorder) = (mib(recorded.memory.process), mib(recorded.memory.recorder));
    format!("| {} | {kernel} | {program} | {stopped} | {process} | {recorder} |", recorded.title)
}

/// Median and spread.
fn figure(rounds: &Rounds, digits: usize) -> String {
    let (least, most) = rounds.range();
    format!("{:.digits$} ({least:.digits$} to {most:.digits$})", rounds.median())
}
