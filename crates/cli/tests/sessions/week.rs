//! What a session does in a week, in an hour (`cargo xtask soak --only week`; a moment in CI): programs of
//! two users emit all the time, archives are completed hundreds of times and the oldest removed, and
//! snapshots are taken. Disk, memory, descriptors and threads of all processes stay what they were.

use crate::background::{Background, Pilot, as_user};
use crate::harness::Printed;
use crate::list;
use crate::service::Service;
use crate::soak::{Taken, size};
use serde_json::Value;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tracewing_testing::{NOBODY, am_root, wait_until};

/// How much of it, for an hour and for CI.
struct Load {
    /// What the session may have on disk, and an archive of it, in KiB.
    total: u64,
    archive: u64,
    rotations: u64,
    snapshots: u64,
    /// Events of each thread of a program in a round.
    events: u64,
    /// KiB of memory of its own that a process may have more at the end than when archives were first
    /// removed: in an hour, it has the names of thousands of programs.
    more: u64,
}

const HOUR: Load =
    Load { total: 1 << 20, archive: 4 << 10, rotations: 500, snapshots: 50, events: 4_000, more: 3 << 10 };
const MOMENT: Load =
    Load { total: 1 << 10, archive: 128, rotations: 12, snapshots: 1, events: 2_000, more: 1 << 10 };

/// How often the state is printed.
const PARTS: u64 = 20;
/// Archives, the newest, whose events are counted one by one.
const READ: usize = 5;

struct Week<'a> {
    sessions: &'a Background,
    folder: PathBuf,
    pilots: Vec<Pilot>,
    load: &'a Load,
}

impl Week<'_> {
    /// All processes of it: recorders with the processes that they have started, the service, and programs
    /// that stay. Those that read a program for a recorder (`tracewing-reads`) come and go.
    fn taken(&self, service: u32) -> Vec<(String, Taken)> {
        let mut all = Vec::new();
        for recorder in self.sessions.recorders() {
            all.push((format!("recorder {recorder}"), recorder));
            let helpers = descendants(recorder).into_iter().map(|pid| (name_of(pid), pid));
            let stay = helpers.filter(|(name, _)| !name.is_empty() && name != "tracewing-reads");
            all.extend(stay.map(|(name, pid)| (format!("{name} {pid}"), pid)));
        }
        all.extend(self.pilots.iter().map(|pilot| (format!("program {}", pilot.id()), pilot.id())));
        all.push((format!("service {service}"), service));
        all.into_iter().map(|(name, pid)| (name, Taken::by(pid))).collect()
    }

    fn archives(&self) -> u64 {
        let archives = fs::read_dir(self.folder.join("main/archives")).map(Iterator::collect::<Vec<_>>);
        let numbers = archives.unwrap_or_default().into_iter().filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.rsplit_once('-')?.1.parse::<u64>().ok()
        });
        numbers.max().unwrap_or_default()
    }

    fn disk(&self) -> u64 {
        size(&self.folder) >> 10
    }

    /// Asks for a snapshot, and removes it.
    fn snapshot(&self) {
        let folder = self.sessions.succeeds("snapshot week/flight").text();
        assert!(fs::remove_dir_all(folder.trim_end()).is_ok(), "{folder}");
    }

    /// One more program comes and ends, and all others emit. How many events that are.
    fn round(&mut self, users: &[Vec<String>], emitted: &mut [u64]) -> u64 {
        let mut guest = Pilot::run(self.sessions, &users[0]);
        for (pilot, emitted) in self.pilots.iter_mut().zip(emitted) {
            *emitted = pilot.emit(self.load.events);
        }
        guest.emit(self.load.events / 10)
    }
}

/// What processes had when archives were first removed, and the most that the disk had.
struct Flat {
    first: Option<Vec<(String, Taken)>>,
    largest: u64,
    part: u64,
    begin: Instant,
}

impl Flat {
    fn look(&mut self, week: &Week, service: u32, snapshots: u64) {
        let (archives, disk) = (week.archives(), week.disk());
        self.largest = self.largest.max(disk);
        let left = fs::read_dir(week.folder.join("main/archives")).map_or(0, Iterator::count) as u64;
        if self.first.is_none() && left < archives {
            self.first = Some(week.taken(service));
        }
        if archives * PARTS >= self.part * week.load.rotations {
            self.part += 1;
            let seconds = self.begin.elapsed().as_secs();
            println!("{seconds} s: {archives} archives, {snapshots} snapshots, {disk} KiB on disk");
            let all = week.taken(service);
            println!(
                "| process | descriptors | of regions | threads | KiB of its own memory |\n|---|--:|--:|--:|--:|"
            );
            all.iter().for_each(|(name, taken)| println!("| {name} | {} |", taken.cells()));
        }
    }

