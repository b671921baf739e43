//! What an analysis gives of a window does not depend on where reading begins.

use crate::analysis::{Analysis, Input, ReadApart};
use crate::breakdown::Breakdown;
use crate::critical_path::{CriticalPaths, Target};
use crate::explanations::Explanations;
use crate::functions::{FunctionRead, FunctionReader, Functions};
use crate::latency::{EventPattern, Latency, Nesting, Question};
use crate::locks::{Bins, Group as LocksBy, LockRead, LockReader, Locks, LocksTable};
use crate::profile::{ExplanationRead, ExplanationReader, Frames, Group, Image, Profile};
use crate::run::tests::recordings;
use crate::run::{Ran, run_apart, run_as};
use crate::sched::{SchedLatencies, Slices};
use crate::tasks::{Tasks, Thresholds};
use crate::threads::Threads;
use proptest::prelude::*;
use std::fmt::Write;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;
use tracewing_rules::ProcessPattern;
use tracewing_trace::super_trace::{Change, Checkpoint, Fold, Located, Part, Pauses};
use tracewing_trace::{
    Checkpoints, Conversion, EventRef, Filter, Format, Listing, Message, Recording, Statistics,
    ThreadPattern, TimePoint,
};
use tracewing_units::{Cpu, Duration, Timestamp};

mod continues;
mod occurrences;
mod room;

/// Takes checkpoints, and what they need of events, and counts everything else.
#[derive(Debug, Default)]
struct Keeps {
    kept: Vec<(Timestamp, Vec<u8>)>,
    changes: u64,
    reader: Reader,
    explanations: Explanations,
}

/// Reads what events explain.
#[derive(Debug, Default)]
struct Reader(FunctionReader, ExplanationReader, LockReader);

type Read = (Option<FunctionRead>, Option<ExplanationRead>, Option<LockRead>);

impl Reader {
    fn read(&mut self, event: &EventRef<'_>) -> Read {
        (self.0.read(event), self.1.read(event), self.2.read(event))
    }
}

impl Keeps {
    fn learn(&mut self, read: Option<&mut Read>, at: &Located<'_>) {
        let none = &mut (None, None, None);
        let (function, said, lock) = read.unwrap_or(none);
        self.explanations.learn(function.as_ref(), lock.as_ref(), said.take(), at);
    }
}

impl Fold for Keeps {
    fn change(&mut self, change: Change<'_>) {
        self.changes += 1;
        self.explanations.change(change);
    }
}

impl Analysis for Keeps {
    const EARLIER: bool = true;

    fn checkpoint(&mut self, until: Timestamp, bytes: Vec<u8>) {
        self.kept.push((until, bytes));
    }

    fn parts(&mut self, room: u64) -> Vec<Part> {
        self.explanations.parts(room)
    }

    fn input(&mut self, input: Input<'_>) {
        self.explanations.input(input);
        if let Input::Earlier(_) = input {
            self.explanations.lacks_changes();
        }
        if let Input::Earlier(seen) | Input::Event(seen) = input {
            let mut read = self.reader.read(seen.event);
            self.learn(Some(&mut read), &seen.located());
        }
    }
}

impl ReadApart for Keeps {
    type Reader = Reader;
    type Read = Read;

    fn read(reader: &mut Reader, event: &EventRef<'_>) -> Option<Read> {
        Some(reader.read(event)).filter(|read| read.0.is_some() || read.1.is_some() || read.2.is_some())
    }

    fn located(&mut self, read: Option<&mut Read>, at: &Located<'_>) {
        self.learn(read, at);
    }

    fn located_earlier(&mut self, read: Option<&mut Read>, at: &Located<'_>) {
        self.explanations.lacks_changes();
        self.learn(read, at);
    }
}

/// All checkpoints of a recording at some times that can be used.
fn kept(recording: &Recording, times: &[Timestamp]) -> Vec<(Timestamp, Vec<u8>)> {
    kept_within(recording, times, 0)
}

