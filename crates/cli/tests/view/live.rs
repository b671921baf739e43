//! A recording is viewed while it is made: the page follows it, and the index that is left is that of the
//! complete recording.

use crate::cdp::{Browser, opened_with};
use crate::client::{self, Viewer};
use crate::harness::{self, traceable};
use serde_json::{Value, json as object};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tracewing_testing::{NOBODY, Printed, RunExt, installed, is_root, signal, wait_until};

/// A recording of a shell that works, sleeps and starts programs by turns, until it is stopped or dropped.
pub struct Recorded {
    pub folder: tempfile::TempDir,
    recorder: Child,
}

const SCRIPT: &str =
    "while test ! -e stop; do sleep 0.01; : $((n += 1)); test $((n % 20)) != 0 || ls > /dev/null; done";

impl Recorded {
    fn new() -> Self {
        Self::of(SCRIPT)
    }

    fn of(script: &str) -> Self {
        Self::with(&[], script)
    }

    /// The same with options of the recorder.
    pub fn with(options: &[&str], script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = harness::tracewing();
        command.current_dir(folder.path()).args(["record", "-q", "-o", "t"]).args(options);
        command.args(["--", "sh", "-c", script]);
        tracewing_testing::with_default_signals(&mut command);
        let recorder = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let this = Self { folder, recorder };
        let pid = this.recorder.id().to_string();
        wait_until("the recording begins", || {
            harness::tracewing().args(["top", &pid, "--for", "0"]).output().unwrap().status.success()
        });
        this
    }

    pub fn trace(&self) -> PathBuf {
        self.folder.path().join("t")
    }

    pub fn ends(&mut self) {
        fs::write(self.folder.path().join("stop"), "").unwrap();
        assert!(self.recorder.wait().unwrap().success());
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = fs::write(self.folder.path().join("stop"), "");
        let _ = self.recorder.wait();
    }
}

/// The viewer of a recording that runs.
pub fn follow(named: &Path, arguments: &[&str]) -> Viewer {
    Viewer::with(named, tempfile::tempdir().unwrap(), 0, arguments)
}

fn live(viewer: &Viewer) -> Value {
    viewer.ask("live", "{}")
}

/// Waits until there have been so many more indexes.
pub fn wait_for_more(viewer: &Viewer, count: u64) {
    let first = live(viewer)["version"].as_u64().unwrap();
    wait_until("the index grows", || {
        let now = live(viewer);
        assert_eq!(now["is_live"], true, "{now}");
        now["version"].as_u64().unwrap() >= first + count
    });
}

pub fn wait_for_end(viewer: &Viewer) {
    wait_until("the viewer sees the end", || live(viewer)["is_live"] == false);
    assert_eq!(live(viewer)["why"], Value::Null);
}

/// The runs of each row in a picture.
fn runs(bytes: &[u8]) -> BTreeMap<u64, Vec<Vec<u8>>> {
    let number = |at: usize| u64::from(u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()));
    let (mut rows, mut at) = (BTreeMap::new(), 0);
    while at < bytes.len() {
        let (row, count) = (number(at), number(at + 4) as usize);
        let runs = bytes[at + 8..at + 8 + count * 28].chunks(28).map(<[u8]>::to_vec).collect();
        assert_eq!(rows.insert(row, runs), None);
        at += 8 + count * 28;
    }
    rows
}

/// All that two viewers say of their recordings, in some windows.
pub fn compare(one: &Viewer, other: &Viewer) {
    assert_eq!(one.ask("state", "{}"), other.ask("state", "{}"));
    let tracks = one.ask("tracks", "{}");
    assert_eq!(tracks, other.ask("tracks", "{}"));
    let rows: Vec<u64> =
        tracks["rows"].as_array().unwrap().iter().map(|row| row["id"].as_u64().unwrap()).collect();
    assert!(rows.len() > 4, "{tracks}");
    let length = one.ask("state", "{}")["length"].as_u64().unwrap();
    let mut random = 1_u64;
    for _ in 0..12 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (from, shift) = ((random >> 33) % length, 8 + (random >> 20) % 22);
        let to = from + 1 + (random >> 13) % (length - from);
        let window = object!({ "from": from, "to": to }).to_string();
        assert_eq!(one.ask("statistics", &window), other.ask("statistics", &window), "{window}");
        for some in rows.chunks(200) {
            let asked = object!({ "shift": shift, "first": from >> shift, "count": 300, "rows": some });
            let all = [one, other].map(|viewer| runs(&viewer.bytes("rows", &asked.to_string())));
            let [here, there] = &all;
            for row in some {
                let of = |all: &BTreeMap<u64, Vec<Vec<u8>>>| all.get(row).cloned();
                let track = tracks["rows"].as_array().unwrap().iter().find(|track| track["id"] == *row);
                assert_eq!(of(here), of(there), "row {row} of {from} in 2^{shift} ns: {track:?}");
            }
            assert_eq!(here.len(), there.len());
            let asked = object!({ "from": from, "to": to, "rows": some }).to_string();
            assert_eq!(one.ask("spans", &asked), other.ask("spans", &asked), "{asked}");
        }
    }
}

