//! System calls that the kernel does not record, of 32-bit programs and by `int 0x80`: no number says that
//! time in them is the program's. Needs root.

mod harness;
mod recorded;

use harness::{Printed, RunExt, json_and_notes};
use std::path::{Path, PathBuf};
use std::process::Command;
use tracewing_testing::{Cause, am_root, skip};

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
        return skip(Cause::Root, "recording kernel events needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path()) else {
        return skip(Cause::Listed("32-bit programs"), "this machine makes or runs none");
    };
    let trace = folder.path().join("trace");
    let script = format!("{}; exec true", program.display());
    let recorded =
        harness::tracewing().args(["record", "-o"]).arg(&trace).args(["--", "sh", "-c", &script]).ran();
    if !trace.join("kernel").exists() {
        return skip(Cause::KernelEvents, recorded.notes());
    }
    let (threads, why) = json_and_notes(&trace, &["threads"]);
    assert!(why.contains("no event shows that the kernel records all system calls of 1 thread"), "{why}");
    let named = |name: &str| {
        let mut threads = threads["threads"].as_array().unwrap().iter();
        threads.find(|thread| thread["name"] == name).unwrap_or_else(|| panic!("{name}: {threads:?}"))
    };
    let (of_32_bits, of_64_bits) = (named("calls"), named("true"));
    assert!(of_32_bits["system_calls"].is_null() && of_64_bits["system_calls"].is_u64(), "{threads}");
    for time in ["user_ns", "system_ns"] {
        assert!(of_32_bits[time].is_null() && of_64_bits[time].is_u64(), "{time}: {threads}");
    }
    assert!(own(&trace, "calls", "unknown") > own(&trace, "calls", "user"));
}

/// How long a process ran in something that `breakdown` lists.
fn own(trace: &Path, process: &str, activity: &str) -> Option<u64> {
    let (breakdown, _) = json_and_notes(trace, &["breakdown", "--process", process]);
    let mut rows = breakdown["rows"].as_array().unwrap().iter();
    let row = rows.find(|row| row["section"] == "inside" && row["activity"] == activity)?;
    row["running_ns"].as_u64()
}

/// A 64-bit program that sleeps by `int 0x80`, and asks for its process' number by it at all other times.
/// Between the sleeps it makes a call that is recorded, and touches a page.
const OLD_CALLS: &str = r#"
#include <unistd.h>

static long old(long number, long first, long second) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(first), "c"(second)
                     : "memory", "r8", "r9", "r10", "r11");
    return result;
}

int main(void) {
    static struct { int seconds, nanoseconds; } pause = { 0, 2000000 };
    static char pages[8][4096];
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 20000; j++) old(20, 0, 0);
        if (old(162, (long)&pause, 0) != 0) return 1;
        getppid();
        pages[i][0] = 1;
    }
    return 0;
}
"#;

#[test]
fn time_in_int_0x80_is_not_the_programs() {
    if !am_root() {
        return skip(Cause::Root, "recording kernel events needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let [source, program, trace] = ["old_calls.c", "old_calls", "trace"].map(|name| folder.path().join(name));
    std::fs::write(&source, OLD_CALLS).unwrap();
    // Its data has to lie where 32 bits reach.
    let made = Command::new("gcc").args(["-O1", "-no-pie", "-o"]).args([&program, &source]).status();
    if !made.is_ok_and(|status| status.success()) || !Command::new(&program).ran().status.success() {
        return skip(Cause::Listed("32-bit programs"), "this machine makes or runs none");
    }
    let recorded = harness::tracewing().args(["record", "-o"]).arg(&trace).arg("--").arg(&program).ran();
    if !trace.join("kernel").exists() {
        return skip(Cause::KernelEvents, recorded.notes());
    }
    let (threads, why) = json_and_notes(&trace, &["threads"]);
    assert!(why.contains("no event shows that the kernel records all system calls of 1 thread"), "{why}");
    let thread = &threads["threads"][0];
    assert_eq!(thread["name"], "old_calls", "{threads}");
    for number in ["user_ns", "system_ns", "system_calls"] {
        assert!(thread[number].is_null(), "{number}: {thread}");
    }
    let running = thread["running_ns"].as_u64().unwrap();
    let unknown = own(&trace, "old_calls", "unknown").unwrap();
    assert!(unknown > running / 2, "{unknown} of {running} ns, nearly all of which it spent in calls");
    assert_eq!(own(&trace, "old_calls", "user").unwrap_or_default(), 0);
}

/// Without page faults, no event shows when a 32-bit program begins to run.
#[test]
fn without_page_faults_a_32_bit_program_is_not_always_in_its_code() {
    if !am_root() {
        return skip(Cause::Root, "recording kernel events needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path()) else {
        return skip(Cause::Listed("32-bit programs"), "this machine makes or runs none");
    };
    let trace = folder.path().join("trace");
    let recorded = harness::tracewing()
        .args(["record", "-k", "sched:*", "-k", "task:*", "-k", "syscalls:*", "-o"])
        .arg(&trace)
        .arg("--")
        .arg(&program)
        .ran();
    if !trace.join("kernel").exists() {
        return skip(Cause::KernelEvents, recorded.notes());
    }
    let unknown = own(&trace, "calls", "unknown").unwrap_or_default();
    let executed = own(&trace, "calls", "execve").unwrap_or_default();
    assert!(unknown > executed, "{unknown} ns unknown, {executed} ns in execve");
    assert_eq!(own(&trace, "calls", "user").unwrap_or_default(), 0);
}
