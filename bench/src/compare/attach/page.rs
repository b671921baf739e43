//! The figures as a page, which is what a terminal gets, too.

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
    head(&mut text, results)?;
    starts(&mut text, results)?;
    recordings(&mut text, results)?;
    server(&mut text, results)?;
    costs(&mut text, results)?;
    writeln!(text, "\n## Requirements\n\n| | limit | measured | |\n|---|---|--:|---|")?;
    for bound in results.bounds() {
        let verdict = if bound.holds { "holds" } else { "**fails**" };
        writeln!(text, "| {} | {} | {} | {verdict} |", bound.what, bound.limit, bound.measured)?;
    }
    writeln!(text, "\n## Ratios\n\n| | times |\n|---|--:|")?;
    for (what, ratio) in results.ratios() {
        writeln!(text, "| {what} | {} |", figure(&ratio, 3))?;
    }
    Ok(text)
}

fn head(text: &mut String, results: &Results) -> Result<()> {
    writeln!(
        text,
        "# What recording a running program costs\n\n\
        Written by `cargo xtask bench attach --page`. Figures are medians over the rounds; the spread, in \
        parentheses, is from the smallest to the largest round. The sides that are compared took turns, round by \
        round. Times need an otherwise idle machine.\n"
    )?;
    writeln!(text, "| | |\n|---|---|")?;
    for (word, value) in &results.machine {
        writeln!(text, "| {word} | {value} |")?;
    }
    Ok(())
}

fn starts(text: &mut String, results: &Results) -> Result<()> {
    writeln!(
        text,
        "\n## What it costs to be ready for a recording\n\n\
        A C program that waits for the end of its input: built plain, with tracewing, and with LTTng-UST, so that \
        it can be recorded. System calls are those of all its threads from start to exit. Memory is its \
        proportional share of resident pages (Pss).\n\n\
        | | start to exit, ms | threads | descriptors | system calls | memory, MiB |\n|---|--:|--:|--:|--:|--:|"
    )?;
    for Start { title, time, census } in &results.starts {
        let calls = census.system_calls.map_or("-".to_owned(), |calls| calls.to_string());
        let (threads, files) = (census.threads, census.descriptors);
        let resident = census.resident as f64 / 1024.0;
        writeln!(text, "| {title} | {} | {threads} | {files} | {calls} | {resident:.2} |", figure(time, 3))?;
    }
    Ok(())
}

fn recordings(text: &mut String, results: &Results) -> Result<()> {
    writeln!(
        text,
        "\n## Recorded while it runs\n\n\
        The same program does something each millisecond. Times are from the start of `tracewing record --pid`. \
        Memory is what the recording adds to each of 20 processes that are recorded together, and to the \
        recorder.\n\n\
        | | first event of the kernel, ms | first event of its own, ms | longest stop, ms | process, MiB | recorder, MiB |\n\
        |---|--:|--:|--:|--:|--:|"
    )?;
    for recorded in &results.recorded {
        writeln!(text, "{}", row(recorded))?;
    }
    Ok(())
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

fn server(text: &mut String, results: &Results) -> Result<()> {
    let served = &results.served;
    let count = served.stops.len() + served.unstopped;
    writeln!(
        text,
        "\n## A server under load\n\n\
        A tokio server of two workers and its four clients, one process, was attached to, recorded for 20 ms and left {count} times in \
        {:.0} s: {:.0} requests answered in a second, {} failed, {} events recorded, {} lost. No thread was stopped in {} recordings. \
        The longest stop of a thread in each of the others:\n\n\
        | p50, ms | p90, ms | p99, ms | max, ms |\n|--:|--:|--:|--:|",
        served.seconds,
        served.answered as f64 / served.seconds,
        served.failed,
        served.events,
        served.lost,
        served.unstopped,
    )?;
    let [half, most_of, nearly, all] = [0.5, 0.9, 0.99, 1.0].map(|share| served.stop(share));
    writeln!(text, "| {half:.3} | {most_of:.3} | {nearly:.3} | {all:.3} |")?;
    writeln!(
        text,
        "\nWhat the server has:\n\n| | threads | descriptors | mappings | resident, MiB |\n|---|--:|--:|--:|--:|"
    )?;
    let titles = ["before the first recording", "after 20 recordings", "after all"];
    for (title, has) in titles.iter().zip(&served.belongings) {
        writeln!(
            text,
            "| {title} | {} | {} | {} | {:.2} |",
            has.threads,
            has.descriptors,
            has.mappings,
            has.resident as f64 / 1024.0
        )?;
    }
    Ok(())
}

fn costs(text: &mut String, results: &Results) -> Result<()> {
    let has_other = results.costs.iter().any(|cost| cost.other.is_some());
    let (head, line) = if has_other { (" the other build, ns |", "--:|") } else { ("", "") };
    writeln!(
        text,
        "\n## What runs while nothing records\n\nCPU time of one thread.\n\n| | ns |{head}\n|---|--:|{line}"
    )?;
    for cost in &results.costs {
        let other = cost.other.as_ref().map_or(String::new(), |other| format!(" {} |", figure(other, 2)));
        writeln!(text, "| {} | {} |{other}", cost.title, figure(&cost.cost, 2))?;
    }
    Ok(())
}

fn figure(rounds: &Rounds, digits: usize) -> String {
    let (least, most) = rounds.range();
    format!("{:.digits$} ({least:.digits$} to {most:.digits$})", rounds.median())
}
