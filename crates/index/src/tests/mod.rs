//! The index against a slow model: all states of a row in a list.

mod damage;
mod model;
mod tasks;
mod threads;
mod values;

use crate::body::Body;
use crate::builder::Builder;
use crate::format::{self, Identity, Tail};
use crate::index::Index;
use crate::levels::Summary;
use crate::make::complete;
use crate::picture::Window;
use crate::row::{RowId, RowKind};
use crate::together::Together;
use model::{Model, rows};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::thread;
use tracewing_analysis::Names;
use tracewing_timeline::{Class, Sink, StateId, StateNames, Track};
use tracewing_units::{Cpu, Duration, Tid, Timestamp};

/// Time 0 of the indexes of these tests.
const BEGIN: Timestamp = Timestamp::from_ns(1_000_000_007);

const IDENTITY: Identity = Identity(7);

/// The bytes of an index of threads that do what the models say; each thread also runs on a CPU of its own.
fn written(models: &[Model]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(models, Builder::new(begun(&mut bytes)));
    bytes
}

/// The same, of which another thread makes the blocks, if the system gives one.
fn written_apart(models: &[Model], new: fn() -> thread::Builder) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut builder = Builder::new(begun(&mut bytes));
    thread::scope(|scope| {
        builder.writer.move_apart(scope, new);
        write(models, builder);
    });
    bytes
}

/// An index that has its head.
fn begun(bytes: &mut Vec<u8>) -> Body<'_> {
    let mut body = Body::new(bytes);
    body.write(&format::head(IDENTITY));
    body
}

fn write(models: &[Model], mut builder: Builder<'_>) {
    let (names, head) = (StateNames::default(), format::head(IDENTITY));
    builder.begin = Some(BEGIN);
    let moment = |time| BEGIN + time;
    for (number, model) in (0..).zip(models) {
        let thread = builder.track(Track::Lwp(Tid(number)));
        let cpu = builder.track(Track::Cpu(Cpu(number.cast_unsigned())));
        for span in &model.spans {
            let (from, to) = (moment(span.from), moment(span.to));
            builder.state(thread, span.state, &names, from, to);
            if model::wakes(span) {
                builder.woken(thread, model::waker(span), from);
            }
            if names.class(span.state).is_running() {
                builder.cpu(cpu, Some(thread), span.state, &names, from, to);
            }
        }
        builder.doubt_mode(thread, moment(model.doubted));
    }
    let counter = builder.counter(0, "faults", "/s", None);
    for value in models.iter().take(1).flat_map(values::of) {
        builder.value(counter, value.value, moment(value.from), moment(value.to));
    }
    let function = |_| String::new();
    complete(builder, (&names, &Names::default(), function), &head, Tail::default()).unwrap();
}

