//! The figures as a page, which is what a terminal gets, too.

use super::{Part, Results};
use crate::compare::figures::Rounds;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

const PAGE: &str = "performance-view.md";

/// What is required of a figure.
#[derive(Clone, Copy)]
enum Bound {
    Most(f64),
    Least(f64),
    None,
}

/// Something that was measured, and what is required of it.
pub struct Figure {
    what: &'static str,
    /// The figure of all rounds together, or why there is none.
    found: Result<f64, String>,
    rounds: Rounds,
    bound: Bound,
}

impl Figure {
    /// The median of the rounds.
    pub fn median(what: &'static str, rounds: Vec<f64>) -> Self {
        let rounds = Rounds(rounds);
        Figure::of(what, rounds.median(), rounds)
    }

    /// The largest of the rounds.
    pub fn largest(what: &'static str, rounds: Vec<f64>) -> Self {
        let rounds = Rounds(rounds);
        Figure::of(what, rounds.range().1, rounds)
    }

    /// What so great a share of all times does not exceed; and of the times of each round.
    pub fn percentile(what: &'static str, share: f64, times: &[Vec<f64>]) -> Self {
        let rounds = times.iter().map(|times| percentile(times, share)).collect();
        Figure::of(what, percentile(&times.concat(), share), Rounds(rounds))
    }

    fn of(what: &'static str, found: f64, rounds: Rounds) -> Self {
        Figure { what, found: Ok(found), rounds, bound: Bound::None }
    }

    pub fn at_most(self, most: f64) -> Self {
        Figure { bound: Bound::Most(most), ..self }
    }

    pub fn at_least(self, least: f64) -> Self {
        Figure { bound: Bound::Least(least), ..self }
    }

    /// There is no figure: why.
    pub fn missed(what: &'static str, why: String) -> Self {
        Figure { what, found: Err(why), rounds: Rounds::default(), bound: Bound::None }
    }

    fn line(&self) -> String {
        let found = match &self.found {
            Ok(found) => figure(*found),
            Err(why) => return format!("| {} | | {why} | | **fails** |", self.what),
        };
        let (least, most) = self.rounds.range();
        let spread = match self.rounds.0.len() {
            0 | 1 => String::new(),
            _ => format!("{} to {}", figure(least), figure(most)),
        };
        let required = match self.bound {
            Bound::Most(most) => format!("at most {most}"),
            Bound::Least(least) => format!("at least {least}"),
            Bound::None => String::new(),
        };
        let verdict = match (self.bound, self.holds()) {
            (Bound::None, _) => "",
            (_, true) => "holds",
            (_, false) => "**fails**",
        };
        format!("| {} | {required} | {found} | {spread} | {verdict} |", self.what)
    }

    fn holds(&self) -> bool {
        let Ok(found) = self.found else { return false };
        match self.bound {
            Bound::Most(most) => found <= most,
            Bound::Least(least) => found >= least,
            Bound::None => true,
        }
    }
}

/// The smallest of some times that is not below a share of them.
fn percentile(times: &[f64], share: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// Three digits, or the whole number if that has more.
fn figure(number: f64) -> String {
    let digits = if number >= 100.0 { 0 } else { 2 - number.abs().max(1.0).log10() as usize };
    format!("{number:.digits$}")
}

/// Bytes for people.
pub fn bytes(bytes: u64) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
}

/// Writes the page into a folder.
pub fn write(results: &Results, folder: &Path) -> Result<()> {
    let path = folder.join(PAGE);
    std::fs::write(&path, text(results)?).with_context(|| format!("cannot write {}", path.display()))
}

pub fn text(results: &Results) -> Result<String> {
    let mut text = String::new();
    writeln!(
        text,
        "# What looking at a recording costs\n\n\
        Written by `cargo xtask bench view --page`: what `tracewing view` takes for {}. The page cache is warm. The \
        picture is that of Chromium without a window and without a graphics processor, 1920 × 1080 pixels. Other \
        machines have other figures: run the command on yours.\n\n| | |\n|---|---|",
        results.recording
    )?;
    for (word, value) in &results.machine {
        writeln!(text, "| {word} | {value} |")?;
    }
    if results.machine.iter().any(|(word, value)| *word == "load at the start" && is_busy(value)) {
        writeln!(text, "\n{BUSY}")?;
    }
    for part in &results.parts {
        text.push_str(&section(part)?);
    }
    writeln!(text, "\n{LAST}\n\n{PERFETTO}")?;
    Ok(text)
}

