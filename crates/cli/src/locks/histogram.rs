//! How long critical sections were, and how deep they were nested: Feather-Trace's Figures 4 to 9, as a table
//! and as a picture.

use crate::bar::bar;
use crate::table::{Cell, Column, Table, TableOptions, columns};
use anyhow::{Context, Result, anyhow, ensure};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use tracewing_analysis::{Bins, Histogram};
use tracewing_files::OutputFile;
use tracewing_units::Duration;

/// Letters of a bar, at most.
const WIDTH: u64 = 30;

/// A line of the table.
#[derive(Clone)]
pub struct Bin {
    what: &'static str,
    from: Cell,
    to: Cell,
    count: u64,
    /// Counts: of this bin and those before it, of the fullest bin, and of all bins together.
    up_to_here: u64,
    most: u64,
    total: u64,
}

impl Bin {
    fn percent(&self, count: u64) -> Cell {
        Cell::Rate(count as f64 * 100.0 / self.total.max(1) as f64)
    }
}

pub fn columns() -> Vec<Column<Bin>> {
    columns! { bin: Bin;
        text "measure" "measure" key, "length of critical sections, or depth of nesting" => bin.what.into();
        bound "from" "from" key, "where the bin begins" => bin.from.clone();
        bound "to" "to" normal, "where it ends" => bin.to.clone();
        number "count" "count" key, "how many are in it" => Cell::Count(bin.count);
        percent "" "percent" high, "share of all of them" => bin.percent(bin.count);
        percent "up to here" "cumulative_percent" high, "share in this bin and the bins before it" => bin.percent(bin.up_to_here);
        text "" "bar" low + only_text, "a bar as long as the number" => bar(bin.count, bin.most, WIDTH).into();
    }
}

/// A line for each bin: of lengths first, then of depths.
///
/// # Errors
/// The options name a column that there is not.
pub fn table(histogram: &Histogram, options: &TableOptions) -> Result<Table> {
    let lengths = histogram.lengths().map(|(from, to, count)| (Cell::Period(from), Cell::period(to), count));
    let depths = histogram.depths().map(|(depth, count)| (Cell::Count(depth), Cell::Count(depth), count));
    let lines = [bins("length", lengths.collect()), bins("depth", depths.collect())].concat();
    Ok(options.layout(&columns())?.table(&lines))
}

fn bins(what: &'static str, bins: Vec<(Cell, Cell, u64)>) -> Vec<Bin> {
    let total = bins.iter().map(|(.., count)| count).sum();
    let most = bins.iter().map(|(.., count)| *count).max().unwrap_or(0);
    let mut up_to_here = 0;
    let bin = |(from, to, count)| {
        up_to_here += count;
        Bin { what, from, to, count, up_to_here, most, total }
    };
    bins.into_iter().map(bin).collect()
}

/// Size of the drawing, in pixels.
const SIZE: (u32, u32) = (900, 700);

/// Per cent of critical sections, the longest, that a picture with a linear axis leaves out: all others would
/// be a line.
const LEFT_OUT: f64 = 0.1;

/// Writes a picture: both distributions, as bars, and their sums up to each bin, as lines.
///
/// # Errors
/// Nothing was held, or the file cannot be written.
pub fn draw(histogram: &Histogram, file: &Path) -> Result<()> {
    ensure!(histogram.depths().next().is_some(), "there is nothing to draw");
    let mut picture = String::new();
    draw_into(histogram, &mut picture).map_err(|error| anyhow!("the histogram cannot be drawn: {error}"))?;
    let written = OutputFile::create(file).and_then(|mut out| {
        out.write_all(picture.as_bytes())?;
        out.finish()
    });
    written.with_context(|| format!("cannot write {}", file.display()))
}

type Failure = DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>;

fn draw_into(histogram: &Histogram, picture: &mut String) -> Result<(), Failure> {
    let area = SVGBackend::with_string(picture, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let (above, below) = area.split_vertically(SIZE.1 / 2);
    let is_log = histogram.bins() == Bins::Log;
    // A logarithmic axis begins where the first bin, which has all down to 0, would if it were as wide as the
    // others.
    let place = |length: Duration| match is_log {
        true => (length.as_ns().max(50) as f64 / 1_000.0).log10(),
        false => length.as_ns() as f64 / 1_000.0,
    };
    let lengths =
        histogram.lengths().map(|(from, to, count)| (place(from), place(to.unwrap_or(from)), count));
    let (total, mut bars) = shares(lengths.collect());
    if !is_log {
        let shown =
            bars.iter().position(|bar| bar.up_to >= 100.0 - LEFT_OUT).map_or(bars.len(), |last| last + 1);
        bars.truncate(shown);
    }
    let axis = Axis {
        range: if is_log { place(Duration::ZERO)..last(&bars) } else { 0.0..last(&bars) },
        labels: 10,
        label: &|place| if is_log { format!("{:.2}", 10_f64.powf(*place)) } else { format!("{place:.1}") },
        name: "µs",
    };
    panel(&above, &format!("lengths of {total} critical sections"), &axis, &bars)?;
    let depths = histogram.depths().map(|(depth, count)| (depth as f64 - 0.4, depth as f64 + 0.4, count));
    let (total, bars) = shares(depths.collect());
    let axis = Axis {
        range: -0.6..last(&bars) + 0.2,
        labels: bars.len() + 1,
        label: &|depth| format!("{depth:.0}"),
        name: "other locks held",
    };
    panel(&below, &format!("nesting of {total} acquisitions"), &axis, &bars)?;
    area.present()
}

/// The axis to the right.
struct Axis<'a> {
    range: Range<f64>,
    /// How many labels it has, about.
    labels: usize,
    label: &'a dyn Fn(&f64) -> String,
    name: &'a str,
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    caption: &str,
    axis: &Axis<'_>,
    bars: &[Share],
) -> Result<(), Failure> {
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(axis.range.clone(), 0.0..100.0)?;
    chart
        .configure_mesh()
        .x_labels(axis.labels)
        .x_label_formatter(&axis.label)
        .x_desc(axis.name)
        .y_desc("%")
        .draw()?;
    let bar = |bar: &Share| Rectangle::new([(bar.from, 0.0), (bar.to, bar.of)], BLUE.mix(0.5).filled());
    chart.draw_series(bars.iter().map(bar))?;
    chart.draw_series(LineSeries::new(bars.iter().map(|bar| (bar.to, bar.up_to)), &RED))?;
    Ok(())
}

/// A bin in per cent.
struct Share {
    from: f64,
    to: f64,
    of: f64,
    up_to: f64,
}

/// Of bins, from where, to where, and how many: the total, and each one's share.
fn shares(bins: Vec<(f64, f64, u64)>) -> (u64, Vec<Share>) {
    let total: u64 = bins.iter().map(|(.., count)| count).sum();
    let mut so_far = 0;
    let share = |(from, to, count)| {
        so_far += count;
        let percent = |count: u64| count as f64 * 100.0 / total.max(1) as f64;
        Share { from, to, of: percent(count), up_to: percent(so_far) }
    };
    (total, bins.into_iter().map(share).collect())
}

/// The end of the last bar; positive if there is none.
fn last(bars: &[Share]) -> f64 {
    bars.last().map_or(1.0, |bar| bar.to)
}