/// The same, with a [share](Pauses::share).
fn kept_within(recording: &Recording, times: &[Timestamp], share: u64) -> Vec<(Timestamp, Vec<u8>)> {
    let [own, other, none] = [(false, times), (true, times), (true, &[][..])].map(|(ahead, times)| {
        let (mut keeps, mut go_on) = (Keeps::default(), |_| ControlFlow::Continue(()));
        let mut pauses = Pauses::at(times.to_vec());
        pauses.share = share;
        let ran = run_apart(recording, &mut keeps, ahead, pauses, &mut go_on).unwrap();
        (keeps, format!("{ran:?}"))
    });
    assert!(own.0.kept == other.0.kept, "the thread that decodes makes no difference");
    assert!(own.1 == other.1 && own.1 == none.1, "pauses make no difference");
    assert_eq!((own.0.changes, own.0.changes), (other.0.changes, none.0.changes));
    own.0.kept
}

/// One checkpoint, and how often it was asked for.
#[derive(Debug)]
struct One(Vec<u8>, Arc<AtomicUsize>);

impl Checkpoints for One {
    fn before(&self, _: Timestamp) -> Option<Vec<u8>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Some(self.0.clone())
    }

    fn times(&self) -> Vec<Timestamp> {
        Vec::new()
    }
}

/// What all analyses give of a recording with a filter.
fn results(recording: &Recording, filter: &Filter, ahead: bool) -> Vec<String> {
    let mut all = Vec::new();
    let mut results = |name: &str, ran: Ran, result: String| {
        // More names may be known, since those of a batch come at once.
        let ran = if ahead { Ran { names: Default::default(), ..ran } } else { ran };
        all.push(format!("{name}: {result} {ran:?}"));
    };
    macro_rules! result {
        ($new:expr, $finish:expr) => {{
            let (mut analysis, mut go_on) = ($new, |_| ControlFlow::Continue(()));
            let ran = run_as(recording, filter, &mut analysis, ahead, &mut go_on).unwrap();
            #[allow(clippy::redundant_closure_call)]
            let result = $finish(analysis, &ran);
            results(stringify!($new), ran, result);
        }};
    }
    result!(Threads::new(), table_of_threads);
    result!(Tasks::new(Thresholds::default(), false), |tasks: Tasks, _: &_| format!("{:?}", tasks.finish()));
    result!(Slices::new(SchedLatencies::default()), |slices: Slices<SchedLatencies>, ran: &_| {
        format!("{:?}", slices.sink.finish(ran))
    });
    result!(Breakdown::new(), |breakdown: Breakdown, ran: &_| format!("{:?}", breakdown.finish(ran)));
    result!(Functions::new(), |functions: Functions, ran: &_| {
        format!("{:?}", functions.finish(ran, &mut |function| format!("{function:?}")))
    });
    result!(Profile::new(), samples);
    result!(Locks::new(LocksBy::Lock, Bins::Log), table_of_locks);
    result!(Locks::new(LocksBy::Thread, Bins::Linear), table_of_locks);
    result!(Locks::new(LocksBy::Chain, Bins::Log), table_of_locks);
    let pattern = |name: &str| name.parse::<EventPattern>().unwrap();
    let question = Question {
        begin: pattern("sched_waking"),
        end: pattern("sched_switch"),
        by: Vec::new(),
        nesting: Nesting::default(),
        group: Vec::new(),
        worst: 5,
    };
    if let Ok(latency) = Latency::new(&question, recording) {
        result!(latency, |latency: Latency, _: &_| format!("{:?}", latency.finish().0));
    }
    let all_of_it = Filter { from: filter.from.clone(), to: filter.to.clone(), ..Filter::default() };
    let targets = [
        Filter { tids: filter.tids.clone(), ..Filter::default() },
        Filter { threads: vec![ThreadPattern::new("*")], ..Filter::default() },
    ];
    for target in targets.iter().filter_map(|target| Target::new(target).ok()) {
        let mut paths = CriticalPaths::new(target, Cursor::new(Vec::new()));
        let mut go_on = |_| ControlFlow::Continue(());
        let ran = run_as(recording, &all_of_it, &mut paths, ahead, &mut go_on).unwrap();
        let path = paths.path(None, None, &ran.names, &mut || true).map_err(|error| error.to_string());
        results("path", ran, format!("{path:?}"));
    }
    all.extend(lines(recording, filter));
    all
}