/// What was found about one thing.
pub fn section(Part { title, about, figures }: &Part) -> Result<String> {
    let mut text = String::new();
    writeln!(text, "\n## {title}\n\n{about}\n\n| | required | measured | spread | |\n|---|--:|--:|---|---|")?;
    for figure in figures {
        writeln!(text, "{}", figure.line())?;
    }
    Ok(text)
}

/// Replaces what the page of a folder says about one thing, or adds it; all else stays.
pub fn replace(part: &Part, folder: &Path) -> Result<()> {
    let path = folder.join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let page = replaced(&page, part.title, &section(part)?)
        .with_context(|| format!("{} has not the sections of this command", path.display()))?;
    std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}

/// A page with another section of a title; `None` if it is not such a page.
fn replaced(page: &str, title: &str, section: &str) -> Option<String> {
    let head = |title: &str| page.find(&format!("\n{title}\n"));
    let (from, to) = match head(&format!("## {title}")) {
        Some(from) => (from, from + 1 + page[from + 1..].find("\n## ")?),
        None => {
            let last = head(LAST)?;
            (last, last)
        }
    };
    Some(format!("{}{section}{}", &page[..from], &page[to..]))
}

/// Whether a load average says that others use the CPUs, too.
fn is_busy(load: &str) -> bool {
    load.split_whitespace().next().and_then(|load| load.parse().ok()).is_some_and(|load: f64| load > 1.0)
}

/// The heading of the last section.
const LAST: &str = "## Compared with Perfetto";

const BUSY: &str = "**The machine was busy with other programs when this was measured: times are longer than on an \
     idle machine, and rates lower. Memory and sizes are not affected.**";

/// Why there are no figures of Perfetto.
const PERFETTO: &str = "Perfetto's `trace_processor` is not measured: no package of Debian, PyPI or npm contains it. \
     The package `perfetto` of PyPI has the Python interface only, and downloads the program from a place of its own \
     when it is first used.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_holds_or_fails() {
        let of = |found| Figure::median("", vec![found]);
        assert!(of(20.0).at_most(20.0).holds() && !of(20.1).at_most(20.0).holds());
        assert!(of(4.0).at_least(4.0).holds() && !of(3.9).at_least(4.0).holds());
        assert!(!of(f64::NAN).at_most(20.0).holds());
        assert!(!Figure::missed("", String::new()).holds());
    }

    #[test]
    fn a_line_has_the_figure_of_all_rounds_and_those_of_the_least_and_the_greatest() {
        let times = [vec![3.0, 1.0, 2.0], vec![9.0, 5.0, 6.0]];
        let line = |share| Figure::percentile("t", share, &times).at_most(5.0).line();
        assert_eq!(line(0.5), "| t | at most 5 | 3.00 | 2.00 to 6.00 | holds |");
        assert_eq!(line(1.0), "| t | at most 5 | 9.00 | 3.00 to 9.00 | **fails** |");
        assert_eq!(Figure::largest("t", vec![7.0]).line(), "| t |  | 7.00 |  |  |");
    }

    #[test]
    fn a_section_is_replaced_or_comes_before_the_last_one() {
        let page = "# A\n\n## One\n\nold\n\n## Compared with Perfetto\n\nno\n";
        let replaced = |title: &str| replaced(page, title, &format!("\n## {title}\n\nnew\n"));
        let last = "\n## Compared with Perfetto\n\nno\n";
        assert_eq!(replaced("One"), Some(format!("# A\n\n## One\n\nnew\n{last}")));
        assert_eq!(replaced("Two"), Some(format!("# A\n\n## One\n\nold\n\n## Two\n\nnew\n{last}")));
        assert_eq!(super::replaced("# B\n", "One", ""), None);
    }

    #[test]
    fn a_load_above_one_is_busy() {
        assert_eq!(
            ["0.98 3.0 4.0", "1.5 0 0", "15.25 17.04 22.65", ""].map(is_busy),
            [false, true, true, false]
        );
    }

    #[test]
    fn figures_have_three_digits() {
        for (number, text) in [(0.1234, "0.12"), (1.234, "1.23"), (12.34, "12.3"), (123.4, "123")] {
            assert_eq!(figure(number), text);
        }
    }
}
