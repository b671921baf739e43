//! A flight recorder that a test controls, and what its snapshots have to hold.

use super::*;

/// Bytes of an event of the pilot: header, thread id, two u64.
pub const EVENT: u64 = 12 + 16;

/// The same with an extended header: 2^32 cycles after its sub-buffer was opened, as happens on a busy
/// machine.
pub const LARGEST_EVENT: u64 = EVENT + 10;

/// Of its thread's announcement: pid, "pilot" and its end.
pub const ANNOUNCEMENT: u64 = 12 + 4 + 6;

pub const SUB_BUFFERS: u64 = 4;

pub const SUB_BUFFER: u64 = 16 << 10;

pub const SMALL: [&str; 4] = ["--sub-buffers", "4", "--sub-buffer-size", "16K"];

/// A flight recorder of the program `pilot`.
pub struct Flight(pub Pilot);

impl Deref for Flight {
    type Target = Pilot;

    fn deref(&self) -> &Pilot {
        &self.0
    }
}

impl DerefMut for Flight {
    fn deref_mut(&mut self) -> &mut Pilot {
        &mut self.0
    }
}

impl Flight {
    pub fn start(options: &[&str]) -> Self {
        Self::start_in(&["--flight-recorder"], options, &[])
    }

    pub fn start_in(kind: &[&str], options: &[&str], env: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = recorder(folder.path(), &[kind, options].concat());
        Self(Pilot::start(folder, command.arg("env").args(env).arg(program("pilot"))))
    }

    pub fn path(&self, snapshot: u64) -> PathBuf {
        self.folder.path().join(format!("t/snapshot-{snapshot}"))
    }

    pub fn signal(&self, signal: i32) {
        tracewing_testing::signal(self.recorder.id(), signal);
    }

    /// `tracewing snapshot` of this recorder.
    pub fn command(&self) -> PathBuf {
        let output = snapshot(&[&self.recorder.id().to_string()]);
        assert!(output.status.success(), "{}", output.notes());
        output.text().trim_end().into()
    }

    /// Lets the program end, by its own will.
    pub fn end(mut self) -> Ended {
        self.orders = None;
        self.ended()
    }

    pub fn ended(self) -> Ended {
        let Output { status, stderr, .. } = self.0.recorder.wait_with_output().unwrap();
        let stderr = String::from_utf8(stderr).unwrap();
        let summary = stderr.lines().next_back().and_then(|line| serde_json::from_str(line).ok());
        Ended {
            folder: self.0.folder,
            exit_status: status.code().unwrap(),
            summary: summary.unwrap_or_else(|| panic!("no summary: {stderr}")),
        }
    }
}

pub struct Ended {
    pub folder: tempfile::TempDir,
    pub exit_status: i32,
    pub summary: Value,
}

impl Ended {
    pub fn reasons(&self) -> Vec<&str> {
        let snapshots = self.summary["snapshots"].as_array().unwrap();
        snapshots.iter().map(|snapshot| snapshot["reason"].as_str().unwrap()).collect()
    }

    pub fn path(&self, snapshot: u64) -> PathBuf {
        self.folder.path().join(format!("t/snapshot-{snapshot}"))
    }
}

pub fn snapshot(arguments: &[&str]) -> Output {
    harness::tracewing().arg("snapshot").args(arguments).ran()
}

pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn description(trace: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(trace.join("tracewing.json")).unwrap()).unwrap()
}

/// Numbers by CPU, as far as they follow each other without a gap up to the last; others are an error.
pub fn suffixes(events: &[Event]) -> BTreeMap<u64, (u64, u64)> {
    let mut found: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for event in events.iter().filter(|event| event.name == "pilot:count") {
        let (cpu, number) = (event.number("cpu"), event.number("number"));
        assert_eq!(cpu, event.cpu, "was a CPU taken offline while the test ran?");
        let (_, last) = found.entry(cpu).or_insert((number, number - 1));
        assert_eq!(number, *last + 1, "a gap on CPU {cpu}");
        *last = number;
    }
    found
}

/// Bytes that a number of events can have, and `more` in addition.
pub fn bytes_of(events: u64, more: u64) -> RangeInclusive<u64> {
    events * EVENT + more..=events * LARGEST_EVENT + more
}