fn samples(profile: Profile, ran: &Ran) -> String {
    let mut name = |image: &Image, offset: u64| Frames {
        name: Some(format!("{image:?} {offset}")),
        ..Frames::default()
    };
    let shown = profile.finish(ran).name(&mut name);
    let (samples, rows) = (shown.samples(), shown.histogram(Group::Thread));
    let programs: Vec<_> = rows.iter().map(|row| shown.program(row.process)).collect();
    let of = (&samples.counters, &samples.trigger, samples.hertz, samples.lost);
    format!("{:?} {rows:?} {programs:?} {of:?}", shown.folded())
}

/// What `list` prints of a recording, and what `stats` counts.
fn lines(recording: &Recording, filter: &Filter) -> Vec<String> {
    let listings = [(true, Format::Text, None), (false, Format::Json, None), (true, Format::Csv, Some(7))];
    let mut all: Vec<String> = Vec::new();
    for (super_trace, format, last) in listings {
        let listing = Listing { super_trace, format, last, filter: filter.clone(), ..Listing::default() };
        let mut out = (Vec::new(), Vec::new());
        let result = listing.print(recording, &mut out).map_err(|error| error.to_string());
        let [events, warnings] = [&out.0, &out.1].map(|bytes| String::from_utf8_lossy(bytes));
        all.push(format!("list {result:?}\n{events}\n{warnings}"));
    }
    all.push(format!("{:?}", Statistics::collect(recording, filter)));
    all.extend([false, true].map(|explained| copy(recording, filter, explained)));
    all
}

/// All files that `convert` writes of a recording; with `explained`, `extract`.
fn copy(recording: &Recording, filter: &Filter, explained: bool) -> String {
    let (folder, mut go_on) = (tempfile::tempdir().unwrap(), |_| ControlFlow::Continue(()));
    let out = folder.path().join("copy");
    let conversion = Conversion { version: None, filter: filter.clone(), explained };
    let mut text = format!("{:?}", conversion.run(recording, &out, &mut go_on));
    let (mut folders, mut files) = (vec![out.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() { folders.push(entry) } else { files.push(entry) }
        }
    }
    files.sort();
    for file in files {
        let mut hasher = DefaultHasher::new();
        fs::read(&file).unwrap().hash(&mut hasher);
        let name = file.strip_prefix(&out).unwrap().display();
        write!(text, "\n{name} {:x}", hasher.finish()).unwrap();
    }
    text
}

fn table_of_threads(threads: Threads, ran: &Ran) -> String {
    let table = threads.finish(ran);
    format!("{:?} {:?} {} {:?}", table.threads, table.user_threads, table.strangers, table.processes())
}

fn table_of_locks(locks: Locks, ran: &Ran) -> String {
    #[rustfmt::skip] // A list, which is complete.
    let LocksTable {
        rows, histogram, graph, across_awaits, shadowed, incomplete, strangers, unknown_depths, lacks_holds,
        lacks_owners, forgotten_holders, duration_ns, unpaired,
    } = &locks.finish(ran);
    // Those of the same line have no order, nor have the parties of one.
    let mut lines: Vec<_> = rows
        .iter()
        .map(|row| {
            let of = &row.account;
            let counts = (of.kinds, of.acquired, of.refused, of.unknown_waits, of.unknown_holds, of.unpaired);
            let times = (of.waits, of.holds, of.has_tickets, of.spins, of.owner());
            let names = (&row.process_name, &row.task_name, &row.owner_name, &row.frames);
            format!("{:?} {:?} {counts:?} {times:?} {names:?}", row.process, row.subject)
        })
        .collect();
    lines.extend(graph.edges.iter().map(|edge| format!("{edge:?}")));
    lines.sort_unstable();
    let counts = (incomplete, strangers, unknown_depths, forgotten_holders, duration_ns, unpaired);
    let lacks = (lacks_holds, lacks_owners, graph.cycles.len());
    format!("{lines:#?} {histogram:?} {across_awaits:?} {shadowed:?} {counts:?} {lacks:?}")
}

/// A copy of a recording of which packets are missing or in another order.
fn changed(path: &Path, changes: &[(u8, u16)]) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    let mut changes = changes.iter();
    fs::copy(path.join("tracewing.json"), copy.path().join("tracewing.json")).unwrap();
    for trace in ["kernel", "user", "profile"] {
        let Ok(files) = fs::read_dir(path.join(trace)) else { continue };
        fs::create_dir(copy.path().join(trace)).unwrap();
        let mut files: Vec<_> =
            files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
        files.sort();
        for file in files {
            let name = file.file_name().unwrap();
            let mut bytes = fs::read(&file).unwrap();
            if name != "metadata"
                && let Some((kind, place)) = changes.next()
            {
                bytes = change(&bytes, *kind, usize::from(*place));
            }
            fs::write(copy.path().join(trace).join(name), bytes).unwrap();
        }
    }
    copy
}