/// What a page draws is what one draws that is opened now.
pub fn compare_with_opened(viewer: &Viewer, browser: &mut Browser) {
    browser.settle();
    let link = browser.value("tracewing.view.link()").as_str().unwrap().to_owned();
    let drawn = browser.value("tracewing.drawn()");
    browser.open(&format!("http://127.0.0.1:{}/#{link}", viewer.port));
    browser.settle();
    let again = browser.value("tracewing.drawn()");
    let common: Vec<_> = again.as_object().unwrap().iter().filter(|(row, _)| !drawn[row].is_null()).collect();
    assert!(common.len() > 3, "{}", common.len());
    for (row, heights) in common {
        assert_eq!(&drawn[row], heights, "row {row}");
    }
}

/// Counts questions for notes.
const NOTES: &str = "(() => {
    const real = window.fetch;
    window.notesAsked = 0;
    window.fetch = (path, asked) => {
        window.notesAsked += Number(path === '/api/notes');
        return real(path, asked);
    };
})()";

#[test]
fn notes_are_read_again_when_the_recording_begins_earlier() {
    if !traceable() || !installed(&["chromium"]) {
        return;
    }
    let recorded = Recorded::new();
    let viewer = follow(&recorded.trace(), &["--follow"]);
    let mut browser = Browser::start(1280, 720);
    browser.call("Page.enable", object!({}));
    let source = format!("{}; {NOTES}", crate::compare::CHANGED);
    browser.call("Page.addScriptToEvaluateOnNewDocument", object!({ "source": source }));
    browser.open(&viewer.address());
    let version = browser.value("tracewing.live().version");
    browser.wait(&format!("tracewing.live().version > {version}"));
    // It may begin earlier by itself.
    let before = browser.value("notesAsked");
    assert_ne!(before, 0);
    browser.value("void (changes['/api/live'] = (answer) => { answer.begin_ns = '7'; })");
    browser.wait(&format!("notesAsked > {before} + 1"));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn the_index_that_is_left_is_that_of_the_complete_recording() {
    if !traceable() {
        return;
    }
    let mut recorded = Recorded::new();
    let viewer = follow(&recorded.trace(), &["--follow"]);
    wait_for_more(&viewer, 4);
    // What was drawn as certain stays as it is.
    let length = live(&viewer)["length"].as_u64().unwrap();
    let tracks = viewer.ask("tracks", "{}");
    // Rows without a place yet get other numbers.
    let is_placed = |row: &&Value| row["kind"] == "thread" && row["id"].as_u64() < Some(1 << 31);
    let mut busy: Vec<&Value> = tracks["rows"].as_array().unwrap().iter().filter(is_placed).collect();
    busy.sort_by_key(|row| std::cmp::Reverse(row["used"].as_u64()));
    // The shell, or what it has executed last; threads that have ended are certain without limit.
    let last = |row: &Value| {
        let asked = object!({ "rows": [row["id"]] }).to_string();
        Some((row["id"].clone(), viewer.ask("live", &asked)["certain"][0].as_u64()?))
    };
    let (busiest, certain) = busy.into_iter().find_map(last).expect("the shell has not ended");
    assert!(certain <= live(&viewer)["length"].as_u64().unwrap());
    let asked = object!({ "from": 0, "to": certain.min(length), "rows": [busiest] }).to_string();
    let sums = viewer.ask("statistics", &asked);
    recorded.ends();
    wait_for_end(&viewer);
    assert_eq!(viewer.ask("statistics", &asked), sums);
    let after = Viewer::start(&recorded.trace());
    compare(&viewer, &after);
    // The same file would be found by the next viewer.
    let again = Viewer::within(&recorded.trace(), viewer.give_home(), 0);
    compare(&again, &after);
}

#[test]
fn a_running_recording_is_found_by_its_name() {
    if !traceable() {
        return;
    }
    let recorded = Recorded::new();
    let pid = recorded.recorder.id().to_string();
    let viewer = follow(Path::new(&pid), &[]);
    wait_for_more(&viewer, 1);
    assert_eq!(viewer.ask("state", "{}")["inputs"], object!([recorded.trace().canonicalize().unwrap()]));
    let out = client::command(Path::new("no-such-recording"), viewer.home.path(), &["--follow"]).ran();
    assert!(!out.status.success());
}

/// Files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

#[test]
fn a_viewer_that_is_killed_leaves_no_file() {
    if !traceable() {
        return;
    }
    let recorded = Recorded::new();
    for ends in [libc::SIGKILL, libc::SIGINT] {
        let mut viewer = follow(&recorded.trace(), &["--follow"]);
        wait_for_more(&viewer, 2);
        signal(viewer.child.id(), ends);
        viewer.child.wait().unwrap();
        let cache = viewer.home.path().join(".cache");
        assert!(cache.join("tracewing/view").is_dir(), "the index is elsewhere");
        let left = files(&cache);
        assert_eq!(left, Vec::<PathBuf>::new());
    }
}

#[test]
fn another_user_cannot_ask_how_far_it_is() {
    if !traceable() || !is_root() {
        return;
    }
    let recorded = Recorded::new();
    let viewer = follow(&recorded.trace(), &["--follow"]);
    wait_for_more(&viewer, 1);
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}; printf 'POST /api/live HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\n{{}}' >&3; head -1 <&3",
        viewer.port
    );
    let mut other = Command::new("setpriv");
    let user = NOBODY.to_string();
    other.args(["--reuid", &user, "--regid", &user, "--clear-groups", "bash", "-c", &script]);
    assert!(other.ran().text().contains(" 401 "));
}

