//! What standard output and standard error are: a terminal or not, how wide, and with colours or without.

use anstream::{AutoStream, ColorChoice};
use rustix::termios::tcgetwinsize;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// What standard output and standard error are, before a pager takes their place.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// Whether a terminal shows standard output.
    pub is_terminal: bool,
    width: Option<usize>,
    pub colors: ColorChoice,
    pub error_colors: ColorChoice,
}

/// The terminal of standard output, examined once.
pub fn terminal() -> &'static Terminal {
    static TERMINAL: OnceLock<Terminal> = OnceLock::new();
    TERMINAL.get_or_init(|| Terminal {
        is_terminal: io::stdout().is_terminal(),
        width: width_of(io::stdout()),
        colors: AutoStream::choice(&io::stdout()),
        error_colors: AutoStream::choice(&io::stderr()),
    })
}

/// Number of characters that fit into a line of standard output: `COLUMNS`, otherwise the terminal's width;
/// files and pipes have no limit.
pub fn width() -> Option<usize> {
    of_columns(terminal().width)
}

/// The same of standard error.
pub fn error_width() -> Option<usize> {
    of_columns(width_of(io::stderr()))
}

fn of_columns(terminal: Option<usize>) -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or(terminal).filter(|width| *width > 0)
}

fn width_of(stream: impl AsFd) -> Option<usize> {
    tcgetwinsize(stream).ok().map(|size| size.ws_col.into())
}
