//! A session under load for as long as one likes (`cargo xtask soak --only sessions`; a moment in CI):
//! programs of two users start, emit, and end or are killed, also while they emit; archives and snapshots are
//! taken, snapshots also by a trigger; a recorder and the service that keeps the session are killed now and
//! then. What was read and what was lost is what was emitted, for a recorder that was killed together with
//! what is left in its buffers. The recorders need no more descriptors, threads or disk than at first.
//!
//! Programs count their events themselves (`books`), so an archive is not only compared with what its
//! recorder has counted. A thread that is killed while it emits may have emitted one event more than it has
//! counted.

use crate::background::{Background, Pilot, as_user};
use crate::books::{Books, Emitted, End};
use crate::counted;
use crate::harness::Printed;
use crate::recorded::{Event, list};
use crate::service::Service;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tracewing_testing::{NOBODY, am_root, wait_until};

/// Programs at one time, and in CI.
const PROGRAMS: usize = 20;
const PROGRAMS_IN_SHORT: usize = 6;
/// How often the state is printed.
const PARTS: u32 = 10;
/// Rounds after which a recorder is killed, and the service.
const KILL_RECORDER_EVERY: u64 = 12;
const KILL_SERVICE_EVERY: u64 = 9;
/// After this time, it is printed what is not given back.
const LATE: Duration = Duration::from_secs(30);
/// Events that each thread of a program is ordered to emit before it is killed, and steps of the time until
/// then.
const KILLED_WITHIN: u64 = 20_000;
const STEP: Duration = Duration::from_micros(400);
/// Rounds without an archive or a snapshot, which may not be asked for more often than every two seconds.
const ASKED_EVERY: Duration = Duration::from_secs(3);
/// What all archives together may have, in bytes.
const TOTAL: u64 = 8 << 20;

/// What a recorder has of the machine.
#[derive(Clone, Copy)]
pub struct Taken {
    pub descriptors: usize,
    /// Those of them that are buffers in memory.
    regions: usize,
    pub threads: usize,
    resident_kib: u64,
    /// Memory without files and what is shared, such as buffers that programs fill.
    pub anonymous_kib: u64,
}

impl Taken {
    pub fn by(pid: u32) -> Self {
        let entries = |folder: &str| fs::read_dir(format!("/proc/{pid}/{folder}")).unwrap();
        // Streams and their indexes begin with their first packet: one for each CPU and user, and for users
        // whose programs live at the same time.
        let is_of_streams = |folder: &Path| folder.ends_with("user") || folder.ends_with("user/index");
        let is_stream = |path: &Path| path.parent().is_some_and(is_of_streams);
        let targets = entries("fd").filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        let targets: Vec<PathBuf> = targets.filter(|path| !is_stream(path)).collect();
        let is_region = |path: &&PathBuf| path.to_string_lossy().starts_with("/memfd:tracewing");
        let (descriptors, regions) = (targets.len(), targets.iter().filter(is_region).count());
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let kib = |name| {
            let size = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            size.trim().trim_end_matches(" kB").parse().unwrap()
        };
        let (resident_kib, anonymous_kib) = (kib("VmRSS:"), kib("RssAnon:"));
        Self { descriptors, regions, threads: entries("task").count(), resident_kib, anonymous_kib }
    }

    /// As cells of a table.
    pub fn cells(&self) -> String {
        let Self { descriptors, regions, threads, anonymous_kib, .. } = self;
        format!("{descriptors} | {regions} | {threads} | {anonymous_kib}")
    }

    /// Descriptors of all but regions.
    fn others(&self) -> usize {
        self.descriptors - self.regions
    }

    fn by_all(pids: impl Iterator<Item = u32>) -> Self {
        let sum = |sum: Self, one: Self| Self {
            descriptors: sum.descriptors + one.descriptors,
            regions: sum.regions + one.regions,
            threads: sum.threads + one.threads,
            resident_kib: sum.resident_kib + one.resident_kib,
            anonymous_kib: sum.anonymous_kib + one.anonymous_kib,
        };
        pids.map(Self::by).reduce(sum).unwrap()
    }
}

impl std::fmt::Display for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { descriptors, regions, threads, resident_kib, .. } = self;
        write!(f, "{descriptors} descriptors ({regions} of regions), {threads} threads, {resident_kib} KiB")
    }
}

