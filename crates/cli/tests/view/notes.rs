//! Notes are kept for the user alone, stay text, and go from one recording to another as a file.

use crate::cdp::{Browser, opened};
use crate::client::{Viewer, stored};
use serde_json::{Value, json as object};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use tracewing_testing::wait_until;

const HOSTILE: &str = "<img src=x id=own onerror=alert(1)>\u{202e}\"'&\\ </script>";

fn note(time: u64, text: &str) -> Value {
    object!({ "time": time, "track": null, "text": text })
}

/// The files with notes.
fn files(viewer: &Viewer) -> Vec<PathBuf> {
    let folder = viewer.home.path().join(".local/share/tracewing/view");
    let all = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|end| end == "notes")).collect()
}

#[test]
fn they_are_kept_in_a_private_file_and_come_again() {
    let viewer = Viewer::start(&stored("server"));
    assert_eq!(viewer.ask("notes", "{}"), object!({ "notes": [] }));
    let (one, two) = (note(7, HOSTILE), note(5, "two"));
    let kept = viewer.ask("note", &object!({ "add": [one, two] }).to_string());
    assert_eq!(kept, object!({ "notes": [two, one] }), "in the order of time");
    let [file] = &files(&viewer)[..] else { panic!("{:?}", files(&viewer)) };
    assert_eq!(fs::metadata(file).unwrap().mode() & 0o7777, 0o600);
    assert!(!file.starts_with(stored("server")));
    // Another server of the recording has them; one of another recording has not.
    let Viewer { home, .. } = &viewer;
    let path = home.path().to_owned();
    let copy = tempfile::tempdir().unwrap();
    let status =
        std::process::Command::new("cp").arg("-a").arg(path.join(".local")).arg(copy.path()).status();
    assert!(status.unwrap().success());
    let again = Viewer::within(&stored("server"), copy, 0);
    assert_eq!(again.ask("notes", "{}"), kept);
    // Changed and removed.
    let changed = again.ask("note", &object!({ "remove": [one], "add": [note(7, "seven")] }).to_string());
    assert_eq!(changed, object!({ "notes": [two, note(7, "seven")] }));
    let none = again.ask("note", &object!({ "remove": [two, note(7, "seven")] }).to_string());
    assert_eq!(none, object!({ "notes": [] }));
    let copy = tempfile::tempdir().unwrap();
    let status =
        std::process::Command::new("cp").arg("-a").arg(path.join(".local")).arg(copy.path()).status();
    assert!(status.unwrap().success());
    let other = Viewer::within(&stored("clerks"), copy, 0);
    assert_eq!(other.ask("notes", "{}"), object!({ "notes": [] }));
    // What others could have written is not shown, and a further note erases nothing.
    fs::set_permissions(file, fs::Permissions::from_mode(0o622)).unwrap();
    let cookie = format!("Cookie: {}", viewer.cookie());
    for (path, asked) in [("notes", object!({})), ("note", object!({ "add": [note(9, "nine")] }))] {
        let (status, _, why) = viewer.post(path, &[&cookie], &asked.to_string());
        let why = String::from_utf8_lossy(&why);
        assert!(status >= 500 && why.contains("cannot read notes in "), "{path}: {status} {why}");
    }
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(viewer.ask("notes", "{}"), kept);
}

/// What draws the notes of a window looks at these and no others.
const DRAWN: &str = "Promise.all([import('/notes.js'), import('/tracks.js')]).then(([{ Notes }, { Layout }]) => {
    const rows = new Map();
    for (let id = 0; id < 5000; id++) rows.set(id, { id, kind: 'thread', number: String(id), parent: null, begin: 0, end: 1e9, name: 'x' });
    let walks = 0;
    const values = rows.values.bind(rows);
    rows.values = () => (walks++, values());
    const nodes = [...rows].map(([id, row]) => ({ ...row, children: [] }));
    let scans = 0;
    nodes.findIndex = nodes.find = nodes.indexOf = () => (scans++, -1);
    const layout = new Layout(nodes, 0);
    [layout.top, layout.height] = [24 * 100, 240];
    const notes = new Notes({ rows, compare: null, redraw: () => {}, view: { from: 500, to: 520 } }, document.createElement('div'));
    notes.keep([...Array(1000).keys()].map((time) => ({ time, track: time % 2 ? null : { kind: 'thread', number: String(time % 4 ? 105 : 7), process: '' }, text: 'x' })), 0);
    let looks = 0;
    notes.lists[0] = notes.lists[0].map((note) => new Proxy(note, { get: (of, key) => (looks += key === 'time', of[key]) }));
    const context = document.createElement('canvas').getContext('2d');
    for (let turn = 0; turn < 3; turn++) notes.draw(context, layout, (time) => (time - 500) * 10, 200, 240);
    // Those of all tracks, and those of the track that is seen.
    return { times: notes.boxes.map(([, , , , note]) => note.time), looks, walks, scans };
})";