/// Opens what was written.
fn opened(bytes: &[u8]) -> Result<Option<Index>, crate::Error> {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
    Index::open(file, Path::new("an index"), IDENTITY)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// What a window shows is exactly what all states show, at every zoom: no class is rounded away, least of
    /// all unknown time.
    #[test]
    fn the_picture_is_that_of_all_states(models in rows(), windows in model::windows()) {
        let index = opened(&written(&models)).unwrap().unwrap();
        for (model, number) in models.iter().zip((0..).step_by(2)) {
            for (from, length, most) in &windows {
                let from = model.scaled(*from);
                let window = Window::covering(from, from + model.scaled(*length).max(Duration::from_ns(1)), *most);
                prop_assert_eq!(index.picture(RowId(number), window).unwrap(), model.picture(window));
                let of_cpu = model.of_cpu().picture(window);
                let found = index.picture(RowId(number + 1), window).unwrap();
                prop_assert_eq!(times(&found), times(&of_cpu));
            }
        }
    }

    #[test]
    fn statistics_of_any_window_are_exact(models in rows(), windows in model::windows()) {
        let index = opened(&written(&models)).unwrap().unwrap();
        for (model, number) in models.iter().zip((0..).step_by(2)) {
            for (from, length, _) in &windows {
                let from = model.scaled(*from);
                let to = from + model.scaled(*length);
                prop_assert_eq!(index.statistics(RowId(number), from, to).unwrap(), model.statistics(from, to));
            }
        }
    }

    #[test]
    fn statistics_of_several_rows_are_those_of_each(models in rows(), windows in model::windows(), threads in 1..5_usize) {
        let index = opened(&written(&models)).unwrap().unwrap();
        let rows: Vec<RowId> = (0..index.tail().rows.len() as u32).rev().map(RowId).collect();
        for (from, length, _) in &windows {
            let from = models[0].scaled(*from);
            let to = from + models[0].scaled(*length);
            let counts: Vec<u64> = rows.iter().map(|row| index.count(*row, from, to)).collect();
            let all = index.by_threads(&rows, &counts, (from, to), threads).unwrap();
            prop_assert_eq!(all.len(), rows.len());
            for (row, sums) in rows.iter().zip(&all) {
                let alone: Vec<_> = index.statistics(*row, from, to).unwrap().into_iter().collect();
                prop_assert_eq!(sums, &alone);
            }
            prop_assert_eq!(index.statistics_of(&rows, from, to).unwrap(), all);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Each wake has its waker, and at other times there is none.
    #[test]
    fn wakes_are_where_they_were(models in rows()) {
        let index = opened(&written(&models)).unwrap().unwrap();
        for (model, number) in models.iter().zip((0..).step_by(2)) {
            for span in model.spans.iter().step_by(1 + model.spans.len() / 300) {
                let expected = model::wakes(span).then(|| model::named(model::waker(span)));
                prop_assert_eq!(index.woken(RowId(number), span.from).unwrap(), expected.as_ref());
                let within = span.from + Duration::from_ns(1);
                if within < span.to {
                    prop_assert_eq!(index.woken(RowId(number), within).unwrap(), None);
                }
            }
        }
    }

    /// An index does not depend on the thread that makes its blocks.
    #[test]
    fn another_thread_makes_the_same_blocks(models in rows()) {
        let refused = || thread::Builder::new().stack_size(1 << 60);
        let here = written(&models);
        prop_assert!(written_apart(&models, thread::Builder::new) == here);
        prop_assert!(written_apart(&models, refused) == here);
    }

    /// The states one by one are all that have a part in the window, and each has its neighbours.
    #[test]
    fn spans_are_those_of_the_window(models in rows(), windows in model::windows()) {
        let index = opened(&written(&models)).unwrap().unwrap();
        for (model, number) in models.iter().zip((0..).step_by(2)) {
            let row = RowId(number);
            for (from, length, most) in &windows {
                let from = model.scaled(*from);
                let to = from + model.scaled(*length);
                let all: Vec<_> = model.certain().collect();
                let within: Vec<_> = all.iter().copied().filter(|span| span.from < to && span.to > from).collect();
                let mut found = Vec::new();
                index.spans(row, from, to, |span| {
                    found.push(span);
                    if found.len() == *most as usize { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                }).unwrap();
                prop_assert_eq!(&found[..], &within[..within.len().min(*most as usize)]);
                let at = all.iter().copied().find(|span| span.from <= from && from < span.to);
                prop_assert_eq!(index.at(row, from).unwrap(), at);
                let after = all.iter().copied().find(|span| span.to > from);
                prop_assert_eq!(index.after(row, from, Duration::MAX).unwrap(), after);
                let before = all.iter().copied().rfind(|span| span.from < from);
                prop_assert_eq!(index.before(row, from).unwrap(), before);
                for state in [StateId::USER, StateId::RUNNING, StateId::BLOCKED] {
                    let next = all.iter().copied().find(|span| span.state == state && span.from >= from);
                    prop_assert_eq!(index.next_of(row, state, from).unwrap(), next);
                    let last = all.iter().copied().rfind(|span| span.state == state && span.from < from);
                    prop_assert_eq!(index.last_of(row, state, from).unwrap(), last);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// What rows did together are their pictures, added up: also the longest span of each bucket, which is
    /// the first one of its length.
    #[test]
    fn what_rows_did_together_are_their_pictures(models in rows(), most in 1..2_000_usize, bits in 1..12_u32) {
        let index = opened(&written(&models)).unwrap().unwrap();
        let rows = (0..).step_by(2).take(models.len()).map(RowId);
        let end = rows.clone().map(|row| index.row(row).end).max().unwrap_or_default();
        let window = Window::covering_all(end, Window::covering(Duration::ZERO, end, 1 << bits).shift);
        let mut expected = vec![crate::Content::default(); window.count as usize];
        let mut together = Together::new(window.shift, window.count, most);
        // Twice, so that there are others of the same length.
        for row in rows.clone().chain(rows) {
            index.paint(row, window, &mut together).unwrap();
            for bucket in index.picture(row, window).unwrap() {
                expected[bucket.number as usize].add_all(&bucket.content);
            }
        }
        prop_assert_eq!(together.finish(), expected);
    }

    /// A process in any window is the sum of its threads, also where that is made ahead.
    #[test]
    fn a_group_is_the_sum_of_its_members(models in rows(), windows in model::windows()) {
        let index = with_groups(&written(&models), 1).unwrap();
        index.check().unwrap();
        let process = index.rows().find(|(_, row)| matches!(row.kind, RowKind::Process(_))).unwrap().0;
        let Some(finest) = index.finest_of_group(process) else {
            prop_assert!(models.iter().all(|model| model.spans.is_empty()));
            return Ok(());
        };
        let longest = models.iter().max_by_key(|model| model.scaled(1.0)).unwrap();
        for (from, length, most) in &windows {
            let from = longest.scaled(*from);
            let end = from + longest.scaled(*length).max(Duration::from_ns(1));
            let exact = Window::covering(from, end, *most);
            let wide = Window { shift: exact.shift.max(finest), first: 0, count: most + 2 };
            for window in [exact, wide] {
                let mut sums: BTreeMap<u64, crate::Content> = BTreeMap::new();
                for number in (0..).step_by(2).take(models.len()) {
                    for bucket in index.picture(RowId(number), window).unwrap() {
                        sums.entry(bucket.number).or_default().add_all(&bucket.content);
                    }
                }
                let sums = sums.into_iter().map(|(number, content)| crate::Bucket { number, content });
                let found = index.group(process, window).unwrap();
                prop_assert_eq!(found.is_some(), window.shift >= finest);
                if let Some(found) = found {
                    prop_assert_eq!(times(&found), times(&sums.collect::<Vec<_>>()));
                }
            }
        }
    }
}

/// An index to which groups of so many members were added.
fn with_groups(bytes: &[u8], least: usize) -> Option<Index> {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
    let place = (file.try_clone().unwrap(), Path::new("an index"));
    let size = crate::groups::add(place, IDENTITY, least, &mut file).unwrap()?;
    assert_eq!(file.metadata().unwrap().len(), size);
    Index::open(file, Path::new("an index"), IDENTITY).unwrap()
}

#[test]
fn processes_of_few_threads_have_no_levels() {
    let mut model = Model::default();
    model.push(Class::User, 1_000);
    assert!(with_groups(&written(&[model.clone()]), 2).is_none());
    assert!(with_groups(&written(&[model.clone(), model]), 2).is_some());
}

/// The times in each bucket: states of CPUs have numbers of their own.
fn times(buckets: &[crate::Bucket]) -> Vec<(u64, [Duration; crate::CLASSES], u64)> {
    buckets.iter().map(|bucket| (bucket.number, bucket.content.times, bucket.content.changes)).collect()
}

#[test]
fn a_bucket_of_a_dense_level_has_even_the_shortest_unknown_time() {
    let mut model = Model::default();
    for number in 0..40_000_u64 {
        model.push(if number % 2 == 0 { Class::User } else { Class::Blocked }, 1_000);
    }
    model.push(Class::Unknown, 1);
    for _ in 0..40_000 {
        model.push(Class::Blocked, 1_000);
        model.push(Class::System, 1_000);
    }
    let index = opened(&written(&[model])).unwrap().unwrap();
    let window = Window::covering(Duration::ZERO, Duration::from_ns(120_000_001), 2);
    let buckets = index.picture(RowId(0), window).unwrap();
    let unknown: Duration = buckets.iter().map(|bucket| bucket.content.times[Class::Unknown as usize]).sum();
    assert_eq!(unknown, Duration::from_ns(1));
    assert!(!index.row(RowId(0)).levels.is_empty());
}

#[test]
fn each_event_is_counted_in_any_window_even_those_of_one_time() {
    let (mut bytes, head) = (Vec::new(), format::head(IDENTITY));
    let mut body = Body::new(&mut bytes);
    body.write(&head);
    let mut builder = Builder::new(body);
    builder.begin = Some(BEGIN);
    let thread = builder.track(Track::Lwp(Tid(7)));
    let row = builder.part(RowKind::Events(0), "shop", thread);
    let states = ["shop:sale", "shop:refund"].map(|name| builder.table.own(Class::Event, name));
    let times: Vec<u64> = (0..30_000_u64).map(|number| number * number % 977 + number * 1_000).collect();
    for (time, state) in times.iter().zip(states.iter().cycle()) {
        builder.happened(row, *state, BEGIN + Duration::from_ns(*time));
    }
    // Three more of one name at the time of the last, and one after the clock went back.
    let last = *times.last().unwrap();
    for time in [last, last, last, last - 500] {
        builder.happened(row, states[0], BEGIN + Duration::from_ns(time));
    }
    complete(builder, (&StateNames::default(), &Names::default(), |_| String::new()), &head, Tail::default())
        .unwrap();
    let index = opened(&bytes).unwrap().unwrap();
    let id = RowId(row);
    assert_eq!(index.row(id).name, "shop");
    assert_eq!(index.state(states[1]).map(|state| state.about.as_str()), Some("refund"));
    let ns = Duration::from_ns;
    for (from, to) in [(0, last + 10), (0, last), (1, 1_000_000), (last, last + 4), (last - 700, last + 1)] {
        let expected = times.iter().filter(|time| (from..to).contains(*time)).count() as u64;
        let late = (last + 1..last + 5).filter(|time| (from..to).contains(time)).count() as u64;
        let sums = index.statistics(id, ns(from), ns(to)).unwrap();
        let count: u64 = sums.values().map(|sum| sum.as_ns()).sum();
        assert_eq!(count, expected + late, "{from} {to}");
        let window = Window::covering(ns(from), ns(to), 60);
        let (from, to) = window.times();
        let drawn: u64 = index.picture(id, window).unwrap().iter().map(|bucket| bucket.content.changes).sum();
        let inside = |time: &&u64| (from..to).contains(&ns(**time));
        let late = (last + 1..last + 5).filter(|time| inside(&time)).count();
        assert_eq!(drawn, (times.iter().filter(inside).count() + late) as u64);
    }
}

/// Takes so many bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_reading_thread_sees_that_the_other_one_cannot_write() {
    for room in [0, 100_000] {
        let mut out = Full(room);
        let mut builder = Builder::new(Body::new(&mut out));
        builder.begin = Some(BEGIN);
        let row = builder.track(Track::Lwp(Tid(7)));
        let mut time = BEGIN;
        let failure = thread::scope(|scope| {
            builder.writer.move_apart(scope, thread::Builder::new);
            while !builder.writer.has_failed() {
                let (state, to) =
                    (StateId((time - BEGIN).as_ns() as u32 % 8), time + Duration::from_ns(1_001));
                builder.did(row, state, time, to);
                time = to;
            }
            builder.writer.into_blocks().body.finish()
        });
        assert_eq!(failure.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    }
}

#[test]
fn blocks_come_back_from_another_thread_and_go_on() {
    let mut sizes = Vec::new();
    for apart in [false, true] {
        let (mut bytes, mut rest) = (Vec::new(), Vec::new());
        let mut builder = Builder::new(begun(&mut bytes));
        builder.begin = Some(BEGIN);
        let row = builder.track(Track::Lwp(Tid(7)));
        thread::scope(|scope| {
            for part in 0..3_u64 {
                if apart {
                    builder.writer.move_apart(scope, thread::Builder::new);
                }
                for number in 10_000 * part..10_000 * (part + 1) {
                    let from = BEGIN + Duration::from_ns(number * 1_000);
                    builder.did(row, StateId(number as u32 % 3), from, from + Duration::from_ns(1_000));
                }
                let offset = builder.body().offset;
                rest.clear();
                let (rows, ..) = builder.same(Body::after(&mut rest, offset), Duration::ZERO).finish();
                sizes.push((apart, offset, rows[row as usize].leaves.clone(), rest.clone()));
            }
        });
    }
    let (here, apart) = sizes.split_at(3);
    for (here, apart) in here.iter().zip(apart) {
        assert_eq!((here.1, &here.2, &here.3), (apart.1, &apart.2, &apart.3));
    }
}

#[test]
fn a_thread_that_makes_unrecorded_calls_shows_none() {
    for is_doubted in [false, true] {
        let (mut bytes, head) = (Vec::new(), format::head(IDENTITY));
        let mut body = Body::new(&mut bytes);
        body.write(&head);
        let mut builder = Builder::new(body);
        builder.begin = Some(BEGIN);
        let thread = builder.track(Track::Lwp(Tid(7)));
        let row = builder.part(RowKind::SystemCalls, "", thread);
        let state = builder.table.own(Class::Call, "read");
        // More than a block.
        for number in 0..2_000 {
            let from = BEGIN + Duration::from_ns(number * 100);
            builder.did(row, state, from, from + Duration::from_ns(50));
        }
        if is_doubted {
            builder.hide(row);
        }
        let texts = (&StateNames::default(), &Names::default(), |_| String::new());
        complete(builder, texts, &head, Tail::default()).unwrap();
        let index = opened(&bytes).unwrap().unwrap();
        let sums = index.statistics(RowId(row), Duration::ZERO, Duration::from_ns(1_000_000)).unwrap();
        let expected = if is_doubted { None } else { Some(Duration::from_ns(100_000)) };
        assert_eq!(sums.get(&state).copied(), expected);
        assert_eq!(index.row(RowId(row)).has_states(), !is_doubted);
    }
}
