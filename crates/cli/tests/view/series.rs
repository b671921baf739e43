//! Fields of events as counters: what the server answers, and what the page draws, is what all events say.

use crate::cdp::{Browser, opened};
use crate::client::Viewer;
use crate::common::{Event, Packet, class, write_trace};
use serde_json::{Value, json as object};
use std::path::Path;
use tracewing_ctf::model::{EventRecordClass, FieldClass, StructureClass};
use tracewing_testing::{installed, wait_until};

/// A value, and from when to when it holds.
type Held = (i32, u64, u64);

/// The last one is of the other name.
const EVENTS: u64 = 2996;

/// Writes the trace, with a few events of another name; returns the values of a signed field, with times
/// since the first event.
fn write(folder: &Path) -> Vec<Held> {
    let mut class = class(Some(1), 1_000_000_000);
    let payload = StructureClass::new()
        .with("bytes", FieldClass::unsigned(32))
        .with("delta", FieldClass::signed(32))
        .with("share", FieldClass::float(64));
    let of = |id, name: &str| EventRecordClass::new(id, name).with_payload(payload.clone());
    class.data_stream_classes[0].event_record_classes = vec![of(0, "shop:served"), of(1, "shop:[served]")];
    let mut random = 0x1234_5678_9abc_def1_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let (mut at, mut events, mut changes) = (1000, Vec::new(), Vec::new());
    for number in 0..EVENTS {
        let delta = next(2_000_000) as i32 - 1_000_000;
        let share = f64::from(delta) / 8.0;
        let bytes = [number as u32, delta as u32].map(u32::to_le_bytes);
        let payload = [bytes.as_flattened(), &share.to_le_bytes()].concat();
        let id = u16::from(number % 10 == 5);
        if id == 0 {
            changes.push((delta, at));
        }
        events.push(Event { stamp: at, id, tid: 7, payload });
        at += 1 + next(if number % 1000 < 900 { 3_000 } else { 2_000_000 });
    }
    let last = events[events.len() - 1].stamp;
    write_trace(folder, &class, &[("channel_0", Packet::new(1, 0, 500, at).bytes(&events))]);
    let ends = changes.iter().skip(1).map(|(_, at)| *at).chain([last]);
    let held = changes.iter().zip(ends).map(|((delta, from), to)| (*delta, from - 1000, to - 1000));
    held.collect()
}

/// The least and the greatest value between two times; `None` if there is none.
fn range(all: &[Held], from: u64, to: u64) -> Option<(i32, i32)> {
    let values = || all.iter().filter(|(_, begin, end)| *begin < to && *end > from).map(|(one, ..)| *one);
    Some((values().min()?, values().max()?))
}

fn start(viewer: &Viewer, event: &str, field: &str) -> u64 {
    let asked = object!({ "event": event, "field": field }).to_string();
    viewer.ask("series", &asked)["series"].as_u64().unwrap()
}

fn valued(viewer: &Viewer, series: u64, from: u64, to: u64) -> Value {
    viewer.ask("valued", &object!({ "series": series, "from": from, "to": to }).to_string())
}

fn done(viewer: &Viewer, series: u64) -> Value {
    wait_until("all events are read", || valued(viewer, series, 0, 1)["is_done"] == true);
    valued(viewer, series, 0, 1)
}

