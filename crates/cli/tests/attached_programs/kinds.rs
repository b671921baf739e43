//! Kinds of programs: of other users, in C, linked in all ways.

use super::*;
use crate::harness::Printed;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tracewing_testing::{NOBODY, copy_program};

/// Records a program, and looks at what is recorded and at what is left in it.
fn is_recorded(program: &mut Resident, folder: &Path) {
    let before = program.state();
    let mut mapped = None;
    for round in 1..=3 {
        let recorder = Recorder::start(&folder.join(format!("t{round}")), program.pid, &[], 1);
        wait_until("it has reported its state", || program.order("reported") == round.to_string());
        assert_eq!(program.order("emit 50"), "emitted");
        let forked = if round == 1 { 20 } else { 0 };
        if forked > 0 {
            assert_eq!(program.order("fork 10"), "0");
        }
        let trace = recorder.trace().to_owned();
        let said = recorder.stop();
        assert!(said.contains("\"lost_events\":0"), "{said}");
        assert_eq!((count(&trace, "resident:step"), count(&trace, "resident:answer")), (50 + forked, 1));
        wait_until("the agent has ended", || program.state() == before);
        let (all, buffers) = program.mappings();
        assert_eq!(buffers, 0);
        assert!(all <= *mapped.get_or_insert(all), "{all} mappings, {mapped:?} after the first round");
    }
}

/// The program, run by a user without rights, and the folder in which that user can execute it.
fn copy_for_others() -> (TempDir, Command) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("resident");
    copy_program(&*PROGRAM, &copy);
    let mut command = Command::new(&copy);
    command.uid(NOBODY).gid(NOBODY).current_dir("/");
    (folder, command)
}

#[test]
fn root_records_programs_of_others() {
    if !am_root() {
        return;
    }
    let (folder, mut command) = copy_for_others();
    let mut program = Resident::of(&mut command);
    is_recorded(&mut program, folder.path());
    program.end();
}

/// Its user has as many threads as it may have.
#[test]
fn a_program_that_may_start_no_thread_says_so() {
    if !am_root() {
        return;
    }
    let (folder, mut command) = copy_for_others();
    let limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a system call with a live limit.
    unsafe {
        command.pre_exec(move || {
            libc::setrlimit(libc::RLIMIT_NPROC, &raw const limit);
            Ok(())
        })
    };
    let mut program = Resident::of(&mut command);
    let said = Recorder::spawn(&folder.path().join("t"), program.pid, &["--for", "0.5"]).ended();
    assert!(said.contains("are not recorded: it can start no thread"), "{said}");
    program.order("emit 10");
    program.end();
}

/// The program in C, linked with these options.
fn in_c_linked(folder: &Path, options: &[&str], is_static: bool) -> PathBuf {
    let built = recorded::build(&["-p", "tracewing-capi"]);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("resident");
    let mut gcc = Command::new("gcc");
    gcc.args(["-Wall", "-Wextra", "-Werror", "-pthread", "-o"]).arg(&program).args(options);
    gcc.arg("-I").arg(root.join("../capi/include"));
    gcc.arg(root.join("tests/attached_programs/resident.c"));
    if is_static {
        gcc.arg(built.join("libtracewing_capi.a"));
    } else {
        // The name that it is installed by.
        let library = folder.join("libtracewing.so.0");
        std::os::unix::fs::symlink(built.join("libtracewing_capi.so"), &library).unwrap();
        gcc.arg(format!("-Wl,-rpath,{}", folder.display())).arg(library);
    }
    let linked = gcc.args(["-ldl", "-lm"]).output().unwrap();
    assert!(linked.status.success(), "{}", linked.notes());
    program
}

#[test]
fn in_c() {
    let cases: [(&[&str], bool); 4] = [
        (&["-lgcc_s"], true),
        (&["-O2", "-Wl,--gc-sections", "-lgcc_s"], true),
        (&["-static", "-lgcc_eh"], true),
        (&[], false),
    ];
    for (options, is_static) in cases {
        let folder = tempfile::tempdir().unwrap();
        let program = in_c_linked(folder.path(), options, is_static);
        let mut program = Resident::of(&mut Command::new(program));
        is_recorded(&mut program, folder.path());
        if !options.contains(&"-static") {
            has_a_plugin(&mut program, folder.path());
        }
        program.end();
    }
}

/// With a plug-in, which has a copy of tracewing of its own.
fn has_a_plugin(program: &mut Resident, folder: &Path) {
    let plugin = PROGRAM.with_file_name("libplugin.so");
    assert_eq!(program.order(&format!("load {}", plugin.display())), "loaded");
    let before = program.state();
    let recorder = Recorder::start(&folder.join("both"), program.pid, &[], 2);
    wait_until("it has reported its state", || program.order("reported") == "4");
    wait_until("the plug-in has its classes", || is_on(program.pid, "plugin:step"));
    program.order("emit 5");
    program.order("plugin 7");
    let trace = recorder.trace().to_owned();
    recorder.stop();
    assert_eq!((count(&trace, "resident:step"), count(&trace, "plugin:step")), (5, 7));
    wait_until("the agents have ended", || program.state() == before);
}
