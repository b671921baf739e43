//! What earlier starts of a session have written, and recorders that were killed, is part of the session's
//! size. Of this, only what nothing has changed since is removed.

use crate::background::{Background, Holder, Pilot};
use crate::harness::{self, Json, Printed, RunExt};
use crate::permissions::{as_member, shared};
use crate::soak::size;
use crate::{counted, is_running};
use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use tracewing_testing::{Cause, am_root, is_root, signal, skip, wait_until};

const MOST: u64 = 1 << 20;
const OPTIONS: &str = "-e pilot:* --sub-buffers 2 --sub-buffer-size 8K";

fn created() -> Background {
    let sessions = Background::new();
    sessions.succeeds(&format!("session create web {OPTIONS} --total-size 1M -o traces"));
    sessions
}

fn traces(sessions: &Background) -> PathBuf {
    sessions.folder().join("traces")
}

fn archives(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of.join("archives")).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_dir() && path.file_name().unwrap().as_encoded_bytes()[0] != b'.');
    paths.sort_unstable();
    paths
}

/// Writes until a recorder has so many archives.
fn fill(pilot: &mut Pilot, recorder: &Path, least: usize) {
    wait_until("there are archives", || {
        pilot.emit(1000);
        archives(recorder).len() >= least
    });
}

fn kill(sessions: &Background, channel: &str) {
    let row = sessions.channel("web", channel);
    let pid = row["recorder"].as_u64().unwrap() as u32;
    let lock = Path::new(row["folder"].as_str().unwrap()).join(".tracewing.lock");
    signal(pid, libc::SIGKILL);
    wait_until("it is gone", || !is_running(pid));
    // Its other threads may end later than its first one.
    let lock = fs::File::open(lock).unwrap();
    wait_until("they are gone", || flock(&lock, FlockOperation::NonBlockingLockShared).is_ok());
}

#[test]
fn all_starts_together_are_bounded() {
    let sessions = created();
    let mut pilot = Pilot::start(&sessions);
    let mut folders = Vec::new();
    let mut has_removed = false;
    let mut round = 0;
    // How much a start has left by then depends on the machine.
    while round < 6 || !has_removed || folders.first().is_some_and(|first: &PathBuf| first.exists()) {
        assert!(round < 20, "nothing is left of the first start, and what was removed is said");
        let folder = sessions.start("web");
        fill(&mut pilot, &folder.join("main"), 2);
        let all = size(&traces(&sessions));
        assert!(all <= MOST + MOST / 2, "{all} bytes in round {round}");
        let removed = sessions.channel("web", "main");
        match round % 2 {
            0 => kill(&sessions, "main"),
            _ => {
                let notes = sessions.succeeds("session stop web").notes();
                let says = notes.contains("web/main: removed of earlier recorders: ");
                has_removed |= says && removed["removed_bytes"].as_u64() > Some(0);
                assert!(!notes.contains("never removed"), "{notes}");
            }
        }
        folders.push(folder);
        round += 1;
    }
    let [.., before, last] = &folders[..] else { panic!("{folders:?}") };
    assert!(last.join("main").exists() && !archives(&before.join("main")).is_empty());
    assert!(counted(last) > 0);
}

#[test]
fn what_others_have_made_or_changed_stays() {
    let sessions = created();
    let mut pilot = Pilot::start(&sessions);
    let foreign = traces(&sessions).join("mine");
    let first = sessions.start("web");
    fill(&mut pilot, &first.join("main"), 4);
    sessions.succeeds("session stop web");
    let all = archives(&first.join("main"));
    // Like a start, an archive by its name, a link in the place of one, an added and a changed file.
    for copy in
        [foreign.join("main/archives/20200101T000000Z-1"), all[0].with_file_name("20200101T000000Z-9")]
    {
        fs::create_dir_all(&copy).unwrap();
        fs::copy(all[0].join("tracewing.json"), copy.join("tracewing.json")).unwrap();
    }
    let moved = sessions.folder().join("moved");
    fs::rename(&all[0], &moved).unwrap();
    symlink(&moved, &all[0]).unwrap();
    fs::write(all[1].join("notes"), "mine").unwrap();
    fs::write(all[2].join("tracewing.json"), "{}").unwrap();
    fs::write(first.join("notes"), "mine").unwrap();
    let sizes = || {
        [&foreign, &moved, &all[1], &all[2], &all[0].with_file_name("20200101T000000Z-9")].map(|at| size(at))
    };
    let before = sizes();
    let mut said = String::new();
    for _ in 0..5 {
        let started = sessions.succeeds("session start web");
        said += &started.notes();
        let folder = PathBuf::from(started.text().trim_end());
        fill(&mut pilot, &folder.join("main"), 2);
        sessions.succeeds("session stop web");
    }
    assert_eq!(sizes(), before);
    assert!(before.iter().all(|bytes| *bytes > 0) && all[0].is_symlink() && first.join("notes").exists());
    assert!(
        archives(&first.join("main")).len() == 4,
        "the others are gone: {:?}",
        archives(&first.join("main"))
    );
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(said.contains("never removed") && said.contains(&name(&all[1])), "{said}");
}

