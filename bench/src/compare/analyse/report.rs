//! The page of what was measured; a terminal shows it as it is.

use super::Measured;
use super::trace::Made;
use crate::compare::figures::Rounds;

/// What is required: of which analysis, in words, how it is found, and the least.
type Bound = (&'static str, &'static str, fn(&Measured) -> Rounds, f64);

const BOUNDS: [Bound; 5] = [
    ("threads", "all CPUs/one CPU", ratio, 1.7),
    ("sched latency", "all CPUs/one CPU", ratio, 1.7),
    ("tasks", "all CPUs/one CPU", ratio, 1.7),
    ("critical-path", "all CPUs/one CPU", ratio, 1.7),
    ("critical-path", "million events a second of one CPU", |of| of.one.clone(), 10.0),
];

fn ratio(of: &Measured) -> Rounds {
    of.all.ratio_to(&of.one)
}

/// In Markdown.
pub fn page(machine: &[(&'static str, String)], made: &Made, measured: &[Measured], rounds: usize) -> String {
    let mut lines = vec![
        "# What analyses cost".to_owned(),
        String::new(),
        format!(
            "Written by `cargo xtask bench analyse --page --millions {}`: {} events of four CPUs and a program, {} MiB; {} \
             of them are switches of threads, {} polls of {} tasks by {} threads. The files are in memory. Each analysis runs \
             on one CPU and on all, in turn; figures are of the clock, from the start of the process to its end: \
             medians over {rounds} rounds, with the smallest and the largest. Other machines have other figures: run \
             the command on yours. Where a bound is missed, [where reading spends its \
             time](../explanation/reading.md) says why.",
            made.events / 1_000_000,
            made.events,
            made.bytes >> 20,
            made.switches,
            made.polls,
            made.tasks,
            made.threads
        ),
        String::new(),
        "| | |\n|---|---|".to_owned(),
    ];
    lines.extend(machine.iter().map(|(word, value)| format!("| {word} | {value} |")));
    lines.push(
        "\n## What is required\n\n| | required | measured | spread | |\n|---|--:|--:|---|---|".to_owned(),
    );
    for (name, what, figure, least) in BOUNDS {
        let Some(of) = measured.iter().find(|of| of.name == name) else { continue };
        let verdict = if figure(of).median() >= least { "holds" } else { "**fails**" };
        lines.push(format!("| {name}: {what} | {least} | {} | {verdict} |", cells(&figure(of))));
    }
    lines.push(
        "\n## Million events a second\n\n\
         | | one CPU | spread | all CPUs | spread | all CPUs/one CPU | spread | peak MiB, one CPU | all CPUs |\n\
         |---|--:|---|--:|---|--:|---|--:|--:|"
            .to_owned(),
    );
    lines.extend(measured.iter().map(|of| {
        let (one, all, ratio) = (cells(&of.one), cells(&of.all), cells(&ratio(of)));
        format!("| {} | {one} | {all} | {ratio} | {:.1} | {:.1} |", of.name, of.peak_one, of.peak_all)
    }));
    lines.join("\n") + "\n"
}

/// The median; the least and the most.
fn cells(rounds: &Rounds) -> String {
    let (least, most) = rounds.range();
    format!("{:.2} | {least:.2} to {most:.2}", rounds.median())
}
