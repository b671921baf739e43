//! Recordings of earlier versions, whose metadata and `tracewing.json` have other names for some things, are
//! read as today's.

mod harness;

use harness::{Json, RunExt};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A recording of an earlier version.
fn stored() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recordings/clerks")
}

fn read(command: &[&str], trace: &Path) -> Value {
    harness::tracewing().args(command).args(["--format", "json"]).arg(trace).ran().json()
}

#[test]
fn tracewing_json_has_its_present_names() {
    let text = fs::read_to_string(stored().join("tracewing.json")).unwrap();
    let earlier: Value = serde_json::from_str(&text).unwrap();
    let report = read(&["info"], &stored());
    let present = &report["recordings"][0];
    assert_eq!(present["options"], json!(["--locks", "--functions look_up"]));
    for (earlier, name) in [
        (&earlier["clock"]["frequency"], "/clock/frequency_hz"),
        (&earlier["clock"]["stopped"], "/clock/stopped_cycles"),
        (&earlier["clock"]["begin"], "/clock/begin"),
        (&earlier["processes"][0]["joined"], "/processes/0/joined_cycles"),
        (&earlier["user_streams"][1]["begin"], "/user_streams/1/begin_cycles"),
        (&earlier["kernel_streams"][1]["lost"], "/kernel_streams/1/lost_events"),
    ] {
        assert!(!earlier.is_null(), "{name}");
        assert_eq!(present.pointer(name), Some(earlier), "{name}");
    }
}

#[test]
fn extracts_say_the_same_by_their_earlier_keys() {
    let folder = tempfile::tempdir().unwrap();
    let extract = folder.path().join("extract");
    let options = ["extract", "--tid", "27146", "--from", "+900ms", "--exclude", "sched_waking"];
    let output = harness::tracewing().args(options).args([&stored(), &extract]).ran();
    assert!(output.status.success(), "{output:?}");
    let (report, threads) = (read(&["info"], &extract), read(&["threads"], &extract));
    let mut renamed = 0;
    for trace in ["kernel", "user"] {
        let path = extract.join(trace).join("metadata");
        let text = fs::read_to_string(&path).unwrap();
        let earlier = text
            .replace("extract_begin_ns", "part_begin")
            .replace("extract_end_ns", "part_end")
            .replace("extract_", "part_");
        renamed += usize::from(earlier.contains("part_begin") && earlier.contains("part_left_out"));
        fs::write(&path, earlier).unwrap();
    }
    assert!(renamed > 0, "no extract has the keys");
    assert_eq!(read(&["info"], &extract), report);
    assert_eq!(read(&["threads"], &extract), threads);
}
