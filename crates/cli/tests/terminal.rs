//! No text of a trace commands the terminal: recordings with control characters in every name, printed by
//! every command, into pipes and onto a pseudo-terminal.
//!
//! One recording is of this test itself, started again with a variable set; the other is written by hand,
//! with an `env` block, event names and file names that no tracer writes.

mod harness;

use harness::{Printed, RunExt};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tracewing::emit;
use tracewing::user_thread::{self, Cause};
use tracewing_trace::is_unsafe;

const ROLE: &str = "TRACEWING_TEST_TERMINAL";
/// Clears the screen in two ways, rings, turns the direction of text, ends the line.
const HOSTILE: &str = "x\u{1b}[2J\u{9b}2J\u{7}\u{7f}\u{202e}\u{2066}\u{200f}\u{2028}\r\nfaked";

#[derive(tracewing::Event)]
#[event(name = "said", print = "\u{9b}2J\u{202e} {text}")]
/// Said \u{202e}.
struct Said<'a> {
    text: &'a str,
}

#[test]
fn program() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let body = || {
        emit!(Said { text: HOSTILE });
        let thread = user_thread::create_at(HOSTILE, HOSTILE, HOSTILE, 1);
        user_thread::switch(Some(thread), Cause::None);
        user_thread::switch(None, Cause::Blocked);
        let lock = tracewing::sync::Mutex::new(0);
        std::thread::scope(|scope| {
            let held = lock.lock();
            scope.spawn(|| drop(lock.lock()));
            std::thread::sleep(std::time::Duration::from_millis(20));
            drop(held);
        });
    };
    // As much of the name as the kernel keeps.
    let name = HOSTILE.chars().take(8).collect();
    std::thread::Builder::new().name(name).spawn(body).unwrap().join().unwrap();
}

fn tracewing() -> Command {
    let mut command = harness::tracewing();
    command.env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// Records this test, as a file of a hostile name in a folder of one.
fn record(place: &Path) -> (PathBuf, Output) {
    let folder = place.join(OsStr::from_bytes(HOSTILE.replace('/', "").as_bytes()));
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join("p\u{9b}\u{202e}");
    std::os::unix::fs::symlink(std::env::current_exe().unwrap(), &program).unwrap();
    let trace = folder.join("t\u{9b}\u{202e}");
    let mut command = tracewing();
    command.args(["record", "--no-kernel", "-o"]).arg(&trace).arg("--").arg(&program);
    let output = command.args(["--exact", "program"]).env(ROLE, "1").succeeds();
    (trace, Output { stdout: Vec::new(), ..output })
}

/// A trace in which the kernel's threads, the machine, an event and a stream's file have hostile names.
fn write(folder: &Path) {
    const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 32; align = 8; signed = true; } := i32;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; }; };
env { hostname = "HOSTILE"; domain = "kernel"; tracer_name = "HOSTILE"; procname = "HOSTILE"; event_1_print = "HOSTILE {what}"; };
clock { name = c; freq = 1000; offset_s = 1000000; description = "HOSTILE"; };
typealias integer { size = 32; align = 8; signed = false; map = clock.c.value; } := stamp;
stream { packet.context := struct { u32 content_size; u32 packet_size; u32 cpu_id; };
    event.header := struct { u32 id; stamp timestamp; }; };
event { name = "sched_switch"; id = 0; fields := struct { string prev_comm; i32 prev_tid; i32 prev_state; string next_comm;
    i32 next_tid; }; };
event { name = "HOSTILE"; id = 1; model.emf.uri = "HOSTILE"; fields := struct { string what; enum : u32 { "HOSTILE" = 1 } kind; }; };
"#;
    // No line break: neither language has them in strings.
    let metadata = METADATA.replace("HOSTILE", &HOSTILE.replace(['\r', '\n'], ""));
    let mut events = Vec::new();
    for (at, [from, to]) in [[1_u32, 2], [2, 1], [1, 2], [2, 1]].into_iter().enumerate() {
        [0_u32, 1000 + at as u32 * 10].iter().for_each(|word| events.extend(word.to_le_bytes()));
        events.extend([HOSTILE.as_bytes(), b"\0"].concat());
        [from, 1].iter().for_each(|word| events.extend(word.to_le_bytes()));
        events.extend([HOSTILE.as_bytes(), b"\x9b\x80\0"].concat());
        events.extend(to.to_le_bytes());
        [1, 1001 + at as u32 * 10].iter().for_each(|word| events.extend(word.to_le_bytes()));
        events.extend([HOSTILE.as_bytes(), b"\x9b\0"].concat());
        events.extend(1_u32.to_le_bytes());
    }
    let bits = (16 + events.len() as u32) * 8;
    let head = [0xc1fc_1fc1_u32, bits, bits, 0].map(u32::to_le_bytes).concat();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("metadata"), metadata).unwrap();
    std::fs::write(folder.join("s\u{9b}\u{202e}"), [head, events].concat()).unwrap();
}

