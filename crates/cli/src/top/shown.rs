//! What is on the terminal, and what keys change of it.

use super::screen::{Key, Size};
use super::view::{self, View};
use super::{Args, LATE};
use crate::colors::Colors;
use crate::format::TableFormat;
use crate::output::shown;
use crate::screen::{Form, Screen};
use crate::style::{HEADER, NOTE};
use crate::table::TableOptions;
use crate::terminal::terminal;
use std::io::{Result, Write};
use std::time::{Duration, Instant};
use tracewing_analysis::Window;

/// After this time, the age of a late window is shown anew.
const OLD: Duration = Duration::from_secs(1);

/// What is to be done after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Nothing,
    Redraw,
    End,
}

/// A window, and the choice of what is shown of it.
pub struct Shown {
    recording: String,
    window: Option<(Window, Age)>,
    view: View,
    options: TableOptions,
    /// Rows that are scrolled out.
    above: usize,
    has_keys: bool,
    has_ended: bool,
    /// Since when the next window is read.
    reading: Option<Instant>,
    /// When it was shown last.
    shown: Instant,
}

/// How long ago a window ended.
#[derive(Debug, Clone, Copy)]
struct Age {
    /// When it was read; `None` if the recording's clock is not that of today.
    at_first: Option<Duration>,
    since: Instant,
}

impl Age {
    fn at(self, now: Instant) -> Option<Duration> {
        Some(self.at_first? + now.duration_since(self.since))
    }

    /// Whether it was late, or the next one is, which has been read since `reading`. Without events there is
    /// none, and none is late.
    fn is_late(self, now: Instant, reading: Option<Instant>) -> bool {
        let is_next = reading.is_some_and(|since| now.duration_since(since) > LATE);
        is_next || self.at_first.is_some_and(|age| age > LATE)
    }
}

impl Shown {
    pub fn new(recording: String, args: &Args, has_keys: bool) -> Self {
        Self {
            recording,
            window: None,
            view: args.show,
            options: args.table(TableFormat::Table),
            above: 0,
            has_keys,
            has_ended: false,
            reading: None,
            shown: Instant::now(),
        }
    }

    pub fn take(&mut self, window: Window, late: Option<Duration>) {
        self.window = Some((window, Age { at_first: late, since: Instant::now() }));
    }

    /// The next window is read from now on, or no longer.
    pub fn reads(&mut self, is_reading: bool) {
        self.reading = is_reading.then(Instant::now);
    }

    /// Whether what is shown says too little of how late the next window is.
    pub fn is_old(&self) -> bool {
        self.shown.elapsed() >= OLD && self.reading.is_some_and(|since| since.elapsed() > LATE)
    }

    /// The recording has ended: the window is the last one.
    pub fn ends(&mut self) {
        self.has_ended = true;
    }

    pub fn key(&mut self, key: Key) -> Wish {
        match key {
            Key::Quit => return Wish::End,
            Key::Digit(digit) => match View::ALL.get(usize::from(digit).wrapping_sub(1)) {
                Some(view) => (self.view, self.above, self.options.sort.sort) = (*view, 0, None),
                None => return Wish::Nothing,
            },
            Key::Up => self.above = self.above.saturating_sub(1),
            Key::Down => self.above += 1,
            Key::Left => self.sort_by(-1),
            Key::Right => self.sort_by(1),
            Key::Redraw => {}
        }
        Wish::Redraw
    }

    /// Sorts by the next of the columns that are shown, or the one before; beyond them, in the table's order.
    fn sort_by(&mut self, step: isize) {
        let columns: Vec<_> =
            self.view.heads().iter().filter(|head| !head.is_extra()).map(|head| head.name).collect();
        let now = self.options.sort.sort.as_ref().and_then(|name| columns.iter().position(|it| it == name));
        // The place after the last is the table's own order.
        let place = now.unwrap_or(columns.len()) as isize + step;
        let place = place.rem_euclid(columns.len() as isize + 1) as usize;
        self.options.sort.sort = columns.get(place).map(|name| (*name).to_owned());
    }

    /// The lines of the screen.
    pub fn frame(&mut self, size: Size) -> Result<Vec<Vec<u8>>> {
        self.shown = Instant::now();
        let mut bytes = Vec::new();
        let mut text = Screen::new(Colors::new(&mut bytes, terminal().colors), Form::Text, true);
        let head = self.heading();
        writeln!(text, "{HEADER}{}{HEADER:#}", shown(&self.recording))?;
        writeln!(text, "{head}")?;
        writeln!(text, "{NOTE}{}{NOTE:#}", self.keys())?;
        if let Some((window, _)) = &self.window {
            self.view.print(&mut text, window, &self.options, Some(size.columns))?;
        }
        text.flush()?;
        drop(text);
        let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        // The heading, and the titles of the columns.
        let rows = lines.split_off(lines.len().min(4));
        self.above = self.above.min(rows.len().saturating_sub(1));
        lines.extend(rows.into_iter().skip(self.above));
        lines.truncate(size.rows);
        Ok(lines)
    }

    fn heading(&self) -> String {
        match &self.window {
            None => "reading what was recorded so far, if anything".to_owned(),
            Some((window, age)) => {
                let end = if self.has_ended { "   the recording has ended" } else { "" };
                view::headline(window, age.at(self.shown), age.is_late(self.shown, self.reading)) + end
            }
        }
    }

    fn keys(&self) -> String {
        let views = View::ALL.iter().zip(1..).map(|(view, digit)| match *view == self.view {
            true => format!("[{digit} {}]", view.title()),
            false => format!(" {digit} {} ", view.title()),
        });
        let sort = self.options.sort.sort.as_deref().unwrap_or("its own");
        let keys = match self.has_keys {
            true => "q: end   arrows: order, scroll",
            false => "Ctrl-C: end   no keys: standard input is no terminal",
        };
        format!("{}  {keys}   order: {sort}", views.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_late_if_it_or_the_next_one_is_read_late() {
        let since = Instant::now();
        let late = |at_first, seconds, reading: Option<u64>| {
            let age = Age { at_first: Some(Duration::from_secs(at_first)), since };
            let now = since + Duration::from_secs(seconds);
            let reading = reading.map(|seconds| now - Duration::from_secs(seconds));
            (age.at(now).map(|age| age.as_secs()), age.is_late(now, reading))
        };
        assert_eq!(late(1, 9, None), (Some(10), false), "nothing happened since");
        assert_eq!(late(1, 9, Some(1)), (Some(10), false));
        assert_eq!(late(1, 9, Some(3)), (Some(10), true), "the next one");
        assert_eq!(late(3, 1, None), (Some(4), true));
        assert!(!Age { at_first: None, since }.is_late(since, None), "of another time");
    }
}
