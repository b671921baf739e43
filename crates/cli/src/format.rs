//! What `--format` chooses.

use clap::ValueEnum;
use tracewing_trace::Format;

/// How a table is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TableFormat {
    /// A table for people
    #[default]
    Table,
    /// One JSON object on one line
    Json,
    /// A line per row, with a line of names above
    Csv,
}

/// How everything else is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TextFormat {
    /// Text for people
    #[default]
    Text,
    /// One JSON object on one line
    Json,
}

/// How events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum EventFormat {
    /// Text for people
    #[default]
    Text,
    /// One JSON object per event, each on one line
    Json,
    /// A line of comma-separated values per event, with a line of names above
    Csv,
}

impl EventFormat {
    /// The same for lists of events, which may be asked for as their authors meant them instead.
    pub fn of_list(self, pretty: bool) -> Format {
        match self {
            _ if pretty => Format::Pretty,
            EventFormat::Text => Format::Text,
            EventFormat::Json => Format::Json,
            EventFormat::Csv => Format::Csv,
        }
    }
}
