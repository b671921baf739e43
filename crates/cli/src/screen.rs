//! The last step before a terminal: characters that no text of a trace, path or name may contain are escaped.
//!
//! All that the command prints goes through a [`Screen`], so a place that forgets
//! [`shown`](tracewing_trace::shown) harms no terminal. Cells and names go through `shown` anyway, since only
//! there ESC and line breaks of a trace are distinguished from those of the command itself, and since the
//! width of a column is that of the escaped text.
//!
//! | form | escaped |
//! |---|---|
//! | text | all of [`is_unsafe`] but line breaks, tabs and ESC, as `\u{9b}`; bytes that are not UTF-8, as `\x9b` |
//! | JSON | the same characters, as `\u009b`, which a parser gives back |
//! | data (CSV, graphs) | nothing in files and pipes; on a terminal as text, and ESC too |

use crate::bytes::any;
use crate::colors::Colors;
use crate::format::{EventFormat, TableFormat, TextFormat};
use crate::pager;
use crate::style::WARNING;
use crate::terminal::{Terminal, terminal};
use anstream::ColorChoice;
use std::io::{self, BufWriter, IsTerminal, Result, StderrLock, StdoutLock, Write};
use tracewing_trace::{is_unsafe, shown};

/// In what form the output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Text,
    Json,
    Data,
}

impl From<TableFormat> for Form {
    fn from(format: TableFormat) -> Self {
        match format {
            TableFormat::Table => Form::Text,
            TableFormat::Json => Form::Json,
            TableFormat::Csv => Form::Data,
        }
    }
}

impl From<TextFormat> for Form {
    fn from(format: TextFormat) -> Self {
        match format {
            TextFormat::Text => Form::Text,
            TextFormat::Json => Form::Json,
        }
    }
}

impl From<EventFormat> for Form {
    fn from(format: EventFormat) -> Self {
        match format {
            EventFormat::Text => Form::Text,
            EventFormat::Json => Form::Json,
            EventFormat::Csv => Form::Data,
        }
    }
}

/// A writer that lets nothing through which commands a terminal.
#[derive(Debug)]
pub struct Screen<W: Write> {
    inner: Colors<W>,
    form: Form,
    is_terminal: bool,
    /// The beginning of a character whose other bytes have not arrived yet.
    rest: Vec<u8>,
}

/// Standard output, or the pager in its place.
pub fn stdout(form: Form) -> Screen<StdoutLock<'static>> {
    let Terminal { is_terminal, colors, .. } = *terminal();
    if let Err(error) = pager::start() {
        // Without a pager, output goes to the terminal itself; where standard error is gone, too, there is no
        // place to report that.
        let _ = writeln!(stderr(Form::Text), "{WARNING}tracewing{WARNING:#}: {}", shown(&error.to_string()));
    }
    let colors = match form {
        Form::Text => colors,
        // A value that looks like a colour is a value.
        Form::Json | Form::Data => ColorChoice::AlwaysAnsi,
    };
    Screen::new(Colors::new(io::stdout().lock(), colors), form, is_terminal)
}

/// Bytes of a message that reach standard error in one write.
const MESSAGE: usize = 64 << 10;

/// Standard error for one message, which is written when this is flushed or dropped: in one piece, since
/// other processes may write to the same pipe or file.
pub fn stderr(form: Form) -> Screen<BufWriter<StderrLock<'static>>> {
    let stream = BufWriter::with_capacity(MESSAGE, io::stderr().lock());
    Screen::new(Colors::new(stream, terminal().error_colors), form, io::stderr().is_terminal())
}

impl<W: Write> Screen<W> {
    pub fn new(inner: Colors<W>, form: Form, is_terminal: bool) -> Self {
        Self { inner, form, is_terminal, rest: Vec::new() }
    }

    fn is_escaped(&self, c: char) -> bool {
        match c {
            '\n' | '\t' => false,
            '\r' | '\x1b' => self.form == Form::Data,
            c => is_unsafe(c),
        }
    }