#[test]
fn recorders_that_replace_killed_ones_share_the_size() {
    let sessions = created();
    sessions.succeeds(&format!("channel add web other {OPTIONS}"));
    let mut pilot = Pilot::start(&sessions);
    let folder = sessions.start("web");
    let main = sessions.channel("web", "main")["recorder"].clone();
    for number in 1..=6 {
        let own = if number == 1 { "other".to_owned() } else { format!("other~{number}") };
        fill(&mut pilot, &folder.join(&own), 2);
        // For a moment, the one that runs waits for the killed one to remove its oldest archive.
        wait_until("all have no more than they may", || size(&traces(&sessions)) <= MOST + MOST / 2);
        kill(&sessions, "other");
        assert!(sessions.fails("session status web").contains("web/other has ended: it was killed"));
        assert_eq!(sessions.start("web"), folder, "next to the one that runs");
    }
    assert_eq!(sessions.channel("web", "main")["recorder"], main, "it was left alone");
    let other = sessions.channel("web", "other");
    assert!(other["removed"].as_u64() > Some(0) && other["removed_bytes"].as_u64() > Some(0), "{other}");
    let notes = sessions.succeeds("session stop web").notes();
    assert!(notes.contains("web/other: removed of earlier recorders: "), "{notes}");
    assert!(!folder.join("other").exists() && !folder.join("other.log").exists());
}

/// As if the command had been killed when it removed an archive.
#[test]
fn a_removal_that_was_interrupted_is_finished() {
    let sessions = created();
    let mut pilot = Pilot::start(&sessions);
    let first = sessions.start("web");
    fill(&mut pilot, &first.join("main"), 2);
    sessions.succeeds("session stop web");
    let oldest = archives(&first.join("main")).remove(0);
    let hidden = oldest.with_file_name(format!(".{}.removed", oldest.file_name().unwrap().to_str().unwrap()));
    fs::rename(&oldest, &hidden).unwrap();
    fs::remove_file(hidden.join("tracewing.json")).unwrap();
    for _ in 0..6 {
        let folder = sessions.start("web");
        fill(&mut pilot, &folder.join("main"), 2);
        sessions.succeeds("session stop web");
    }
    assert!(!hidden.exists() && !first.exists());
}

/// Starts the session five times, and stops it. What that says.
fn five_starts(sessions: &Background, pilot: &mut Pilot) -> String {
    let mut said = String::new();
    for _ in 0..5 {
        let started = sessions.succeeds("session start web");
        said += &started.notes();
        fill(pilot, &PathBuf::from(started.text().trim_end()).join("main"), 2);
        said += &sessions.succeeds("session stop web").notes();
    }
    said
}

/// The folder is for a group, of which any member can lock it.
#[test]
fn a_lock_that_is_not_a_recorders_keeps_nothing() {
    let (sessions, user) = (Background::new(), if am_root() { as_member() } else { Vec::new() });
    if am_root() {
        shared(&sessions, 0);
    }
    sessions.succeeds(&format!("session create web {OPTIONS} --total-size 1M -o traces"));
    let mut pilot = Pilot::start(&sessions);
    let first = sessions.start("web");
    fill(&mut pilot, &first.join("main"), 2);
    kill(&sessions, "main");
    let _holder = Holder::lock_as(&sessions, &user, &first.join("main"));
    let said = five_starts(&sessions, &mut pilot);
    assert!(!first.exists() && !said.contains("total-size"), "{said}");
}