/// A session that a service keeps: its folders, and how it was treated.
struct Kept<'a> {
    sessions: &'a Background,
    service: Service,
    /// The program whose events the trigger waits for.
    sentinel: Pilot,
    /// What programs have emitted since the present recorder of `doomed` began.
    emitted: Emitted,
    /// Recorders, and services.
    kills: [u64; 2],
    snapshots: u64,
    fired: u64,
}

impl<'a> Kept<'a> {
    fn start(sessions: &'a Background) -> Self {
        fs::create_dir(sessions.folder().join("kept")).unwrap();
        let sentinel = Pilot::start(sessions);
        sessions.succeeds(
            "session create web -e pilot:* --sub-buffers 2 --sub-buffer-size 16K --rotate-size 128K",
        );
        sessions.succeeds("channel add web bounded -e pilot:* --total-size 8M");
        sessions.succeeds(
            "channel add web flight --flight-recorder --snapshot-on panic --sub-buffers 2 --sub-buffer-size 16K",
        );
        sessions.succeeds("channel add web doomed -e pilot:* --buffers-in buffers");
        sessions.succeeds(&format!(
            "trigger add web hit -e pilot:count --where cpu==0 --process {} --do snapshot --at-most-every 2",
            sentinel.id()
        ));
        sessions.succeeds("session save web -o kept/web.toml");
        let (service, emitted) = (Self::serve(sessions), Emitted::default());
        let this = Self { sessions, service, sentinel, emitted, kills: [0; 2], snapshots: 0, fired: 0 };
        this.wait_for_all();
        for channel in ["main", "bounded", "flight", "doomed", "hit"] {
            this.wait_for_programs(channel, 1);
        }
        this
    }

    fn serve(sessions: &Background) -> Service {
        Service::start(sessions, Path::new("/nonexistent"))
    }

    fn wait_for_all(&self) {
        wait_until("all recorders run", || self.sessions.recorders().len() == 5);
    }

    fn wait_for_programs(&self, channel: &str, least: usize) {
        wait_until("programs take part", || {
            self.sessions.channel("web", channel)["programs"].as_u64() >= Some(least as u64)
        });
    }

    /// The folder of the newest recorder of a channel.
    fn newest(&self, channel: &str) -> PathBuf {
        let starts = fs::read_dir(self.sessions.folder().join("web")).unwrap();
        let folders = starts.map(|start| start.unwrap().path().join(channel));
        folders.filter(|folder| folder.is_dir()).max().unwrap()
    }

    /// Kills the recorder of a channel. What it had read, and what is in its buffers, is what programs have
    /// emitted. The service starts another one, which `alive` programs and the sentinel join; nothing that
    /// the killed one has left is in its way.
    fn kill_recorder(&mut self, alive: usize) {
        let channel = self.sessions.channel("web", "doomed");
        let trace = PathBuf::from(channel["folder"].as_str().unwrap());
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let buffers = format!("buffers/web.{}.{}", name(trace.parent().unwrap()), name(&trace));
        let pid = channel["recorder"].as_u64().unwrap() as u32;
        tracewing_testing::signal(pid, libc::SIGKILL);
        wait_until("it is gone", || !crate::is_running(pid));
        let recovered = format!("recovered-{}", self.kills[0]);
        self.sessions.succeeds(&format!("recover {buffers} -o {recovered}"));
        let (before, after) = (counted(&trace), counted(&self.sessions.folder().join(&recovered)));
        let emitted = self.emitted;
        assert!(emitted.range().contains(&(before + after)), "{before} read, {after} recovered, {emitted:?}");
        self.wait_for_all();
        self.wait_for_programs("doomed", alive + 1);
        // Of no use any more, as its user knows.
        for folder in [&buffers, &recovered] {
            fs::remove_dir_all(self.sessions.folder().join(folder)).unwrap();
        }
        self.emitted = Emitted::default();
        self.kills[0] += 1;
    }

    fn kill_service(&mut self) {
        let recorders = self.sessions.recorders();
        self.service.end(libc::SIGKILL);
        self.service = Self::serve(self.sessions);
        assert_eq!(self.sessions.recorders(), recorders, "they continue");
        self.kills[1] += 1;
    }

    fn taken_snapshots(&self) -> u64 {
        self.sessions.channel("web", "flight")["snapshots"].as_u64().unwrap()
    }

    /// Snapshots that the trigger has taken: one for each event that has fired it, also after a recorder has
    /// come in the place of another one.
    fn by_trigger(&self) -> u64 {
        let taken = self.taken_snapshots() - self.snapshots;
        assert_eq!(taken, self.fired);
        taken
    }