/// How many changes there are.
const KINDS: u8 = 6;

/// A stream without a packet, with two packets in another order, with a packet once more, or with one whose
/// header says that it ends when it begins, or that it begins with the one before it; or with one that ends
/// when it begins, and the next one begins there, too.
fn change(bytes: &[u8], kind: u8, place: usize) -> Vec<u8> {
    let (mut packets, mut rest) = (Vec::new(), bytes);
    // Its size in bits follows magic, UUID, two ids, two stamps and another size.
    while let Some(size) = rest.get(56..64).and_then(<[u8]>::first_chunk) {
        let size = u64::from_le_bytes(*size) as usize / 8;
        let (packet, after) = rest.split_at(size.min(rest.len()));
        packets.push(packet);
        rest = after;
    }
    if packets.len() > 1 {
        let place = place % (packets.len() - 1);
        match kind % KINDS {
            0 => _ = packets.remove(place),
            1 => packets.swap(place, place + 1),
            2 => packets.insert(place, packets[place]),
            _ => {}
        }
    }
    let mut packets: Vec<Vec<u8>> = packets.into_iter().map(<[u8]>::to_vec).collect();
    let place = place % packets.len().max(1);
    match kind % KINDS {
        3 if !packets.is_empty() => packets[place].copy_within(32..40, 40),
        4 if place > 0 => {
            let begin = packets[place - 1][32..40].to_vec();
            packets[place][32..40].copy_from_slice(&begin);
        }
        5 if place + 1 < packets.len() => {
            packets[place].copy_within(32..40, 40);
            let begin = packets[place][32..40].to_vec();
            packets[place + 1][32..40].copy_from_slice(&begin);
        }
        _ => {}
    }
    packets.concat()
}

fn opened(path: &Path) -> Recording {
    Recording::open(&[path]).unwrap()
}

/// How many filters there are.
const FILTERS: usize = 8;

/// Some filters, none of which chooses a time.
fn filters(recording: &Recording) -> [Filter; FILTERS] {
    let mut threads = Threads::new();
    let mut go_on = |_| ControlFlow::Continue(());
    let ran = run_as(recording, &Filter::default(), &mut threads, false, &mut go_on).unwrap();
    let threads = threads.finish(&ran).threads;
    let (tid, process) = threads.first().map(|thread| (thread.tid, thread.process)).unzip();
    let of = |text: &str| Filter { predicate: Some(text.parse().unwrap()), ..Filter::default() };
    [
        Filter { tids: tid.into_iter().collect(), ..Filter::default() },
        Filter { cpus: vec![Cpu(0)..=Cpu(0)], ..Filter::default() },
        Filter {
            processes: process.flatten().map(ProcessPattern::Id).into_iter().collect(),
            ..Filter::default()
        },
        Filter { processes: vec![ProcessPattern::new("*e*")], ..Filter::default() },
        Filter { threads: vec![ThreadPattern::new("*1*")], ..Filter::default() },
        of("$state == 'blocked'"),
        of("$process != 'sh' && $process != 'server'"),
        of("$task > 1"),
    ]
}

/// Compares, for windows and checkpoints at shares of a recording's time. Returns how many runs have
/// continued from a checkpoint, and how many checkpoints there were.
fn compare(path: &Path, at: &[f64], windows: &[(f64, f64, bool)]) -> (usize, usize) {
    let recording = opened(path);
    let (begin, end) = (recording.begin().unwrap(), recording.end().unwrap());
    let time = |share: f64| begin + Duration::from_ns(((end - begin).as_ns() as f64 * share) as u64);
    let times: Vec<_> = at.iter().map(|share| time(*share)).collect();
    let checkpoints = kept(&recording, &times);
    let (filters, asked) = (filters(&recording), Arc::new(AtomicUsize::new(0)));
    for ((from, to, ahead), filter) in windows.iter().zip(filters.iter().cycle()) {
        let point = |share: f64| Some(TimePoint::Absolute(time(share)));
        for chosen in [filter, &Filter::default()] {
            let filter = Filter { from: point(*from), to: point(*to), ..chosen.clone() };
            let expected = results(&recording, &filter, *ahead);
            for (until, bytes) in checkpoints.iter().filter(|(until, _)| *until < time(*from)) {
                let other = opened(path);
                other.use_checkpoints(Box::new(One(bytes.clone(), asked.clone())));
                assert!(Checkpoint::before(&other, time(*from)).is_some(), "{until:?}");
                let found = results(&other, &filter, *ahead);
                for (found, expected) in found.iter().zip(&expected) {
                    assert!(found == expected, "{until:?} {filter:?}\n{found}\n{expected}");
                }
                assert_eq!(found.len(), expected.len());
            }
        }
    }
    (asked.load(Ordering::Relaxed), checkpoints.len())
}

