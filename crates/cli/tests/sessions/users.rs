//! Several users: whose programs are recorded, and whose commands reach a session.

use crate::background::{Background, Pilot, as_user};
use crate::counted;
use crate::harness::{self, Printed, RunExt};
use std::os::unix::fs::PermissionsExt;
use std::{fs, path::Path};
use tracewing_testing::{NOBODY, STRANGER, is_root, wait_until};

/// What a command of another user says that fails.
fn refused(sessions: &Background, user: u32, line: &str) -> String {
    let output = sessions.command(&as_user(user), harness::TRACEWING).args(line.split(' ')).ran();
    assert!(!output.status.success(), "{line}: {}", output.text());
    output.notes()
}

#[test]
fn roots_session_records_all_users_and_no_other_user_can_touch_it() {
    if !is_root() {
        return;
    }
    let sessions = Background::new();
    fs::set_permissions(sessions.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    sessions.succeeds("session create web -e pilot:*");
    let mut earlier = Pilot::run(&sessions, &as_user(NOBODY));
    let folder = sessions.start("web");
    wait_until("the running program is recorded", || sessions.channel("web", "main")["programs"] == 1);
    let mut later = Pilot::run(&sessions, &as_user(STRANGER));
    let emitted = earlier.emit(100) + later.emit(100);
    for line in ["session stop web", "session status web", "session save web", "channel add web x"] {
        let said = refused(&sessions, NOBODY, line);
        assert!(said.contains("cannot use the folder for sessions"), "{line}: {said}");
    }
    for line in ["rules web", "rotate web", "pause web", "disable web -e *"] {
        let said = refused(&sessions, NOBODY, line);
        assert!(said.contains("no recording is running"), "{line}: {said}");
    }
    for path in ["main", "main/user", "main.log"] {
        let mode = fs::metadata(folder.join(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o027, 0, "{path}: {mode:o}");
    }
    sessions.succeeds("session stop web");
    assert_eq!(counted(&folder.join("main")), emitted);
}

#[test]
fn a_users_session_records_that_users_programs_alone() {
    if !is_root() {
        return;
    }
    let sessions = Background::of_user(NOBODY);
    sessions.succeeds("session create web -e pilot:*");
    let (mut own, mut of_root) = (Pilot::run(&sessions, &as_user(NOBODY)), Pilot::start(&sessions));
    let folder = sessions.start("web");
    assert_eq!(fs::metadata(sessions.join_file()).unwrap().permissions().mode() & 0o777, 0o600);
    wait_until("the running program is recorded", || sessions.channel("web", "main")["programs"] == 1);
    let mut later = Pilot::run(&sessions, &as_user(NOBODY));
    // These read the user's list, as programs of root with the user's environment do, and cannot trust it, or
    // cannot read it.
    let (mut stranger, mut second) = (Pilot::run(&sessions, &as_user(STRANGER)), Pilot::start(&sessions));
    let emitted = own.emit(100) + later.emit(100);
    for pilot in [&mut of_root, &mut stranger, &mut second] {
        pilot.emit(100);
    }
    assert_eq!(sessions.channel("web", "main")["programs"], 2);
    sessions.succeeds("session stop web");
    assert_eq!(counted(&folder.join("main")), emitted);
    assert!(!Path::new("/run/tracewing/join").exists());
}