    fn escaped(&mut self, bytes: &[u8]) -> Result<()> {
        for chunk in bytes.utf8_chunks() {
            let mut text = chunk.valid();
            while let Some((at, c)) = text.char_indices().find(|(_, c)| self.is_escaped(*c)) {
                self.inner.write_all(&text.as_bytes()[..at])?;
                match self.form {
                    Form::Json => write!(self.inner, "\\u{:04x}", u32::from(c))?,
                    Form::Text | Form::Data => write!(self.inner, "{}", c.escape_unicode())?,
                }
                text = &text[at + c.len_utf8()..];
            }
            self.inner.write_all(text.as_bytes())?;
            chunk.invalid().iter().try_for_each(|byte| write!(self.inner, "\\x{byte:02x}"))?;
        }
        Ok(())
    }
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        // All of it: after a partial write, the buffer of standard output would write a line and its end
        // separately.
        if self.form == Form::Data && !self.is_terminal {
            return self.inner.write_all(bytes).map(|()| bytes.len());
        }
        if self.rest.is_empty() && is_plain(bytes) {
            return self.inner.write_plain(bytes).map(|()| bytes.len());
        }
        let mut all = std::mem::take(&mut self.rest);
        all.extend_from_slice(bytes);
        let whole = whole_characters(&all);
        self.rest = all.split_off(whole);
        self.escaped(&all)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Drop for Screen<W> {
    fn drop(&mut self) {
        // What never became a character. There is no one to report a failure to.
        let rest = std::mem::take(&mut self.rest);
        let _ = self.escaped(&rest);
    }
}

/// Whether bytes are printable ASCII and line breaks.
fn is_plain(bytes: &[u8]) -> bool {
    // Up to 0x1f and from 0x7f on, in one comparison.
    !any(bytes, |byte| (byte.wrapping_sub(0x20) >= 0x5f) & (byte != b'\n'))
}

/// How many bytes there are before a character that may only have begun.
fn whole_characters(bytes: &[u8]) -> usize {
    let begins = |at: &usize| bytes[*at] >= 0xc0;
    let Some(at) = (bytes.len().saturating_sub(3)..bytes.len()).rev().find(begins) else {
        return bytes.len();
    };
    match std::str::from_utf8(&bytes[at..]) {
        Err(error) if error.error_len().is_none() => at,
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screened(form: Form, is_terminal: bool, pieces: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let colors = Colors::new(&mut out, ColorChoice::AlwaysAnsi);
        let mut screen = Screen::new(colors, form, is_terminal);
        pieces.iter().for_each(|piece| screen.write_all(piece).expect("memory takes all"));
        drop(screen);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn each_form_escapes_what_commands_a_terminal() {
        let text = "\u{1b}[1mé\u{9b}2J\u{202e}\x07\x7f\u{2028}\n".as_bytes();
        for split in 0..text.len() {
            let (first, second) = text.split_at(split);
            let shown = screened(Form::Text, false, &[first, second]);
            assert_eq!(shown, "\u{1b}[1mé\\u{9b}2J\\u{202e}\\u{7}\\u{7f}\\u{2028}\n", "split at {split}");
            let piped = screened(Form::Data, false, &[first, second]);
            assert_eq!(piped.as_bytes(), text);
            let shown = screened(Form::Data, true, &[first, second]);
            assert_eq!(shown, "\\u{1b}[1mé\\u{9b}2J\\u{202e}\\u{7}\\u{7f}\\u{2028}\n");
        }
        let json = serde_json::to_string("a\u{9b}\u{1b}\u{202e}\x7f😀").expect("JSON");
        let shown = screened(Form::Json, false, &[json.as_bytes()]);
        assert!(shown.chars().all(|c| !is_unsafe(c)), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).expect("JSON"), "a\u{9b}\u{1b}\u{202e}\x7f😀");
    }

    /// What was written at once.
    #[derive(Default)]
    struct Writes(Vec<String>);

    impl Write for &mut Writes {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.0.push(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_and_its_end_are_written_at_once() {
        for colors in [ColorChoice::Never, ColorChoice::AlwaysAnsi] {
            // As standard output is buffered, and as standard error is.
            let mut writes = Writes::default();
            let lines = io::LineWriter::new(&mut writes);
            let mut screen = Screen::new(Colors::new(lines, colors), Form::Text, false);
            writeln!(screen, "a note: {}", 7).expect("memory takes all");
            drop(screen);
            assert_eq!(writes.0, ["a note: 7\n"]);

            let mut writes = Writes::default();
            let message = BufWriter::with_capacity(MESSAGE, &mut writes);
            let mut screen = Screen::new(Colors::new(message, colors), Form::Text, false);
            writeln!(screen, "{WARNING}a note{WARNING:#}: {}", "x".repeat(5000)).expect("memory takes all");
            drop(screen);
            assert_eq!(writes.0.len(), 1, "{:?}", writes.0);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        assert_eq!(screened(Form::Text, false, &[b"a\x9bb\xc2", b"c\xe2\x80"]), "a\\x9bb\\xc2c\\xe2\\x80");
    }
}
