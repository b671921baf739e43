//! All loads, for a long time and with new random numbers: `cargo xtask soak` runs this, `cargo test` does
//! not.
//!
//! The environment says how long (`TRACEWING_SOAK_SECONDS`), where the random numbers start
//! (`TRACEWING_SOAK_SEED`), and whether it runs under a race detector (`TRACEWING_SOAK_THREADS_ONLY`), which
//! does not understand assembly and processes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use tracewing_abi::region::Protocol;

use crate::books::Totals;
use crate::emitter::{KINDS, Shape};
use crate::machine::Random;
use crate::stress::processes::{kill_readers, kill_writers};
use crate::stress::threads::{self, Load};
use crate::stress::{any_shape, hotplug};

/// A round that takes longer has stopped making progress.
const STUCK: Duration = Duration::from_secs(300);

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs one load; returns its totals, and how often a CPU went offline.
fn round(shape: Shape, random: &mut Random, threads_only: bool) -> Option<(Totals, u64)> {
    match random.below(if threads_only { 3 } else { 6 }) {
        3 => Some((kill_writers(shape, random, 12)?, 0)),
        4 => Some((kill_readers(shape, random, 12, 20_000)?, 0)),
        5 => {
            let load = Load { has_hotplug: true, ..Load::any(shape, random, 60_000) };
            let (totals, times) = hotplug::during(random.next(), || threads::run(shape, load));
            Some((totals?, times))
        }
        _ => {
            let load = Load::any(shape, random, if threads_only { 5_000 } else { 60_000 });
            Some((threads::run(shape, load)?, 0))
        }
    }
}

/// Ends the process when it makes no more progress. Its children end with it.
fn watch(rounds: &AtomicU64) {
    loop {
        let before = rounds.load(Relaxed);
        thread::sleep(STUCK);
        if rounds.load(Relaxed) == before {
            println!("VIOLATION: round {} makes no progress", before.saturating_sub(1));
            std::process::exit(1);
        }
    }
}

fn table(totals: &[Totals]) {
    let names = Totals::default().columns().map(|(name, _)| name);
    println!("{:20}{}", "", names.map(|name| format!("{name:>13}")).concat());
    for ((protocol, mode), totals) in KINDS.iter().zip(totals) {
        let name = format!("{protocol:?} {mode:?}");
        println!("{name:20}{}", totals.columns().map(|(_, value)| format!("{value:>13}")).concat());
    }
}

#[test]
#[ignore = "runs for as long as asked: cargo xtask soak"]
fn soak() {
    let length = Duration::from_secs(number("TRACEWING_SOAK_SECONDS").unwrap_or(60));
    let threads_only = number("TRACEWING_SOAK_THREADS_ONLY").is_some();
    let begin = Instant::now();
    let first = number("TRACEWING_SOAK_SEED").unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |now| now.as_nanos() as u64) >> 10
    });
    let (mut totals, mut violations, mut unplugged) = ([Totals::default(); KINDS.len()], Vec::new(), 0);
    static ROUNDS: AtomicU64 = AtomicU64::new(0);
    thread::spawn(|| watch(&ROUNDS));
    let mut reported = Instant::now();
    while begin.elapsed() < length {
        let number = ROUNDS.fetch_add(1, Relaxed);
        let seed = first.wrapping_add(number);
        let kind = (seed % KINDS.len() as u64) as usize;
        if threads_only && KINDS[kind].0 == Protocol::Publish {
            continue;
        }
        let mut random = Random(seed);
        let shape = any_shape(kind, &mut random);
        match catch_unwind(AssertUnwindSafe(|| round(shape, &mut random, threads_only))) {
            Ok(Some((of_round, times))) => {
                totals[kind] += of_round;
                unplugged += times;
            }
            Ok(None) => {}
            Err(_) => {
                println!("VIOLATION in round {number}, seed {seed}: {shape:?}");
                violations.push(seed);
            }
        }
        if reported.elapsed() > Duration::from_secs(10) {
            reported = Instant::now();
            let sum = |part: fn(&Totals) -> u64| totals.iter().map(part).sum::<u64>();
            let (events, kills) = (sum(|totals| totals.emitted), sum(|totals| totals.kills));
            let seconds = begin.elapsed().as_secs();
            println!(
                "{seconds:>6} s: {number} rounds, {events} events, {kills} kills, {} violations",
                violations.len()
            );
        }
    }
    println!("seed {first}, {} rounds, a CPU went and came {unplugged} times", ROUNDS.load(Relaxed));
    table(&totals);
    assert!(violations.is_empty(), "{} rounds violated an invariant, seeds {violations:?}", violations.len());
}
