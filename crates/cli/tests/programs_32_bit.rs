//! A 32-bit program, whose system calls the kernel does not record: no number says that its time in them is
//! the program's. Needs root.

mod harness;
mod recorded;

use harness::{Printed, RunExt, json_and_notes};
use std::path::{Path, PathBuf};
use std::process::Command;
use tracewing_testing::am_root;

/// Asks for its process' number a hundred thousand times, by `int 0x80`, and ends.
const SOURCE: &str = "
.globl _start
_start:
    mov $100000, %esi
1:  mov $20, %eax
    int $0x80
    dec %esi
    jnz 1b
    mov $1, %eax
    xor %ebx, %ebx
    int $0x80
";

/// The program, if it can be made and this kernel runs it.
fn program(folder: &Path) -> Option<PathBuf> {
    let [source, object, program] = ["calls.s", "calls.o", "calls"].map(|name| folder.join(name));
    std::fs::write(&source, SOURCE).unwrap();
    let made = [
        Command::new("as").args(["--32", "-o"]).args([&object, &source]).status(),
        Command::new("ld").args(["-m", "elf_i386", "-o"]).args([&program, &object]).status(),
        Command::new(&program).status(),
    ];
    made.iter().all(|status| status.as_ref().is_ok_and(|status| status.success())).then_some(program)
}

#[test]
fn time_in_system_calls_that_are_not_recorded_is_not_the_programs() {
    if !am_root() {
        return eprintln!("skipped: recording kernel events needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path()) else {
        return eprintln!("skipped: this machine makes or runs no 32-bit programs");
    };
    let trace = folder.path().join("trace");
    let script = format!("{}; exec true", program.display());
    let recorded =
        harness::tracewing().args(["record", "-o"]).arg(&trace).args(["--", "sh", "-c", &script]).ran();
    if !trace.join("kernel").exists() {
        return eprintln!("skipped: {}", recorded.notes());
    }
    let (threads, why) = json_and_notes(&trace, &["threads"]);
    assert!(why.contains("no event shows that the kernel records the system calls of 1 thread"), "{why}");
    let named = |name: &str| {
        let mut threads = threads["threads"].as_array().unwrap().iter();
        threads.find(|thread| thread["name"] == name).unwrap_or_else(|| panic!("{name}: {threads:?}"))
    };
    let (of_32_bits, of_64_bits) = (named("calls"), named("true"));
    assert!(of_32_bits["system_calls"].is_null() && of_64_bits["system_calls"].is_u64(), "{threads}");
    let time = |name: &str| of_32_bits[name].as_u64().unwrap();
    assert!(
        time("user_ns") + time("system_ns") < time("running_ns") / 2,
        "its shell's child is it: {of_32_bits}"
    );
    let (breakdown, _) = json_and_notes(&trace, &["breakdown", "--process", "calls"]);
    let own = |name: &str| {
        let mut rows = breakdown["rows"].as_array().unwrap().iter();
        rows.find(|row| row["section"] == "inside" && row["activity"] == name)
            .and_then(|row| row["running_ns"].as_u64())
    };
    assert!(own("unknown") > own("user"), "{breakdown}");
}
