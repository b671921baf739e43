//! A column as one value: name, header, unit, meaning, importance, order, and the cell that it has for a row.
//!
//! | kind | unit | text | `--sort` |
//! |---|---|---|---|
//! | duration | ms, in the header; ns in JSON and CSV | to the right | largest first |
//! | period | in each cell, as lengths differ by orders of magnitude; ns in JSON and CSV | to the right | largest first |
//! | percentage | %, in the header | to the right | largest first |
//! | number, rate | what the header counts | to the right | largest first |
//! | clock | time of day; ns since 1970 in JSON and CSV | to the left | latest first |
//! | text | | to the left | alphabetically |
//! | size | in each cell; bytes in JSON and CSV | to the right | largest first |
//! | share | % in each cell; part of 1 in JSON and CSV | to the right | largest first |
//! | list | | to the left, as CSV has it; JSON has its members | alphabetically |
//! | parts | the largest part; all with their ns in JSON and CSV | to the left | largest sum first |

use super::Cell;
use crate::format::TableFormat;
use anyhow::{Context, Result};
use std::fmt;
use tracewing_rules::closest;

/// What the cells of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Number,
    Duration,
    Period,
    /// Of a bin: a period, or a number.
    Bound,
    Percent,
    Rate,
    Clock,
    Parts,
    Size,
    List,
    /// A part of 1.
    Share,
}

impl Kind {
    pub(super) fn is_to_the_right(self) -> bool {
        !matches!(self, Kind::Text | Kind::Clock | Kind::Parts | Kind::List)
    }

    /// The unit that the header has in text.
    fn unit(self) -> Option<&'static str> {
        match self {
            Kind::Duration => Some("ms"),
            Kind::Percent => Some("%"),
            _ => None,
        }
    }

    fn fits(self, cell: &Cell) -> bool {
        match cell {
            Cell::None | Cell::Blank => true,
            Cell::Text(_) => self == Kind::Text,
            Cell::Count(_) | Cell::Number(_) => matches!(self, Kind::Number | Kind::Bound),
            Cell::Total(_) | Cell::AtLeast(_) => self == Kind::Number,
            Cell::Bytes(_) => self == Kind::Size,
            Cell::Share(_) => self == Kind::Share,
            Cell::List(_) => self == Kind::List,
            Cell::Ns(_) => self == Kind::Duration,
            Cell::Period(_) | Cell::Longer(_) => matches!(self, Kind::Period | Kind::Bound),
            Cell::Time(..) => self == Kind::Clock,
            Cell::Rate(_) => matches!(self, Kind::Percent | Kind::Rate),
            Cell::Parts(_) => self == Kind::Parts,
        }
    }
}

/// How much a column matters. On a terminal that is too narrow, the least important columns are left out
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Importance {
    /// Text has it only by `--wide` or `--columns`.
    Extra,
    Low,
    Normal,
    High,
    /// Always shown: whose line it is, and the main figure.
    Key,
}

/// All of a column but its cells.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// In JSON, CSV, `--columns` and `--sort`.
    pub name: &'static str,
    /// In text, without its unit.
    pub header: &'static str,
    pub kind: Kind,
    /// One sentence for the help and the reference, without a full stop.
    pub meaning: &'static str,
    pub importance: Importance,
    /// Whether JSON and CSV have it.
    pub is_data: bool,
    /// Whether it is cut on a narrow terminal.
    pub can_shrink: bool,
    /// Characters that it has at least in text.
    pub width: usize,
    /// Whether a number that is not 0 is a problem.
    pub is_alarm: bool,
}

impl Head {
    /// Whether text has it only by `--wide` or `--columns`.
    pub fn is_extra(&self) -> bool {
        self.importance == Importance::Extra
    }

    /// Whether it is printed where no columns are chosen.
    pub fn is_shown(&self, format: TableFormat) -> bool {
        match format {
            TableFormat::Table => !self.is_extra(),
            TableFormat::Json | TableFormat::Csv => self.is_data,
        }
    }

    /// The header with its unit.
    pub fn title(&self) -> String {
        match (self.header, self.kind.unit()) {
            ("", Some(unit)) => unit.to_owned(),
            (header, Some(unit)) => format!("{header} {unit}"),
            (header, None) => header.to_owned(),
        }
    }
}

/// A column of a table whose rows are made of `R`.
pub struct Column<R> {
    pub head: Head,
    cell: fn(&R) -> Cell,
    /// Where text has another cell than JSON and CSV.
    in_text: Option<fn(&R) -> Cell>,
}

impl<R> Clone for Column<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Column<R> {}

impl<R> fmt::Debug for Column<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head.fmt(f)
    }
}

/// A constructor for each kind.
macro_rules! constructors {
    ($($function:ident $kind:ident)*) => {
        impl<R> Column<R> {
            $(pub fn $function(
                header: &'static str,
                name: &'static str,
                meaning: &'static str,
                cell: fn(&R) -> Cell,
            ) -> Self {
                Self::new(Kind::$kind, header, name, meaning, cell)
            })*
        }
    };
}

