//! The browser that `tracewing view` starts: none as root; otherwise in a process group of its own, so that a
//! Ctrl-C in the terminal of `view` is not for it. Only a browser that was started is said to show anything.

use crate::client::stored;
use crate::harness;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tracewing_testing::{NOBODY, RunExt, am_root, copy_program, wait_until};

/// A folder with the command, a recording, a home and an `xdg-open` that writes its process group and what it
/// was given, and ends with this code.
fn prepared(user: u32, code: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str| folder.path().join(name);
    copy_program(harness::TRACEWING, of("tracewing"));
    Command::new("cp").arg("-r").arg(stored("clerks")).arg(of("trace")).succeeds();
    for name in ["bin", "home"] {
        fs::create_dir(of(name)).unwrap();
    }
    let script = format!(
        "#!/bin/sh\necho \"$(cut -d' ' -f5 /proc/$$/stat) $$ $1\" > \"$HOME/new\"\nmv \"$HOME/new\" \"$HOME/opened\"\nexit {code}\n"
    );
    fs::write(of("bin/xdg-open"), script).unwrap();
    for name in ["", "bin/xdg-open"] {
        fs::set_permissions(of(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    if am_root() {
        chown(of("home"), Some(user), Some(user)).unwrap();
    }
    folder
}

/// `tracewing view` of this user, once it has printed where the page is; and what it has printed.
fn viewer(folder: &Path, user: u32) -> (Child, String) {
    let mut command = Command::new(folder.join("tracewing"));
    command.args(["view", "trace"]).current_dir(folder).env_clear().env("HOME", folder.join("home"));
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.join("bin").display())).env("DISPLAY", ":9");
    if am_root() {
        command.uid(user).gid(user);
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut text = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    while !text.contains("Ctrl-C ends it.") {
        assert!(out.read_line(&mut text).unwrap() > 0, "{text}");
    }
    (child, text)
}

/// Ends it, and gives what it has printed on standard error.
fn ended(mut child: Child) -> String {
    tracewing_testing::signal(child.id(), libc::SIGINT);
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    text
}

#[test]
fn it_has_a_process_group_of_its_own_and_its_end_is_reported() {
    let user = if am_root() { NOBODY } else { own_uid() };
    for (code, said) in [
        (0, "the browser shows the recording"),
        (3, "no browser was started: xdg-open ended with exit status: 3; open the address yourself"),
    ] {
        let folder = prepared(user, code);
        let (child, text) = viewer(folder.path(), user);
        assert!(text.starts_with("Open http://127.0.0.1:"), "{text}");
        let opened = folder.path().join("home/opened");
        wait_until("xdg-open is started", || opened.exists());
        let line = fs::read_to_string(&opened).unwrap();
        let [group, pid, path] = line.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert_eq!(group, pid, "it leads a group");
        assert_ne!(group, child.id().to_string());
        // The file that leads to the page, not its address.
        assert!(path.starts_with(folder.path().to_str().unwrap()) && path.ends_with(".html"), "{path}");
        // `view` looks several times a second.
        std::thread::sleep(Duration::from_secs(1));
        let notes = ended(child).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(notes.contains(said), "{notes}");
        assert_eq!(notes.matches("browser").count(), 1, "{notes}");
    }
}

#[test]
fn root_gets_none() {
    if !am_root() {
        return tracewing_testing::skip(tracewing_testing::Cause::Root, "this is about root");
    }
    let folder = prepared(0, 0);
    let (child, text) = viewer(folder.path(), 0);
    assert!(text.starts_with("Open http://127.0.0.1:"), "{text}");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(ended(child), "");
    assert!(!folder.path().join("home/opened").exists());
}

/// This user.
fn own_uid() -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().uid()
}
