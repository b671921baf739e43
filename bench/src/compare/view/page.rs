//! The figures as a page, which is what a terminal gets, too.

use super::Results;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

const PAGE: &str = "performance-view.md";

/// Something that was measured, and what is required of it.
pub struct Figure {
    what: &'static str,
    found: String,
    bound: String,
    /// Whether it is as required.
    is_met: bool,
}

impl Figure {
    pub fn at_most(what: &'static str, found: f64, most: f64) -> Self {
        Figure { what, found: figure(found), bound: format!("at most {most}"), is_met: found <= most }
    }

    pub fn at_least(what: &'static str, found: f64, least: f64) -> Self {
        Figure { what, found: figure(found), bound: format!("at least {least}"), is_met: found >= least }
    }

    /// Nothing is required of it.
    pub fn only(what: &'static str, found: f64) -> Self {
        Figure { what, found: figure(found), bound: String::new(), is_met: true }
    }

    /// There is no figure: why.
    pub fn missed(what: &'static str, why: String) -> Self {
        Figure { what, found: why, bound: String::new(), is_met: false }
    }
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
        "# The viewer\n\n\
        Written by `cargo xtask bench view --page`: what `tracewing view` takes for a synthetic recording of kernel \
        events and of a program with tasks ({}). The page cache is warm. Windows are random, of any width from 10 µs \
        to the whole recording, each power of two as probable as the next. Answers are timed by a client on the same \
        machine, HTTP included. The picture is that of Chromium without a window and without a graphics processor, \
        1920 × 1080 pixels, from the input until all data has come and is drawn, in {} s of random zooms, pans and \
        scrolls. Memory is the proportional set size, the largest of that walk.\n",
        results.recording,
        results.walk.as_secs()
    )?;
    writeln!(text, "| | |\n|---|---|")?;
    for (word, value) in &results.machine {
        writeln!(text, "| {word} | {value} |")?;
    }
    writeln!(text, "\n| | measured | required | |\n|---|--:|--:|---|")?;
    for Figure { what, found, bound, is_met } in &results.figures {
        let verdict = if *is_met { "" } else { "missed" };
        writeln!(text, "| {what} | {found} | {bound} | {verdict} |")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_met_or_missed() {
        assert!(Figure::at_most("", 20.0, 20.0).is_met && !Figure::at_most("", 20.1, 20.0).is_met);
        assert!(Figure::at_least("", 4.0, 4.0).is_met && !Figure::at_least("", 3.9, 4.0).is_met);
        assert!(!Figure::at_most("", f64::NAN, 20.0).is_met);
    }

    #[test]
    fn figures_have_three_digits() {
        for (number, text) in [(0.1234, "0.12"), (1.234, "1.23"), (12.34, "12.3"), (123.4, "123")] {
            assert_eq!(figure(number), text);
        }
    }
}
