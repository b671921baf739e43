//! What the page keeps is bounded, and what a picture needs is used again for the next one.

use crate::cdp::opened;
use serde_json::json as object;

#[test]
fn tiles_have_a_limit_and_pictures_use_their_memory_again() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    // The buffers are full and are used again. What is drawn from time to time stays.
    let kept = browser.value(
        "import('/tiles.js').then(({ Tiles }) => {
            const tiles = new Tiles(() => {}, () => {}), { kept } = tiles;
            const runs = (at, count) => Uint32Array.from({ length: 7 * count }, (_, word) => at * 7 + word);
            const has = (key, at, count) => {
                const found = kept.tiles.get(key), expected = runs(at, count);
                return found?.count === count && expected.every((word, place) => found.words[found.at + place] === word);
            };
            [6, 7].forEach((at) => kept.set(`1 9 ${at}`, runs(at, 5)));
            [tiles.uncertain, tiles.old].forEach((keys) => keys.add('1 12 0'));
            for (let at = 0; at < 250000; at++) {
                kept.set(`1 12 ${at}`, runs(at, at % 3));
                if (at < 12000) tiles.refuse(`2 12 ${at}`);
                if (at % 1000 === 0) kept.get('1 9 7');
            }
            const others = [...kept.tiles.keys()].filter((key) => key !== '1 9 7');
            const isRight = (key, at = Number(key.slice(5))) => has(key, at, at % 3);
            const words = kept.buffers.map(({ end, tiles }) => end + 30 * tiles.length);
            const found = {
                count: kept.tiles.size, isRight: others.every((key) => isRight(key)), drawn: has('1 9 7', 7, 5),
                isNewest: isRight('1 12 249999'), buffers: kept.buffers.length,
                sizes: [...new Set(kept.buffers.map(({ words }) => words.buffer.byteLength))],
                most: Math.max(...words) <= 2 ** 18, least: Math.min(...words.toSorted((a, b) => a - b).slice(1)) > 2 ** 17,
                refused: [tiles.refused.size, tiles.refused.has('2 12 11999')], gone: tiles.uncertain.size + tiles.old.size,
            };
            // Another answer takes the place of the one before, whether it is longer or shorter.
            kept.delete('1 9 7');
            [7, 8].forEach((at) => kept.set(`1 9 ${at}`, runs(at, 5)));
            found.again = [4, 2, 3, 9].map((count) => (kept.set('1 9 7', runs(count, count)), has('1 9 7', count, count)));
            found.next = has('1 9 8', 8, 5);
            tiles.clear();
            return { ...found, left: kept.tiles.size + kept.buffers.reduce((sum, { end }) => sum + end, 0) };
        })",
    );
    let count = kept["count"].as_u64().unwrap();
    assert!((160_000..180_000).contains(&count), "{count}");
    let expected = object!({
        "count": count, "isRight": true, "drawn": true, "isNewest": true, "buffers": 24, "sizes": [1 << 20],
        "most": true, "least": true, "refused": [7_000, true], "gone": 0, "again": [true, true, true, true], "next": true, "left": 0,
    });
    assert_eq!(kept, expected);
    let again = browser.value(
        "import('/pixels.js').then(({ Rows, Sheet }) => {
            const context = document.createElement('canvas').getContext('2d');
            const sheet = new Sheet();
            const first = sheet.blank(context, 20, 10);
            first.target.fill(7);
            const second = sheet.blank(context, 20, 10);
            const isSame = second.image === first.image && second.sums === first.sums && second.target.every((pixel) => pixel === 0);
            const other = sheet.blank(context, 10, 20);
            const rows = new Rows(Uint8Array);
            rows.begin();
            const [one, two] = [rows.of(1, 5).fill(9), rows.of(2, 5).fill(9)];
            rows.begin();
            const isEmpty = rows.used.size === 0;
            const array = rows.of(3, 5);
            const longer = rows.of(4, 6);
            return [isSame, other.image.width, other.sums.length, one !== two, isEmpty, array === two && array.every((value) => value === 0), longer.length, rows.of(3, 5) === array];
        })",
    );
    assert_eq!(again, object!([true, 10, 140, true, true, true, 6, true]));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// A page that makes elements for each picture leaves a hundred megabytes to the garbage collector.
