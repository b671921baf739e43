//! What is required of tracewing, and whether it holds.

use crate::compare::disk::Disk;
use crate::compare::events::Events;
use crate::compare::figures::Rounds;
use crate::compare::latency::Latency;
use crate::compare::record::Results;

/// One requirement, for which there are figures.
pub struct Bound {
    pub what: &'static str,
    pub limit: &'static str,
    pub measured: String,
    pub holds: bool,
}

/// A ratio of two rows of the table, as the last lines print it.
pub struct Ratio {
    pub name: &'static str,
    pub rounds: Rounds,
}

/// The ratios of the last lines.
pub fn ratios(events: &Events) -> Vec<Ratio> {
    [("lttng-ust/tracewing", "lttng", "two_u64"), ("tracewing/rdtsc", "two_u64", "rdtsc")]
        .into_iter()
        .filter_map(|(name, above, below)| Some(Ratio { name, rounds: events.ratio(above, below)? }))
        .collect()
}

/// Compares everything that was measured with what is required.
pub fn check(results: &Results) -> Vec<Bound> {
    let mut bounds = Vec::new();
    bounds.extend(results.events.iter().flat_map(of_events));
    if let Some(flatness) = results.threads.as_ref().and_then(|threads| threads.flatness("two_u64")) {
        bounds.push(Bound {
            what: "1 to 16 threads, CPU cost per event in rdtsc",
            limit: "flat within 10 %",
            measured: format!("{:.1} % from least to most", (flatness - 1.0) * 100.0),
            holds: flatness <= 1.1,
        });
    }
    bounds.extend(results.disk.iter().flat_map(of_disk));
    bounds.extend(results.latency.iter().flat_map(of_latency));
    bounds
}

/// What an event costs.
fn of_events(events: &Events) -> Vec<Bound> {
    let at_most = |what, limit, most: f64, (above, below)| {
        let ratio = events.ratio(above, below)?;
        Some(times(what, limit, &ratio, ratio.median() <= most))
    };
    let at_least = |what, limit, least: f64, (above, below)| {
        let ratio = events.ratio(above, below)?;
        Some(times(what, limit, &ratio, ratio.median() >= least))
    };
    let (own, theirs) = ("event with two u64 and thread id", "LTTng-UST's event, compared with tracewing's");
    let theirs_to_smp = "LTTng-UST's event, compared with tracewing's (Smp)";
    let bounds = [
        at_most(own, "at most 1.25 x rdtsc", 1.25, ("two_u64", "rdtsc")),
        at_most("the same, ordered", "at most 1.25 x lfence; rdtsc", 1.25, ("ordered", "lfence-rdtsc")),
        at_least(theirs, "at least 5.5 x as expensive", 5.5, ("lttng", "two_u64")),
        at_least(theirs_to_smp, "at least 2.5 x as expensive", 2.5, ("lttng", "smp")),
    ];
    bounds.into_iter().flatten().collect()
}

/// What reaches a disk.
fn of_disk(disk: &Disk) -> Vec<Bound> {
    let own = &disk.own;
    let share = own.kept.ratio_to(&disk.plain).times(100.0);
    let (least, most) = share.range();
    let rounds = own.kept.0.len() as u64;
    let bytes = own.event_bytes.median();
    vec![
        Bound {
            what: "to disk, bytes kept per second",
            limit: "at least 70 % of plain writes",
            measured: format!("{:.0} % ({least:.0} to {most:.0})", share.median()),
            holds: share.median() >= 70.0,
        },
        Bound {
            what: "to disk, loss count",
            limit: "never wrong",
            measured: format!("{} emitted, {} recorded, {} lost", own.emitted, own.recorded, own.lost),
            // Each round's thread introduces itself with one event more, which may be among the lost.
            holds: (own.emitted..=own.emitted + rounds).contains(&(own.recorded + own.lost)),
        },
        Bound {
            what: "bytes for two u64 and thread id",
            limit: "at most 28",
            measured: format!("{} ({bytes:.3} with packet headers)", bytes.floor()),
            holds: bytes.floor() <= 28.0,
        },
    ]
}

/// How long single events take, and what they have the kernel do.
fn of_latency(latency: &Latency) -> Vec<Bound> {
    let mut bounds = Vec::new();
    for (key, what, tail) in [
        ("flight", "faults, system calls: flight recorder", "latency, flight recorder: p99.9"),
        ("disk", "faults, system calls: to disk", "latency, to disk: p99.9"),
    ] {
        let Some(distribution) = latency.find(key) else { continue };
        let (faults, calls) = (distribution.faults, distribution.system_calls.unwrap_or((-1, -1)));
        bounds.push(Bound {
            what,
            // A thread's first event is the end of its start-up: it asks for its id and its name.
            limit: "none in a million events after the first",
            measured: format!("{}, {} (first event: {}, {})", faults.1, calls.1, faults.0, calls.0),
            holds: (faults.1, calls.1) == (0, 0),
        });
        if let Some(ratio) = latency.tail(key) {
            bounds.push(times(tail, "below 10 x median", &ratio, ratio.median() < 10.0));
        }
    }
    bounds
}

fn times(what: &'static str, limit: &'static str, ratio: &Rounds, holds: bool) -> Bound {
    let (least, most) = ratio.range();
    Bound { what, limit, measured: format!("{:.2} x ({least:.2} to {most:.2})", ratio.median()), holds }
}
