//! A session under load for as long as one likes (`cargo xtask soak --only sessions`; a moment in CI):
//! programs of two users start, emit, and end or are killed; archives and snapshots are taken; a recorder and
//! the service that keeps the session are killed now and then. What was read and what was lost is what was
//! emitted, for a recorder that was killed together with what is left in its buffers. The recorders need no
//! more descriptors, threads or disk than at first.

use crate::background::{Background, Pilot, as_user};
use crate::counted;
use crate::harness::Printed;
use crate::recorded::list;
use crate::service::Service;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tracewing_testing::{NOBODY, am_root};

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
    pub resident_kib: u64,
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
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let resident_kib = resident.trim().trim_end_matches(" kB").parse().unwrap();
        Self { descriptors, regions, threads: entries("task").count(), resident_kib }
    }

    /// Descriptors of all but regions.
    fn others(&self) -> usize {
        self.descriptors - self.regions
    }

    fn by_all(pids: impl Iterator<Item = u32>) -> Self {
        pids.map(Self::by).fold(
            Self { descriptors: 0, regions: 0, threads: 0, resident_kib: 0 },
            |sum, one| Self {
                descriptors: sum.descriptors + one.descriptors,
                regions: sum.regions + one.regions,
                threads: sum.threads + one.threads,
                resident_kib: sum.resident_kib + one.resident_kib,
            },
        )
    }
}

impl std::fmt::Display for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { descriptors, regions, threads, resident_kib } = self;
        write!(f, "{descriptors} descriptors ({regions} of regions), {threads} threads, {resident_kib} KiB")
    }
}

/// A session that a service keeps: its folders, and how it was treated.
struct Kept<'a> {
    sessions: &'a Background,
    service: Service,
    /// Events that programs have emitted since the present recorder of `doomed` began.
    emitted: u64,
    kills: [u64; 2],
}

impl<'a> Kept<'a> {
    fn start(sessions: &'a Background) -> Self {
        fs::create_dir(sessions.folder().join("kept")).unwrap();
        sessions.succeeds(
            "session create web -e pilot:* --sub-buffers 2 --sub-buffer-size 16K --rotate-size 128K",
        );
        sessions.succeeds("channel add web bounded -e pilot:* --total-size 8M");
        sessions.succeeds(
            "channel add web flight --flight-recorder --snapshot-on panic --sub-buffers 2 --sub-buffer-size 16K",
        );
        sessions.succeeds("channel add web doomed -e pilot:* --buffers-in buffers");
        sessions
            .succeeds("trigger add web hit -e pilot:count --where number==1 --do notify --at-most-every 1");
        sessions.succeeds("session save web -o kept/web.toml");
        let this = Self { sessions, service: Self::serve(sessions), emitted: 0, kills: [0; 2] };
        this.wait_for_all();
        this
    }

    fn serve(sessions: &Background) -> Service {
        Service::start(sessions, Path::new("/nonexistent"))
    }

    fn wait_for_all(&self) {
        tracewing_testing::wait_until("all recorders run", || self.sessions.recorders().len() == 5);
    }

    /// The folder of the newest recorder of a channel.
    fn newest(&self, channel: &str) -> PathBuf {
        let starts = fs::read_dir(self.sessions.folder().join("web")).unwrap();
        let folders = starts.map(|start| start.unwrap().path().join(channel));
        folders.filter(|folder| folder.is_dir()).max().unwrap()
    }

    /// Kills the recorder of a channel. What it had read, and what is in its buffers, is what programs have
    /// emitted. The service starts another one.
    fn kill_recorder(&mut self) {
        let trace = self.newest("doomed");
        let pid = self.sessions.channel("web", "doomed")["recorder"].as_u64().unwrap() as u32;
        tracewing_testing::signal(pid, libc::SIGKILL);
        tracewing_testing::wait_until("it is gone", || !crate::is_running(pid));
        let recovered = format!("recovered-{}", self.kills[0]);
        self.sessions.succeeds(&format!("recover buffers -o {recovered}"));
        let (before, after) = (counted(&trace), counted(&self.sessions.folder().join(&recovered)));
        assert_eq!(before + after, self.emitted, "{before} read, {after} recovered");
        for folder in ["buffers", &recovered] {
            fs::remove_dir_all(self.sessions.folder().join(folder)).unwrap();
        }
        self.wait_for_all();
        self.emitted = 0;
        self.kills[0] += 1;
    }

    fn kill_service(&mut self) {
        let recorders = self.sessions.recorders();
        self.service.end(libc::SIGKILL);
        self.service = Self::serve(self.sessions);
        assert_eq!(self.sessions.recorders(), recorders, "they continue");
        self.kills[1] += 1;
    }
}