#[test]
fn labels_stay_while_they_say_the_same() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    let found = browser.value(
        "import('/tracks.js').then(({ label }) => {
            const place = document.createElement('div');
            const track = (id) => ({
                id, name: `worker ${id}`, number: String(id), kind: 'thread', parent: null, used: 0, begin: 0, end: 1,
                children: [], folded: false, level: 1, side: 0, counter: null, isPinned: false,
            });
            const tracks = [1, 2, 3, 4, 5].map(track), edges = new Map();
            let chosen = null, first = 0;
            const layout = () => ({ seen: () => tracks.slice(first, first + 4).map((track, at) => ({ track, at: at + first, y: 24 * at })) });
            const shown = () => (label(place, layout(), chosen, edges), [...place.children]);
            const isRight = () => {
                const fresh = document.createElement('div');
                label(fresh, layout(), chosen, edges);
                return fresh.innerHTML === place.innerHTML;
            };
            const stay = (before, now) => now.filter((label) => before.includes(label)).length;
            const begin = shown(), again = shown();
            first = 1;
            const scrolled = shown();
            const found = { again: stay(begin, again), scrolled: stay(again, scrolled), tops: scrolled.map(({ style }) => style.top), isRight: isRight() };
            const changes = {
                name: (track) => (track.name = 'other'), number: (track) => (track.number = '9'), kind: (track) => (track.kind = 'process'),
                part: (track) => (track.kind = 'counter'), level: (track) => (track.level = 2), used: (track) => (track.used = 5e6),
                children: (track) => (track.children = [track]), folded: (track) => (track.folded = true), note: (track) => (track.kind = 'note'),
                pinned: (track) => ([track.kind, track.isPinned] = ['thread', true]), heading: (track) => (track.id = null),
                counter: (track) => ([track.id, track.used, track.counter] = [3, 0, { unit: 'ns', least: 0, most: 9 }]),
                edges: () => edges.set(3, [0, 8]), higher: () => edges.set(3, [0, 16]), unit: (track) => (track.counter.unit = 'bytes'),
                chosen: (track) => (chosen = track), other: () => (chosen = tracks[1]),
            };
            found.changed = Object.entries(changes).map(([name, change]) => {
                const before = shown();
                change(tracks[2]);
                return [name, 4 - stay(before, shown()), isRight()];
            });
            return found;
        })",
    );
    assert_eq!(found["again"], 4);
    assert_eq!((&found["scrolled"], &found["isRight"]), (&object!(3), &object!(true)));
    assert_eq!(found["tops"], object!(["72px", "48px", "24px", "0px"]));
    for change in found["changed"].as_array().unwrap() {
        let made = if change[0] == "other" { 2 } else { 1 };
        assert_eq!((&change[1], &change[2]), (&object!(made), &object!(true)), "{change}");
    }
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn columns_that_are_alike_are_painted_as_each_by_itself() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    let wrong = browser.value(
        "Promise.all(['pixels', 'classes'].map((name) => import(`/${name}.js`))).then(([{ paint }, { CLASSES, patterns }]) => {
            const [count, width, stride, lines] = [CLASSES.length, 61, 64, 40];
            let seed = 1;
            const random = (most) => (seed = (seed * 1664525 + 1013904223) % 2 ** 32) % most;
            const wrong = [];
            for (let round = 0; round < 200; round++) {
                const sums = new Float32Array(width * count), [top, height] = [random(lines) - 8, 1 + random(20)];
                for (let column = 0; column < width; column++) {
                    if (column > 0) sums.copyWithin(column * count, (column - 1) * count, column * count);
                    if (random(3) === 0) sums[column * count + Math.floor(random(99) * count / 99)] = random(100) / 300;
                }
                const image = new Uint32Array(stride * lines), kept = new Uint8Array(width * count);
                paint(image, stride, top, height, width, sums, patterns(), kept);
                const expected = new Uint32Array(stride * lines), heights = new Uint8Array(width * count);
                for (let column = 0; column < width; column++) {
                    const [one, of] = [new Uint32Array(stride * lines), new Uint8Array(count)];
                    // The pattern depends on the place.
                    const turned = patterns().map((pattern) => pattern.map((_, at) => pattern[(at & 12) | ((at + column) & 3)]));
                    paint(one, stride, top, height, 1, sums.slice(column * count, (column + 1) * count), turned, of);
                    for (let line = 0; line < lines; line++) expected[line * stride + column] = one[line * stride];
                    heights.set(of, column * count);
                }
                if (String(image) !== String(expected) || String(kept) !== String(heights)) wrong.push(round);
            }
            return wrong;
        })",
    );
    assert_eq!(wrong, object!([]));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// Each bucket of each track has a run of its own, and there are more tracks and pixels than fit.
