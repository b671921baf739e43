//! Describes the columns of a command in its help, and those of all commands in docs/reference/columns.md.

use super::Head;
use std::fmt::Write as _;

/// A table that a command prints.
#[derive(Debug)]
pub struct View {
    /// The command line without the recording.
    pub command: &'static str,
    pub heads: Vec<Head>,
}

impl View {
    pub fn new(command: &'static str, heads: Vec<Head>) -> Self {
        View { command, heads }
    }
}

/// The section of a command's help about its columns, those of all its tables together.
pub fn help(views: &[View]) -> String {
    let mut columns: Vec<(&Head, &View)> = Vec::new();
    for view in views {
        for head in &view.heads {
            if columns.iter().all(|(column, _)| column.name != head.name) {
                columns.push((head, view));
            }
        }
    }
    let is_of_all = |view: &View| views.first().is_some_and(|first| first.command == view.command);
    let (extra, shown): (Vec<_>, Vec<_>) = columns.into_iter().partition(|(head, _)| head.is_extra());
    let mut text = String::new();
    for (title, columns) in
        [("Columns", shown), ("More columns, in text only with --wide or --columns", extra)]
    {
        if columns.is_empty() {
            continue;
        }
        // A `String` takes everything.
        let _ = writeln!(text, "\n{title}:");
        let width = columns.iter().map(|(head, _)| label(head).len()).max().unwrap_or(0);
        for (head, view) in columns {
            let only = if is_of_all(view) { String::new() } else { format!(" ({})", view.command) };
            let _ = writeln!(text, "  {:<width$}  {}{only}", label(head), head.meaning);
        }
    }
    text.trim_end().to_owned()
}

/// How `--columns` can call it, with its unit.
fn label(head: &Head) -> String {
    let title = head.title();
    match head.header.is_empty() || head.is_extra() || title == head.name {
        true => head.name.to_owned(),
        false => format!("{title} ({})", head.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::column::{Importance, Kind};
    use std::path::Path;
    use std::{env, fs};

    const HEAD: &str = "\
# Columns

This page lists the columns of all tables. It is generated from the declarations of the columns:
`UPDATE=1 cargo test -p tracewing-cli --bin tracewing reference` writes it, and that test fails if it is out of date.

JSON and CSV have all columns, under their names. Text has headers. A header includes the unit if all cells have the same one; if values can
differ by orders of magnitude, each cell has its own unit. In JSON and CSV, all times are in ns. An unknown value is `-` in text, empty in CSV,
and `null` in JSON.

`--columns a,b,c` selects columns and their order, in all formats, by name or header. In text, columns that are marked `extra` are printed only
with `--wide` or `--columns`. If a terminal, or `COLUMNS`, is too narrow for the others, the less important ones are hidden: those of low
importance first, key columns never. Files and pipes get all columns that are not `extra`. `--sort` takes any column by name or header, even if
it is not printed; rows whose value is unknown come last.
";

    /// The unit of a column's cells, in JSON and CSV where that is another one.
    fn unit(kind: Kind) -> &'static str {
        match kind {
            Kind::Text => "text",
            Kind::Number => "number",
            Kind::Duration => "ms (ns)",
            Kind::Period => "in the cell (ns)",
            Kind::Bound => "in the cell (ns), or number",
            Kind::Percent => "%",
            Kind::Rate => "per second",
            Kind::Clock => "time of day (ns since 1970)",
            Kind::Parts => "largest part (all, in ns)",
            Kind::Size => "in the cell (bytes)",
            Kind::List => "text (list)",
            Kind::Share => "% in the cell (part of 1)",
        }
    }

    /// The order in which `--sort` puts a column of this kind.
    fn order(kind: Kind) -> &'static str {
        match kind {
            Kind::Text | Kind::List => "alphabetically",
            Kind::Clock => "latest first",
            Kind::Parts => "largest sum first",
            _ => "largest first",
        }
    }

    fn page() -> String {
        let mut page = HEAD.to_owned();
        for view in crate::views() {
            let _ = write!(
                page,
                "\n## {}\n\n| name | header | unit | meaning | importance | `--sort` |\n|---|---|---|---|---|---|\n",
                view.command
            );
            for head in &view.heads {
                let importance = match head.importance {
                    Importance::Extra => "extra",
                    Importance::Low => "low",
                    Importance::Normal => "normal",
                    Importance::High => "high",
                    Importance::Key => "key",
                };
                let only = if head.is_data { "" } else { ", only in text" };
                let _ = writeln!(
                    page,
                    "| `{}` | {} | {} | {}{only} | {importance} | {} |",
                    head.name,
                    head.title(),
                    unit(head.kind),
                    head.meaning,
                    order(head.kind)
                );
            }
        }
        page
    }

    #[test]
    fn the_reference_has_all_columns() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/columns.md");
        let page = page();
        if env::var_os("UPDATE").is_some() {
            fs::write(&file, &page).expect("docs can be written");
        }
        let stored = fs::read_to_string(&file).unwrap_or_default();
        let first = page.lines().zip(stored.lines()).find(|(now, stored)| now != stored);
        assert!(
            page == stored,
            "docs/reference/columns.md is out of date, see its begin; first difference: {first:?}"
        );
    }

    #[test]
    fn every_column_is_called_once_and_explained() {
        for view in crate::views() {
            for (place, head) in view.heads.iter().enumerate() {
                let what = format!("{} of {}", head.name, view.command);
                assert!(!head.meaning.is_empty() && !head.meaning.ends_with('.'), "{what}");
                assert!(view.heads[..place].iter().all(|other| other.name != head.name), "{what}");
            }
        }
    }
}
