//! Colours, the same for all commands: headers, and how severe something is.

use anstyle::{AnsiColor, Style};

pub const HEADER: Style = Style::new().bold();
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
pub const WARNING: Style = AnsiColor::Yellow.on_default();
/// Why something is missing, or what to do.
pub const NOTE: Style = AnsiColor::Cyan.on_default();

/// When output has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Also in files and pipes
    Always,
    /// Not at all
    Never,
}

impl Color {
    /// Has all output of this process follow it.
    pub fn apply(self) {
        let choice = match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}
