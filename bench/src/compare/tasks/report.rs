//! Prints what was measured, the bounds, and the ratios as the last lines.

use super::{Events, PEERS, Results};
use crate::compare::bounds::Bound;

pub fn print(results: &Results, bounds: &[Bound]) {
    for (word, text) in &results.machine {
        println!("{word}: {text}");
    }
    let rounds = results.sides.first().map_or(0, |side| side.cost.0.len());
    println!("\nSumtime, ns of CPU time for a task; {rounds} rounds");
    println!("{:36} {:>9} {:>9} {:>9}   overhead, % (95 % interval)", "", "median", "min", "max");
    for side in &results.sides {
        let (least, most) = side.cost.range();
        let overhead = results.overhead(side.key).map_or_else(String::new, |overhead| {
            let (least, most) = overhead.interval();
            format!("{:+8.1} ({least:+.1} to {most:+.1})", overhead.median())
        });
        println!("{:36} {:>9.1} {least:>9.1} {most:>9.1} {overhead}", side.title, side.cost.median());
    }
    println!();
    for Events { key, events, bytes } in &results.events {
        let rate = rate(results, key, *events);
        println!("{key}: {events:.2} events and {bytes:.0} bytes a task, {rate:.1} million events/s");
    }
    println!("\nbounds");
    for bound in bounds {
        let verdict = if bound.holds { "holds" } else { "FAILS" };
        println!("{verdict}  {}, {}: {}", bound.what, bound.limit, bound.measured);
    }
    println!();
    for pair @ (peer, degree) in PEERS {
        if let Some(ratio) = results.ratio(pair) {
            println!("ratio {peer}/tracewing {degree}: {ratio:.2}");
        }
    }
}

/// Millions of events in a second of one thread.
pub fn rate(results: &Results, key: &str, events: f64) -> f64 {
    results.side(key).map_or(f64::NAN, |side| events / side.cost.median() * 1e3)
}
