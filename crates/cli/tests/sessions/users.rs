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

/// Sessions of root, at the same time as those of another user.
struct OfRoot<'a> {
    others: &'a Background,
    folder: tempfile::TempDir,
}

impl OfRoot<'_> {
    fn ran(&self, line: &str) -> std::process::Output {
        let mut command = self.others.command(&[], harness::TRACEWING);
        command.current_dir(&self.folder).env("XDG_STATE_HOME", self.folder.path().join("state"));
        command.args(line.split(' ')).ran()
    }

    fn succeeds(&self, line: &str) {
        let output = self.ran(line);
        assert!(output.status.success(), "{line}: {}", output.notes());
    }
}

impl Drop for OfRoot<'_> {
    fn drop(&mut self) {
        self.ran("session stop");
    }
}

#[test]
fn a_session_that_recordings_of_root_crowd_out_says_so() {
    if !is_root() {
        return;
    }
    let sessions = Background::of_user(NOBODY);
    sessions.succeeds("session create web -e pilot:*");
    let folder = sessions.start("web");
    let of_root = OfRoot { others: &sessions, folder: tempfile::tempdir().unwrap() };
    of_root.succeeds("session create eight -e nothing:*");
    for number in 2..=7 {
        of_root.succeeds(&format!("channel add eight c{number} -e nothing:*"));
    }
    let column = || sessions.channel("web", "main")["new_programs"].clone();
    let log = || fs::read_to_string(folder.join("main.log")).unwrap();

    // With seven of root, it is the eighth.
    of_root.succeeds("session start eight");
    let mut before = Pilot::run(&sessions, &as_user(NOBODY));
    assert!(column().is_null());
    assert!(!sessions.succeeds("session status web").notes().contains("does not record"));
    of_root.succeeds("channel add eight c8 -e nothing:*");
    let mut meanwhile = Pilot::run(&sessions, &as_user(NOBODY));
    assert_eq!(column(), "crowded out");
    let said = sessions.succeeds("session status web").notes();
    assert!(said.contains("web/main does not record programs that start now: they join 8 "), "{said}");
    wait_until("it has noted that", || log().contains("programs that start are not recorded, from about "));
    of_root.succeeds("session stop eight");
    let mut after = Pilot::run(&sessions, &as_user(NOBODY));
    assert!(column().is_null());
    wait_until("it has noted that", || log().contains("programs that start are recorded again, from about "));

    let emitted = before.emit(100) + after.emit(100);
    meanwhile.emit(100);
    let said = sessions.succeeds("session stop web").notes();
    assert!(said.contains("and first those that root has begun meanwhile"), "{said}");
    assert_eq!(counted(&folder.join("main")), emitted);
}
