//! A recording is seen while its index is made: what has been read is exact, and the rest is said to be
//! unread.

use crate::cdp::Browser;
use crate::client::{Viewer, command};
use crate::live::{compare, compare_with_opened};
use crate::switches::{PERIOD, write_switches};
use serde_json::{Value, json as object};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use tracewing_testing::{installed, signal, wait_until};

/// Switches on each CPU: reading them takes much longer than until something is shown.
const COUNT: u64 = 150_000;

/// A recording, which is removed with this value.
struct Recorded(tempfile::TempDir);

impl Recorded {
    fn new() -> Self {
        Self::of(COUNT)
    }

    /// One with so many switches on each CPU.
    fn of(count: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_switches(&folder.path().join("trace"), count);
        Recorded(folder)
    }

    fn trace(&self) -> PathBuf {
        self.0.path().join("trace")
    }

    /// A viewer that has just begun to read it.
    fn view(&self) -> Viewer {
        let home = tempfile::tempdir().unwrap();
        Viewer::of(command(&self.trace(), home.path(), &["--no-open"]), home)
    }
}

/// The thread of a viewer that makes the index: it does nothing until this value is dropped.
struct Stopped(i32);

impl Stopped {
    /// Stops it once something of the recording is known.
    fn of(viewer: &Viewer) -> Self {
        Self::at(viewer, "", "filling")
    }

    /// The one of the recording whose answers are below a path.
    fn at(viewer: &Viewer, path: &str, name: &str) -> Self {
        wait_until("something is known", || {
            let state = viewer.ask(&format!("{path}state"), "{}");
            assert!(state["phase"] == "indexing" || !state["filling"].is_null(), "it was too fast: {state}");
            state["filling"]["known"].as_u64() > Some(0) && state["filling"]["has_outline"] == true
        });
        let thread =
            fs::read_dir(format!("/proc/{}/task", viewer.child.id())).unwrap().flatten().find(|thread| {
                fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
            });
        let thread = thread.expect("it has not ended").file_name();
        let thread: i32 = thread.to_str().unwrap().parse().unwrap();
        for request in [libc::PTRACE_SEIZE, libc::PTRACE_INTERRUPT] {
            // SAFETY: the thread is one of a child; these requests take no pointer.
            assert_eq!(unsafe { libc::ptrace(request, thread, 0, 0) }, 0);
        }
        // SAFETY: `waitpid` may be called without a place for the state.
        assert_eq!(unsafe { libc::waitpid(thread, std::ptr::null_mut(), libc::__WALL) }, thread);
        Stopped(thread)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // SAFETY: this thread stopped it, and reaps it if it has been killed; neither call takes a place.
        unsafe {
            if libc::ptrace(libc::PTRACE_DETACH, self.0, 0, 0) != 0 {
                libc::waitpid(self.0, std::ptr::null_mut(), libc::__WALL);
            }
        }
    }
}

fn state(viewer: &Viewer) -> Value {
    viewer.ask("state", "{}")
}

fn wait_for_all(viewer: &Viewer) {
    wait_until("all has been read", || {
        let state = state(viewer);
        assert_eq!(state["why"], Value::Null);
        state["filling"].is_null()
    });
}

/// The status of the answer to a question.
fn status(viewer: &Viewer, path: &str, asked: &Value) -> u16 {
    viewer.post(path, &[&format!("Cookie: {}", viewer.cookie())], &asked.to_string()).0
}

