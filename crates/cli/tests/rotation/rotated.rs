//! A recording that a test rotates, and the archives that it leaves.

use super::*;

/// A recorder of the program `pilot`.
pub struct Rotated(Pilot);

impl Deref for Rotated {
    type Target = Pilot;

    fn deref(&self) -> &Pilot {
        &self.0
    }
}

impl DerefMut for Rotated {
    fn deref_mut(&mut self) -> &mut Pilot {
        &mut self.0
    }
}

impl Rotated {
    pub fn start(options: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), options)
    }

    pub fn start_in(folder: tempfile::TempDir, options: &[&str]) -> Self {
        let mut command = recorder(folder.path(), options);
        Self::of(folder, command.arg(program("pilot")))
    }

    /// A recorder of another program that takes orders.
    pub fn of(folder: tempfile::TempDir, recorder: &mut Command) -> Self {
        Self(Pilot::start(folder, recorder))
    }

    /// `tracewing rotate` of this recorder.
    pub fn try_rotate(&self) -> Output {
        run(&["rotate", &self.recorder.id().to_string()])
    }

    /// The archive that `tracewing rotate` completes.
    pub fn rotate(&self) -> PathBuf {
        let output = self.try_rotate();
        assert!(output.status.success(), "{}", output.notes());
        output.text().trim_end().into()
    }

    pub fn trace(&self) -> PathBuf {
        self.folder.path().join("t")
    }

    /// Lets the program end, by its own will.
    pub fn end(mut self) -> Recording {
        self.orders = None;
        let Pilot { folder, mut recorder, answers, .. } = self.0;
        // What is left of its answers.
        recorder.stdout = Some(answers.into_inner());
        recorded::ended(folder, recorder)
    }

    /// Lets the program end, after a failure that the recorder reports.
    pub fn end_badly(mut self) -> (tempfile::TempDir, Output) {
        self.orders = None;
        let Pilot { folder, mut recorder, answers, .. } = self.0;
        recorder.stdout = Some(answers.into_inner());
        (folder, recorder.wait_with_output().unwrap())
    }
}

/// The archives of a recording, in their order.
pub fn archives(trace: &Path) -> Vec<PathBuf> {
    let folder = trace.join("archives");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let number = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.rsplit('-').next().unwrap().parse::<u64>().unwrap()
    };
    paths.sort_by_key(number);
    let numbers: Vec<u64> = paths.iter().map(number).collect();
    assert!(numbers.windows(2).all(|two| two[0] + 1 == two[1]), "{numbers:?}");
    paths
}

pub fn description(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("tracewing.json")).unwrap()).unwrap()
}

/// What an archive has of the pilot's events.
#[derive(Debug, Default)]
pub struct Found {
    /// Numbers by CPU, from the first to the last.
    pub numbers: BTreeMap<u64, Vec<u64>>,
    /// Announcements of threads.
    pub announced: u64,
    pub lost: u64,
}

/// Checks an archive that is complete: description, `tracewing list` and babeltrace2 agree about it, to the
/// event and the loss, and its events are in the order of their numbers.
pub fn check(archive: &Path) -> Found {
    let description = description(archive);
    assert_eq!(description["state"], "complete", "{}", archive.display());
    let mut found = Found::default();
    let mut listed: BTreeMap<u64, u64> = BTreeMap::new();
    for event in list(archive) {
        match event.name.as_str() {
            "pilot:count" => {
                let (cpu, number) = (event.number("cpu"), event.number("number"));
                let of_cpu = found.numbers.entry(cpu).or_default();
                assert!(of_cpu.last().is_none_or(|last| *last < number), "CPU {cpu}: {number} again");
                of_cpu.push(number);
            }
            "tracewing:thread" => found.announced += 1,
            "tracewing:known_thread" => continue,
            // The first archive begins as every recording does.
            name if name.starts_with("lttng_statedump_") && description["archive"]["number"] != 1 => continue,
            _ => {}
        }
        *listed.entry(event.cpu).or_default() += 1;
    }
    let mut described: BTreeMap<u64, u64> = BTreeMap::new();
    for all in ["user_streams", "kernel_streams", "profile_streams"] {
        for stream in description[all].as_array().into_iter().flatten() {
            let number = |name: &str| stream[name].as_u64().unwrap_or(0);
            *described.entry(number("cpu")).or_default() += number("events");
            // Among samples, the events of a state dump have no names of their own.
            if all == "profile_streams" {
                *described.entry(number("cpu")).or_default() += number("state_events");
            }
            found.lost += number("lost_events");
        }
    }
    described.retain(|_, events| *events > 0);
    assert_eq!(described, listed, "events by CPU: described, and listed");
    let ranges: u64 =
        description["losses"].as_array().unwrap().iter().map(|range| range["events"].as_u64().unwrap()).sum();
    assert_eq!(ranges, found.lost, "{}", description["losses"]);
    let info = harness::json(archive, &["info"]);
    let streams =
        info["traces"].as_array().unwrap().iter().flat_map(|trace| trace["streams"].as_array().unwrap());
    let losses = streams.flat_map(|stream| stream["losses"].as_array().unwrap());
    let counted: u64 = losses.map(|loss| loss["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, found.lost, "as readers count them: {info}");
    compare_with_babeltrace2(archive, found.lost);
    found
}

/// Compares `tracewing list` with babeltrace2, which may warn of losses alone, and of so many.
pub fn compare_with_babeltrace2(trace: &Path, lost: u64) {
    let Ok(peer) = Command::new("babeltrace2").arg(trace).output() else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
    };
    let warnings = peer.notes();
    assert!(peer.status.success(), "{warnings}");
    let discarded = |line: &str| -> u64 {
        let number = line.split_once("Tracer discarded ").and_then(|(_, rest)| rest.split(' ').next());
        number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("babeltrace2: {line}"))
    };
    let reported: u64 = warnings.lines().filter(|line| !line.is_empty()).map(discarded).sum();
    assert_eq!(reported, lost, "losses as babeltrace2 sees them: {warnings}");
    let ours = harness::tracewing().arg("list").arg(trace).ran();
    assert!(ours.status.success());
    assert!(ours.stdout == peer.stdout, "tracewing list and babeltrace2 differ");
}

/// Checks that these archives, each of which was checked, are one recording: of each CPU, each begins after
/// the one before. Gives the numbers of events found and lost.
pub fn assert_continuous(found: &[Found]) -> (u64, u64) {
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for (cpu, numbers) in found.iter().flat_map(|found| &found.numbers) {
        let before = last.insert(*cpu, *numbers.last().unwrap()).unwrap_or(0);
        assert!(before < numbers[0], "CPU {cpu}: {} in an archive after {before}", numbers[0]);
    }
    let events = |found: &Found| found.numbers.values().map(Vec::len).sum::<usize>() as u64 + found.announced;
    (found.iter().map(events).sum(), found.iter().map(|found| found.lost).sum())
}