/// The page's own numbers of what it follows.
fn of_page(browser: &mut Browser, what: &str) -> Value {
    browser.value(&format!("tracewing.live().{what}"))
}

#[test]
fn the_page_follows_pauses_and_says_when_it_has_ended() {
    if !traceable() || !installed(&["chromium"]) {
        return;
    }
    let mut recorded = Recorded::new();
    let viewer = follow(&recorded.trace(), &["--follow"]);
    wait_for_more(&viewer, 1);
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    assert_eq!(of_page(&mut browser, "follows"), true);
    let end = browser.value("tracewing.view.to").as_f64().unwrap();
    browser.wait(&format!("tracewing.view.to > {}", end + 5e8));
    browser.wait("Object.values(tracewing.live().certain).some((time) => time < tracewing.view.to)");
    // What is not certain yet is drawn otherwise, and the states have names.
    browser.wait("[...document.querySelectorAll('.track')].length > 3");

    // Away from the end it stays, while the recording continues.
    browser.key("w");
    browser.wait("!tracewing.live().follows");
    let seen = browser.value("[tracewing.view.from, tracewing.view.to]");
    let length = browser.value("tracewing.view.length").as_f64().unwrap();
    browser.wait(&format!("tracewing.view.length > {}", length + 5e8));
    assert_eq!(browser.value("[tracewing.view.from, tracewing.view.to]"), seen);
    browser.key("l");
    browser.wait("tracewing.live().follows && document.querySelector('#live').ariaPressed === 'true'");
    // It is at the end at once, and moves with it.
    let end = browser.value("tracewing.view.length").as_f64().unwrap();
    browser.wait(&format!("tracewing.view.to > {}", end + 5e8));
    browser.value("document.querySelector('#live').click()");
    browser.wait("!tracewing.live().follows");
    browser.value("document.querySelector('#live').click()");

    recorded.ends();
    browser.wait("document.querySelector('#ended').textContent === 'The recording has ended'");
    assert_eq!(of_page(&mut browser, "isLive"), false);
    browser.wait("document.querySelector('#live').hidden && tracewing.view.to === tracewing.view.length");
    browser.settle();
    assert_eq!(browser.value("tracewing.view.length").as_u64(), viewer.ask("state", "{}")["length"].as_u64());
    compare_with_opened(&viewer, &mut browser);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// A shell that gets another name when it is asked to, and a program that waits all the time. With many
/// processes, those that used little time are folded.
const RENAMED: &str = "mkfifo pipe; cat pipe & while test ! -e rename -a ! -e stop; do sleep 1; done; \
    printf later > /proc/$$/comm; while test ! -e stop; do sleep 1; done; : > pipe; wait";

#[test]
fn names_that_become_known_later_and_states_that_last_reach_the_page() {
    if !traceable() || !installed(&["chromium"]) {
        return;
    }
    let mut recorded = Recorded::of(RENAMED);
    let viewer = follow(&recorded.trace(), &["--follow"]);
    wait_for_more(&viewer, 1);
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    let of = |name: &str, kind: &str| {
        format!("tracewing.shown().find(({{ name, kind }}) => name === '{name}' && kind === '{kind}')")
    };
    browser.wait(&format!("!!{} && !!{}", of("sh", "process"), of("cat", "thread")));
    // What lasts is drawn up to now with its state, as what may still change.
    let waiter = format!("{}.id", of("cat", "thread"));
    // New processes above it may move it out of sight.
    browser.wait(&format!(
        "(() => {{
            tracewing.choose({waiter});
            const id = {waiter}, heights = tracewing.drawn()[id] ?? [], column = heights.length / 14 - 3;
            return heights[column * 14 + 7] > 0 && tracewing.live().certain[id] < tracewing.view.to;
        }})()"
    ));
    browser.value(&format!("tracewing.select({waiter}, Math.floor(tracewing.view.to - 1e6))"));
    browser.wait("!!tracewing.found()");
    assert_eq!(
        browser.value("[tracewing.found().state.class, tracewing.found().is_open]"),
        object!([7, true])
    );

    // The shell gets another name: its process and its thread have it without being opened again.
    fs::write(recorded.folder.path().join("rename"), "").unwrap();
    browser.wait(&format!("!!{} && !!{}", of("later", "process"), of("later", "thread")));
    assert_eq!(browser.value(&format!("!!{}", of("sh", "process"))), false);

    // A link leads to the same process and thread when the recording has ended.
    let number = browser.value(&format!("{}.number", of("later", "process"))).as_str().unwrap().to_owned();
    for kind in ["process", "thread"] {
        browser.value(&format!("tracewing.choose({}.id)", of("later", kind)));
        browser.value("document.activeElement.blur()");
        browser.key("i");
    }
    let pinned =
        "tracewing.shown().filter(({ isPinned }) => isPinned).map(({ kind, number }) => [kind, number])";
    let expected = object!([["process", number], ["thread", number]]);
    browser.wait(&format!("{pinned}.length === 2"));
    let link = browser.value("tracewing.view.link()").as_str().unwrap().to_owned();
    assert!(link.contains(&format!("pin=p{number}.t{number}")), "{link}");
    recorded.ends();
    browser.wait("document.querySelector('#ended').textContent === 'The recording has ended'");
    assert_eq!(browser.value(pinned), expected);
    let again = Viewer::start(&recorded.trace());
    browser.open(&format!("{}&{link}", again.address()));
    assert_eq!(browser.value(pinned), expected);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn what_lasts_while_nothing_happens_is_drawn_up_to_now() {
    if !traceable() || !installed(&["chromium"]) {
        return;
    }
    let mut recorded = Recorded::of("sleep 120 & echo $! > pid; wait; true");
    let viewer = follow(&recorded.trace(), &["--follow"]);
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    let sleeper = "tracewing.shown().find(({ name, kind }) => name === 'sleep' && kind === 'thread')?.id";
    browser.wait(&format!("{sleeper} !== undefined"));
    // Nothing more comes for a while, and the picture still grows.
    let mut last = Value::Null;
    wait_until("nothing happens any more", || {
        let now = live(&viewer);
        let is_quiet = now["events"] == last["events"] && now["length"].as_u64() > last["length"].as_u64();
        last = now;
        is_quiet
    });
    let (events, length) = (&last["events"], last["length"].as_u64().unwrap());
    browser.wait(&format!("tracewing.view.length > {}", length + 2_000_000_000));
    browser.wait(&format!("tracewing.view.to > {}", length + 1_500_000_000));
    assert_eq!(&live(&viewer)["events"], events);
    // It sleeps up to there, as far as is known: lines say so.
    browser.value(&format!("tracewing.choose({sleeper})"));
    browser.wait(&format!(
        "(() => {{
            const id = {sleeper}, heights = tracewing.drawn()[id] ?? [], column = heights.length / 14 - 3;
            return heights[column * 14 + 7] > 0 && tracewing.live().certain[id] < {length};
        }})()"
    ));
    let pid = fs::read_to_string(recorded.folder.path().join("pid")).unwrap();
    signal(pid.trim().parse().unwrap(), libc::SIGTERM);
    recorded.ends();
    wait_for_end(&viewer);
    browser.wait("document.querySelector('#ended').textContent === 'The recording has ended'");
    compare(&viewer, &Viewer::start(&recorded.trace()));
    compare_with_opened(&viewer, &mut browser);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn links_to_what_grows_name_what_lasts() {
    let Some((_viewer, mut browser)) = opened_with(|| Viewer::start(&client::stored("server"))) else {
        return;
    };
    // Each row is found by its name, also when all have other numbers and come in another order.
    let found = browser.value(
        "(async () => {
            const [{ ask }, { toLink, ofLink }] = [await import('/api.js'), await import('/names.js')];
            const { rows } = await ask('tracks');
            const before = new Map(rows.map((row) => [row.id, row]));
            const other = (id) => (id === null ? null : id * 3 + 100);
            // Names of tasks are counted in another order.
            const counted = ({ kind, number }) => (kind === 'tasks' && number !== 'others' ? String(60 - Number(number)) : number);
            const moved = rows.map((row) => ({ ...row, id: other(row.id), parent: other(row.parent), number: counted(row) }));
            const after = new Map(moved.reverse().map((row) => [row.id, row]));
            const links = rows.map(({ id }) => toLink(before, id));
            const isWrong = ({ id }, at) => ofLink(before, links[at]) !== id || ofLink(after, links[at]) !== other(id);
            return {
                links, wrong: rows.filter(isWrong), kinds: [...new Set(rows.map(({ kind }) => kind))],
                numbers: ['4294967295', '5'].map((text) => ofLink(before, text)),
                none: ['p0x', 't', 'b_c0', 'c0_c0', 'q1', ''].map((text) => ofLink(before, text)),
            };
        })()",
    );
    assert_eq!(found["wrong"], object!([]));
    // All CPUs have a number, and so had all rows in earlier links.
    assert_eq!(found["numbers"], object!([u32::MAX, 5]));
    assert_eq!(found["none"], object!([null, null, null, null, null, null]));
    let kinds = found["kinds"].as_array().unwrap();
    for kind in ["cpu", "process", "thread", "task", "tasks", "locks", "events"] {
        assert!(kinds.contains(&kind.into()), "{kinds:?}");
    }
    let mut links: Vec<&str> =
        found["links"].as_array().unwrap().iter().map(|link| link.as_str().unwrap()).collect();
    // Signs that separate the parts of a link, or that `--at` refuses, are in none.
    let is_sign = |sign: u8| sign.is_ascii_alphanumeric() || b"%_~".contains(&sign);
    assert!(links.iter().all(|link| link.bytes().all(is_sign)), "{links:?}");
    let count = links.len();
    links.sort_unstable();
    links.dedup();
    assert_eq!(links.len(), count);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn the_page_knows_how_long_the_recording_is() {
    let Some((_viewer, mut browser)) = opened_with(|| Viewer::start(&client::stored("clerks"))) else {
        return;
    };
    // A wrong time made it long; then all was read again.
    let seen = browser.value(
        "Promise.all([import('/live.js'), import('/window.js')]).then(([{ Live }, { View }]) => {
            const live = Object.create(Live.prototype);
            const view = new View(1000);
            Object.assign(live, { page: { view }, end: 1000, seen: {} });
            const found = [];
            for (const [length, isAll, from, to] of [[1e15, true, 0, 1000], [2000, true, 0, 1e15], [1e15, false, 500, 1500], [3000, false, 9e14, 1e15], [3000, false, 100, 200], [4000, false, 100, 200]]) {
                [view.from, view.to, live.end] = [from, to, view.to];
                live.lasts(length, isAll);
                found.push([view.length, view.from, view.to, live.end <= view.length]);
            }
            return found;
        })",
    );
    let long = 1_000_000_000_000_000_u64;
    let expected = object!([
        [long, 0, long, true],
        [2000, 0, 2000, true],
        [long, 500, 1500, true],
        [3000, 0, 3000, true],
        [3000, 100, 200, true],
        [4000, 100, 200, true],
    ]);
    assert_eq!(seen, expected);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
