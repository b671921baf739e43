//! The checksum that `bench reader` prints is the one that babeltrace2's Python bindings find.
#![cfg(not(loom))]

use std::process::Command;

fn said(command: &mut Command) -> String {
    let output = command.output().expect("the command starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn babeltrace2_finds_the_same_checksum() {
    let python = "/usr/bin/python3";
    if !Command::new(python).args(["-c", "import bt2"]).output().is_ok_and(|output| output.status.success()) {
        tracewing_testing::skip(
            tracewing_testing::Cause::Program("python3-bt2"),
            "babeltrace2's Python bindings (python3-bt2) are not installed",
        );
        return;
    }
    let bench = env!("CARGO_BIN_EXE_bench");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/babeltrace2/checksum.py");
    for kind in ["mix", "pairs", "texts"] {
        let folder = tempfile::tempdir().unwrap();
        said(Command::new(bench).args(["make", kind, "20001"]).arg(folder.path()));
        let theirs = said(Command::new(python).arg(script).arg(folder.path()));
        assert!(theirs.starts_with("20001 "), "{theirs}");
        for what in ["fields", "merged"] {
            assert_eq!(said(Command::new(bench).args(["reader", what]).arg(folder.path())), theirs, "{kind}");
        }
    }
}
