//! The figures as a page, which is what a terminal gets, too.

use super::{Results, Side};
use crate::compare::figures::Rounds;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

const PAGE: &str = "performance-families.md";

/// Writes the page into a folder.
pub fn write(results: &Results, folder: &Path) -> Result<()> {
    let path = folder.join(PAGE);
    std::fs::write(&path, text(results)?).with_context(|| format!("cannot write {}", path.display()))
}

pub fn text(results: &Results) -> Result<String> {
    let mut text = String::new();
    writeln!(
        text,
        "# What recording a build costs\n\n\
        Written by `cargo xtask bench families --page`: {} short programs, as a build starts them, recorded with \
        `--locks`; each has buffers of its own. All sides took turns, round by round. Figures are medians over the \
        rounds; the spread is from the smallest to the largest round. The column `time` is wall-clock time, and \
        needs an otherwise idle machine. `programs' CPU` is that of the programs and of what starts them. The other \
        columns are about the recorder: its CPU time, its largest resident memory, the largest amount of memory in \
        buffers and number of open files at one time, and the files and losses of the recording.\n",
        results.programs
    )?;
    writeln!(text, "| | |\n|---|---|")?;
    for (word, value) in &results.machine {
        writeln!(text, "| {word} | {value} |")?;
    }
    for (load, sides) in &results.loads {
        writeln!(
            text,
            "\n## {}\n\n| | time, s | programs' CPU, s | recorder's CPU, s | resident, MiB | buffers, MiB | open files | files | events | lost |\n\
            |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
            load.title
        )?;
        for side in sides {
            writeln!(text, "{}", row(side))?;
        }
    }
    Ok(text)
}

fn row(side: &Side) -> String {
    let time = figure(&side.figures(|took| took.seconds), 2);
    let load = figure(&side.figures(|took| took.load), 2);
    if side.tracewing.is_none() {
        return format!("| {} | {time} | {load} | | | | | | | |", side.title);
    }
    let cells = [
        time,
        load,
        figure(&side.figures(|took| took.cpu), 2),
        figure(&side.figures(|took| took.peak), 1),
        figure(&side.figures(|took| took.buffers), 1),
        figure(&side.figures(|took| took.open as f64), 0),
        figure(&side.figures(|took| took.files as f64), 0),
        figure(&side.figures(|took| took.contents.all_events as f64), 0),
        figure(&side.figures(|took| took.contents.lost as f64), 0),
    ];
    format!("| {} | {} |", side.title, cells.join(" | "))
}

/// Median and spread; the spread only where there is one.
fn figure(rounds: &Rounds, digits: usize) -> String {
    let (least, most) = rounds.range();
    let median = rounds.median();
    if least == most {
        format!("{median:.digits$}")
    } else {
        format!("{median:.digits$} ({least:.digits$} to {most:.digits$})")
    }
}
