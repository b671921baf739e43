//! `tracewing index`: what it prints and leaves, and which users may read it. What an index says is tested in
//! its package.

#[path = "../../trace/tests/common/mod.rs"]
mod common;
mod harness;

use common::{Packet, class, tick, write_trace};
use harness::{Printed, RunExt};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tracewing_testing::{NOBODY, is_root};

/// A stored recording in a folder of its own, so that it can be changed.
fn stored(name: &str, folder: &Path) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recordings").join(name);
    let to = folder.join("trace");
    let status = Command::new("cp").arg("-r").arg(&from).arg(&to).status().unwrap();
    assert!(status.success());
    to
}

fn index(trace: &Path, folder: &Path) -> Command {
    let mut command = harness::of(trace, &["index"]);
    command.arg("--index").arg(folder);
    command
}

/// The only file of a folder.
fn only(folder: &Path) -> PathBuf {
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    file.clone()
}

#[test]
fn it_is_made_once_and_anew_where_it_does_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, kept) = (stored("server", folder.path()), folder.path().join("a/b"));
    let text = index(&trace, &kept).succeeds().text();
    assert!(text.contains("made in") && text.contains("% of the trace"), "{text}");
    let file = only(&kept);
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(fs::metadata(&kept).unwrap().mode() & 0o7777, 0o700);
    let bytes = fs::read(&file).unwrap();
    let is_made = || index(&trace, &kept).succeeds().text().contains("made in");
    assert!(!is_made());

    for place in (0..bytes.len()).step_by(bytes.len() / 20) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        fs::write(&file, &damaged).unwrap();
        assert!(is_made(), "byte {place}");
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    assert!(is_made());

    // The recording has changed.
    let metadata = trace.join("user/metadata");
    let text = fs::read(&metadata).unwrap();
    fs::write(&metadata, [&text[..], b"\n"].concat()).unwrap();
    assert!(is_made());
    assert!(!is_made());
    only(&kept);
}

#[test]
fn the_cache_folder_is_the_default_and_a_trace_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let trace = stored("clerks", folder.path());
    let cache = folder.path().join("cache");
    harness::of(&trace, &["index"]).env("XDG_CACHE_HOME", &cache).succeeds();
    only(&cache.join("tracewing/view"));
    let refused = index(&trace, &trace.join("index")).ran();
    assert!(!refused.status.success());
    assert!(refused.notes().contains("would be read as a part"), "{}", refused.notes());
}

#[test]
fn another_user_can_neither_plant_nor_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let trace = stored("clerks", folder.path());
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = index(&trace, &open).ran();
    assert!(!refused.status.success(), "others can write the folder");
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);

    // A link in the place of the index, or of the folder, is not followed.
    let kept = folder.path().join("kept");
    index(&trace, &kept).succeeds();
    let (file, victim) = (only(&kept), folder.path().join("victim"));
    fs::write(&victim, "precious").unwrap();
    fs::remove_file(&file).unwrap();
    symlink(&victim, &file).unwrap();
    index(&trace, &kept).succeeds();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!fs::symlink_metadata(&file).unwrap().is_symlink());
    let (linked, empty) = (folder.path().join("linked"), folder.path().join("empty"));
    fs::create_dir(&empty).unwrap();
    symlink(&empty, &linked).unwrap();
    assert!(!index(&trace, &linked).ran().status.success());

    if is_root() {
        std::os::unix::fs::chown(&file, Some(NOBODY), None).unwrap();
        let text = index(&trace, &kept).succeeds().text();
        assert!(text.contains("made in"), "another user's is not believed: {text}");
        assert_eq!(fs::metadata(&file).unwrap().uid(), 0);
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::chown(&kept, Some(NOBODY), None).unwrap();
        assert!(!index(&trace, &kept).ran().status.success());
    }
}

#[test]
fn stopped_it_leaves_nothing_and_the_dead_are_cleaned_up() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, kept) = (folder.path().join("trace"), folder.path().join("kept"));
    let packet = |seq: u64| {
        let event = |number: u64| tick(seq * 10_000 + number * 10, number as u32);
        let begin = seq * 10_000;
        let packet = Packet { seq, ..Packet::new(1, 0, begin, begin + 9_999) };
        packet.bytes(&(0..1000).map(event).collect::<Vec<_>>())
    };
    let stream: Vec<u8> = (0..3000).flat_map(packet).collect();
    write_trace(&trace, &class(Some(1), 1_000_000_000), &[("s", stream)]);
    // It is ignored where the tests run in a shell's background.
    let mut command = index(&trace, &kept);
    let mut child = tracewing_testing::with_default_signals(&mut command).spawn().unwrap();
    tracewing_testing::wait_until("an index begins", || {
        fs::read_dir(&kept).is_ok_and(|mut files| files.next().is_some())
    });
    tracewing_testing::signal(child.id(), libc::SIGINT);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 0);

    // The viewer makes one, too.
    let mut viewer = harness::of(&trace, &["view", "--no-open"]);
    viewer.arg("--index").arg(&kept).env("XDG_DATA_HOME", folder.path().join("data")).stdout(Stdio::null());
    let mut child = tracewing_testing::with_default_signals(&mut viewer).spawn().unwrap();
    tracewing_testing::wait_until("an index begins", || fs::read_dir(&kept).unwrap().next().is_some());
    tracewing_testing::signal(child.id(), libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 0);

    let mut child = index(&trace, &kept).spawn().unwrap();
    tracewing_testing::wait_until("an index begins", || fs::read_dir(&kept).unwrap().next().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let abandoned = only(&kept);
    index(&trace, &kept).succeeds();
    assert!(!abandoned.exists());
    only(&kept);
}