/// All subcommands that print what is in a trace, as text.
const COMMANDS: &[&[&str]] = &[
    &["list"],
    &["list", "--fields", "all", "--names", "all"],
    &["list", "--pretty"],
    &["list", "--super"],
    &["list", "--details"],
    &["list", "--where", "nothing == 1"],
    &["list", "-e", "\u{9b}\u{202e}*"],
    &["info"],
    &["stats"],
    &["stats", "--by", "process"],
    &["threads"],
    &["breakdown"],
    &["sched", "timehist"],
    &["sched", "latency"],
    &["tasks"],
    &["latency", "--begin", "terminal:said", "--end", "user_thread:switch"],
    &["critical-path"],
    &["locks"],
    &["locks", "--by", "thread"],
    &["locks", "--graph"],
    &["functions"],
    &["functions", "--replay"],
    &["profile"],
];
const DATA: &[&[&str]] = &[
    &["list", "--format", "json"],
    &["list", "--format", "csv"],
    &["threads", "--format", "json"],
    &["threads", "--format", "csv"],
    &["info", "--format", "json"],
    &["convert", "--format", "json", "-o", "-"],
    &["convert", "--format", "csv", "-o", "-"],
    &["export", "--format", "chrome", "-o", "-"],
    &["export", "--format", "paje", "-o", "-"],
];

/// The first character that a terminal must not get; its own colours are allowed.
fn unsafe_in(bytes: &[u8], is_terminal: bool) -> Option<String> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(error) => return Some(format!("no UTF-8: {error}")),
    };
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| is_unsafe(c) && !matches!(c, '\n' | '\t')) {
        let style = rest[at..].strip_prefix("\u{1b}[").and_then(|sgr| {
            let end = sgr.find(|c: char| !c.is_ascii_digit() && c != ';')?;
            sgr[end..].strip_prefix('m')
        });
        // A terminal's driver makes `\r\n` of each line break.
        match style.or_else(|| rest[at..].strip_prefix("\r\n").filter(|_| is_terminal)) {
            Some(after) => rest = after,
            None => {
                let around: String = rest[at..].chars().take(20).collect();
                return Some(format!(
                    "{around:?} in {:?}",
                    &rest[rest[..at].rfind('\n').map_or(0, |n| n + 1)..at]
                ));
            }
        }
    }
    None
}

fn check(what: &str, bytes: &[u8], is_terminal: bool, faults: &mut Vec<String>) {
    if let Some(fault) = unsafe_in(bytes, is_terminal) {
        faults.push(format!("{what}: {fault}"));
    }
}

/// What a command prints on a pseudo-terminal, with no pager between.
fn on_terminal(arguments: &[&str], trace: &Path) -> Vec<u8> {
    let mut command = tracewing();
    command.args(arguments).arg(trace).env("TERM", "xterm").env("TRACEWING_PAGER", "");
    tracewing_testing::on_terminal(command).expect("a pseudo-terminal").1
}

#[test]
fn no_text_of_a_trace_commands_the_terminal() {
    let place = tempfile::tempdir().unwrap();
    let (recorded, output) = record(place.path());
    let written = place.path().join("w\u{9b}\u{202e}");
    write(&written);
    for trace in [&recorded, &written] {
        let Output { status, stdout, .. } = tracewing().arg("list").arg(trace).ran();
        let text = String::from_utf8(stdout).unwrap();
        assert!(status.success() && text.contains("faked") && text.contains("\\u{202e}"), "{text}");
    }
    let mut faults = Vec::new();
    check("record", &output.stderr, false, &mut faults);
    for trace in [&recorded, &written, &place.path().join("gone\u{9b}\u{202e}\u{1b}c")] {
        for arguments in COMMANDS.iter().chain(DATA) {
            let what = format!("{arguments:?} of {trace:?}");
            let Output { stdout, stderr, .. } = tracewing().args(*arguments).arg(trace).ran();
            let is_data = arguments.iter().any(|word| ["csv", "paje"].contains(word));
            if !is_data {
                check(&what, &stdout, false, &mut faults);
            }
            check(&format!("{what}, errors"), &stderr, false, &mut faults);
            check(&format!("{what}, terminal"), &on_terminal(arguments, trace), true, &mut faults);
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// A name of a file that a shell completes, say.
#[test]
fn no_argument_commands_the_terminal() {
    const HOSTILE: &str = "\u{1b}[31m\u{9b}2J\u{202e}\n";
    let (subcommand, option) = (HOSTILE.to_owned(), format!("--{HOSTILE}"));
    let wrong: [&[&str]; 5] = [
        &[&subcommand],
        &["list", &option],
        &["list", "-n", HOSTILE],
        &["record", "--level", HOSTILE],
        &["completions", HOSTILE],
    ];
    let mut faults = Vec::new();
    for arguments in wrong {
        let output = tracewing().args(arguments).ran();
        assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "{output:?}");
        let said = output.notes();
        assert!(said.contains("\\u{202e}"), "{said:?}");
        check(&format!("{arguments:?}"), said.as_bytes(), false, &mut faults);
        let shown = on_terminal(arguments, Path::new("x"));
        // Not even the colours that they ask for.
        let shown = String::from_utf8_lossy(&shown).replace("\u{1b}[31merror", "error");
        assert!(!shown.contains("\u{1b}[31m"), "{shown:?}");
        check(&format!("{arguments:?}, terminal"), shown.as_bytes(), true, &mut faults);
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn programs_get_the_values_back() {
    let place = tempfile::tempdir().unwrap();
    let (trace, _) = record(place.path());
    let list = |format: &str| {
        let mut command = tracewing();
        command.args(["list", "--format", format, "-e", "terminal:said"]).arg(&trace).ran().stdout
    };
    let json: serde_json::Value = serde_json::from_slice(&list("json")).unwrap();
    assert_eq!(json["payload"]["text"], HOSTILE);
    let csv = String::from_utf8(list("csv")).unwrap();
    assert!(csv.contains(&format!("\"{HOSTILE}\"")), "{csv:?}");
}
