//! A session under load for as long as one likes (`cargo xtask soak --only sessions`; a moment in CI):
//! programs of two users start, emit, and end or are killed; archives and snapshots are taken. What was read
//! and what was lost is what was emitted, and the recorders need no more descriptors, threads or disk than at
//! first.

use crate::background::{Background, Pilot, as_user};
use crate::counted;
use crate::harness::Printed;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tracewing_testing::{NOBODY, am_root};

/// Programs at one time.
const PROGRAMS: usize = 6;
/// Rounds without an archive or a snapshot, which may not be asked for more often than every two seconds.
const ASKED_EVERY: Duration = Duration::from_secs(3);
/// What all archives together may have, in bytes.
const TOTAL: u64 = 8 << 20;

/// What a recorder has of the machine.
#[derive(Clone, Copy)]
struct Taken {
    descriptors: usize,
    threads: usize,
    resident_kib: u64,
}

impl Taken {
    fn by(pid: u32) -> Self {
        let count = |folder: &str| fs::read_dir(format!("/proc/{pid}/{folder}")).unwrap().count();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let resident_kib = resident.trim().trim_end_matches(" kB").parse().unwrap();
        Self { descriptors: count("fd"), threads: count("task"), resident_kib }
    }
}

impl std::fmt::Display for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { descriptors, threads, resident_kib } = self;
        write!(f, "{descriptors} descriptors, {threads} threads, {resident_kib} KiB")
    }
}

#[test]
fn what_is_read_and_lost_is_what_was_emitted_and_nothing_grows() {
    let seconds = std::env::var("TRACEWING_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    let length = Duration::from_secs(seconds.unwrap_or(8));
    let sessions = Background::new();
    sessions.succeeds("session create web -e pilot:* --sub-buffers 2 --sub-buffer-size 16K");
    sessions.succeeds("channel add web bounded -e pilot:* --total-size 8M");
    sessions.succeeds(
        "channel add web flight --flight-recorder --snapshot-on panic --sub-buffers 2 --sub-buffer-size 16K",
    );
    sessions.succeeds("trigger add web hit -e pilot:count --where number==1 --do notify --at-most-every 1");
    let folder = sessions.start("web");

    let users = if am_root() { vec![Vec::new(), as_user(NOBODY)] } else { vec![Vec::new()] };
    let begin = Instant::now();
    let (mut emitted, mut programs, mut rounds, mut first) = (0, 0, 0, None);
    let (mut archives, mut snapshots, mut asked) = (0, 0, Instant::now());
    while rounds < 4 || begin.elapsed() < length {
        let mut pilots: Vec<Pilot> =
            (0..PROGRAMS).map(|number| Pilot::run(&sessions, &users[number % users.len()])).collect();
        for (number, pilot) in pilots.iter_mut().enumerate() {
            emitted += pilot.emit(100 + 700 * number as u64);
            if number % 2 == 0 {
                pilot.kill();
            }
        }
        programs += PROGRAMS;
        drop(pilots);
        rounds += 1;
        if asked.elapsed() >= ASKED_EVERY || rounds == 2 {
            sessions.succeeds("rotate web/main");
            let snapshot = sessions.succeeds("snapshot web/flight").text();
            fs::remove_dir_all(snapshot.trim_end()).unwrap();
            (archives, snapshots, asked) = (archives + 1, snapshots + 1, Instant::now());
        }
        if rounds == 3 {
            first =
                Some(sessions.recorders().into_iter().map(|pid| (pid, Taken::by(pid))).collect::<Vec<_>>());
        }
    }
    // Regions of the last programs are given back once the recorders have seen that nothing writes to them.
    let first = first.unwrap();
    let is_flat = |(pid, at_first): &(u32, Taken)| {
        let now = Taken::by(*pid);
        now.descriptors <= at_first.descriptors && now.threads <= at_first.threads
    };
    tracewing_testing::wait_until("the recorders have given back what they took", || {
        first.iter().all(is_flat)
    });
    for (pid, at_first) in &first {
        println!("recorder {pid}: {at_first} at first, {} at the end", Taken::by(*pid));
    }
    sessions.succeeds("session stop web");
    let main = folder.join("main");
    let (read, lost) = (counted(&main), lost(&folder.join("main.log")));
    println!(
        "{rounds} rounds, {programs} programs, {archives} archives, {snapshots} snapshots in {:.0} s: {emitted} emitted, \
         {read} read, {lost} lost",
        begin.elapsed().as_secs_f64()
    );
    // The event that announces a thread can be lost as well.
    let threads = programs as u64 * std::thread::available_parallelism().unwrap().get() as u64;
    assert!((emitted..=emitted + threads).contains(&(read + lost)), "{read} + {lost} of {emitted}");
    assert!(size(&folder.join("bounded")) <= TOTAL + TOTAL / 4, "the disk is bounded");
}

/// The events that a recorder has counted as lost.
fn lost(log: &Path) -> u64 {
    let text = fs::read_to_string(log).unwrap();
    let summary: Value = serde_json::from_str(text.lines().next_back().unwrap()).unwrap();
    summary["lost_events"].as_u64().unwrap()
}

/// Bytes of all files below a folder.
pub fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => size(&entry.path()),
            false => entry.metadata().unwrap().len(),
        })
        .sum()
}
