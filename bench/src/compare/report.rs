//! Prints what was measured: as tables for a terminal, the bounds, and the two ratios as the last lines.

use crate::compare::bounds::{self, Bound};
use crate::compare::disk::{Disk, Side};
use crate::compare::events::Events;
use crate::compare::figures::{Rounds, percentile};
use crate::compare::latency::{Latency, SHARES};
use crate::compare::record::Results;
use crate::compare::threads::{THREADS, Threads};

pub fn print(results: &Results, bounds: &[Bound]) {
    for (word, text) in &results.machine {
        println!("{word}: {text}");
    }
    if let Some(events) = &results.events {
        print_events(events);
    }
    if let Some(threads) = &results.threads {
        print_threads(threads);
    }
    if let Some(disk) = &results.disk {
        print_disk(disk);
    }
    if let Some(latency) = &results.latency {
        print_latency(latency, results.frequency);
    }
    println!("\nbounds");
    for bound in bounds {
        let verdict = if bound.holds { "holds" } else { "FAILS" };
        println!("{verdict}  {}, {}: {}", bound.what, bound.limit, bound.measured);
    }
    if let Some(events) = &results.events {
        println!();
        for ratio in bounds::ratios(events) {
            println!("ratio {}: {:.2}", ratio.name, ratio.rounds.median());
        }
    }
}

fn print_events(events: &Events) {
    let rounds = events.rows.first().map_or(0, |row| row.rounds.0.len());
    println!("\nns for one, CPU time; CPU {}, {rounds} rounds of {} bursts", events.cpu, events.bursts);
    println!("{:58} {:>9} {:>9} {:>9}", "", "median", "min", "max");
    for (group, rows) in events.groups() {
        println!("{group}");
        for row in rows {
            println!("  {:56} {}", row.title, spread(&row.rounds));
        }
    }
    for ratio in bounds::ratios(events) {
        println!("{:58} {}", ratio.name, spread(&ratio.rounds));
    }
}

fn print_threads(threads: &Threads) {
    println!(
        "\nns of CPU time for an event, by the number of threads (in units of an rdtsc on as many threads)"
    );
    print!("{:30}", "");
    THREADS.iter().for_each(|threads| print!(" {threads:>16}"));
    println!();
    for series in &threads.series {
        print!("{:30}", series.title);
        let units = threads.in_rdtsc(series.key).unwrap_or_default();
        for (cost, units) in series.cost.iter().zip(&units) {
            print!(" {:>8.2} ({:>5.2})", cost.median(), units.median());
        }
        println!();
    }
}

fn print_disk(disk: &Disk) {
    let dropped = if disk.dropped { "dropped" } else { "only written out (dropping needs root)" };
    println!("\nto disk, MB kept per second; the page cache was {dropped} before each run");
    println!("{:58} {:>9} {:>9} {:>9}", "", "median", "min", "max");
    println!("{:58} {}", "plain loop of 1 MiB writes", spread(&disk.plain.times(1e-6)));
    let side = |name, side: &Side| {
        println!("{name:58} {}", spread(&side.kept.times(1e-6)));
        println!("{:58} {}", "  share of events kept, %", spread(&side.share.times(100.0)));
        println!("{:58} {}", "  bytes per event", spread(&side.event_bytes));
        println!("  {} events emitted, {} recorded, {} lost", side.emitted, side.recorded, side.lost);
    };
    side("tracewing", &disk.own);
    if let Some(lttng) = &disk.lttng {
        side("LTTng-UST", lttng);
    }
}

fn print_latency(latency: &Latency, frequency: f64) {
    println!(
        "\nns for single events, the first {} of a process, with the {:.1} ns that timing takes",
        latency.events,
        latency.empty() / frequency
    );
    print!("{:34}", "");
    SHARES.iter().for_each(|(name, _)| print!(" {name:>9}"));
    println!("  faults  system calls (first event + others)");
    for distribution in &latency.distributions {
        print!("{:34}", distribution.title);
        for (_, share) in SHARES {
            print!(" {:>9.1}", f64::from(percentile(&distribution.samples, *share)) / frequency);
        }
        let pair = |(first, others)| format!("{first} + {others}");
        let calls = distribution.system_calls.map_or("not counted".to_owned(), pair);
        println!("  {:6}  {calls}", pair(distribution.faults));
    }
}

fn spread(rounds: &Rounds) -> String {
    let (least, most) = rounds.range();
    format!("{:>9.2} {least:>9.2} {most:>9.2}", rounds.median())
}
