//! The page's plots, as SVG.

use crate::compare::disk::Disk;
use crate::compare::events::Events;
use crate::compare::latency::Latency;
use crate::compare::threads::{THREADS, Threads};
use anyhow::{Result, anyhow};
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use std::path::Path;

// Also distinct with colour vision deficiencies (after Okabe and Ito). tracewing is orange, LTTng blue.
const BLUE: RGBColor = RGBColor(0, 114, 178);
const ORANGE: RGBColor = RGBColor(213, 94, 0);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const PINK: RGBColor = RGBColor(204, 121, 167);
const SKY: RGBColor = RGBColor(86, 180, 233);
const GREY: RGBColor = RGBColor(120, 120, 120);
const TEXT: (&str, u32) = ("sans-serif", 13);
const WIDTH: u32 = 760;

/// Medians of the table as dots, from least to most as lines, on a logarithmic axis.
pub fn events(events: &Events, path: &Path) -> Result<()> {
    let rows: Vec<_> = events.groups().flat_map(|(_, rows)| rows).collect();
    let height = 60 + 24 * rows.len() as u32;
    let area = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    let most = rows.iter().map(|row| row.rounds.range().1).fold(10.0, f64::max);
    let mut chart = Chart::on(&area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(360)
        .build_cartesian_2d((1.0..most * 1.5).log_scale(), -0.5..rows.len() as f64 - 0.5)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_desc("ns of CPU time for one (logarithmic)")
        .label_style(TEXT)
        .x_label_formatter(&|ns| format!("{ns:.0}"))
        .draw()
        .map_err(failed)?;
    for (i, row) in rows.iter().enumerate() {
        let y = (rows.len() - 1 - i) as f64;
        let own = row.group == "tracewing";
        let colour = if own { ORANGE } else { BLUE };
        let (least, most) = row.rounds.range();
        let median = row.rounds.median();
        let line = PathElement::new(vec![(least, y), (most, y)], colour.stroke_width(2));
        chart.draw_series([line]).map_err(failed)?;
        chart.draw_series([Circle::new((median, y), 4, colour.filled())]).map_err(failed)?;
        let name = if own { format!("tracewing, {}", row.title) } else { row.title.clone() };
        let at = (12, 12 + (height as i32 - 64) * (2 * i as i32 + 1) / (2 * rows.len() as i32) - 7);
        area.draw_text(&name, &TEXT.into(), at).map_err(failed)?;
    }
    area.present().map_err(failed)
}

/// The cost in units of an `rdtsc`, over the number of threads.
pub fn threads(threads: &Threads, path: &Path) -> Result<()> {
    let series: Vec<_> =
        threads.series.iter().filter_map(|series| Some((series, threads.in_rdtsc(series.key)?))).collect();
    let most = series.iter().flat_map(|(_, units)| units).map(|units| units.range().1).fold(2.0, f64::max);
    let last = THREADS[THREADS.len() - 1] as f64;
    let area = SVGBackend::new(path, (WIDTH, 420)).into_drawing_area();
    let mut chart = Chart::on(&area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d((0.9..last * 1.1).log_scale().base(2.0), (0.8..most * 3.0).log_scale())
        .map_err(failed)?;
    chart
        .configure_mesh()
        .x_desc("threads, on all CPUs")
        .y_desc("CPU time for an event, in rdtsc (logarithmic)")
        .light_line_style(TRANSPARENT)
        .label_style(TEXT)
        .x_label_formatter(&|threads| format!("{threads:.0}"))
        .y_label_formatter(&|units| format!("{units:.0}"))
        .draw()
        .map_err(failed)?;
    let colours = [GREY, ORANGE, GREEN, PINK, SKY, BLUE];
    for ((series, units), colour) in series.iter().zip(colours) {
        let points: Vec<(f64, f64)> =
            THREADS.iter().zip(units).map(|(threads, units)| (*threads as f64, units.median())).collect();
        let spreads = THREADS.iter().zip(units).map(|(threads, units)| {
            let (least, most) = units.range();
            PathElement::new(vec![(*threads as f64, least), (*threads as f64, most)], colour.stroke_width(1))
        });
        chart.draw_series(spreads).map_err(failed)?;
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(3))
            .map_err(failed)?
            .label(series.title)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    legend(&mut chart)?;
    area.present().map_err(failed)
}

/// Bytes kept in a second, round by round.
pub fn disk(disk: &Disk, path: &Path) -> Result<()> {
    let mut series = vec![("plain loop of 1 MiB writes", &disk.plain), ("tracewing", &disk.own.kept)];
    series.extend(disk.lttng.as_ref().map(|side| ("LTTng-UST", &side.kept)));
    let rounds = disk.plain.0.len() as f64;
    let most = series.iter().map(|(_, rates)| rates.range().1).fold(0.0, f64::max) * 1e-6;
    let area = SVGBackend::new(path, (WIDTH, 360)).into_drawing_area();
    let mut chart = Chart::on(&area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.5..rounds + 0.5, 0.0..most * 1.3)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("round")
        .y_desc("MB kept per second")
        .label_style(TEXT)
        .x_labels(rounds as usize)
        .x_label_formatter(&|round| format!("{round:.0}"))
        .y_label_formatter(&|rate| format!("{rate:.0}"))
        .draw()
        .map_err(failed)?;
    for ((title, rates), colour) in series.iter().zip([GREY, ORANGE, BLUE]) {
        let points = rates.0.iter().enumerate().map(|(i, rate)| (i as f64 + 1.0, rate * 1e-6));
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(4))
            .map_err(failed)?
            .label(*title)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    legend(&mut chart)?;
    area.present().map_err(failed)
}

/// How many events took how long: both axes logarithmic, 20 bins to the power of ten.
pub fn latency(latency: &Latency, frequency: f64, path: &Path) -> Result<()> {
    let histograms: Vec<(&str, Vec<(f64, f64)>)> = latency
        .distributions
        .iter()
        .map(|distribution| (distribution.title, histogram(&distribution.samples, frequency)))
        .collect();
    let most = histograms.iter().filter_map(|(_, bins)| bins.last()).map(|bin| bin.0).fold(100.0, f64::max);
    let area = SVGBackend::new(path, (WIDTH, 440)).into_drawing_area();
    let mut chart = Chart::on(&area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d((5.0..most * 1.2).log_scale(), (1e-7..1.0).log_scale())
        .map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("ns for one event, timing included (logarithmic)")
        .y_desc("share of events in a bin (logarithmic)")
        .label_style(TEXT)
        .x_label_formatter(&|ns| format!("{ns:.0}"))
        .y_label_formatter(&|share| format!("{share:.0e}"))
        .draw()
        .map_err(failed)?;
    let colours = [GREY, ORANGE, PINK, GREEN, BLUE];
    for ((title, bins), colour) in histograms.into_iter().zip(colours) {
        chart
            .draw_series(LineSeries::new(bins, colour.stroke_width(2)))
            .map_err(failed)?
            .label(title)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    legend(&mut chart)?;
    area.present().map_err(failed)
}

/// Bins with anything in them: the middle in ns, and the share of the samples.
fn histogram(sorted: &[u32], frequency: f64) -> Vec<(f64, f64)> {
    const BINS: f64 = 20.0;
    let bin = |cycles: u32| ((f64::from(cycles.max(1)) / frequency).log10() * BINS).floor();
    sorted
        .chunk_by(|left, right| bin(*left) == bin(*right))
        .map(|chunk| {
            let middle = 10_f64.powf((bin(chunk[0]) + 0.5) / BINS);
            (middle, chunk.len() as f64 / sorted.len() as f64)
        })
        .collect()
}

/// Starts a chart on white.
struct Chart;

impl Chart {
    fn on<'a, 'b, D: DrawingBackend>(
        area: &'a DrawingArea<D, plotters::coord::Shift>,
    ) -> ChartBuilder<'a, 'b, D> {
        // A failed fill shows when the drawing is presented.
        let _ = area.fill(&WHITE);
        ChartBuilder::on(area)
    }
}

fn legend<'a, D, X, Y>(chart: &mut ChartContext<'a, D, Cartesian2d<X, Y>>) -> Result<()>
where
    D: DrawingBackend + 'a,
    X: Ranged + ValueFormatter<X::ValueType>,
    Y: Ranged + ValueFormatter<Y::ValueType>,
{
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.9))
        .border_style(RGBColor(200, 200, 200))
        .label_font(TEXT)
        .draw()
        .map_err(failed)
}

fn failed<E: std::error::Error>(error: E) -> anyhow::Error {
    anyhow!("cannot draw: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_every_sample_once() {
        let bins = histogram(&[10, 10, 11, 1000, 100_000], 1.0);
        assert_eq!(bins.iter().map(|bin| bin.1).sum::<f64>(), 1.0);
        assert!(bins.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(bins.len(), 3);
    }
}