#[test]
fn drawing_costs_what_is_seen() {
    let Some((_viewer, mut browser)) = opened("clerks") else { return };
    let drawn = browser.value(DRAWN);
    let expected: Vec<u64> = (500..=520).filter(|time| time % 2 == 1 || time % 4 == 2).collect();
    assert_eq!(drawn["times"], object!(expected));
    assert!(drawn["looks"].as_u64() < Some(300), "{drawn}");
    assert_eq!((&drawn["walks"], &drawn["scans"]), (&Value::from(1), &Value::from(0)));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn two_viewers_lose_none_of_each_others_notes() {
    let first = Viewer::start(&stored("server"));
    // Another server with the same folder of data, and a page of the same recording twice.
    let home = tempfile::tempdir().unwrap();
    std::fs::remove_dir(home.path()).unwrap();
    std::os::unix::fs::symlink(first.home.path(), home.path()).unwrap();
    let trace = stored("server");
    let second = Viewer::with(&trace, home, 0, &[trace.to_str().unwrap()]);
    let ways = [(&first, "note"), (&second, "note"), (&second, "other/note")];
    std::thread::scope(|scope| {
        for (writer, (viewer, path)) in ways.into_iter().enumerate() {
            scope.spawn(move || {
                let cookie = format!("Cookie: {}", viewer.cookie());
                for time in 0..60 {
                    let body = object!({ "add": [note(time, &writer.to_string())] }).to_string();
                    let (status, _, why) = viewer.post(path, &[&cookie], &body);
                    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&why));
                }
            });
        }
    });
    for (viewer, path) in [(&first, "notes"), (&second, "notes"), (&second, "other/notes")] {
        assert_eq!(viewer.ask(path, "{}")["notes"].as_array().unwrap().len(), 180, "{path}");
    }
    assert_eq!(files(&first).len(), 1);
}

#[test]
fn they_are_few_and_short() {
    let viewer = Viewer::start(&stored("server"));
    let cookie = format!("Cookie: {}", viewer.cookie());
    let add = |notes: Vec<Value>| viewer.post("note", &[&cookie], &object!({ "add": notes }).to_string()).0;
    assert_eq!(add(vec![note(1, &"x".repeat(2000))]), 200);
    assert_eq!(add(vec![note(1, &"x".repeat(2001))]), 400);
    assert_eq!(add((0..999).map(|time| note(time, "x")).collect()), 200);
    assert_eq!(add(vec![note(1, "one more")]), 507);
    assert_eq!(viewer.ask("notes", "{}")["notes"].as_array().unwrap().len(), 1000);
    // The same one twice is one.
    assert_eq!(add(vec![note(998, "x")]), 200);
    // A user without the token changes nothing.
    let nothing = object!({ "remove": [note(1, "x")] }).to_string();
    assert_eq!((viewer.post("note", &[], &nothing).0, viewer.post("notes", &[], "{}").0), (401, 401));
    let foreign = [&*cookie, "Origin: http://127.0.0.1:1"];
    assert_eq!(viewer.post("note", &foreign, &nothing).0, 403);
    assert_eq!(viewer.ask("notes", "{}")["notes"].as_array().unwrap().len(), 1000);
}