#[test]
fn a_picture_of_any_size_is_asked_for_once() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    let rounds = browser.value(
        "Promise.all(['tiles', 'picture'].map((name) => import(`/${name}.js`))).then(async ([{ Tiles }, { Picture }]) => {
            const real = window.fetch;
            window.fetch = async (path, { body }) => {
                const { rows, first, count } = JSON.parse(body);
                const answer = new Uint32Array(rows.length * (2 + 7 * count));
                for (const [place, row] of rows.entries()) {
                    const at = place * (2 + 7 * count);
                    answer.set([row, count], at);
                    for (let bucket = 0; bucket < count; bucket++) answer.set([first + bucket, 1], at + 2 + 7 * bucket);
                }
                return new Response(answer);
            };
            const rounds = [];
            for (const [tracks, width] of [[30, 1280], [126, 5731], [171, 5731], [340, 3840]]) {
                const tiles = new Tiles(() => {}, (error) => { throw error; });
                const view = { from: 1e9 + 7, to: 1e9 + 7 + width * 1023 };
                const picture = Object.assign(Object.create(Picture.prototype), { tiles, view, pixels: { width } });
                const seen = Array.from({ length: tracks }, (_, id) => ({ track: { id } }));
                const asked = async () => {
                    for (let round = 0; round < 12; round++) {
                        picture.expect({ seen: () => seen });
                        if (!tiles.isBusy) return round;
                        while (tiles.isBusy) await new Promise((done) => setTimeout(done));
                    }
                    return Infinity;
                };
                const times = [await asked()];
                for (let pan = 0; pan < 4; pan++) {
                    [view.from, view.to] = [view.from, view.to].map((time) => time + width * 102);
                    times.push(await asked());
                }
                const shift = picture.shift(width, tracks);
                rounds.push({ tracks, shift, first: times[0], pans: Math.max(...times.slice(1)) });
            }
            window.fetch = real;
            return rounds;
        })",
    );
    for one in rounds.as_array().unwrap() {
        let is_few = |name: &str| one[name].as_u64().is_some_and(|rounds| rounds <= 10);
        assert!(is_few("first") && is_few("pans"), "{one}");
    }
    // What fits is as fine as its pixels are.
    assert_eq!(rounds[0]["shift"], 9);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// A row has another field before the answer of the one before has come.
#[test]
fn answers_of_what_a_row_was_before_are_not_kept() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    let kept = browser.value(
        "Promise.all(['tiles', 'api', 'sides'].map((name) => import(`/${name}.js`))).then(async ([{ Tiles }, { series }, { SERIES }]) => {
            const [real, held] = [window.fetch, []];
            window.fetch = () => new Promise((answer) => held.push(() => answer(new Response(Uint32Array.from([0, 1, 7, 1, 0, 0, 0, 0, 0])))));
            const tiles = new Tiles(() => {}, (error) => { throw error; });
            [SERIES, SERIES + 1].forEach((row) => [series.set(row, { number: 1, gone: () => {} }), tiles.known.set(row, 0)]);
            [SERIES, SERIES + 1].forEach((row) => tiles.get(row, 0, 100, 0));
            const asked = tiles.ask();
            tiles.drop(SERIES);
            while (held.length < 2) await new Promise((done) => setTimeout(done));
            held.forEach((answer) => answer());
            await asked;
            const first = [...tiles.kept.tiles.keys()].map((key) => Number(key.split(' ')[0]) - SERIES);
            tiles.get(SERIES, 0, 100, 0);
            const again = tiles.ask();
            while (held.length < 3) await new Promise((done) => setTimeout(done));
            held[2]();
            await again;
            window.fetch = real;
            return [first, tiles.kept.tiles.size, tiles.refused.size];
        })",
    );
    assert_eq!(kept, object!([[1], 2, 0]));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn a_server_that_ends_during_an_answer_is_waited_for() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    let found = browser.value(
        "import('/api.js').then(async ({ ask, rows, series, Unreachable }) => {
            const real = window.fetch;
            const failing = (error) => async () => {
                const body = () => Promise.reject(error);
                return { ok: true, status: 200, json: body, arrayBuffer: body };
            };
            const { SERIES } = await import('/sides.js');
            series.set(SERIES, { number: 1, gone: () => {} });
            const asked = { shift: 0, first: 0, count: 512 };
            const asks = [() => ask('state'), () => rows({ ...asked, rows: [1] }), () => rows({ ...asked, rows: [SERIES] })];
            const found = [];
            for (const error of [new TypeError('network error'), new DOMException('', 'AbortError')]) {
                window.fetch = failing(error);
                for (const one of asks) found.push(await one().then(() => 'an answer', (error) => error instanceof Unreachable || error.name));
            }
            window.fetch = real;
            return found;
        })",
    );
    assert_eq!(found, object!([true, true, true, "AbortError", "AbortError", "AbortError"]));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
