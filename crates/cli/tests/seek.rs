//! Slices of traces through the cache of indexes, and `tracewing list --follow` during `tracewing record`.

#[path = "../../trace/tests/common/mod.rs"]
mod common;
mod harness;
mod recorded;

use common::{Packet, class, tick, write_trace};
use harness::{Printed, RunExt};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// What `tracewing list` prints of events 30,000 to 30,019 of a stream that has a packet for every 10.
fn slice(trace: &Path, cache: &Path) -> String {
    let mut command = harness::tracewing();
    command.args(["list", "--from", "+30000us", "--to", "+30019us"]).arg(trace).env("XDG_CACHE_HOME", cache);
    command.succeeds().text()
}

/// A stream of packets of 10 events, 1 us apart; the events' numbers begin at `first`.
fn stream(first: u32) -> Vec<u8> {
    let packet = |seq: u32| {
        let event = |index: u32| tick(u64::from(seq * 10 + index) * 1000, first + seq * 10 + index);
        let begin = u64::from(seq) * 10_000;
        let packet = Packet { seq: seq.into(), ..Packet::new(1, 0, begin, begin + 9000) };
        packet.bytes(&(0..10).map(event).collect::<Vec<_>>())
    };
    (0..4000).flat_map(packet).collect()
}

fn kept(cache: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(cache.join("tracewing/index")).unwrap();
    files.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn an_index_is_kept_and_never_believed() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, cache) = (folder.path().join("trace"), folder.path().join("cache"));
    write_trace(&trace, &class(Some(1), 1_000_000_000), &[("s", stream(0))]);
    let expected = slice(&trace, &cache);
    assert_eq!(expected.lines().count(), 20);
    assert!(expected.lines().next().unwrap().contains("n = 30000"), "{expected}");

    let files = kept(&cache);
    assert_eq!(files.len(), 1);
    let index = fs::read(&files[0]).unwrap();
    assert_eq!(index.len(), 64 + 16 + 4000 * 72);
    // The third of its packets is overwritten: a reader that uses the index does not see it.
    let mut damaged = stream(0);
    let time = fs::metadata(trace.join("s")).unwrap().modified().unwrap();
    let size = damaged.len() / 4000;
    damaged[3 * size..4 * size].fill(0xFF);
    fs::write(trace.join("s"), damaged).unwrap();
    fs::File::options().write(true).open(trace.join("s")).unwrap().set_modified(time).unwrap();
    assert_eq!(slice(&trace, &cache), expected);
    fs::write(trace.join("s"), stream(0)).unwrap();

    for place in (0..index.len()).step_by(9001).chain(0..80) {
        let mut bytes = index.clone();
        bytes[place] ^= 0x10;
        fs::write(&files[0], &bytes[..if place % 2 == 0 { bytes.len() } else { place }]).unwrap();
        assert_eq!(slice(&trace, &cache), expected, "byte {place}");
        if place > 5000 && place % 3 > 0 {
            continue;
        }
        assert_eq!(fs::read(&files[0]).unwrap().len(), index.len(), "it is made anew");
    }

    // Another stream in its place: an index of another time is no index.
    fs::write(trace.join("s"), stream(1_000_000)).unwrap();
    let other = slice(&trace, &cache);
    assert!(other.lines().next().unwrap().contains("n = 1030000"), "{other}");
    assert_eq!(kept(&cache).len(), 1, "an old index is replaced");
}

#[test]
fn without_a_cache_everything_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    write_trace(&trace, &class(Some(1), 1_000_000_000), &[("s", stream(0))]);
    fs::write(folder.path().join("file"), "").unwrap();
    assert_eq!(slice(&trace, &folder.path().join("file")).lines().count(), 20);
}

#[test]
fn a_recording_is_followed_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let shop = recorded::build(&["-p", "shop"]).join("shop");
    let mut recorder = recorded::recorder(folder.path(), &[]);
    let recorder = recorder.arg(shop).args(["--seconds", "2"]).spawn().unwrap();
    let trace = folder.path().join("t");
    while !trace.join("user/metadata").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut follow = harness::tracewing();
    let follow = follow.args(["list", "--follow"]).arg(&trace).stdout(Stdio::piped()).stderr(Stdio::piped());
    let followed = follow.spawn().unwrap().wait_with_output().unwrap();
    assert!(followed.status.success(), "{}", followed.notes());
    assert!(recorder.wait_with_output().unwrap().status.success());
    let all = harness::tracewing().arg("list").arg(&trace).ran();
    let [seen, all] =
        [&followed.stdout, &all.stdout].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(all.lines().count() > 1000, "{all}");
    // After the stamps and distances, which differ where an event came too late to be in order.
    let events = |text: &str| {
        let mut events: Vec<_> =
            text.lines().map(|line| line.split_once(") ").unwrap().1.to_owned()).collect();
        events.sort_unstable();
        events
    };
    assert!(
        events(&seen) == events(&all),
        "{} lines, expected {}",
        seen.lines().count(),
        all.lines().count()
    );
}