/// Index files below a viewer's home.
fn indexes(viewer: &Viewer) -> Vec<PathBuf> {
    let folder = fs::read_dir(viewer.home.path().join(".cache/tracewing/view"));
    folder.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[test]
fn answers_are_exact_up_to_what_was_read_and_none_after_it() {
    let recorded = Recorded::new();
    let viewer = recorded.view();
    let stopped = Stopped::of(&viewer);
    let now = state(&viewer);
    let (known, length) = (now["filling"]["known"].as_u64().unwrap(), now["length"].as_u64().unwrap());
    assert!(now["phase"] == "ready" && now["is_live"] == false && known < length, "{now}");
    let (done, total) = (now["filling"]["done"].as_u64().unwrap(), now["filling"]["total"].as_u64().unwrap());
    let size = |name: &str| fs::metadata(recorded.trace().join(name)).unwrap().len();
    assert!(0 < done && done < total && total == size("kernel_0") + size("kernel_1"), "{now}");
    let parts = now["outline"]["parts"].as_array().unwrap();
    assert_eq!(parts.iter().map(|part| part.as_u64().unwrap()).sum::<u64>(), total);

    // All questions about a window are answered if it has been read, and refused otherwise.
    let tracks = viewer.ask("tracks", "{}");
    let row_of = |kind: &str| {
        let mut rows = tracks["rows"].as_array().unwrap().iter();
        rows.find(|row| row["kind"] == kind && row["id"].as_u64() < Some(1 << 31)).unwrap()["id"].clone()
    };
    let (cpu, thread) = (row_of("cpu"), row_of("thread"));
    let questions = |to: u64| {
        [
            ("statistics", object!({ "from": 0, "to": to })),
            (
                "longest",
                object!({ "from": 0, "to": to, "rows": [cpu], "classes": [1], "state": null, "most": 9 }),
            ),
            ("durations", object!({ "from": 0, "to": to, "what": "waits" })),
            ("classes", object!({ "from": 0, "to": to })),
            ("calls", object!({ "from": 0, "to": to })),
            ("tasks", object!({ "from": 0, "to": to })),
            ("flame", object!({ "from": 0, "to": to })),
            ("graph", object!({ "from": 0, "to": to })),
            ("why", object!({ "from": 0, "to": to, "row": thread })),
        ]
    };
    for ((path, read), (_, unread)) in questions(known).into_iter().zip(questions(known + 1)) {
        assert_eq!((path, status(&viewer, path, &read)), (path, 200));
        assert_eq!((path, status(&viewer, path, &unread)), (path, 425));
    }
    let at = |time, step| status(&viewer, "at", &object!({ "row": cpu, "time": time, "step": step }));
    assert_eq!([at(known - 50_000, 0), at(known, 0), at(known, 1), at(known, -1)], [200, 425, 425, 200]);

    // What was certain stays as it is.
    let of_live = viewer.ask("live", &object!({ "rows": [cpu, thread] }).to_string());
    assert_eq!(of_live["filling"]["known"], known);
    let certain: Vec<u64> =
        of_live["certain"].as_array().unwrap().iter().map(|time| time.as_u64().unwrap()).collect();
    assert!(certain.iter().all(|time| 0 < *time && *time <= known), "{certain:?}");
    let sums = |row: &Value, to: u64| {
        viewer.ask("statistics", &object!({ "from": 0, "to": to, "rows": [row] }).to_string())
    };
    let before = [sums(&cpu, certain[0]), sums(&thread, certain[1])];
    let open = viewer.ask("statistics", &object!({ "from": 0, "to": known }).to_string())["open"].as_u64();
    assert!(open > Some(0), "the sleeper may wake up");
    let found = viewer.ask("at", &object!({ "row": cpu, "time": known, "step": -1 }).to_string());
    assert_eq!((&found["is_open"], &found["to"]), (&object!(true), &object!(known)));

    drop(stopped);
    wait_for_all(&viewer);
    assert_eq!([sums(&cpu, certain[0]), sums(&thread, certain[1])], before);
    for (path, asked) in questions(length) {
        assert_eq!((path, status(&viewer, path, &asked)), (path, 200));
    }
    let all = state(&viewer);
    assert!(all["outline"].is_null() && all["length"].as_u64().unwrap().abs_diff(length) <= PERIOD, "{all}");
    compare(&viewer, &Viewer::start(&recorded.trace()));
    assert_eq!(indexes(&viewer).len(), 1);
}

/// The share of the overlay's pixels in a part of its width that something is drawn on.
fn covered(browser: &mut Browser, from: f64, to: f64) -> f64 {
    covered_between(browser, [from, to], ["0", "canvas.height"])
}

/// The same between two heights.
fn covered_between(browser: &mut Browser, [from, to]: [f64; 2], [top, bottom]: [&str; 2]) -> f64 {
    let script = format!(
        "(() => {{
            const canvas = document.querySelector('#overlay');
            const [left, right] = [Math.round({from} * canvas.width), Math.round({to} * canvas.width)];
            const [top, bottom] = [{top}, Math.min({bottom}, canvas.height)];
            const {{ data }} = canvas.getContext('2d').getImageData(left, top, right - left, bottom - top);
            return data.filter((value, at) => at % 4 === 3 && value > 0).length / (data.length / 4);
        }})()"
    );
    browser.value(&script).as_f64().unwrap()
}