#[test]
fn what_is_read_and_lost_is_what_was_emitted_and_nothing_grows() {
    let seconds = std::env::var("TRACEWING_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    let length = Duration::from_secs(seconds.unwrap_or(8));
    let at_once = if seconds.is_some() { PROGRAMS } else { PROGRAMS_IN_SHORT };
    let sessions = Background::new();
    let mut kept = Kept::start(&sessions);
    let folder = kept.newest("main").parent().unwrap().to_owned();

    let users = if am_root() { vec![Vec::new(), as_user(NOBODY)] } else { vec![Vec::new()] };
    let begin = Instant::now();
    let (mut emitted, mut programs, mut rounds, mut first) = (0, 0, 0_u64, None);
    let (mut archives, mut snapshots, mut asked, mut printed) = (0, 0, Instant::now(), 0);
    while rounds < 4 || begin.elapsed() < length {
        let (pilots, more) = round(&sessions, &users, at_once);
        (emitted, kept.emitted) = (emitted + more, kept.emitted + more);
        programs += at_once;
        if rounds % KILL_RECORDER_EVERY == 1 {
            kept.kill_recorder();
        }
        drop(pilots);
        rounds += 1;
        if rounds % KILL_SERVICE_EVERY == 3 {
            kept.kill_service();
        }
        if asked.elapsed() >= ASKED_EVERY || rounds == 2 {
            sessions.succeeds("rotate web/main");
            let snapshot = sessions.succeeds("snapshot web/flight").text();
            fs::remove_dir_all(snapshot.trim_end()).unwrap();
            (archives, snapshots, asked) = (archives + 1, snapshots + 1, Instant::now());
        }
        if rounds == 3 {
            let doomed = sessions.channel("web", "doomed")["recorder"].as_u64();
            let stay = sessions.recorders().into_iter().filter(|pid| Some(u64::from(*pid)) != doomed);
            first = Some(stay.map(|pid| (pid, Taken::by(pid))).collect::<Vec<_>>());
        }
        if let Some(first) = first.as_ref().filter(|_| begin.elapsed() >= length * printed / PARTS) {
            printed += 1;
            let all = Taken::by_all(first.iter().map(|(pid, _)| *pid));
            let (kib, archives) =
                (size(&folder.join("bounded")) >> 10, entries(&folder.join("main/archives")));
            let seconds = begin.elapsed().as_secs();
            println!(
                "{seconds} s: {programs} programs, {archives} archives, {snapshots} snapshots; bounded: {kib} KiB; {all}"
            );
        }
    }
    stays_flat(&first.unwrap());
    let [recorders, services] = kept.kills;
    kept.service.end(libc::SIGTERM);
    let main = folder.join("main");
    let (read, lost) = (counted(&main), lost(&folder.join("main.log")));
    println!(
        "{rounds} rounds, {programs} programs, {archives} archives asked for, {snapshots} snapshots, {recorders} recorders \
         and {services} services killed in {:.0} s: {emitted} emitted, {read} read, {lost} lost",
        begin.elapsed().as_secs_f64()
    );
    // The event that announces a thread can be lost as well.
    let threads = programs as u64 * std::thread::available_parallelism().unwrap().get() as u64;
    assert!((emitted..=emitted + threads).contains(&(read + lost)), "{read} + {lost} of {emitted}");
    assert_eq!(read, each_archive(&main));
    assert!(size(&folder.join("bounded")) <= TOTAL + TOTAL / 4, "the disk is bounded");
}

/// Programs that have emitted, half of which were killed then; and how many events.
fn round(sessions: &Background, users: &[Vec<String>], at_once: usize) -> (Vec<Pilot>, u64) {
    let mut pilots: Vec<Pilot> =
        (0..at_once).map(|number| Pilot::run(sessions, &users[number % users.len()])).collect();
    let mut emitted = 0;
    for (number, pilot) in pilots.iter_mut().enumerate() {
        emitted += pilot.emit(100 + 700 * (number % 6) as u64);
        if number % 2 == 0 {
            pilot.kill();
        }
    }
    (pilots, emitted)
}

/// Recorders need no more than they had at first, and have no regions: those of the last programs are given
/// back once the recorders have seen that nothing writes to them.
fn stays_flat(first: &[(u32, Taken)]) {
    let is_flat = |(pid, at_first): &(u32, Taken)| {
        let now = Taken::by(*pid);
        // One thread begins when the first archive is removed.
        now.others() <= at_first.others() && now.regions == 0 && now.threads <= at_first.threads + 1
    };
    let begin = Instant::now();
    tracewing_testing::wait_until("the recorders have given back what they took", || {
        let others = || first.iter().filter(|one| !is_flat(one));
        if begin.elapsed() > LATE {
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