#[test]
fn the_server_has_each_value_and_the_range_of_each_bucket() {
    let folder = tempfile::tempdir().unwrap();
    let all = write(folder.path());
    let viewer = Viewer::start(folder.path());
    let series = start(&viewer, "shop:served", "payload.delta");
    let whole = done(&viewer, series);
    let length = all.last().unwrap().2;
    let (least, most) = range(&all, 0, length).unwrap();
    assert_eq!(whole["count"], all.len());
    assert_eq!(
        [&whole["least"], &whole["most"]].map(Value::as_f64),
        [least, most].map(|one| Some(one.into()))
    );

    for (_, from, to) in all.iter().step_by(317) {
        let (from, to) = (from.saturating_sub(500_000), to + 300_000);
        let found = valued(&viewer, series, from, to)["values"].clone();
        let inside: Vec<_> = all.iter().filter(|(_, begin, end)| *begin < to && *end > from).collect();
        let inside: Vec<_> = inside.into_iter().map(|(one, from, to)| (f64::from(*one), from, to)).collect();
        assert_eq!(found, object!(inside), "{from} {to}");
    }
    assert_eq!(valued(&viewer, series, 0, length)["values"], Value::Null, "too many");

    for shift in [8, 12, 14, 16, 19, 23] {
        let first = (length / 3) >> shift;
        let asked = object!({ "series": series, "shift": shift, "first": first, "count": 300 });
        let bytes = viewer.bytes("values", &asked.to_string());
        let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        let float = |at: usize| f32::from_bits(word(at)) as i32;
        assert_eq!(bytes.len(), 8 + word(4) as usize * 28);
        let mut found = vec![None; 300];
        for at in (8..bytes.len()).step_by(28) {
            let buckets = word(at) as usize..(word(at) + word(at + 4)) as usize;
            found[buckets].fill(Some((float(at + 12), float(at + 16))));
        }
        let expected = (first..first + 300).map(|bucket| range(&all, bucket << shift, (bucket + 1) << shift));
        assert_eq!(found, expected.collect::<Vec<_>>(), "{shift}");
    }

    // A real number; a name is no pattern; of a field that is not there, there are no values.
    let shares = start(&viewer, "shop:served", "payload.share");
    assert_eq!(done(&viewer, shares)["least"].as_f64(), Some(f64::from(least) / 8.0));
    let other = start(&viewer, "shop:[served]", "payload.bytes");
    assert_eq!(done(&viewer, other)["count"], EVENTS.div_ceil(10));
    let none = start(&viewer, "shop:served", "payload.price");
    assert_eq!(done(&viewer, none)["count"], 0);
    let cookie = format!("Cookie: {}", viewer.cookie());
    let long = "x".repeat(300);
    for (event, field) in
        [("shop:served", "bytes"), ("shop:served", "body.bytes"), (&*long, "payload.n"), ("a", &*long)]
    {
        let asked = object!({ "event": event, "field": field }).to_string();
        assert_eq!(viewer.post("series", &[&cookie], &asked).0, 400, "{asked}");
    }
    let asked = object!({ "series": series, "shift": 70, "first": 0, "count": 9 }).to_string();
    assert_eq!(viewer.post("values", &[&cookie], &asked).0, 400);
    viewer.ask("unseries", &object!({ "series": series }).to_string());
    let asked = object!({ "series": series, "from": 0, "to": 9 }).to_string();
    assert_eq!(viewer.post("valued", &[&cookie], &asked).0, 410);
}

/// What the page draws of a counter is what the events say, in a window.
fn is_drawn(browser: &mut Browser, row: u64, all: &[Held], (from, to): (u64, u64)) {
    browser.value(&format!("tracewing.view.set({from}, {to})"));
    browser
        .wait(&format!("tracewing.isIdle() && tracewing.valued()[{row}]?.some((value) => value !== null)"));
    browser.settle();
    let values = browser.value(&format!("tracewing.valued()[{row}]"));
    let values: Vec<Option<f64>> = values.as_array().unwrap().iter().map(Value::as_f64).collect();
    let width = values.len() as u64 / 3;
    assert!(width > 500);
    let time = |column: u64| from + (to - from) * column / width;
    for column in 1..width - 1 {
        let [Some(least), Some(most)] = values[column as usize * 3..][..2] else {
            panic!("{column}: nothing is drawn");
        };
        let middle = (time(column) + time(column + 1)) / 2;
        let (value, _) = range(all, middle, middle + 1).unwrap();
        assert!(least <= value.into() && f64::from(value) <= most, "{column}: {least} {value} {most}");
        let around = range(all, time(column - 1), time(column + 2)).unwrap();
        let around = (f64::from(around.0), f64::from(around.1));
        assert!(around.0 <= least && most <= around.1, "{column}: {least} {most} {around:?}");
    }
}