#[test]
fn they_are_written_drawn_saved_and_read() {
    let Some((viewer, mut browser)) = opened("server") else { return };
    let write = |browser: &mut Browser, text: &str| {
        browser.wait("document.activeElement.tagName === 'TEXTAREA'");
        browser.value(&format!("void (document.activeElement.value = {})", Value::from(text)));
        browser.value("[...document.querySelectorAll('#details button')].find((one) => one.textContent === 'Keep').click()");
        browser.wait("!!document.querySelector('#details [aria-label=Notes]')");
    };
    // One of everything, one of a track.
    browser.key("o");
    write(&mut browser, HOSTILE);
    browser.key("Escape");
    browser.key("ArrowDown");
    browser.key("ArrowDown");
    let row = browser.value("tracewing.chosen()");
    browser.key("o");
    write(&mut browser, "of a track");
    let notes = viewer.ask("notes", "{}")["notes"].as_array().unwrap().clone();
    assert_eq!(notes.len(), 2, "{notes:?}");
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    assert!(notes.iter().all(|note| note["time"].as_u64().unwrap().abs_diff(length / 2) <= 1), "{notes:?}");
    let tracks = viewer.ask("tracks", "{}");
    let track = tracks["rows"].as_array().unwrap().iter().find(|track| track["id"] == row).unwrap();
    let own = notes.iter().find(|note| note["text"] == "of a track").unwrap();
    assert_eq!(
        (&own["track"]["kind"], &own["track"]["number"]),
        (&track["kind"], &track["number"]),
        "{own} {track}"
    );
    // They are in the picture where their time is, and stay text.
    browser.wait("tracewing.isIdle() && tracewing.notes().length === 2");
    let middle = browser.value("document.querySelector('#overlay').clientWidth / 2").as_f64().unwrap();
    let drawn = browser.value("tracewing.notes()");
    for note in drawn.as_array().unwrap() {
        assert!((note["left"].as_f64().unwrap() - middle).abs() < 4.0, "{note}");
    }
    assert_eq!(browser.value("document.querySelector('#own')"), Value::Null);
    assert!(
        browser.value("document.querySelector('#details').textContent.includes('<img src=x id=own')") == true
    );
    // A click on one changes it.
    let place = browser.value("(({ left, top }) => { const box = document.querySelector('#overlay').getBoundingClientRect(); return [box.left + left + 3, box.top + top + 4]; })(tracewing.notes().find(({ text }) => text === 'of a track'))");
    browser.click(place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    write(&mut browser, "changed");
    let texts = "tracewing.notes().map(({ text }) => text).sort()";
    browser.wait("tracewing.notes().some(({ text }) => text === 'changed')");
    assert_eq!(browser.value(texts), object!([HOSTILE, "changed"]));
    // Saved, removed, and read again from the file.
    let saved = tempfile::tempdir().unwrap();
    let allowed = object!({ "behavior": "allow", "downloadPath": saved.path() });
    browser.call("Browser.setDownloadBehavior", allowed);
    let press = |browser: &mut Browser, text: &str| {
        browser.value(&format!("[...document.querySelectorAll('#details button')].find((one) => one.textContent === '{text}').click()"));
    };
    press(&mut browser, "Save as a file");
    let file = saved.path().join("notes.json");
    wait_until("the notes are saved", || {
        fs::read(&file).is_ok_and(|text| serde_json::from_slice::<Value>(&text).is_ok())
    });
    let all = viewer.ask("notes", "{}");
    let text: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(text, all);
    viewer.ask("note", &object!({ "remove": all["notes"] }).to_string());
    browser.open(&viewer.address());
    browser.wait("tracewing.isIdle() && tracewing.notes().length === 0");
    browser.value("document.querySelector('#notes').click()");
    let choose = |browser: &mut Browser, file: &std::path::Path| {
        let document = browser.call("DOM.getDocument", object!({}));
        let asked =
            object!({ "nodeId": document["root"]["nodeId"], "selector": "#details input[type=file]" });
        let input = browser.call("DOM.querySelector", asked);
        browser.call("DOM.setFileInputFiles", object!({ "files": [file], "nodeId": input["nodeId"] }));
    };
    choose(&mut browser, &file);
    browser.wait("tracewing.notes().length === 2");
    assert_eq!(viewer.ask("notes", "{}"), all);
    // What is no file of notes is refused, and said.
    let of = |notes: Value| object!({ "notes": notes }).to_string();
    let negative = of(object!([{ "time": -1, "track": null, "text": "x" }]));
    let no_text = of(object!([note(1, "one"), { "time": 2, "track": null, "text": 2 }]));
    let too_long = of(object!([note(1, "one"), note(2, &"x".repeat(2001))]));
    let no_list = of(object!(7));
    let texts = ["{}", "[]", &no_list, &negative, &no_text, &too_long, "<b id=own>"];
    for text in texts {
        fs::write(&file, text).unwrap();
        choose(&mut browser, &file);
        browser.wait(
            "document.querySelector('#notice span').textContent.startsWith('This is no file of notes')",
        );
        browser.value("void (document.querySelector('#notice span').textContent = '')");
    }
    assert_eq!(viewer.ask("notes", "{}"), all);
    assert_eq!(browser.value("document.querySelector('#own')"), Value::Null);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
