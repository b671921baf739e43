//! What the server draws of windows by chance, against a slow model: all states of each CPU, thread and task
//! in lists, and groups as sums of these.

use crate::client::{Viewer, seed, stored};
use crate::groups::of_two_names;
use serde_json::{Value, json as object};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use tracewing_analysis::{Analysis, Input};
use tracewing_trace::super_trace::{Change, Doing, Fold, Mode};
use tracewing_trace::{Filter, Recording};
use tracewing_units::Timestamp;

/// Classes of states.
const CLASSES: usize = 14;
/// Two of them, by number.
const USER: usize = 1;
const RUNNING: usize = 4;
/// All CPUs together.
const ALL_CPUS: u64 = u32::MAX as u64;

fn class(doing: Doing) -> usize {
    match doing {
        Doing::Unknown => 0,
        Doing::Running { mode: Mode::User, .. } => USER,
        Doing::Running { mode: Mode::SystemCall(_), .. } => 2,
        Doing::Running { mode: Mode::Interrupt(_), .. } => 3,
        Doing::Running { mode: Mode::Unknown, .. } => RUNNING,
        Doing::Runnable { preempted: false } => 5,
        Doing::Runnable { preempted: true } => 6,
        Doing::Blocked { .. } => 7,
        Doing::Nested => 8,
    }
}

/// A state: its class, begin and end.
#[derive(Debug, Clone, Copy)]
struct Span {
    class: usize,
    from: Timestamp,
    to: Timestamp,
    /// Of a CPU, the serial number of the thread that it ran.
    ran: Option<usize>,
}

/// What one thread, task or CPU did.
#[derive(Debug, Default)]
struct Life {
    number: u64,
    spans: Vec<Span>,
    /// What a thread did for the task that it runs.
    pending: Vec<Span>,
    /// Up to then, user mode was of unknown mode.
    doubted: Option<Timestamp>,
}

impl Life {
    /// Adds a state. Where reports overlap, the first is right.
    fn add(&mut self, span: Span) {
        let last = self.spans.last().map_or(Timestamp::MIN, |last| last.to);
        let from = span.from.max(last);
        if from < span.to {
            self.spans.push(Span { from, ..span });
        }
    }
}

/// What all did, by serial number; CPUs by number.
#[derive(Debug, Default)]
struct Lives {
    threads: BTreeMap<usize, Life>,
    tasks: BTreeMap<usize, Life>,
    cpus: BTreeMap<u32, Life>,
}

impl Fold for Lives {
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpDid { lwp, doing, from, to } => {
                let serial = lwp.serial.0;
                let span = Span { class: class(doing), from, to, ran: None };
                let life = self.threads.entry(serial).or_default();
                life.add(span);
                if lwp.runs_user_thread() {
                    life.pending.push(span);
                }
                if let Doing::Running { cpu, .. } = doing {
                    self.cpus.entry(cpu.0).or_default().add(Span { ran: Some(serial), ..span });
                }
            }
            Change::LwpRan { lwp, thread } => {
                let done = std::mem::take(&mut self.threads.entry(lwp.serial.0).or_default().pending);
                if let Some(thread) = thread {
                    let task = self.tasks.entry(thread.serial.0).or_default();
                    done.into_iter().for_each(|span| task.add(span));
                }
            }
            Change::UserThreadDid { thread, doing, from, to } => {
                let span = Span { class: class(doing), from, to, ran: None };
                self.tasks.entry(thread.serial.0).or_default().add(span);
            }
            Change::CpuIdled { cpu, interrupt, from, to } => {
                let class = if interrupt.is_some() { 3 } else { 9 };
                self.cpus.entry(cpu.0).or_default().add(Span { class, from, to, ran: None });
            }
            Change::LwpHidesCalls { lwp } => {
                let life = self.threads.entry(lwp.serial.0).or_default();
                life.doubted = Some(lwp.reported_to());
                life.pending
                    .iter_mut()
                    .filter(|span| span.class == USER)
                    .for_each(|span| span.class = RUNNING);
            }
            Change::LwpEnds { lwp } => {
                self.threads.entry(lwp.serial.0).or_default().number = lwp.tid.0.cast_unsigned().into();
            }
            Change::UserThreadEnds { thread } => {
                self.tasks.entry(thread.serial.0).or_default().number = thread.id.0;
            }
            _ => {}
        }
    }
}

impl Analysis for Lives {
    const EVENTS: bool = false;

