//! What the page keeps is bounded, and what a picture needs is used again for the next one.

use crate::cdp::Browser;
use crate::client::{Viewer, stored};
use serde_json::json as object;
use tracewing_testing::installed;

#[test]
fn tiles_have_a_limit_and_pictures_use_their_memory_again() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("server"));
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
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
        "most": true, "least": true, "refused": [10_000, true], "gone": 0, "again": [true, true, true, true], "next": true, "left": 0,
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
