//! The index of a recording that was followed while it was made is byte by byte the one that is made of it
//! afterwards, in whatever order its parts appear.

#[path = "certain/mod.rs"]
mod certain;
#[path = "../../trace/tests/common/mod.rs"]
mod common;

use certain::same_so_far;
use common::{Event, Packet, class, write_trace};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tracewing_ctf::model::{
    EnumerationClass, EventRecordClass, FieldClass, IntegerClass, StructureClass, TraceClass,
};
use tracewing_index::{Cache, Changes, Index, Look, RowId, RowKind};
use tracewing_trace::Recording;
use tracewing_vocabulary::environment;

const DESCRIPTION: &str = "tracewing.json";

fn stored() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/golden/recordings/server")
}

/// Copies a file of the stored recording into one that is made. Each packet gets so many bytes of padding,
/// which take no space on the disk.
fn copy(part: &str, to: &Path, padding: u64) {
    let path = to.join(part);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // At once, as recorders write packets.
    let temporary = to.join("part.unfinished");
    if padding == 0 || part.ends_with("metadata") {
        fs::copy(stored().join(part), &temporary).unwrap();
    } else {
        pad(&fs::read(stored().join(part)).unwrap(), padding, &temporary);
    }
    fs::rename(temporary, path).unwrap();
}

fn pad(stream: &[u8], padding: u64, to: &Path) {
    let file = fs::File::create(to).unwrap();
    let (mut at, mut end) = (0, 0);
    while at < stream.len() {
        // In bits, after the packet's header, its times and the size of its content.
        let place = at + 56;
        let size = u64::from_le_bytes(*stream[place..].first_chunk().unwrap()) / 8;
        let mut packet = stream[at..at + size as usize].to_vec();
        packet[56..64].copy_from_slice(&((size + padding) * 8).to_le_bytes());
        file.write_all_at(&packet, end).unwrap();
        (at, end) = (at + size as usize, end + size + padding);
    }
    file.set_len(end).unwrap();
}