    fn input(&mut self, _: Input<'_>) {}
}

/// Classes with their begins and ends, in nanoseconds since the recording begins.
type Spans = Vec<(usize, u64, u64)>;

/// What each row did that is drawn by its own states, and the members of those that are not.
struct Model {
    rows: BTreeMap<u64, Spans>,
    groups: BTreeMap<u64, Vec<u64>>,
    length: u64,
}

impl Model {
    /// Of a recording whose rows are these.
    fn new(recording: &Recording, tracks: &[Value]) -> Self {
        let mut lives = Lives::default();
        let go_on = &mut |_| ControlFlow::Continue(());
        let ran = tracewing_analysis::run(recording, &Filter::default(), &mut lives, go_on).unwrap();
        let doubted: BTreeMap<usize, Timestamp> =
            lives.threads.iter().filter_map(|(serial, life)| Some((*serial, life.doubted?))).collect();
        let spans = |serial: Option<usize>, life: &Life| -> Spans {
            let span = |span: &Span| {
                let doubted = span.ran.or(serial).and_then(|serial| doubted.get(&serial));
                let is_doubted = span.class == USER && doubted.is_some_and(|until| span.to <= *until);
                let [from, to] = [span.from, span.to].map(|time| (time - ran.begin_ns).as_ns());
                (if is_doubted { RUNNING } else { span.class }, from, to)
            };
            life.spans.iter().map(span).collect()
        };
        let mut all: BTreeMap<(&str, u64), Vec<Spans>> = BTreeMap::new();
        for (serial, life) in &lives.threads {
            all.entry(("thread", life.number)).or_default().push(spans(Some(*serial), life));
        }
        for life in lives.tasks.values() {
            all.entry(("task", life.number)).or_default().push(spans(None, life));
        }
        for (cpu, life) in &lives.cpus {
            all.entry(("cpu", u64::from(*cpu))).or_default().push(spans(None, life));
        }
        let mut model =
            Model { rows: BTreeMap::new(), groups: BTreeMap::new(), length: ran.duration_ns().as_ns() };
        model.assign(all, tracks);
        model
    }

    /// Finds the row of each that did anything: numbers are used again, but not at the same time.
    fn assign(&mut self, all: BTreeMap<(&str, u64), Vec<Spans>>, tracks: &[Value]) {
        let with_states = tracks.iter().filter(|row| row["begin"].as_u64() < row["end"].as_u64());
        let with_states: Vec<&Value> = with_states.collect();
        for ((kind, number), mut lives) in all {
            lives.retain(|spans| !spans.is_empty());
            lives.sort_by_key(|spans| spans[0].1);
            let number = number.to_string();
            let is_one = |row: &&&Value| row["kind"] == kind && row["number"] == number.as_str();
            let mut rows: Vec<&&Value> = with_states.iter().filter(is_one).collect();
            rows.sort_by_key(|row| row["begin"].as_u64());
            assert_eq!(rows.len(), lives.len(), "{kind} {number}");
            for (row, spans) in rows.into_iter().zip(lives) {
                let ends = (Some(spans[0].1), spans.last().map(|span| span.2));
                assert_eq!((row["begin"].as_u64(), row["end"].as_u64()), ends, "{row}");
                let id = row["id"].as_u64().unwrap();
                let group = match kind {
                    "thread" => row["parent"].as_u64(),
                    "task" => row["group"].as_u64(),
                    _ => Some(ALL_CPUS),
                };
                self.groups.entry(group.unwrap()).or_default().push(id);
                // Tasks of several names have a row that stands for all of their process.
                let is_all =
                    |all: &&Value| kind == "task" && all["kind"] == "all" && all["parent"] == row["parent"];
                if let Some(all) = tracks.iter().find(is_all) {
                    self.groups.entry(all["id"].as_u64().unwrap()).or_default().push(id);
                }
                self.rows.insert(id, spans);
            }
        }
        let states = with_states
            .iter()
            .filter(|row| ["thread", "task", "cpu"].iter().any(|kind| row["kind"] == *kind));
        assert_eq!(states.count(), self.rows.len());
    }

    /// How long a row was in each class from one time to another.
    fn times(&self, row: u64, from: u64, to: u64) -> [u64; CLASSES] {
        let mut times = [0; CLASSES];
        let spans = &self.rows[&row];
        let first = spans.partition_point(|(.., end)| *end <= from);
        for (class, begin, end) in spans[first..].iter().take_while(|(_, begin, _)| *begin < to) {
            times[*class] += end.min(&to).saturating_sub(*begin.max(&from));
        }
        times
    }

