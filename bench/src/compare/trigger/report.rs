//! Prints what was measured: as tables for a terminal, the bounds, and the ratios as the last lines.

use super::Results;
use crate::compare::bounds::Bound;
use crate::compare::figures::Rounds;

pub fn print(results: &Results, bounds: &[Bound]) {
    for (word, text) in &results.machine {
        println!("{word}: {text}");
    }
    if let Some(shapes) = &results.shapes {
        println!(
            "\nfunctions with a disabled site, compared with the same functions without it, in {} layouts; CPU {}",
            shapes.layouts, shapes.cpu
        );
        println!("{:40} {:>9} {:>24} {:>24}", "", "ns", "site (95 % interval)", "none (95 % interval)");
        for shape in &shapes.rows {
            let (off, again) = (with_interval(&shape.off), with_interval(&shape.again));
            println!("{:40} {:>9.2} {off:>24} {again:>24}", shape.title, shape.bare.median());
        }
    }
    if let Some(forms) = &results.forms {
        println!("\nns for passing a site, CPU time; CPU {}, {} rounds", forms.cpu, forms.rounds);
        println!("{:50} {:>9} {:>9} {:>9}", "", "median", "min", "max");
        for (group, rows) in forms.groups() {
            println!("{group}");
            for row in rows {
                println!("  {:48} {}", row.title, spread(&row.rounds));
            }
        }
    }
    if let Some(switching) = &results.switching {
        println!("\nms for switching {} sites, on the clock", switching.sites);
        println!("{:50} {:>9} {:>9} {:>9}", "", "median", "min", "max");
        for way in &switching.ways {
            println!("{:50} {}", format!("{}, on", way.title), spread(&way.on));
            println!("{:50} {}", format!("{}, off", way.title), spread(&way.off));
        }
    }
    for part in results.layer.iter().flat_map(|layer| layer.parts()) {
        println!("\n`tracing`, {}: ns of CPU time of its thread", part.what);
        println!("{:50} {:>9} {:>9} {:>9}", "", "median", "min", "max");
        for row in part.rows() {
            println!("{:50} {}", row.title, spread(&row.rounds));
        }
    }
    println!("\nbounds");
    for bound in bounds {
        let verdict = if bound.holds { "holds" } else { "FAILS" };
        println!("{verdict}  {}, {}: {}", bound.what, bound.limit, bound.measured);
    }
    println!();
    for shape in results.shapes.iter().flat_map(|shapes| &shapes.rows) {
        println!("ratio site/none, {}: {}", shape.title, with_interval(&shape.off));
    }
    for part in results.layer.iter().flat_map(|layer| layer.parts()) {
        let ratio = part.ratio();
        let (least, most) = ratio.range();
        let median = ratio.median();
        println!(
            "ratio tracing-chrome/tracewing's layer, {}: {median:.1} ({least:.1} to {most:.1})",
            part.what
        );
    }
}

/// The median, and the interval in which it lies.
pub fn with_interval(rounds: &Rounds) -> String {
    let (least, most) = rounds.interval();
    format!("{:.4} ({least:.4} to {most:.4})", rounds.median())
}

fn spread(rounds: &Rounds) -> String {
    let (least, most) = rounds.range();
    format!("{:>9.2} {least:>9.2} {most:>9.2}", rounds.median())
}