    /// Waits until processes have no more than they had.
    fn check(&self, week: &Week, service: u32) {
        let first = self.first.as_ref().expect("archives were removed");
        let is_flat = |(before, now): (&Taken, &Taken)| {
            now.descriptors <= before.descriptors
                && now.threads <= before.threads
                && now.anonymous_kib <= before.anonymous_kib + week.load.more
        };
        let names = |all: &[(String, Taken)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(first), names(&week.taken(service)), "the same processes run");
        wait_until("processes have given back what they took", || {
            let now = week.taken(service);
            first.iter().zip(&now).all(|((_, before), (_, now))| is_flat((before, now)))
        });
        let columns = "descriptors | of regions | threads | KiB";
        println!("| process | {columns} | at the end: {columns} |");
        println!("|---|{}", "--:|".repeat(8));
        for ((name, before), (_, now)) in first.iter().zip(week.taken(service)) {
            println!("| {name} | {} | {} |", before.cells(), now.cells());
        }
        let total = week.load.total;
        assert!(self.largest <= total + total / 4, "{} KiB of {total}", self.largest);
    }
}

#[test]
fn a_week_in_an_hour() {
    let seconds = std::env::var("TRACEWING_WEEK_SECONDS").ok().and_then(|text| text.parse().ok());
    let (load, length, pace) = match seconds {
        Some(seconds) => (&HOUR, Duration::from_secs(seconds), Duration::from_secs(1)),
        None => (&MOMENT, Duration::ZERO, Duration::ZERO),
    };
    let sessions = Background::new();
    let mut service = begin(&sessions, load);
    let users = if am_root() { vec![Vec::new(), as_user(NOBODY)] } else { vec![Vec::new()] };
    let pilots = (0..4).map(|number| Pilot::run(&sessions, &users[number % users.len()])).collect();
    let start = fs::read_dir(sessions.folder().join("week")).unwrap().next().unwrap().unwrap().path();
    let mut week = Week { sessions: &sessions, folder: start, pilots, load };
    let mut flat = Flat { first: None, largest: 0, part: 0, begin: Instant::now() };
    let (mut guests, mut emitted, mut rounds, mut snapshots) = (0, vec![0; week.pilots.len()], 0, 0);
    while flat.begin.elapsed() < length || week.archives() < load.rotations || snapshots < load.snapshots {
        let due = Instant::now() + pace;
        guests += week.round(&users[rounds % users.len()..], &mut emitted);
        rounds += 1;
        if week.archives() * load.snapshots > snapshots * load.rotations {
            week.snapshot();
            snapshots += 1;
        }
        flat.look(&week, service.pid(), snapshots);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    flat.check(&week, service.pid());
    service.end(libc::SIGTERM);
    let emitted = guests + emitted.iter().sum::<u64>();
    let programs = rounds + week.pilots.len();
    println!(
        "{rounds} rounds, {programs} programs, {} archives, {snapshots} snapshots, at most {} KiB on disk",
        week.archives(),
        flat.largest
    );
    // A thread is announced by an event when it emits for the first time.
    let threads = programs as u64 * std::thread::available_parallelism().unwrap().get() as u64;
    check_books(&week.folder.join("main"), emitted..=emitted + threads);
}

/// Processes that a process has started, and those that these have started.
fn descendants(pid: u32) -> Vec<u32> {
    let children =
        fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten().flat_map(|task| {
            let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            text.split_whitespace().map(|word| word.parse::<u32>().unwrap()).collect::<Vec<_>>()
        });
    children.flat_map(|child| [child].into_iter().chain(descendants(child)).collect::<Vec<_>>()).collect()
}

/// What a process calls itself; nothing if it has ended.
fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

fn begin(sessions: &Background, load: &Load) -> Service {
    fs::create_dir(sessions.folder().join("kept")).unwrap();
    let Load { total, archive, .. } = load;
    sessions
        .succeeds(&format!("session create week -e pilot:* --total-size {total}K --rotate-size {archive}K"));
    sessions.succeeds("channel add week flight --flight-recorder --sub-buffers 2 --sub-buffer-size 16K");
    sessions.succeeds("session save week -o kept/week.toml");
    let service = Service::start(sessions, Path::new("/nonexistent"));
    wait_until("both recorders run", || sessions.recorders().len() == 2);
    service
}

/// What was read, in archives that are left or removed, and what was lost is what was emitted; the newest
/// archives have what their recorder has counted.
fn check_books(recording: &Path, emitted: RangeInclusive<u64>) {
    let text = fs::read_to_string(recording.with_extension("log")).unwrap();
    let summary: Value = serde_json::from_str(text.lines().next_back().unwrap()).unwrap();
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let (read, lost) = (number(&summary, "events"), number(&summary, "lost_events"));
    println!("{} emitted, {read} read with those that announce threads, {lost} lost", emitted.start());
    assert!(emitted.contains(&(read + lost)), "{read} + {lost} of {emitted:?}");
    let archives = summary["archives"].as_array().unwrap();
    let left = archives.iter().filter(|archive| archive["is_removed"] != true);
    for archive in left.rev().take(READ) {
        let events = list(&recording.join(archive["folder"].as_str().unwrap()));
        let counted = number(archive, "events") + number(archive, "state_events");
        assert_eq!(events.len() as u64, counted, "{archive}");
    }
    let all: u64 = archives.iter().map(|archive| number(archive, "events")).sum();
    assert_eq!(all, read, "events of all archives");
}
