//! Code that programs compile at run time: it has the names that the programs' perf maps give it, and only
//! those of maps that are the programs' own.

use std::fs;

use tracewing_testing::am_root;

use crate::harness::{Printed, RunExt, of};
use crate::recorded::{Recording, record};
use crate::{by_function, can_sample, compiled, is_about, json, outside_kernel, rows};

/// A recording of `crates/profile/tests/programs/generated.c`, which has ended; its map is removed.
fn generated(arguments: &[&str]) -> Option<Recording> {
    let folder = tempfile::tempdir().unwrap();
    if !can_sample() {
        return None;
    }
    let program = compiled(folder.path(), "generated", &[])?;
    let recording = record(&["--profile", "499"], &[&[program.to_str().unwrap()], arguments].concat());
    fs::remove_file(recording.stdout.trim()).unwrap();
    Some(recording)
}

#[test]
fn code_has_the_names_of_its_perf_map() {
    let Some(recording) = generated(&["0.6"]) else { return };
    let found = json(&[], &recording.trace());
    let own = outside_kernel(&found);
    let (long, short) = (own["long_work(int)"], own["short_work"]);
    assert!(is_about(long, long + short, 0.75), "{own:?}");
    assert!((long + short) * 10 >= own.values().sum::<u64>() * 9, "{own:?}");
    let of_jit = |row: &&serde_json::Value| row["object"] == "[jit]";
    assert_eq!(rows(&found, "profile").iter().filter(of_jit).count(), 2, "{found}");
    // Names come before samples: each part of the recording has them.
    let middle =
        by_function(&json(&["--from", "+0.1s", "--to", "+0.4s"], &recording.trace()), "self_samples");
    assert!(middle["short_work"] < short && middle.contains_key("long_work(int)"), "{middle:?}");
    recording.compare_with_babeltrace2();
}

#[test]
fn a_map_of_another_user_is_not_used() {
    if !am_root() {
        tracewing_testing::skip(tracewing_testing::Cause::Root, "only root can give files away");
        return;
    }
    let Some(recording) = generated(&["0.2", "12345"]) else { return };
    assert!(recording.stderr.contains("belongs to another user (12345)"), "{}", recording.stderr);
    let printed = of(&recording.trace(), &["profile"]).ran();
    assert!(printed.text().contains("[anon]") && !printed.text().contains("_work"), "{}", printed.text());
}
