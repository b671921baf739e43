//! Writes the page: tables in Markdown.

use super::report::with_interval;
use super::{Results, layer::Layer, shapes::Shapes};
use crate::compare::bounds::Bound;
use crate::compare::figures::Rounds;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

const PAGE: &str = "performance-trigger.md";

pub fn write(results: &Results, bounds: &[Bound], folder: &Path) -> Result<()> {
    let mut text = String::new();
    introduction(&mut text, results, bounds)?;
    if let Some(measured) = &results.shapes {
        shapes(&mut text, measured)?;
    }
    if let Some(forms) = &results.forms {
        writeln!(
            text,
            "\n## Passing a site\n\n\
            Sixteen in a row in a loop that does nothing else, minus the same program's loop without them. That is \
            more than a site costs in a program, where the processor also waits for other things, but it shows the \
            differences between the forms. Figures near 0 may be negative. CPU {}, {} rounds.\n\n\
            | | ns | spread |\n|---|--:|--:|",
            forms.cpu, forms.rounds
        )?;
        for (group, rows) in forms.groups() {
            writeln!(text, "| **{group}** | | |")?;
            for row in rows {
                writeln!(text, "| {} | {} |", row.title, cells(&row.rounds))?;
            }
        }
    }
    if let Some(switching) = &results.switching {
        writeln!(
            text,
            "\n## Switching\n\n\
            {} sites of one program by one call, until every thread finds them switched; on the clock, in ms. \
            `mprotect` takes the place of `/proc/self/mem` where that is refused.\n\n\
            | | ms | spread | ns per site |\n|---|--:|--:|--:|",
            switching.sites
        )?;
        for way in &switching.ways {
            for (direction, rounds) in [("on", &way.on), ("off", &way.off)] {
                let each = rounds.median() * 1e6 / f64::from(switching.sites);
                writeln!(text, "| {}, {direction} | {} | {each:.0} |", way.title, cells(rounds))?;
            }
        }
    }
    if let Some(layer) = &results.layer {
        layer_of_tracing(&mut text, layer)?;
    }
    let path = folder.join(PAGE);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn layer_of_tracing(text: &mut String, layer: &Layer) -> Result<()> {
    writeln!(
        text,
        "\n## `tracing`\n\n\
        CPU time of the thread that emits the events, not of what a tracer does in its own threads and processes \
        (tracing-chrome formats its text in one). The first event of a call site includes the work of registering \
        the site; it is a mean over 64 sites of a new process.\n\n\
        | | ns | spread |\n|---|--:|--:|"
    )?;
    for part in layer.parts() {
        writeln!(text, "| **{}** | | |", part.what)?;
        for row in part.rows() {
            writeln!(text, "| {} | {} |", row.title, cells(&row.rounds))?;
        }
        writeln!(text, "| ratio tracing-chrome/tracewing's layer | {} |", cells(&part.ratio()))?;
    }
    Ok(())
}

fn introduction(text: &mut String, results: &Results, bounds: &[Bound]) -> Result<()> {
    writeln!(
        text,
        "# What sites cost\n\n\
        Written by `cargo xtask bench trigger --page`, which measured all sides in one run, in turn, round by \
        round. Times are CPU time of the measured threads unless said otherwise; ratios are taken round by round. \
        Figures are medians over the rounds; the spread is from the smallest to the largest round. Other machines \
        have other figures: run the command on yours.\n\n| | |\n|---|---|"
    )?;
    for (word, value) in &results.machine {
        writeln!(text, "| {word} | {value} |")?;
    }
    writeln!(text, "\n## What is required\n\n| | required | measured | |\n|---|---|---|---|")?;
    for Bound { what, limit, measured, holds } in bounds {
        let verdict = if *holds { "holds" } else { "**fails**" };
        writeln!(text, "| {what} | {limit} | {measured} | {verdict} |")?;
    }
    Ok(())
}

fn shapes(text: &mut String, shapes: &Shapes) -> Result<()> {
    writeln!(
        text,
        "\n## A disabled site, and none\n\n\
        Functions of several shapes, compiled with an `emit!` of two `u64` and without. The position of a function \
        in memory can change its speed by more than one instruction does. So each of {} rounds copies both \
        functions to another position in a page, the same for both, and measures them in turn; a figure is the \
        smallest of nine. The ratio is that of the times, with the 95 % confidence interval of its median (by order \
        statistics, which assumes no distribution). The last column compares a second copy without a site with the \
        first one: it shows the ratio where there is no difference. The last shape shows a cost that is not that of \
        the instruction: the compiler does not vectorise a loop with a site in it. CPU {}.\n\n\
        | | ns without a site | with a site / without | without / without |\n|---|--:|--:|--:|",
        shapes.layouts, shapes.cpu
    )?;
    for shape in &shapes.rows {
        let ns = shape.bare.median();
        writeln!(
            text,
            "| {} | {ns:.2} | {} | {} |",
            shape.title,
            with_interval(&shape.off),
            with_interval(&shape.again)
        )?;
    }
    Ok(())
}

fn cells(rounds: &Rounds) -> String {
    let (least, most) = rounds.range();
    format!("{:.2} | {least:.2} to {most:.2}", rounds.median())
}