fn describe(state: &str, to: &Path) {
    let text = fs::read_to_string(stored().join(DESCRIPTION)).unwrap();
    let text = text.replace(r#""state": "complete""#, &format!(r#""state": "{state}""#));
    let temporary = to.join("description.unfinished");
    fs::write(&temporary, text).unwrap();
    fs::rename(temporary, to.join(DESCRIPTION)).unwrap();
}

/// Follows a recording to which the groups of files are added one after the other, each when the index has
/// all before it. Gives the last index before the recording ends, and that of the complete recording; and
/// whether this was made anew since something came too late.
fn follow(groups: &[&[&str]]) -> (Index, Index, bool) {
    let (before, _, after, is_anew) = follow_padded(groups, 0);
    (before, after, is_anew)
}

/// The same, with padding; also gives the index that was left, before the one that is made afterwards.
fn follow_padded(groups: &[&[&str]], padding: u64) -> (Index, Index, Index, bool) {
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    fs::create_dir(&trace).unwrap();
    describe("recording", &trace);
    // As a recorder does that lives.
    let lock = fs::File::open(&trace).unwrap();
    lock.lock().unwrap();
    let mut groups = groups.iter();
    let mut add = || {
        let group = groups.next();
        group.into_iter().copied().flatten().for_each(|part| copy(part, &trace, padding));
        group.is_some()
    };
    assert!(add());
    let (mut last, mut has_ended, mut is_anew) = (None, false, false);
    let inputs = [trace.clone()];
    let mut watch = |look| {
        match look {
            Look::Grown(index, _) => {
                assert!(!has_ended, "nothing is open any more");
                index.check().unwrap();
                last = Some(*index);
                if !add() {
                    describe("complete", &trace);
                    has_ended = true;
                }
            }
            Look::Reads(progress) => is_anew |= has_ended && progress.done == 0,
            Look::Waits => {}
        }
        ControlFlow::Continue(())
    };
    let followed = Cache::new(Some(&place.path().join("followed"))).unwrap();
    let left = followed.follow(&inputs, &mut watch).unwrap().expect("it has ended");
    let recording = Recording::open(&inputs).unwrap();
    let made = Cache::new(Some(&place.path().join("made"))).unwrap();
    made.make(&recording, &mut |_| ControlFlow::Continue(())).unwrap();
    let bytes = |cache: &Cache| fs::read(cache.path_of(&recording)).unwrap();
    assert!(padding > 0 || bytes(&followed) == bytes(&made), "the indexes differ");
    let folder = fs::read_dir(place.path().join("followed")).unwrap();
    assert_eq!(folder.count(), 1, "files are left");
    let after = made.find(&recording).expect("it was made just now");
    (last.expect("it has grown"), left, after, is_anew)
}

const KERNEL: [&str; 3] = ["kernel/metadata", "kernel/channel_0", "kernel/channel_1"];
const USER: [&str; 3] = ["user/metadata", "user/uid0_0", "user/uid0_1"];

#[test]
fn all_streams_at_once() {
    let (before, after, _) = follow(&[&[KERNEL, USER].concat()]);
    same_so_far(&before, &after);
}

#[test]
fn a_stream_that_comes_too_late() {
    let (.., is_anew) = follow(&[&[KERNEL[0], KERNEL[1], USER[0], USER[1], USER[2]], &[KERNEL[2]]]);
    assert!(is_anew, "it was not noticed");
}

/// Of a large recording, the index that was made while it was has no checkpoints, and says so: it is made
/// anew where they are needed.
#[test]
fn an_index_without_checkpoints_says_so() {
    let (_, left, made, is_anew) = follow_padded(&[&[KERNEL, USER].concat()], 64 << 20);
    assert!(!is_anew);
    assert_eq!((left.tail().lacks_checkpoints, left.checkpoints().is_some()), (true, false));
    assert_eq!((made.tail().lacks_checkpoints, made.checkpoints().is_some()), (false, true));
    // All else is the same.
    let length = made.tail().length;
    assert_eq!((left.tail().length, left.tail().events), (length, made.tail().events));
    assert_eq!(left.tail().states, made.tail().states);
    let rows = |index: &Index| index.rows().map(|(id, row)| (id, row.kind)).collect::<Vec<_>>();
    assert_eq!(rows(&left), rows(&made));
    for (id, _) in made.rows() {
        let of = |index: &Index| index.statistics(id, tracewing_units::Duration::ZERO, length).unwrap();
        assert_eq!(of(&left), of(&made));
    }
}

/// Tasks of a process that has begun; each has a name of its own.
const TASKS: u64 = 70;

/// Packets of a stream in which tasks are created, then run in the opposite order; then come more of them;
/// then the third gets the name of the fifth.
fn tasks() -> [Vec<u8>; 5] {
    let number = u64::to_le_bytes;
    let event = |at, id, payload: Vec<u8>| Event { stamp: at, id, tid: 7, payload };
    let created = |task: u64| {
        let origin = [&number(task)[..], format!("work{task}\0").as_bytes()].concat();
        let create = [number(task), number(task)].concat();
        [event(task * 10, 3, origin), event(task * 10 + 1, 1, create)]
    };
    let runs = |at: u64, task: u64| {
        let switch = |prev, next, cause| [&number(prev)[..], &number(next), &[cause]].concat();
        [event(at, 2, switch(0, task, 0)), event(at + 5, 2, switch(task, 0, 2))]
    };
    let first = [event(1, 0, [&7_i32.to_le_bytes()[..], b"shop\0"].concat())];
    let parts: [Vec<Event>; 5] = [
        first.into_iter().chain((1..=TASKS).flat_map(created)).collect(),
        (1..=TASKS).flat_map(|task| runs(2_000 - task * 10, task)).rev().collect(),
        (101..105).flat_map(created).collect(),
        (101..105).flat_map(|task| runs(4_000 - task * 10, task)).rev().collect(),
        vec![event(4_500, 4, [&number(3)[..], b"work5\0"].concat())],
    ];
    let packet = |(seq, events): (u64, Vec<Event>)| {
        let mut events = events;
        events.sort_by_key(|event| event.stamp);
        Packet { seq, ..Packet::new(1, 0, seq * 1_000, seq * 1_000 + 999) }.bytes(&events)
    };
    let parts: Vec<Vec<u8>> = (0..).zip(parts).map(packet).collect();
    parts.try_into().unwrap()
}

fn class_of_tasks() -> TraceClass {
    let number = || FieldClass::unsigned(64);
    let cause = EnumerationClass::new(IntegerClass::unsigned(8)).with("none", 0, 0).with("blocked", 2, 2);
    let thread = StructureClass::new().with("pid", FieldClass::signed(32)).with("name", FieldClass::string());
    let create = StructureClass::new().with("thread", number()).with("origin", number());
    let switch = StructureClass::new().with("prev", number()).with("next", number()).with("cause", cause);
    let origin = StructureClass::new().with("origin", number()).with("name", FieldClass::string());
    let name = StructureClass::new().with("thread", number()).with("name", FieldClass::string());
    let mut of = class(Some(1), 1_000_000_000);
    let events = [
        ("tracewing:thread", thread),
        ("user_thread:create", create),
        ("user_thread:switch", switch),
        ("user_thread:origin", origin),
        ("user_thread:name", name),
    ];
    let event = |(id, (name, payload))| EventRecordClass::new(id, name).with_payload(payload);
    of.data_stream_classes[0].event_record_classes = (0..).zip(events).map(event).collect();
    of
}

/// The rows of tasks of one name, by that: the numbers of the row, and of the name.
type Groups = BTreeMap<String, (RowId, u32)>;

fn groups(index: &Index) -> Groups {
    let name = |(id, row): (RowId, &tracewing_index::Row)| match row.kind {
        RowKind::Tasks(number) => Some((row.name.clone(), (id, number))),
        _ => None,
    };
    index.rows().filter_map(name).collect()
}

/// While a recording is made, a row of tasks of one name stays that of this name, in whatever order the tasks
/// run.
#[test]
fn tasks_of_a_name_keep_their_row() {
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    let mut packets = tasks().into_iter();
    let mut counts = [2 * TASKS, 8, 8, 1].into_iter();
    let mut events = 1 + 2 * TASKS;
    write_trace(&trace.join("user"), &class_of_tasks(), &[("stream", packets.next().unwrap())]);
    describe("recording", &trace);
    let lock = fs::File::open(&trace).unwrap();
    lock.lock().unwrap();
    let mut looks: Vec<(Changes, Groups)> = Vec::new();
    let mut watch = |look| {
        if let Look::Grown(index, changes) = look {
            looks.push((changes, groups(&index)));
            // It may be drawn further before there is more.
            if index.tail().events < events {
                return ControlFlow::Continue(());
            }
            events += counts.next().unwrap_or_default();
            match packets.next() {
                Some(packet) => {
                    let mut stream =
                        fs::File::options().append(true).open(trace.join("user/stream")).unwrap();
                    stream.write_all(&packet).unwrap();
                }
                None => describe("complete", &trace),
            }
        }
        ControlFlow::Continue(())
    };
    let cache = Cache::new(Some(&place.path().join("followed"))).unwrap();
    let left = cache.follow(std::slice::from_ref(&trace), &mut watch).unwrap().expect("it has ended");
    assert_eq!((left.tail().events, counts.len()), (1 + 4 * TASKS + 17, 0));
    let last = looks.last().unwrap().clone();
    // What each row is of.
    let mut rows = BTreeMap::new();
    for (changes, names) in looks {
        assert_eq!(changes.passes, last.0.passes);
        if names.contains_key("work3") {
            assert_eq!((names.len(), names["work1"].1, names["work64"].1), (65, 0, 63));
        }
        for (name, (row, _)) in names {
            assert_eq!(*rows.entry(row).or_insert(name.clone()), name);
            assert!(last.1.get(&name).is_none_or(|(now, _)| *now == row), "{name}");
        }
    }
    assert_eq!((last.1.get("work3"), last.1["work65"].1), (None, 63));
    // In the index that is left, they have other places.
    let numbers =
        |names: Groups| names.into_iter().map(|(name, (_, number))| (name, number)).collect::<Vec<_>>();
    assert_eq!(numbers(last.1), numbers(groups(&left)));
}

/// Readings of the counter `cycles`, each after so many milliseconds.
fn readings(instance: u64, seq: u64, readings: &[(u64, u64)]) -> Vec<u8> {
    let stamp = |ms: u64| ms * 1_000_000;
    let event = |(ms, cycles): &(u64, u64)| Event {
        stamp: stamp(*ms),
        id: 0,
        tid: 0,
        payload: cycles.to_le_bytes().to_vec(),
    };
    let (begin, end) = (readings[0].0, readings[readings.len() - 1].0);
    let packet = Packet { seq, ..Packet::new(2, instance, stamp(begin), stamp(end)) };
    packet.bytes(&readings.iter().map(event).collect::<Vec<_>>())
}

/// Follows a recording of one stream, to which more is added, and then a stream that is before it; the index
/// is that of the whole. Gives it, of so many events at first and in the end.
fn follow_another_stream(
    of: &TraceClass,
    [first, more, other]: [Vec<u8>; 3],
    [begin, end]: [u64; 2],
) -> Index {
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    let stream = |cpu: u32| trace.join(format!("part/cpu_{cpu}"));
    write_trace(&trace.join("part"), of, &[("cpu_1", first)]);
    describe("recording", &trace);
    let lock = fs::File::open(&trace).unwrap();
    lock.lock().unwrap();
    let (mut events, mut has_ended, mut is_anew) = (begin, false, false);
    let mut watch = |look| {
        match look {
            Look::Grown(index, _) if index.tail().events == events && events == begin => {
                let mut grown = fs::File::options().append(true).open(stream(1)).unwrap();
                grown.write_all(&more).unwrap();
                fs::write(place.path().join("part"), &other).unwrap();
                fs::rename(place.path().join("part"), stream(0)).unwrap();
                events = end;
            }
            Look::Grown(index, _) if index.tail().events == events => {
                describe("complete", &trace);
                has_ended = true;
            }
            Look::Reads(progress) => is_anew |= has_ended && progress.done == 0,
            _ => {}
        }
        ControlFlow::Continue(())
    };
    let followed = Cache::new(Some(&place.path().join("followed"))).unwrap();
    let inputs = std::slice::from_ref(&trace);
    let left = followed.follow(inputs, &mut watch).unwrap().expect("it has ended");
    assert!(!is_anew);
    let made = Cache::new(Some(&place.path().join("made"))).unwrap();
    let recording = Recording::open(inputs).unwrap();
    made.make(&recording, &mut |_| ControlFlow::Continue(())).unwrap();
    let bytes = |cache: &Cache| fs::read(cache.path_of(&recording)).unwrap();
    assert!(bytes(&followed) == bytes(&made), "the indexes differ");
    assert_eq!(left.tail().events, end);
    left
}

/// Counters count on when another stream comes that is before theirs.
#[test]
fn counters_continue_when_streams_have_other_places() {
    let mut of = class(Some(2), 1_000_000_000);
    of.set_env(environment::DOMAIN, "profile".to_owned());
    of.set_env(environment::PROFILE_COUNTERS, environment::OF_TREE.to_owned());
    let payload = StructureClass::new().with("cycles", FieldClass::unsigned(64));
    of.data_stream_classes[0].event_record_classes =
        vec![EventRecordClass::new(0, "profile:counters").with_payload(payload)];
    let parts = [
        readings(1, 0, &[(1, 1_000), (2, 3_000)]),
        readings(1, 1, &[(4, 13_000), (9, 14_000)]),
        readings(0, 0, &[(5, 500_000), (8, 600_000)]),
    ];
    let left = follow_another_stream(&of, parts, [2, 6]);
    assert!(left.rows().any(|(_, row)| matches!(row.kind, RowKind::Counter(_))));
}

/// What is known of a thread's first event is kept while the recording is opened anew.
#[test]
fn the_first_event_of_a_thread_is_the_last_before_another_stream() {
    let mut of = class(Some(2), 1_000_000_000);
    of.set_env(environment::DOMAIN, "ust");
    let payload = || StructureClass::new().with("number", FieldClass::unsigned(64));
    of.data_stream_classes[0].event_record_classes = ["other:hit", "app:hit"]
        .into_iter()
        .zip(0..)
        .map(|(name, id)| EventRecordClass::new(id, name).with_payload(payload()))
        .collect();
    let hit = |instance, seq, id, (ms, tid): (u64, i32)| {
        let stamp = ms * 1_000_000;
        let packet = Packet { seq, ..Packet::new(2, instance, stamp, stamp) };
        packet.bytes(&[Event { stamp, id, tid, payload: ms.to_le_bytes().to_vec() }])
    };
    let parts = [hit(1, 0, 1, (1, 7)), hit(1, 1, 1, (6, 7)), hit(0, 0, 0, (5, 8))];
    let left = follow_another_stream(&of, parts, [1, 3]);
    let providers = left.rows().filter(|(_, row)| matches!(row.kind, RowKind::Events(_)));
    assert_eq!(providers.count(), 2);
}
