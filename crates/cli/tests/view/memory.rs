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
    // Small tiles take much more than their runs.
    let kept = browser.value(
        "import('/tiles.js').then(({ Tiles }) => {
            const tiles = new Tiles(() => {}, () => {});
            for (let at = 0; at < 150000; at++) {
                const words = new Uint32Array(7);
                tiles.keep(`1 12 ${at}`, { words, bytes: new Uint8Array(words.buffer), count: 1 });
                tiles.refuse(`2 12 ${at}`);
            }
            const taken = [...tiles.kept.values()].reduce((sum, { bytes }) => sum + bytes.length + 640, 0);
            return [tiles.kept.size, tiles.bytes === taken, tiles.kept.has('1 12 149999'), tiles.refused.size, tiles.refused.has('2 12 149999')];
        })",
    );
    let most = (64 << 20) / (640 + 28);
    assert_eq!(kept, object!([most, true, true, 10_000, true]));
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
