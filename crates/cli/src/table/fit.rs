//! Lines of a table for people: cells below their headers, and what of them fits a terminal.

use super::column::Importance;
use super::{Cell, Head};
use crate::style::{HEADER, WARNING};
use std::io::{Result as IoResult, Write};
use std::iter::repeat_n;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Between columns, in characters.
const GAP: usize = 2;

/// A column that can shrink is not cut shorter than this.
const LEAST: usize = 24;

/// How wide each column is; none for those that are left out, as the terminal is too narrow.
///
/// Columns that can shrink do so first. Then the least important column is left out, of several the last.
pub(super) fn fit(heads: &[Head], full: &[usize], limit: Option<usize>) -> Vec<Option<usize>> {
    let Some(limit) = limit else { return full.iter().copied().map(Some).collect() };
    let least = |(head, width): (&Head, &usize)| match head.can_shrink {
        true => Some((*width).min(LEAST.max(head.title().width()))),
        false => Some(*width),
    };
    let mut widths: Vec<Option<usize>> = heads.iter().zip(full).map(least).collect();
    while line(&widths) > limit {
        let shown = widths.iter().zip(heads).enumerate().rev().filter(|(_, (width, _))| width.is_some());
        let least = shown.min_by_key(|(_, (_, head))| head.importance);
        match least {
            Some((place, (_, head))) if head.importance < Importance::Key => widths[place] = None,
            _ => break,
        }
    }
    let mut space = limit.saturating_sub(line(&widths));
    for (width, full) in widths.iter_mut().zip(full) {
        if let Some(width) = width {
            let more = (full - *width).min(space);
            (*width, space) = (*width + more, space - more);
        }
    }
    widths
}

/// How long a line is.
fn line(widths: &[Option<usize>]) -> usize {
    let (count, sum) = widths.iter().flatten().fold((0, 0), |(count, sum), width| (count + 1, sum + width));
    sum + GAP * usize::saturating_sub(count, 1)
}

/// Prints a line of cells, figures to the right.
pub(super) fn write_aligned(
    out: &mut impl Write,
    heads: &[Head],
    widths: &[Option<usize>],
    cells: &[Cell],
) -> IoResult<()> {
    writeln!(out, "{}", aligned(heads, widths, cells))
}

fn aligned(heads: &[Head], widths: &[Option<usize>], cells: &[Cell]) -> String {
    let mut line = String::new();
    for ((head, width), cell) in heads.iter().zip(widths).zip(cells) {
        let Some(width) = *width else { continue };
        let cell_width = cell.width();
        let blanks = repeat_n(' ', width.saturating_sub(cell_width));
        if head.kind.is_to_the_right() {
            line.extend(blanks);
            match head.is_alarm && matches!(cell, Cell::Count(1..) | Cell::Total(1..) | Cell::AtLeast(_)) {
                true => line.push_str(&format!("{WARNING}{}{WARNING:#}", cell.shown())),
                false => cell.show(&mut line),
            }
        } else if head.can_shrink && cell_width > width {
            show_cut(cell, width, &mut line);
        } else {
            cell.show(&mut line);
            line.extend(blanks);
        }
        line.extend(repeat_n(' ', GAP));
    }
    line.truncate(line.trim_end().len());
    line
}

pub(super) fn write_titles(out: &mut impl Write, heads: &[Head], widths: &[Option<usize>]) -> IoResult<()> {
    let titles: Vec<_> = heads.iter().map(|head| Cell::Text(head.title())).collect();
    writeln!(out, "{HEADER}{}{HEADER:#}", aligned(heads, widths, &titles))
}

/// Appends the beginning of a text that is too wide.
fn show_cut(cell: &Cell, width: usize, line: &mut String) {
    let text = cell.shown();
    let mut left = width.saturating_sub(1);
    for letter in text.chars() {
        let Some(rest) = left.checked_sub(letter.width().unwrap_or(0)) else { break };
        left = rest;
        line.push(letter);
    }
    line.push('…');
    line.extend(repeat_n(' ', left));
}
