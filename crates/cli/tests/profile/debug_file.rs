//! A program without debug information whose distribution has it in a file of its own, found by the build id,
//! also when the program was replaced since.

use super::*;
use tracewing_testing::{Cause, installed, skip};

/// The program's build id.
const ID: [&str; 2] = ["7e", "57ed0b0e7c0ffee0123456789abcdef0123456"];

/// A command that sees a file among those of the distribution, as nothing else does.
fn with_debug_file(file: &Path, command: &Command) -> Command {
    let [folder, name] = ID;
    let script = format!(
        "set -e; mkdir -p /usr/lib/debug; mount -t tmpfs none /usr/lib/debug\n\
         mkdir -p /usr/lib/debug/.build-id/{folder}\n\
         cp \"$0\" /usr/lib/debug/.build-id/{folder}/{name}.debug; exec \"$@\""
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", &script]).arg(file);
    unshare.arg(command.get_program()).args(command.get_args());
    unshare
}

#[test]
fn functions_and_inlined_ones_are_named_from_it() {
    if !am_root() {
        skip(Cause::Root, "mounting a folder of debug files needs root");
        return;
    }
    if !installed(&["objcopy", "unshare"]) {
        return;
    }
    let build_id = format!("-Wl,--build-id=0x{}", ID.concat());
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = ["-g", "-fno-omit-frame-pointer", &build_id];
    let Some(program) = compiled(folder.path(), "inlined", &options) else { return };
    let debug = program.with_extension("debug");
    assert!(
        Command::new("objcopy").arg("--only-keep-debug").args([&program, &debug]).status().unwrap().success()
    );
    assert!(Command::new("objcopy").arg("--strip-all").arg(&program).status().unwrap().success());
    let recording = record(&["--profile", "499"], &[program.to_str().unwrap()]);
    let command = of(&recording.trace(), &["profile", "--format", "json"]);
    let output = with_debug_file(&debug, &command).succeeds();
    let own = outside_kernel(&output.json());
    for function in ["innermost (inlined)", "hidden"] {
        assert!(is_half(own[function], &own), "{function}: {own:?}");
    }
    // Without the file, nothing has their names.
    let own = outside_kernel(&json(&[], &recording.trace()));
    assert!(!own.keys().any(|name| name.contains("innermost") || name == "hidden"), "{own:?}");
    // After an upgrade, there is another program at this place, or none.
    fs::remove_file(&program).unwrap();
    let gone = with_debug_file(&debug, &command).succeeds();
    fs::copy("/bin/true", &program).unwrap();
    let replaced = with_debug_file(&debug, &command).succeeds();
    for output in [gone, replaced] {
        let own = outside_kernel(&output.json());
        for function in ["innermost (inlined)", "hidden"] {
            assert!(is_half(own[function], &own), "{function}: {own:?}");
        }
        assert!(!output.notes().contains("not the file that was recorded"), "{}", output.notes());
    }
    let replaced = of(&recording.trace(), &["profile", "--format", "json"]).succeeds();
    assert!(replaced.notes().contains("not the file that was recorded"), "{}", replaced.notes());
}