/// Notes where lines over uncertain states are drawn.
const LINES: &str = "(() => {
    const { prototype } = CanvasRenderingContext2D;
    const real = prototype.fillRect;
    window.lines = [];
    prototype.fillRect = function (x, y, width, height) {
        if (this.canvas.id === 'overlay' && width === 1 && height === 18) lines.push(x);
        real.call(this, x, y, width, height);
    };
})()";

#[test]
fn the_page_shows_what_was_read_and_fills_itself() {
    if !installed(&["chromium"]) {
        return;
    }
    let recorded = Recorded::new();
    let viewer = recorded.view();
    let stopped = Stopped::of(&viewer);
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    let filling = browser.value("tracewing.filling()");
    let (known, length) = (filling["known"].as_f64().unwrap(), browser.value("tracewing.view.length"));
    assert_eq!(known as u64, state(&viewer)["filling"]["known"].as_u64().unwrap());
    assert_eq!(length.as_u64(), state(&viewer)["length"].as_u64());
    let share = known / length.as_f64().unwrap();
    assert!(covered(&mut browser, share + 0.02, 1.0) > 0.99, "the unread part is not covered");
    assert!(covered(&mut browser, 0.0, share - 0.02) < 0.5, "the part that was read is covered");
    let about = browser.value("document.querySelector('#about').textContent");
    assert!(about.as_str().unwrap().contains("% read · "), "{about}");
    assert_eq!(browser.value("document.querySelector('#live').hidden"), true);
    // Lines over what is not certain end where nothing was read.
    browser.value(&format!("void ({LINES})"));
    browser.wait("Object.keys(tracewing.live().certain).length > 3");
    browser.hover(700.0, 400.0);
    browser.wait("lines.length > 0");
    browser.settle();
    let end = browser.value(&format!("{share} * document.querySelector('#overlay').clientWidth"));
    let last = browser.value("Math.max(...lines)").as_f64().unwrap();
    assert!(last < end.as_f64().unwrap() && last > end.as_f64().unwrap() - 8.0, "{last} {end}");
    // The outline is where nothing was read.
    let outline = browser.value(
        "import('/filling.js').then(({ Filling }) => {
            const facts = { filling: { known: 0, done: 1, total: 4, has_outline: true }, why: null, outline: { from: -10, to: 90, parts: [7, 1, 3, 3, 0] } };
            const made = new Filling(facts);
            return [[...made.columns(10, 0.1)], made.words(), made.isUnread(0)];
        })",
    );
    let columns = [7.0, 2.0, 2.0, 6.0, 6.0, 6.0, 6.0, 0.0, 0.0, 0.0].map(|bytes: f64| bytes / 7.0);
    assert_eq!(outline[1], "25 % read");
    assert_eq!(outline[2], true);
    let found: Vec<f64> =
        outline[0].as_array().unwrap().iter().map(|share| share.as_f64().unwrap()).collect();
    assert_eq!(found.len(), columns.len());
    let most = found.iter().zip(columns).all(|(found, expected)| (found - expected).abs() < 0.6);
    assert!(most && found[0] == 1.0 && found[9] == 0.0, "{found:?}");

    // Statistics of the whole time come when it has been read.
    browser.key("m");
    browser.wait("document.querySelector('#details .lost')?.textContent.includes('has been read yet')");
    assert_eq!(browser.value("document.querySelector('#notice').hidden"), true);
    assert_eq!(browser.value("document.querySelector('#details table')"), Value::Null);
    // A state that lasts is not said to be over.
    drop(stopped);
    browser.wait("tracewing.filling() === null");
    browser.wait("document.querySelector('#details table td')?.textContent.length > 0");
    browser.settle();
    assert_eq!(browser.value("document.querySelector('#details .open')"), Value::Null);
    let about = browser.value("document.querySelector('#about').textContent").as_str().unwrap().to_owned();
    assert!(!about.contains("read") && about.starts_with(&format!("{} events", "300,000")), "{about}");
    assert!(covered(&mut browser, share + 0.02, 1.0) < 0.5, "it is still covered");

    browser.key("Escape");
    compare_with_opened(&viewer, &mut browser);
    assert!(browser.errors.iter().all(|error| error.contains("425")), "{:?}", browser.errors);
}