constructors! {
    text Text
    number Number
    duration Duration
    period Period
    bound Bound
    percent Percent
    rate Rate
    clock Clock
    parts Parts
    size Size
    list List
    share Share
}

impl<R> Column<R> {
    fn new(
        kind: Kind,
        header: &'static str,
        name: &'static str,
        meaning: &'static str,
        cell: fn(&R) -> Cell,
    ) -> Self {
        let importance = Importance::Normal;
        let head = Head {
            name,
            header,
            kind,
            meaning,
            importance,
            is_data: true,
            can_shrink: false,
            width: 0,
            is_alarm: false,
        };
        Self { head, cell, in_text: None }
    }

    fn of(self, importance: Importance) -> Self {
        Self { head: Head { importance, ..self.head }, ..self }
    }

    pub fn key(self) -> Self {
        self.of(Importance::Key)
    }

    pub fn high(self) -> Self {
        self.of(Importance::High)
    }

    pub fn normal(self) -> Self {
        self.of(Importance::Normal)
    }

    pub fn low(self) -> Self {
        self.of(Importance::Low)
    }

    pub fn extra(self) -> Self {
        self.of(Importance::Extra)
    }

    /// On a narrow terminal, its texts are cut before columns are left out.
    pub fn shrinking(self) -> Self {
        Self { head: Head { can_shrink: true, ..self.head }, ..self }
    }

    /// Its numbers count problems: on a terminal those that are not 0 are coloured as warnings are.
    pub fn alarming(self) -> Self {
        Self { head: Head { is_alarm: true, ..self.head }, ..self }
    }

    /// JSON and CSV do not have it.
    pub fn only_text(self) -> Self {
        Self { head: Head { is_data: false, ..self.head }, ..self }
    }

    /// As wide as this in text, or wider.
    pub fn wide(self, width: usize) -> Self {
        Self { head: Head { width, ..self.head }, ..self }
    }

    /// Text has these cells.
    pub fn in_text(self, cell: fn(&R) -> Cell) -> Self {
        Self { in_text: Some(cell), ..self }
    }

    pub(super) fn cell(&self, row: &R, is_text: bool) -> Cell {
        let cell = match self.in_text {
            Some(in_text) if is_text => in_text(row),
            _ => (self.cell)(row),
        };
        debug_assert!(self.head.kind.fits(&cell), "{} has a cell {cell:?}", self.head.name);
        cell
    }
}

/// Columns of a table whose rows are made of a type, one in each entry: kind, its width where it is fixed,
/// header, name, importance, meaning, cell, and the cell in text where that is another one.
///
/// ```ignore
/// columns! { line: Line<'t>;
///     number "thread" "tid" key, "thread id" => line.tid.into();
///     text(20) "" "bar" low + only_text, "a bar as long as the number" => bar(line);
/// }
/// ```
macro_rules! columns {
    ($row:ident: $Row:ty; $(
        $kind:ident $(($width:literal))? $header:literal $name:literal $importance:ident $(+ $more:ident)*, $meaning:expr
            => $cell:expr $(, in_text: $in_text:expr)?;
    )*) => {
        vec![$(
            $crate::table::Column::<$Row>::$kind($header, $name, $meaning, |$row| $cell)
                .$importance()$(.$more())*$(.wide($width))?$(.in_text(|$row| $in_text))?,
        )*]
    };
}
pub(crate) use columns;

/// What columns are, without their cells.
pub fn heads<R>(columns: impl AsRef<[Column<R>]>) -> Vec<Head> {
    columns.as_ref().iter().map(|column| column.head).collect()
}

/// The place of the column of a name, or else of the first with that header.
pub(super) fn find(all: &[Head], name: &str, purpose: &str) -> Result<usize> {
    let is_called = |head: &Head| !head.is_extra() && (head.header == name || head.title() == name);
    let named = all.iter().position(|head| head.name == name).or_else(|| all.iter().position(is_called));
    named.with_context(|| {
        let mut labels: Vec<String> = Vec::new();
        for head in all.iter().filter(|head| !head.name.is_empty()) {
            let has_header = !head.is_extra() && !["", head.name].contains(&head.header);
            let label = match has_header {
                true => format!("{} ({})", head.header, head.name),
                false => head.name.to_owned(),
            };
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        let names = all.iter().flat_map(|head| [if head.is_extra() { "" } else { head.header }, head.name]);
        let meant = closest(name, names.filter(|name| !name.is_empty()));
        let labels = labels.join(", ");
        match meant {
            Some(meant) => {
                format!("there is no column `{name}` {purpose}; is `{meant}` meant? There are: {labels}")
            }
            None => format!("there is no column `{name}` {purpose}; there are: {labels}"),
        }
    })
}
