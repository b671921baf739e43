//! The logs of recorders: what they say, and what the programs print that they run.

use crate::background::{Background, Pilot};
use crate::harness::Printed;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use tracewing_testing::wait_until;

/// Bytes that a log may have, without the summary at its end, and that the program of the test prints.
const MOST: u64 = 1 << 20;
const PRINTED: u64 = 100 << 10;
const RUNS: u64 = 15;

#[test]
fn what_programs_print_is_bounded_and_hides_no_summary() {
    let sessions = Background::new();
    let script = sessions.folder().join("prints");
    // Neither UTF-8 nor whole lines.
    let text =
        format!("#!/bin/sh\necho\nhead -c {PRINTED} /dev/zero | tr '\\0' x\nprintf '\\377'\necho >> runs\n");
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    sessions.succeeds("session create web -e pilot:* --on-archive ./prints");
    let folder = sessions.start("web");
    let log = folder.join("main.log");
    let size = || fs::metadata(&log).unwrap().len();
    let mut pilot = Pilot::start(&sessions);
    for run in 1..=RUNS {
        pilot.emit(1);
        sessions.succeeds("rotate web");
        wait_until("the program has run", || {
            fs::metadata(sessions.folder().join("runs")).is_ok_and(|runs| runs.len() == run)
        });
        // Without a note of the recorder.
        wait_until("the log is small", || size() <= MOST);
    }
    let removed = |log: &[u8]| log.starts_with(b"tracewing: ") && log.contains(&0xff);
    assert!(removed(&fs::read(&log).unwrap()));
    let said = sessions.succeeds("session stop web");
    assert!(said.notes().contains("web/main: ") && !said.notes().contains("without a summary"));
    let log = fs::read(&log).unwrap();
    let end = log[..log.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
    assert!(end as u64 <= MOST + 1, "{end} bytes before the summary");
    assert!(log[end + 1..].starts_with(b"{"), "the summary has a line of its own");
}
