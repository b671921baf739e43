//! A writer that removes colours where they are disabled, and costs nothing for text without colours.

use crate::bytes::any;
use anstream::ColorChoice;
use anstream::adapter::StripBytes;
use std::io::{Result, Write};

/// Control Sequence Introducer begins with it, and so do all colours of this program.
const ESC: u8 = 0x1b;

/// Passes text on, with or without its colours.
#[derive(Debug)]
pub struct Colors<W> {
    inner: W,
    /// `None` if colours pass.
    strip: Option<StripBytes>,
    /// Where the last write ended within a colour: how many bytes come before its parameters, 1 after ESC
    /// alone.
    within: Option<usize>,
}

impl<W: Write> Colors<W> {
    /// Removes colours if `choice` is `Never`.
    pub fn new(inner: W, choice: ColorChoice) -> Self {
        let strip = (choice == ColorChoice::Never).then(StripBytes::new);
        Self { inner, strip, within: None }
    }

    /// Writes text without ESC, at which nothing has to be looked for.
    pub fn write_plain(&mut self, bytes: &[u8]) -> Result<()> {
        match (&self.strip, self.within) {
            (Some(_), Some(_)) => self.write_all(bytes),
            _ => self.inner.write_all(bytes),
        }
    }
}

impl<W: Write> Write for Colors<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let has_any = any(bytes, |byte| byte == ESC);
        let last = has_any.then(|| bytes.iter().rposition(|byte| *byte == ESC)).flatten();
        match &mut self.strip {
            Some(strip) if last.is_some() || self.within.is_some() => {
                strip.strip_next(bytes).try_for_each(|text| self.inner.write_all(text))?;
                // ESC, `[`, parameters, and a letter that ends it.
                let parameters = last.map_or(self.within.unwrap_or(0), |at| at + 2);
                let has_end = |rest: &[u8]| rest.iter().any(|byte| (0x40..0x7f).contains(byte));
                self.within = match bytes.get(parameters..) {
                    Some(rest) => (!has_end(rest)).then_some(0),
                    None => Some(parameters - bytes.len()),
                };
                Ok(bytes.len())
            }
            _ => {
                self.inner.write_all(bytes)?;
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(choice: ColorChoice, pieces: &[&str]) -> String {
        let mut out = Vec::new();
        let mut colors = Colors::new(&mut out, choice);
        pieces.iter().for_each(|piece| colors.write_all(piece.as_bytes()).expect("memory takes all"));
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn colours_are_left_out_wherever_writes_end() {
        let text = "a \u{1b}[1mbold\u{1b}[0m \u{1b}[38;5;3mé\u{1b}[0m\nplain";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let cut = [first, second].map(|at| text.is_char_boundary(at));
                if cut == [true; 2] {
                    let pieces = [&text[..first], &text[first..second], &text[second..]];
                    assert_eq!(written(ColorChoice::Never, &pieces), "a bold é\nplain", "{pieces:?}");
                }
            }
        }
    }

    #[test]
    fn requested_colours_pass() {
        let text = "\u{1b}[1mbold\u{1b}[0m";
        assert_eq!(written(ColorChoice::AlwaysAnsi, &[text]), text);
    }
}
