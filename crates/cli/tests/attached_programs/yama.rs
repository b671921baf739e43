//! Yama, whose default lets users attach to their own children only (Linux,
//! Documentation/admin-guide/LSM/Yama.rst). A kernel without it does here what users see with it: in a mount
//! namespace, its setting is a file of the test's, and the memory of a process cannot be opened.

use super::*;
use crate::harness::RunExt;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use tracewing_testing::{NOBODY, copy_program, installed};

/// Takes a process, a user, and the command that this user runs.
const SCRIPT: &str = "
    mount -t tmpfs none /proc/sys/kernel
    mkdir /proc/sys/kernel/yama
    echo 1 >/proc/sys/kernel/yama/ptrace_scope
    touch /proc/sys/kernel/closed
    chmod 0 /proc/sys/kernel/closed
    mount --bind /proc/sys/kernel/closed /proc/$1/mem
    user=$2
    shift 2
    exec setpriv --reuid $user --regid $user --clear-groups \"$@\"
";

/// What a user's recorder says of a process of the same user.
fn said(folder: &Path, pid: u32) -> String {
    let (pid, user) = (pid.to_string(), NOBODY.to_string());
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-e", "-c", SCRIPT, "sh", &pid, &user]);
    command.arg(folder.join("tracewing")).args([
        "record",
        "--no-kernel",
        "--for",
        "0.5",
        "--pid",
        &pid,
        "-o",
    ]);
    command.arg(folder.join(pid)).env_remove("XDG_RUNTIME_DIR").current_dir("/").succeeds().notes()
}

#[test]
fn its_setting_is_named_where_a_program_has_events() {
    if !am_root() || !installed(&["setpriv"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    copy_program(harness::TRACEWING, folder.path().join("tracewing"));
    let copy = folder.path().join("resident");
    copy_program(&*PROGRAM, &copy);
    let program = Resident::of(Command::new(&copy).uid(NOBODY).gid(NOBODY).current_dir("/"));
    let text = said(folder.path(), program.pid);
    let expected = "may be attached to by its parents only (kernel.yama.ptrace_scope is 1): attach as root";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains(&format!("attached to 1 process: {} (resident)", program.pid)), "{text}");
    program.end();
    // One without events lacks none.
    let mut plain = Command::new("sleep").arg("1000").uid(NOBODY).gid(NOBODY).spawn().unwrap();
    let text = said(folder.path(), plain.id());
    plain.kill().unwrap();
    plain.wait().unwrap();
    assert!(!text.contains("are not recorded"), "{text}");
}