/// The command that starts the session has too few descriptors to look at what a killed recorder has left, or
/// to begin at all.
#[test]
fn what_cannot_be_looked_at_has_an_unknown_size_and_stays() {
    let sessions = created();
    let mut pilot = Pilot::start(&sessions);
    let first = sessions.start("web");
    fill(&mut pilot, &first.join("main"), 6);
    kill(&sessions, "main");
    let before = archives(&first.join("main"));
    let mut unknown = 0;
    for limit in 5..100 {
        let line = format!("ulimit -Sn {limit} && exec \"$0\" session start web");
        let started = sessions.command(&[], "bash").args(["-c", &line, harness::TRACEWING]).ran();
        let said = started.notes();
        let is_whole = archives(&first.join("main")) == before;
        if started.status.success() && !said.contains("Too many open files") {
            assert!(!is_whole, "the oldest are gone: {said}");
            break;
        }
        assert!(is_whole && said.contains("Too many open files"), "with {limit}: {said}");
        if started.status.success() {
            let why = "with a size that is unknown at present, and not removed: ";
            assert!(said.contains(why), "with {limit}: {said}");
            unknown += 1;
            kill(&sessions, "main");
        }
    }
    assert!(unknown > 0, "each one could look, or could not start");
    sessions.succeeds("session stop web");
    five_starts(&sessions, &mut pilot);
    assert!(!first.exists(), "it was not forgotten");
}

#[test]
fn a_list_of_starts_that_cannot_be_read_is_not_replaced() {
    let sessions = created();
    let mut pilot = Pilot::start(&sessions);
    let first = sessions.start("web");
    fill(&mut pilot, &first.join("main"), 2);
    let list = sessions.folder().join("state/tracewing/sessions/web.starts");
    let text = fs::read(&list).unwrap();
    fs::remove_file(&list).unwrap();
    // A read of it fails, as on a broken disk.
    fs::create_dir(&list).unwrap();
    let status = sessions.ran("session status web --format json --columns channel,removed,removed_bytes");
    let said = status.notes();
    assert!(said.contains("web: cannot read ") && said.contains("web.starts"), "{said}");
    let row = &status.json()["channels"][0];
    assert!(row["channel"] == "main" && row["removed"].is_null() && row["removed_bytes"].is_null(), "{row}");
    assert!(sessions.fails("session stop web").contains("web.starts: Is a directory"));
    assert!(sessions.recorders().is_empty(), "it is stopped all the same");
    assert!(sessions.fails("session start web").contains("web.starts: Is a directory"));
    assert_eq!(fs::read_dir(traces(&sessions)).unwrap().count(), 1, "nothing is left of that start");
    fs::remove_dir(&list).unwrap();
    fs::write(&list, text).unwrap();
    five_starts(&sessions, &mut pilot);
    assert!(!first.exists(), "it was not forgotten");
}

/// A removal takes no room.
#[test]
fn a_channel_is_removed_while_the_list_of_starts_cannot_be_read() {
    let sessions = created();
    sessions.succeeds(&format!("channel add web other {OPTIONS}"));
    sessions.start("web");
    let list = sessions.folder().join("state/tracewing/sessions/web.starts");
    let text = fs::read(&list).unwrap();
    fs::remove_file(&list).unwrap();
    fs::create_dir(&list).unwrap();
    assert!(
        sessions.fails(&format!("channel add web more {OPTIONS}")).contains("web.starts: Is a directory")
    );
    sessions.succeeds("channel remove web other");
    assert_eq!(sessions.recorders().len(), 1);
    assert!(!sessions.succeeds("channel list web").text().contains("other"));
    fs::remove_dir(&list).unwrap();
    fs::write(&list, text).unwrap();
    sessions.succeeds("session stop web");
}

