//! Losses of events are hatched where they are, on every track that may lack something, and nowhere else.

use crate::cdp::opened;
use serde_json::Value;

/// Compares the line at the top of each track with its losses, pixel by pixel. An edge may be a pixel off.
const PIXELS: &str = "async (losses) => {
    const { touches } = await import('/losses.js');
    const overlay = document.querySelector('#overlay');
    // Of a narrow stripe between two pixels, each has a part: red, and not opaque.
    const isRed = (one) => {
        const [red, green, blue, alpha] = [one & 255, (one >> 8) & 255, (one >> 16) & 255, one >>> 24];
        return alpha >= 40 && red > green + 60 && red > blue + 60;
    };
    const { from, to } = tracewing.view;
    const x = (time) => ((time - from) / (to - from)) * overlay.width;
    const found = { hatched: 0, plain: 0, wrong: [] };
    for (const label of document.querySelectorAll('.track')) {
        const track = tracewing.shown()[Number(label.dataset.at)];
        const y = label.getBoundingClientRect().top - overlay.getBoundingClientRect().top + 2;
        if (track.id === null || y < 0 || y >= overlay.height) continue;
        const line = new Uint32Array(overlay.getContext('2d').getImageData(0, y, overlay.width, 1).data.buffer);
        const own = losses.filter((loss) => touches(track, loss)).map((loss) => [x(loss.from), Math.max(x(loss.to), x(loss.from) + 1)]);
        let [isHatched, isWrong] = [false, null];
        for (let at = 0; at < line.length; at++) {
            const isIn = own.some(([left, right]) => left - 1 <= at && at <= right + 1);
            isHatched ||= isRed(line[at]);
            if (isRed(line[at]) && !isIn) isWrong ??= [track.name, at, 'is hatched'];
        }
        // Of six pixels, four have its colour.
        for (const [left, right] of own) {
            const [first, last] = [Math.max(0, Math.ceil(left)), Math.min(line.length, Math.floor(right))];
            const some = line.slice(first, last).filter(isRed).length;
            if (last - first >= 6 && some < (last - first) / 2) isWrong ??= [track.name, first, last, some];
        }
        const isSeen = own.some(([left, right]) => right > 1 && left < line.length - 1);
        if (isSeen && !isHatched) isWrong ??= [track.name, 'is not hatched', own];
        if (isWrong) found.wrong.push(isWrong);
        found[isHatched ? 'hatched' : 'plain']++;
    }
    return found;
}";

#[test]
fn losses_are_hatched_on_every_track_that_they_touch() {
    let Some((viewer, mut browser)) = opened("lossy") else { return };
    let losses = viewer.ask("state", "{}")["losses"].as_array().unwrap().clone();
    assert!(!losses.is_empty());
    let touched = browser.value(
        "import('/losses.js').then(({ touches, lossAt }) => {
            const node = (kind, name = '') => ({ kind, name });
            const kernel = { scope: 'kernel', cpu: 1, from: 5, to: 9, events: 3 }, programs = { ...kernel, scope: 'programs' };
            const kinds = ['heading', 'process', 'thread', 'task', 'functions', 'locks', 'spans', 'events'];
            return [
                kinds.filter((kind) => touches(node(kind), kernel)), kinds.filter((kind) => touches(node(kind), programs)),
                touches(node('cpu', 'CPU 1'), kernel), touches(node('cpu', 'CPU 0'), kernel), touches(node('cpu', 'CPU 1'), programs),
                touches(node('cpu', 'CPU 0'), { ...kernel, cpu: null }), lossAt(node('thread'), [kernel], 7), lossAt(node('thread'), [kernel], 4),
                [kernel, programs].map((loss) => touches({ ...node('heading', 'CPUs'), id: 0xffffffff }, loss)),
            ];
        })",
    );
    let all = ["heading", "process", "thread", "task", "functions", "locks", "spans", "events"];
    let of_kernel = ["heading", "process", "thread", "task", "locks"];
    let said = "3 events of the kernel on CPU 1 missing here";
    let expected = serde_json::json!([of_kernel, all, true, false, false, true, said, null, [true, false]]);
    assert_eq!(touched, expected);
    // The pixels of each track: of the whole recording, and around a loss.
    let of_loss = |loss: &Value| [&loss["from"], &loss["to"]].map(|time| time.as_f64().unwrap());
    let longest =
        losses.iter().map(of_loss).max_by(|one, other| (one[1] - one[0]).total_cmp(&(other[1] - other[0])));
    let [from, to] = longest.unwrap();
    let margin = (to - from).max(1000.0);
    for window in [
        "tracewing.view.set(0, tracewing.view.length)".to_owned(),
        format!("tracewing.view.set({}, {})", from - margin, to + margin),
    ] {
        browser.value(&window);
        browser.settle();
        let asked = format!("({PIXELS})({})", serde_json::json!(losses));
        let found = browser.value(&asked);
        assert_eq!(found["wrong"], serde_json::json!([]), "{window} {losses:?}");
        // Some tracks have a stripe, and some have none.
        assert!(
            found["hatched"].as_u64() > Some(3) && found["plain"].as_u64() > Some(0),
            "{window}: {found}"
        );
    }
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