    /// Asks for an archive and a snapshot, and has the trigger take another one, which has the event that has
    /// fired it. The sentinel's events.
    fn ask(&mut self) -> u64 {
        self.sessions.succeeds("rotate web/main");
        let snapshot = self.sessions.succeeds("snapshot web/flight").text();
        fs::remove_dir_all(snapshot.trim_end()).unwrap();
        self.snapshots += 1;
        let next = self.snapshots + self.by_trigger() + 1;
        let emitted = self.sentinel.emit(1);
        self.fired += 1;
        wait_until("the trigger takes one", || self.taken_snapshots() >= next);
        let snapshot = self.newest("flight").join(format!("snapshot-{next}"));
        let (tids, number) = (self.sentinel.tids(), self.fired);
        let is_it = |event: &Event| event.payload["number"] == number && tids.contains(&event.tid);
        assert!(list(&snapshot).iter().any(is_it), "the event that has fired it");
        fs::remove_dir_all(snapshot).unwrap();
        emitted / number
    }
}

#[test]
fn what_is_read_and_lost_is_what_was_emitted_and_nothing_grows() {
    let seconds = std::env::var("TRACEWING_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    let length = Duration::from_secs(seconds.unwrap_or(8));
    let at_once = if seconds.is_some() { PROGRAMS } else { PROGRAMS_IN_SHORT };
    let sessions = Background::new();
    fs::set_permissions(sessions.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut kept = Kept::start(&sessions);
    let folder = kept.newest("main").parent().unwrap().to_owned();

    let users = if am_root() { vec![Vec::new(), as_user(NOBODY)] } else { vec![Vec::new()] };
    let begin = Instant::now();
    let (mut books, mut rounds, mut first) = (Books::default(), 0_u64, None);
    let (mut asked, mut printed) = (Instant::now(), 0);
    println!("{HEAD}");
    while rounds < 4 || begin.elapsed() < length {
        let (pilots, more) = round(&sessions, &users, at_once, &mut books);
        kept.emitted = kept.emitted.and(more);
        if rounds % KILL_RECORDER_EVERY == 1 {
            kept.kill_recorder(pilots.len());
        }
        drop(pilots);
        rounds += 1;
        if rounds % KILL_SERVICE_EVERY == 3 {
            kept.kill_service();
        }
        if asked.elapsed() >= ASKED_EVERY || rounds == 2 {
            kept.emitted.sure += kept.ask();
            asked = Instant::now();
        }
        if rounds == 3 {
            let doomed = sessions.channel("web", "doomed")["recorder"].as_u64();
            let stay = sessions.recorders().into_iter().filter(|pid| Some(u64::from(*pid)) != doomed);
            first = Some(stay.map(|pid| (pid, Taken::by(pid))).collect::<Vec<_>>());
        }
        if let Some(first) = first.as_ref().filter(|_| begin.elapsed() >= length * printed / PARTS) {
            printed += 1;
            print_row(begin, &books, &kept, &folder, first);
        }
    }
    let counts = vec![kept.fired; std::thread::available_parallelism().unwrap().get()];
    books.add(kept.sentinel.tids(), counts, End::Killed);
    kept.sentinel.kill();
    stays_flat(&first.unwrap());
    kept.service.end(libc::SIGTERM);
    let main = folder.join("main");
    let read = books.check_archives(&main);
    let lost = lost(&folder.join("main.log"));
    let emitted = books.emitted();
    println!("\n{rounds} rounds in {:.0} s\n\n{books}", begin.elapsed().as_secs_f64());
    println!("| read in {} archives | {read} |\n| lost | {lost} |", entries(&main.join("archives")));
    // The event that announces a thread can be lost as well.
    let most = emitted.sure + emitted.perhaps + books.threads();
    assert!((emitted.sure..=most).contains(&(read + lost)), "{read} + {lost} of {emitted:?}");
    assert_eq!(read, each_archive(&main));
    assert!(size(&folder.join("bounded")) <= TOTAL + TOTAL / 4, "the disk is bounded");
}

const HEAD: &str = "\
| s | programs | archives asked for | snapshots asked for | by the trigger | recorders killed | services killed \
| `bounded`, KiB | descriptors (of regions) | threads | KiB of memory |
|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

fn print_row(begin: Instant, books: &Books, kept: &Kept<'_>, folder: &Path, first: &[(u32, Taken)]) {
    let all = Taken::by_all(first.iter().map(|(pid, _)| *pid));
    let (seconds, bounded) = (begin.elapsed().as_secs(), size(&folder.join("bounded")) >> 10);
    let ([recorders, services], snapshots, fired) = (kept.kills, kept.snapshots, kept.by_trigger());
    let Taken { descriptors, regions, threads, resident_kib, .. } = all;
    println!(
        "| {seconds} | {} | {snapshots} | {snapshots} | {fired} | {recorders} | {services} | {bounded} \
         | {descriptors} ({regions}) | {threads} | {resident_kib} |",
        books.programs()
    );
}

/// Programs that live, after others have emitted as they have and were killed: some of them while they emit.
/// Also what all have emitted.
fn round(
    sessions: &Background,
    users: &[Vec<String>],
    at_once: usize,
    books: &mut Books,
) -> (Vec<Pilot>, Emitted) {
    let before = books.emitted();
    let file = |number: usize| sessions.folder().join(format!("counts-{number}"));
    let start = |number: usize| Pilot::counting(sessions, &users[number % users.len()], &file(number));
    let mut pilots: Vec<Pilot> = (0..at_once).map(start).collect();
    let mut living = Vec::new();
    for (number, mut pilot) in pilots.drain(..).enumerate() {
        let events = 100 + 700 * (number % 6) as u64;
        let (threads, tids) = (pilot.emit(events) / events, pilot.tids());
        let counts = vec![events; threads as usize];
        match number % 4 {
            0 => {
                pilot.kill();
                books.add(tids, counts, End::Killed);
            }
            2 => {
                let after = STEP * (books.programs() % 11) as u32;
                let counts = pilot.kill_while_it_emits(KILLED_WITHIN, after, &file(number));
                books.add(tids, counts, End::KilledWhileItEmits);
            }
            _ => {
                books.add(tids, counts, End::Own);
                living.push(pilot);
            }
        }
    }
    (living, books.emitted().since(before))
}

/// Recorders need no more than they had at first, and have no regions: those of the last programs are given
/// back once the recorders have seen that nothing writes to them.
fn stays_flat(first: &[(u32, Taken)]) {
    let is_flat = |(pid, at_first): &(u32, Taken)| {
        let now = Taken::by(*pid);
        // One thread begins when the first archive is removed.
        now.others() <= at_first.others() && now.regions == 0 && now.threads <= at_first.threads + 1
    };
    let (begin, mut is_printed) = (Instant::now(), false);
    wait_until("the recorders have given back what they took", || {
        let others = || first.iter().filter(|one| !is_flat(one));
        if begin.elapsed() > LATE && !std::mem::replace(&mut is_printed, true) {
            others()
                .for_each(|(pid, at_first)| println!("{pid}: {at_first} at first, {} now", Taken::by(*pid)));
        }
        others().next().is_none()
    });
    for (pid, at_first) in first {
        println!("recorder {pid}: {at_first} at first, {} at the end", Taken::by(*pid));
    }
}

/// The pilots' events of all archives, each of which is read alone. It has as many events as its recorder has
/// counted for it.
fn each_archive(recording: &Path) -> u64 {
    let about = fs::read_to_string(recording.join("tracewing.json")).unwrap();
    let about: Value = serde_json::from_str(&about).unwrap();
    let archives = about["archives"].as_array().unwrap();
    assert!(archives.len() > 1);
    let counted_alone = archives.iter().map(|archive| {
        let events = list(&recording.join(archive["folder"].as_str().unwrap()));
        let counted = archive["events"].as_u64().unwrap() + archive["state_events"].as_u64().unwrap();
        assert_eq!(events.len() as u64, counted, "{archive}");
        events.iter().filter(|event| event.name == "pilot:count").count() as u64
    });
    counted_alone.sum()
}

/// The events that a recorder has counted as lost.
fn lost(log: &Path) -> u64 {
    let text = fs::read_to_string(log).unwrap();
    let summary: Value = serde_json::from_str(text.lines().next_back().unwrap()).unwrap();
    summary["lost_events"].as_u64().unwrap()
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Bytes of all files below a folder. What is removed meanwhile has none.
pub fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size_of = |entry: fs::DirEntry| match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
        true => size(&entry.path()),
        false => entry.metadata().map_or(0, |metadata| metadata.len()),
    };
    entries.map(size_of).sum()
}