    /// The same of a row or a group, and how many there are in this time.
    fn of(&self, row: u64, from: u64, to: u64) -> ([u64; CLASSES], u64) {
        let own = [row];
        let members = self.groups.get(&row).map_or(&own[..], Vec::as_slice);
        let (mut sums, mut living) = ([0; CLASSES], 0);
        for member in members {
            let spans = &self.rows[member];
            living += u64::from(spans[0].1 < to && spans[spans.len() - 1].2 > from);
            let times = self.times(*member, from, to);
            sums.iter_mut().zip(times).for_each(|(sum, ns)| *sum += ns);
        }
        (sums, living)
    }
}

/// The shares of each class that are drawn of rows, in 255ths, by row and bucket.
fn drawn(viewer: &Viewer, asked: &Value) -> BTreeMap<(u64, u64), [u8; CLASSES]> {
    let bytes = viewer.bytes("rows", &asked.to_string());
    let number = |at: usize| u64::from(u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()));
    let (mut drawn, mut at) = (BTreeMap::new(), 0);
    while at < bytes.len() {
        let (row, runs) = (number(at), number(at + 4));
        at += 8;
        for _ in 0..runs {
            for bucket in number(at)..number(at) + number(at + 4) {
                let before = drawn.insert((row, bucket), *bytes[at + 12..].first_chunk().unwrap());
                assert_eq!(before, None, "row {row}, bucket {bucket}");
            }
            at += 28;
        }
    }
    drawn
}

/// Checks the shares of a bucket, of which `whole` nanoseconds fill all.
fn check(shares: [u8; CLASSES], times: [u64; CLASSES], whole: u64, what: &str) {
    let sum: u32 = shares.iter().map(|share| u32::from(*share)).sum();
    assert!(sum <= 255, "{what}: {shares:?}");
    let largest = *shares.iter().max().unwrap();
    let seen = times.iter().filter(|ns| **ns > 0).count() as f64;
    for (share, ns) in shares.into_iter().zip(times) {
        assert_eq!(share > 0, ns > 0, "what is there is seen: {what}: {shares:?} {times:?}");
        let off = f64::from(share) - ns as f64 * 255.0 / whole as f64;
        // What is too short for a share has one, which the largest gives.
        let least = if share == largest { -seen } else { -1.0 };
        assert!((least..=1.0).contains(&off), "{what}: {shares:?} {times:?} of {whole}");
    }
}

fn compare(recording: &Path, random: &mut impl FnMut(u64) -> u64) {
    let viewer = Viewer::start(recording);
    let tracks = viewer.ask("tracks", "{}");
    let model = Model::new(&Recording::open(&[recording]).unwrap(), tracks["rows"].as_array().unwrap());
    let rows: Vec<u64> = model.rows.keys().chain(model.groups.keys()).copied().collect();
    assert!(model.rows.len() > 8 && model.groups.len() > 2, "{recording:?}");
    for _ in 0..24 {
        // Buckets from some nanoseconds to the whole recording, on a screen from a pixel to a wide one.
        let shift = 4 + random(model.length.ilog2().into());
        let most = 1 << random(9);
        let count = 1 + random(most);
        let first = random((model.length >> shift) + 1);
        let asked = object!({ "shift": shift, "first": first, "count": count, "rows": rows });
        let drawn = drawn(&viewer, &asked);
        for row in &rows {
            for bucket in 0..count {
                let [from, to] = [first + bucket, first + bucket + 1].map(|at| at << shift);
                let (times, living) = model.of(*row, from, to);
                let shares = drawn.get(&(*row, bucket)).copied().unwrap_or_default();
                let what = format!("{recording:?}, row {row}, {from} to {to}");
                check(shares, times, living.max(1) << shift, &what);
            }
        }
        // Of the same window, the statistics are those of the model, to the nanosecond.
        let (from, to) = (first << shift, ((first + count) << shift).min(model.length));
        if from == to {
            continue;
        }
        let asked = object!({ "from": from, "to": to, "rows": model.rows.keys().collect::<Vec<_>>() });
        let mut said = BTreeMap::new();
        for sums in viewer.ask("statistics", &asked.to_string())["rows"].as_array().unwrap() {
            let classes: Vec<u64> = serde_json::from_value(sums["classes"].clone()).unwrap();
            said.insert(sums["row"].as_u64().unwrap(), classes);
        }
        for row in model.rows.keys() {
            let expected = model.times(*row, from, to);
            let said = said.get(row).map_or(&[0; CLASSES][..], Vec::as_slice);
            assert_eq!(said, expected, "{recording:?}, row {row}, {from} to {to}");
        }
    }
}

#[test]
fn what_is_drawn_of_any_window_is_what_happened_in_it() {
    let mut state = seed();
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 20) % below.max(1)
    };
    for recording in ["server", "clerks", "pipeline", "system"] {
        compare(&stored(recording), &mut random);
    }
    // Tasks of several names.
    let folder = tempfile::tempdir().unwrap();
    compare(&of_two_names(folder.path()), &mut random);
}