const AT: [f64; 5] = [0.05, 0.3, 0.5, 0.77, 0.97];

#[test]
fn a_window_is_the_same_from_any_checkpoint() {
    let windows = [
        (0.1, 0.4, false),
        (0.32, 0.9, true),
        (0.51, 1.0, false),
        (0.6, 0.61, true),
        (0.98, 1.0, false),
        (0.78, 2.0, false),
        (0.52, 0.7, false),
        (0.31, 0.6, false),
    ];
    for path in recordings() {
        let (asked, kept) = compare(&path, &AT, &windows);
        assert!(kept >= 3 && asked > 100, "{}: {kept} {asked}", path.display());
    }
}

/// Reading up to a time ends with a packet that comes twice: the events of its copy are older than others
/// before the window, which are before the checkpoint, too.
#[test]
fn what_goes_back_is_noticed_after_a_checkpoint() {
    let copy = changed(&recordings()[1], &[(2, 0), (0, 0), (0, 0), (0, 0)]);
    compare(
        copy.path(),
        &[0.402_433_229_602_073_2],
        &[(0.704_272_752_256_571_5, 0.704_272_752_256_571_5, false)],
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Also of recordings with losses, and with streams whose stamps go back.
    #[test]
    fn a_window_of_a_damaged_recording_is_the_same(
        recording in 0..6_usize,
        changes in prop::collection::vec((0..KINDS, any::<u16>()), 4),
        at in prop::collection::vec(0.0..1.0, 1..4),
        windows in prop::collection::vec((0.0..1.0_f64, 0.0..1.2_f64, any::<bool>()), 1..3),
    ) {
        let copy = changed(&recordings()[recording], &changes);
        let windows: Vec<_> = windows.into_iter().map(|(from, to, ahead)| (from, from.max(to), ahead)).collect();
        compare(copy.path(), &at, &windows);
    }

    #[test]
    fn a_window_of_an_extract_is_the_same(
        recording in 0..6_usize,
        chosen in 0..FILTERS,
        begin in prop::option::weighted(0.7, 0.0..0.8_f64),
        at in prop::collection::vec(0.0..1.0, 1..4),
        from in 0.0..1.0,
    ) {
        let whole = opened(&recordings()[recording]);
        let (first, last) = (whole.begin().unwrap(), whole.end().unwrap());
        let time = |share: f64| first + Duration::from_ns(((last - first).as_ns() as f64 * share) as u64);
        let begin = begin.map(|share| TimePoint::Absolute(time(share)));
        let filter = Filter { from: begin, ..filters(&whole)[chosen].clone() };
        let (folder, mut go_on) = (tempfile::tempdir().unwrap(), |_| ControlFlow::Continue(()));
        let out = folder.path().join("extract");
        let written = Conversion { version: None, filter, explained: true }.run(&whole, &out, &mut go_on).unwrap();
        prop_assume!(written.chosen > 10);
        compare(&out, &at, &[(from, 1.0, false)]);
    }
}

/// A recording, of which readers continue from this checkpoint.
fn continued(path: &Path, bytes: &[u8]) -> Recording {
    let recording = opened(path);
    recording.use_checkpoints(Box::new(One(bytes.to_vec(), Arc::default())));
    recording
}

/// Which user threads LWPs ran last is known, and not only by the state, which says what they run now.
#[test]
fn a_filter_knows_user_threads_from_any_checkpoint() {
    let mut windows = 0;
    for path in recordings() {
        let recording = opened(&path);
        let (begin, end) = (recording.begin().unwrap(), recording.end().unwrap());
        let times: Vec<_> = (1..200).map(|part| begin + (end - begin) / 200 * part).collect();
        for (until, bytes) in kept(&recording, &times) {
            let other = continued(&path, &bytes);
            let known = Checkpoint::before(&other, until.next()).unwrap().known;
            let Some((_, (_, task), _)) = known.carried.first() else { continue };
            let predicate = Some(format!("$task == {}", task.0).parse().unwrap());
            let from = Some(TimePoint::Absolute(until.next()));
            let threads = vec![ThreadPattern::new(&task.0.to_string())];
            for filter in [
                Filter { from: from.clone(), threads, ..Filter::default() },
                Filter { from: from.clone(), predicate, ..Filter::default() },
            ] {
                let [expected, found] = [&recording, &other].map(|recording| {
                    let (mut threads, mut go_on) = (Threads::new(), |_| ControlFlow::Continue(()));
                    let ran = run_as(recording, &filter, &mut threads, false, &mut go_on).unwrap();
                    table_of_threads(threads, &ran)
                });
                assert!(found == expected, "{}: {filter:?}\n{found}\n{expected}", path.display());
                windows += 1;
            }
        }
    }
    assert!(windows > 20, "{windows}");
}

/// Packets before the window may have events of it, whatever their headers say.
#[test]
fn a_copy_of_a_recording_whose_packets_overlap_is_the_same() {
    let changes = [(4, 1), (4, 2)].to_vec();
    let mut copies = 0;
    for (path, changes) in
        recordings().iter().flat_map(|path| [(path, changes.clone()), (path, vec![(5, 1); 4])])
    {
        let folder = changed(path, &changes);
        let recording = opened(folder.path());
        let (begin, end) = (recording.begin().unwrap(), recording.end().unwrap());
        let time = |part: u64| begin + (end - begin) / 40 * part;
        let all = filters(&recording);
        for (until, bytes) in kept(&recording, &[time(1)]) {
            for from in (2..40).map(time).filter(|from| *from > until) {
                let to = from + (end - begin) / 40;
                let [from, to] = [from, to].map(|time| Some(TimePoint::Absolute(time)));
                for filter in [&all[0], &all[6]] {
                    let filter = Filter { from: from.clone(), to: to.clone(), ..filter.clone() };
                    let other = continued(folder.path(), &bytes);
                    let [found, expected] = [&other, &recording].map(|recording| {
                        let counts = Statistics::collect(recording, &filter);
                        (copy(recording, &filter, false), format!("{counts:?}"))
                    });
                    assert_eq!(found, expected, "{}: {until:?} {filter:?}", path.display());
                    copies += 1;
                }
            }
        }
    }
    assert!(copies > 200, "{copies}");
}

#[test]
fn what_is_no_checkpoint_of_the_recording_is_not_used() {
    let paths = recordings();
    let recording = opened(&paths[0]);
    let (begin, end) = (recording.begin().unwrap(), recording.end().unwrap());
    let checkpoint = kept(&recording, &[begin + (end - begin) / 2]).swap_remove(0).1;
    let is_used = |path: &Path, bytes: Vec<u8>| {
        let recording = opened(path);
        recording.use_checkpoints(Box::new(One(bytes, Arc::default())));
        let end = recording.end().unwrap();
        Checkpoint::before(&recording, end).is_some()
    };
    assert!(is_used(&paths[0], checkpoint.clone()));
    assert!(!is_used(&paths[1], checkpoint.clone()), "of another recording");
    // Of another version, and cut off anywhere.
    for at in 0..8 {
        let mut other = checkpoint.clone();
        other[at] ^= 1;
        assert!(!is_used(&paths[0], other));
    }
    for length in (0..checkpoint.len()).step_by(97) {
        assert!(!is_used(&paths[0], checkpoint[..length].to_vec()));
    }
    // Whatever changed within is no panic, and no memory without bound.
    for at in (8..checkpoint.len()).step_by(31) {
        let mut other = checkpoint.clone();
        other[at] = other[at].wrapping_add(0x55);
        let recording = opened(&paths[0]);
        recording.use_checkpoints(Box::new(One(other, Arc::default())));
        let from = Some(TimePoint::Absolute(begin + (end - begin) / 4 * 3));
        results(&recording, &Filter { from, ..Filter::default() }, false);
    }
}