/// Whether what was not read of A and of B is covered, and nothing else, with both at their begin.
fn compare_covers(browser: &mut Browser) {
    let first_of_b = "tracewing.shown().findIndex(({ side }) => side === 1)";
    let places = [
        ["24".to_owned(), format!("{first_of_b} * 24")],
        [format!("({first_of_b} + 1) * 24"), "tracewing.shown().length * 24".to_owned()],
    ];
    let all = browser.value("tracewing.view.length").as_f64().unwrap();
    for (side, [top, bottom]) in places.iter().enumerate() {
        let length = browser.value(&format!("tracewing.compare().lengths[{side}]")).as_f64().unwrap();
        let known = browser.value(&format!("tracewing.filling({side})?.known"));
        let known = known.as_f64().unwrap_or(length);
        let mut share = |from: f64, to: f64| covered_between(browser, [from / all, to / all], [top, bottom]);
        assert!(share(0.0, known - all * 0.01) < 0.5, "the part of {side} that was read is covered");
        if known < length {
            let unread = share(known + all * 0.01, length - all * 0.01);
            assert!(unread > 0.99, "the unread part of {side} is not covered: {unread}");
        }
        if length < all {
            assert!(share(length + all * 0.01, all) < 0.5, "{side} is covered after its end");
        }
    }
}

#[test]
fn two_recordings_are_seen_as_they_fill() {
    if !installed(&["chromium"]) {
        return;
    }
    // The second one is read while the first one is stopped.
    let (first, second) = (Recorded::new(), Recorded::of(4 * COUNT));
    let (home, other) = (tempfile::tempdir().unwrap(), second.trace());
    let arguments = ["--no-open", other.to_str().unwrap()];
    let viewer = Viewer::of(command(&first.trace(), home.path(), &arguments), home);
    let of_first = Stopped::of(&viewer);
    let of_second = Stopped::at(&viewer, "other/", "filling B");
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    browser.wait("Object.keys(tracewing.live().certain).some((row) => row >= 2 ** 33)");
    browser.settle();
    for (side, path) in ["state", "other/state"].into_iter().enumerate() {
        let known = browser.value(&format!("tracewing.filling({side}).known"));
        assert_eq!(known, viewer.ask(path, "{}")["filling"]["known"]);
    }
    let about =
        "['#first', '#second'].map((id) => document.querySelector(id).textContent.includes('% read'))";
    assert_eq!(browser.value(about), object!([true, true]));
    compare_covers(&mut browser);
    // Statistics come when both have been read; until then, what is read of B is exact.
    browser.key("m");
    browser.wait("document.querySelector('#details .lost')?.textContent.includes('has been read yet')");
    browser.key("Escape");
    drop(of_second);
    browser.wait("tracewing.filling(1) === null");
    browser.settle();
    assert_eq!(browser.value(about), object!([true, false]));
    compare_covers(&mut browser);
    browser.key("m");
    browser.wait("document.querySelector('#details .lost')?.textContent.includes('has been read yet')");
    drop(of_first);
    browser.wait("tracewing.filling(0) === null");
    browser.wait("document.querySelector('#details table td')?.textContent.length > 0");
    assert_eq!(browser.value("document.querySelector('#details .open')"), Value::Null);
    assert_eq!(browser.value(about), object!([false, false]));
    browser.key("Escape");
    compare_with_opened(&viewer, &mut browser);
    assert!(browser.errors.iter().all(|error| error.contains("425")), "{:?}", browser.errors);
    assert_eq!(indexes(&viewer).len(), 2);
}

