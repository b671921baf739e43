//! What is on the terminal, and what keys change of it.

use super::Args;
use super::screen::{Key, Size};
use super::view::{self, View};
use crate::colors::Colors;
use crate::format::TableFormat;
use crate::output::shown;
use crate::screen::{Form, Screen};
use crate::style::{HEADER, NOTE};
use crate::table::TableOptions;
use crate::terminal::terminal;
use std::io::{Result, Write};
use std::time::Duration;
use tracewing_analysis::Window;

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
    window: Option<(Window, Option<Duration>)>,
    view: View,
    options: TableOptions,
    /// Rows that are scrolled out.
    above: usize,
    has_ended: bool,
}

impl Shown {
    pub fn new(recording: String, args: &Args) -> Self {
        let options = args.table(TableFormat::Table);
        Self { recording, window: None, view: args.show, options, above: 0, has_ended: false }
    }

    pub fn take(&mut self, window: Window, late: Option<Duration>) {
        self.window = Some((window, late));
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
            None => "reading what was recorded so far".to_owned(),
            Some((window, late)) => {
                let end = if self.has_ended { "   the recording has ended" } else { "" };
                view::headline(window, *late) + end
            }
        }
    }

    fn keys(&self) -> String {
        let views = View::ALL.iter().zip(1..).map(|(view, digit)| match *view == self.view {
            true => format!("[{digit} {}]", view.title()),
            false => format!(" {digit} {} ", view.title()),
        });
        let sort = self.options.sort.sort.as_deref().unwrap_or("its own");
        format!("{}  order: {sort}   arrows: order, scroll   q: end", views.collect::<String>())
    }
}
