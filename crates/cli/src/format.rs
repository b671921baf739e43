//! What `--format` chooses.

use clap::ValueEnum;
use tracewing_trace::Format;

/// How a table is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TableFormat {
    /// A table
    #[default]
    #[value(alias = "text")]
    Table,
    /// One JSON object on one line
    Json,
    /// One line per row, after a line of column names
    Csv,
}

/// How everything else is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TextFormat {
    /// Text
    #[default]
    Text,
    /// One JSON object on one line
    Json,
}

/// How events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum EventFormat {
    /// Text
    #[default]
    Text,
    /// One JSON object per event, each on one line
    Json,
    /// One line of comma-separated values per event, after a line of column names
    Csv,
}

/// Declares `--format` for each kind of output. (A generic struct would not do: all its instances share the
/// text of the default value that clap's derive keeps in a static.)
macro_rules! options {
    ($($(#[$doc:meta])* $option:ident: $format:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, clap::Args)]
        pub struct $option {
            /// How to print
            #[arg(long, value_enum, default_value_t)]
            pub format: $format,
        }
    )*};
}

options! {
    /// `--format` of commands that print tables.
    TableFormatOption: TableFormat;
    /// `--format` of commands that print other text.
    TextFormatOption: TextFormat;
    /// `--format` of commands that print events, or rows as they come.
    EventFormatOption: EventFormat;
}

impl From<TableFormat> for EventFormat {
    fn from(format: TableFormat) -> Self {
        match format {
            TableFormat::Table => EventFormat::Text,
            TableFormat::Json => EventFormat::Json,
            TableFormat::Csv => EventFormat::Csv,
        }
    }
}

impl EventFormat {
    /// The same for tables.
    pub fn of_table(self) -> TableFormat {
        match self {
            EventFormat::Text => TableFormat::Table,
            EventFormat::Json => TableFormat::Json,
            EventFormat::Csv => TableFormat::Csv,
        }
    }

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