#[test]
fn what_is_known_stays_when_the_index_cannot_be_written() {
    let recorded = Recorded::new();
    let whole = Viewer::start(&recorded.trace());
    let size = fs::metadata(&indexes(&whole)[0]).unwrap().len();
    let home = tempfile::tempdir().unwrap();
    let said = home.path().join("said");
    let mut command = command(&recorded.trace(), home.path(), &["--no-open"]);
    command.stderr(fs::File::create(&said).unwrap());
    let limit = libc::rlimit { rlim_cur: size / 2, rlim_max: size / 2 };
    let limited = move || {
        // SAFETY: the limit is a valid one; both calls may be made before a program is executed.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
        }
        Ok(())
    };
    // SAFETY: it makes two system calls and touches no memory.
    unsafe { command.pre_exec(limited) };
    let mut viewer = Viewer::of(command, home);
    wait_until("it fails", || state(&viewer)["why"].is_string() || state(&viewer)["phase"] == "failed");
    let now = state(&viewer);
    assert_eq!(now["phase"], "ready", "{now}");
    let (known, length) = (now["filling"]["known"].as_u64().unwrap(), now["length"].as_u64().unwrap());
    assert!(now["why"].as_str().unwrap().contains("too large") && known < length, "{now}");
    let asked = object!({ "from": 0, "to": known / 2 }).to_string();
    let sums = |viewer: &Viewer| -> Vec<Value> {
        let rows = viewer.ask("statistics", &asked)["rows"].clone();
        rows.as_array().unwrap().iter().map(|sums| sums["classes"].clone()).collect()
    };
    assert_eq!(sums(&viewer).len(), sums(&whole).len());
    assert_eq!(indexes(&viewer), Vec::<PathBuf>::new());
    if installed(&["chromium"]) {
        let mut browser = Browser::start(1280, 720);
        browser.open(&viewer.address());
        browser
            .wait("document.querySelector('#ended').textContent.startsWith('It cannot be read further: ')");
        let about = browser.value("document.querySelector('#about').textContent");
        assert!(about.as_str().unwrap().starts_with("only "), "{about}");
        assert_eq!(browser.value("tracewing.filling().known").as_u64(), Some(known));
        assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    }
    signal(viewer.child.id(), libc::SIGINT);
    assert!(viewer.child.wait().unwrap().success());
    let said = fs::read_to_string(&said).unwrap();
    assert_eq!(said.matches("the page shows what was read until then").count(), 1, "{said}");
}

#[test]
fn a_viewer_that_ends_while_it_reads_leaves_no_index() {
    let recorded = Recorded::new();
    for ends in [libc::SIGINT, libc::SIGKILL] {
        let mut viewer = recorded.view();
        let stopped = Stopped::of(&viewer);
        signal(viewer.child.id(), ends);
        drop(stopped);
        let status = viewer.child.wait().unwrap();
        assert_eq!(status.success(), ends == libc::SIGINT);
        let is_index = |path: &PathBuf| path.file_name().unwrap().len() == 16;
        assert!(!indexes(&viewer).iter().any(is_index), "{:?}", indexes(&viewer));
        // What a killed one leaves is neither used nor kept.
        let again = Viewer::within(&recorded.trace(), viewer.give_home(), 0);
        assert_eq!(state(&again)["events"].as_u64(), Some(2 * COUNT));
        assert_eq!(indexes(&again).len(), 1);
    }
}
