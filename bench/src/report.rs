//! Prints the comparison and reads from the trace how much of it was recorded.

use crate::figures::Rounds;
use crate::machine;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;

/// A line of the table.
pub struct Row {
    pub name: &'static str,
    pub rounds: Rounds,
}

/// How many user events a finished recording holds, and how many it lost.
pub fn recorded(trace: &Path) -> Result<(u64, u64)> {
    let path = trace.join("tracewing.json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let description: Value = serde_json::from_str(&text).with_context(|| format!("{}", path.display()))?;
    let streams = description["user_streams"].as_array().context("tracewing.json lists no user streams")?;
    let sum = |key: &str| streams.iter().filter_map(|stream| stream[key].as_u64()).sum();
    Ok((sum("events"), sum("lost")))
}

/// The table and what one has to know about it.
pub fn print(rows: &[Row], cpu: usize, bursts: u32, emitted: u64, recorded: u64, lost: u64) {
    println!("{}", machine::describe());
    println!("measured on CPU {cpu}: {} rounds of {bursts} bursts, ns per event", count(rows));
    println!("tracewing emitted {emitted} events, recorded {recorded}, lost {lost}");
    println!();
    println!("{:32} {:>8} {:>8} {:>8}", "", "median", "least", "most");
    for row in rows {
        let (least, most) = row.rounds.range();
        println!("{:32} {:>8.2} {least:>8.2} {most:>8.2}", row.name, row.rounds.median());
    }
}

/// The ratios: their range over the rounds, then, as the last lines, their medians.
pub fn print_ratios(rows: &[Row], floor: &str, own: &str, peer: &str) {
    let find = |name: &str| rows.iter().find(|row| row.name == name).map(|row| &row.rounds);
    let ratios: Vec<(&str, Rounds)> = [("lttng-ust/tracewing", peer, own), ("tracewing/rdtsc", own, floor)]
        .into_iter()
        .filter_map(|(name, above, below)| Some((name, find(above)?.ratio_to(find(below)?))))
        .collect();
    for (name, ratio) in &ratios {
        let (least, most) = ratio.range();
        println!("{name:32} {:>8.2} {least:>8.2} {most:>8.2}", ratio.median());
    }
    println!();
    for (name, ratio) in &ratios {
        println!("ratio {name}: {:.2}", ratio.median());
    }
}

fn count(rows: &[Row]) -> usize {
    rows.first().map_or(0, |row| row.rounds.0.len())
}