/// Checks a snapshot: gap-free on each CPU, the same to babeltrace2, and its description true. Gives first
/// and last number by CPU.
pub fn check(trace: &Path) -> BTreeMap<u64, (u64, u64)> {
    let events = list(trace);
    let found = suffixes(&events);
    let description = description(trace);
    assert_eq!(description["state"], "complete");
    for (cpu, (first, last)) in &found {
        let of = |what: &'static str| {
            let mut all = description[what].as_array().unwrap().iter();
            let name = |one: &&Value| {
                let name = one["name"].as_str().or(one["stream"].as_str()).unwrap();
                name.ends_with(&format!("_{cpu}")) && !name.starts_with("channel")
            };
            all.find(name)
        };
        assert_eq!(of("user_streams").unwrap()["cpu"], *cpu);
        let here = events.iter().filter(|event| event.cpu == *cpu && event.name != "tracewing:known_thread");
        let announced = here.clone().any(|event| event.name == "tracewing:thread");
        let held = here.filter(|event| event.name.contains(':')).count() as u64;
        assert_eq!(held, last - first + 1 + u64::from(announced));
        match of("overwritten") {
            None => assert_eq!(*first, 1, "where is the rest?"),
            Some(range) => {
                let announcement = if announced { 0 } else { ANNOUNCEMENT };
                let before = bytes_of(first - 1, announcement);
                assert!(before.contains(&range["bytes"].as_u64().unwrap()), "{range}, not {before:?}");
                assert!(range["sub_buffers"].as_u64().unwrap() >= before.start() / SUB_BUFFER);
                assert!(range["begin_cycles"].as_u64() < range["end_cycles"].as_u64());
            }
        }
    }
    compare_with_babeltrace2(trace);
    found
}

pub fn compare_with_babeltrace2(trace: &Path) {
    let Ok(peer) = Command::new("babeltrace2").arg(trace).output() else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
    };
    let ours = harness::tracewing().arg("list").arg(trace).ran();
    assert!(peer.status.success() && ours.status.success());
    assert_eq!(peer.notes(), "");
    let [ours, peer] = [&ours.stdout, &peer.stdout].map(|listing| without_names_of_the_dead(listing));
    assert!(ours == peer, "tracewing list and babeltrace2 differ");
}

/// A listing without the names in a dump of threads that have ended: they are empty, and babeltrace2 prints
/// the text of the previous event for them. There are such threads if one ended between an event of it and
/// the snapshot.
pub fn without_names_of_the_dead(listing: &[u8]) -> String {
    let without = |line: &str| match (line.split_once(", name = \""), line.split_once("\", type = ")) {
        (Some((before, _)), Some((_, after))) if line.contains("status = ( \"dead\"") => {
            format!("{before}, type = {after}\n")
        }
        _ => format!("{line}\n"),
    };
    String::from_utf8_lossy(listing).lines().map(without).collect()
}

/// Checks that the last numbers of all CPUs are these.
pub fn assert_ends(found: &BTreeMap<u64, (u64, u64)>, numbers: &[u64]) {
    assert_eq!(found.values().map(|(_, last)| *last).collect::<Vec<_>>(), numbers);
}

/// Checks that a snapshot holds as much as small buffers can.
pub fn assert_full(found: &BTreeMap<u64, (u64, u64)>) {
    for (from, to) in found.values() {
        let kept = bytes_of(to - from + 1, 0);
        assert!(*kept.end() >= (SUB_BUFFERS - 1) * (SUB_BUFFER - 100), "only {kept:?} bytes were kept");
        assert!(*kept.start() <= SUB_BUFFERS * SUB_BUFFER, "{kept:?} bytes were kept");
    }
}

/// Checks that nothing is in a snapshot of later than its moment: it would not be in all streams.
pub fn assert_ends_at_its_moment(trace: &Path) {
    let taken = description(trace)["snapshot"]["taken_cycles"].as_u64().unwrap();
    let late: Vec<String> =
        list(trace).into_iter().filter(|event| event.stamp > taken).map(|event| event.name).collect();
    assert!(late.is_empty(), "later than the snapshot's moment: {late:?}");
}

/// Checks that a snapshot whose streams continue after its moment, as earlier versions wrote them, has
/// unknown losses from there on, and none before.
pub fn assert_later_events_are_doubted(trace: &Path) {
    let mut description = description(trace);
    let frequency = description["clock"]["frequency_hz"].as_u64().unwrap();
    let last = list(trace).iter().map(|event| event.stamp).max().unwrap();
    let file = trace.join("tracewing.json");
    let written = std::fs::read(&file).unwrap();
    let mut lost_at_end = |taken: u64| {
        description["snapshot"]["taken_cycles"] = taken.into();
        std::fs::write(&file, description.to_string()).unwrap();
        let info = harness::tracewing().args(["info", "--format", "json"]).arg(trace).ran().json();
        let streams = info["traces"].as_array().unwrap().iter().flat_map(|trace| trace["streams"].as_array());
        let losses = streams.flatten().flat_map(|stream| stream["losses"].as_array().unwrap().clone());
        losses.filter(|loss| loss["end_ns"] == info["end_ns"]).count()
    };
    assert_eq!(lost_at_end(last), 0);
    assert!(lost_at_end(last - frequency / 1000) > 0, "a millisecond after the moment is known");
    std::fs::write(&file, written).unwrap();
}
