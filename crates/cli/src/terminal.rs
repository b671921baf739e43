//! What standard output and standard error are: a terminal or not, how wide, and with colours or without.

use anstream::{AutoStream, ColorChoice};
use std::io::{self, IsTerminal};
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
        width: rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| size.ws_col.into()),
        colors: AutoStream::choice(&io::stdout()),
        error_colors: AutoStream::choice(&io::stderr()),
    })
}

/// Number of characters that fit into a line of standard output: `COLUMNS`, otherwise the terminal's width;
/// files and pipes have no limit.
pub fn width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(|| terminal().width).filter(|width| *width > 0)
}