#[test]
fn the_page_draws_a_field_of_an_event_and_links_have_it() {
    if !installed(&["chromium"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let all = write(folder.path());
    let viewer = Viewer::start(folder.path());
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    // The fields of a selected event are shown; texts are no numbers.
    let tracks = viewer.ask("tracks", "{}");
    let events = tracks["rows"].as_array().unwrap().iter().find(|row| row["kind"] == "events").unwrap();
    browser.value(&format!("tracewing.select({}, {})", events["id"], events["begin"]));
    let fields = "[...document.querySelectorAll('#details .fields dd')]";
    browser.wait(&format!("{fields}.length > 4"));
    let of = |field: &str| {
        let term = "[...document.querySelectorAll('#details .fields dt')]";
        format!(
            "{term}.find((term) => term.textContent === '{field}').nextElementSibling.querySelector('.counter')"
        )
    };
    assert_eq!(browser.value(&format!("!!{}", of("trace"))), false);
    browser.value(&format!("{}.click()", of("payload.delta")));
    browser.wait("tracewing.series()[0]?.isDone");
    assert_eq!(browser.value("tracewing.series()[0].count"), all.len());
    let row = browser.value("tracewing.series()[0].row").as_u64().unwrap();
    let shown = "tracewing.shown().find(({ kind }) => kind === 'counter').name";
    assert_eq!(browser.value(shown), "shop:served delta");
    // Its name says which values the edges are.
    browser.wait("document.querySelector('.track.chosen .used').textContent.includes(' to ')");
    let length = all.last().unwrap().2;
    for window in [(0, length), (length / 3, length / 2), (length / 3, length / 3 + 400_000)] {
        is_drawn(&mut browser, row, &all, window);
    }
    // Under the pointer is the exact value; a click leads to its event.
    let (value, from, to) = all.iter().copied().filter(|(_, from, to)| to - from > 500_000).nth(3).unwrap();
    browser.value(&format!("tracewing.view.set({from} - 400000, {to} + 400000)"));
    browser.settle();
    let track = "(() => {
        const at = tracewing.shown().findIndex(({ kind }) => kind === 'counter');
        const box = document.querySelector(`#track-${at}`).getBoundingClientRect();
        const canvas = document.querySelector('#overlay').getBoundingClientRect();
        return [canvas.left + canvas.width / 2, box.top + box.height / 2];
    })()";
    let place = browser.value(track);
    let (x, y) = (place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    let tip = "document.querySelector('#tip').textContent.replaceAll(',', '')";
    browser.hover(x, y);
    browser.wait(&format!("{tip}.includes('served delta{value}for')"));
    browser.click(x, y);
    browser.wait(&format!("document.querySelector('#details .within')?.dataset.at === '{from}'"));

    // A second one, from there; the link has both, and a pin of one.
    browser.wait(&format!("{fields}.length > 4"));
    browser.value(&format!("{}.click()", of("payload.share")));
    browser.wait("tracewing.series()[1]?.isDone && tracewing.chosen() === tracewing.series()[1].row");
    browser.key("i");
    let link = browser.value("tracewing.view.link()").as_str().unwrap().to_owned();
    let allowed = |sign: u8| sign.is_ascii_alphanumeric() || b"&=%.,+-_~".contains(&sign);
    assert!(link.bytes().all(allowed), "{link}");
    browser.open(&format!("http://127.0.0.1:{}/#{link}", viewer.port));
    browser.wait("tracewing.series().length === 2 && tracewing.series().every(({ isDone }) => isDone)");
    let pinned = "tracewing.shown().filter(({ isPinned }) => isPinned).map(({ name }) => name)";
    browser.wait(&format!("{pinned}[0] === 'shop:served share'"));
    is_drawn(&mut browser, row, &all, (length / 3, length / 2));
    // Back returns to what was before; without them, the link has none.
    browser.value("[...document.querySelectorAll('.track.pinned .remove')][0].click()");
    assert_eq!(browser.value(&format!("{pinned}.length")), 0);
    assert_eq!(
        browser.value("[tracewing.series()[0].field, tracewing.series()[1]]"),
        object!(["payload.delta", null])
    );
    browser.value(&format!("tracewing.choose({row})"));
    browser.key("Delete");
    assert_eq!(browser.value("tracewing.view.link().includes('counter')"), false);
    assert_eq!(browser.value("tracewing.shown().some(({ kind }) => kind === 'counter')"), false);
    browser.value("history.back()");
    browser.wait("tracewing.series()[0]?.isDone && tracewing.series()[0].field === 'payload.delta'");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn a_track_is_as_high_as_what_is_seen_needs() {
    let Some((_viewer, mut browser)) = opened("clerks") else { return };
    // Of columns with the least and the greatest value: the edges, and the shares of both colours.
    let found = browser.value(
        "import('/pixels.js').then(({ levels }) => {
            const tiles = (columns) => {
                const words = new Uint32Array(columns.length * 7), numbers = new Float32Array(words.buffer);
                columns.forEach(([least, most], at) => {
                    [words[at * 7], words[at * 7 + 1]] = [at, 1];
                    numbers.set([least, most, most], at * 7 + 3);
                });
                return [{ runs: { words, bytes: new Uint8Array(words.buffer), floats: numbers, at: 0, count: columns.length }, shift: 0, first: 0 }];
            };
            const of = (columns, least, most, isFitted) => {
                const sums = new Float32Array(2 * 14), values = new Float32Array(6);
                const edges = levels(tiles(columns), 0, 2, 2, { least, most }, isFitted, sums, values);
                return [edges, ...[...sums].filter((share) => share > 0).map((share) => Math.round(share * 1000) / 1000)];
            };
            const spike = [[1, 2], [3, 4]];
            return [of(spike, 1, 64, false), of(spike, 1, 64, true), of([[-4, -2], [0, 4]], -4, 4, true), of([[0, 0]], 0, 0, true)];
        })",
    );
    let expected = object!([
        [[0, 64], 0.016, 0.016, 0.016, 0.047],
        [[0, 4], 0.25, 0.25, 0.25, 0.75],
        [[-4, 4], 0.25, 0, 0.5, 0.5],
        [[0, 1], 0],
    ]);
    assert_eq!(found, expected);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