#[test]
fn of_a_torn_list_of_starts_what_is_whole_is_kept() {
    let sessions = created();
    let mut pilot = Pilot::start(&sessions);
    let [first, second] = [(); 2].map(|()| {
        let folder = sessions.start("web");
        fill(&mut pilot, &folder.join("main"), 2);
        sessions.succeeds("session stop web");
        folder
    });
    let list = sessions.folder().join("state/tracewing/sessions/web.starts");
    let copy = |number| list.with_file_name(format!("web.starts.damaged-{number}"));
    let text = fs::read_to_string(&list).unwrap();
    let torn = &text[..text.rfind("{\"folder\"").unwrap() + 20];
    fs::write(&list, torn).unwrap();
    let row = &sessions.ran("session status web --format json").json()["channels"][0];
    assert!(row["removed"].is_null() && row["removed_bytes"].is_null(), "as it stands, it is unknown: {row}");
    let said = sessions.succeeds("session start web").notes();
    assert!(said.contains("has mistakes; 1 start of it can be read"), "{said}");
    assert!(said.contains(copy(1).to_str().unwrap()) && said.lines().count() == 1, "{said}");
    assert_eq!(fs::read_to_string(copy(1)).unwrap(), torn);
    assert!(!sessions.succeeds("session stop web").notes().contains("mistakes"), "it is said once");
    five_starts(&sessions, &mut pilot);
    assert!(!first.exists(), "it was not forgotten");
    assert!(!archives(&second.join("main")).is_empty(), "what is not listed is not removed");
    fs::write(&list, "nonsense").unwrap();
    let said = sessions.succeeds("session start web").notes();
    assert!(
        said.contains("0 starts of it can be read") && said.contains(copy(2).to_str().unwrap()),
        "{said}"
    );
    sessions.succeeds("session destroy web");
    assert!(copy(1).exists() && copy(2).exists());
}

#[test]
fn what_is_put_into_a_killed_recorders_trace_stays() {
    let sessions = created();
    let mut pilot = Pilot::start(&sessions);
    let first = sessions.start("web");
    fill(&mut pilot, &first.join("main"), 2);
    kill(&sessions, "main");
    let all = archives(&first.join("main"));
    let notes = all.last().unwrap().join("user/notes");
    fs::write(&notes, "mine").unwrap();
    let said = five_starts(&sessions, &mut pilot);
    let name = all.last().unwrap().file_name().unwrap().to_str().unwrap();
    assert!(said.contains("never removed") && said.contains(name), "{said}");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "mine");
    assert!(!all[0].exists(), "the others are gone");
}

/// Mounts something, where this may be done.
fn mounts(what: &[&str], at: &Path) -> bool {
    Command::new("mount").args(what).arg(at).status().unwrap().success()
}

fn unmount(at: &Path) {
    assert!(Command::new("umount").arg(at).status().unwrap().success());
}

#[test]
fn what_is_mounted_in_a_trace_stays() {
    if !is_root() {
        return;
    }
    let sessions = created();
    let mut pilot = Pilot::start(&sessions);
    let first = sessions.start("web");
    fill(&mut pilot, &first.join("main"), 2);
    kill(&sessions, "main");
    let (precious, at) =
        (sessions.folder().join("precious"), archives(&first.join("main"))[0].join("user/index"));
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("uid0_0.idx"), "mine").unwrap();
    if !mounts(&["--bind", precious.to_str().unwrap()], &at) {
        return skip(Cause::Listed("no namespaces"), "nothing can be mounted");
    }
    let said = five_starts(&sessions, &mut pilot);
    unmount(&at);
    assert!(precious.join("uid0_0.idx").exists() && said.contains("never removed"), "{said}");
}

#[test]
fn what_is_on_a_disk_that_is_not_mounted_is_not_forgotten() {
    if !is_root() {
        return;
    }
    let sessions = created();
    let (disk, traces) = (sessions.folder().join("disk"), traces(&sessions));
    fs::create_dir_all(&disk).unwrap();
    fs::create_dir_all(&traces).unwrap();
    let bind = ["--bind", disk.to_str().unwrap()];
    if !mounts(&["-t", "tmpfs", "none"], &disk) || !mounts(&bind, &traces) {
        return skip(Cause::Listed("no namespaces"), "nothing can be mounted");
    }
    let mut pilot = Pilot::start(&sessions);
    let first = sessions.start("web");
    fill(&mut pilot, &first.join("main"), 4);
    sessions.succeeds("session stop web");
    unmount(&traces);
    let said = five_starts(&sessions, &mut pilot);
    assert!(said.contains("cannot be removed at present") && said.contains("is not mounted there"), "{said}");
    assert!(mounts(&bind, &traces) && first.exists());
    five_starts(&sessions, &mut pilot);
    assert!(!first.exists(), "it is removed like what was always there");
    unmount(&traces);
    unmount(&disk);
}
