//! Colours and the pager, on a pseudo-terminal of 80 columns and in pipes, with a stored recording.

mod harness;

use harness::{Printed, RunExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[31m";
const YELLOW: &str = "\u{1b}[33m";

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/recordings").join(name)
}

/// A command with a pager, and with none of the variables that say how output looks.
fn tracewing(arguments: &[&str], pager: Option<&str>) -> Command {
    let mut command = harness::tracewing();
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LESS", "PAGER", "TRACEWING_PAGER"]
    {
        command.env_remove(variable);
    }
    command.args(arguments).env("TERM", "xterm");
    if let Some(pager) = pager {
        command.env("TRACEWING_PAGER", pager);
    }
    command
}

/// What is on the terminal in the end; the command succeeds.
fn shown(command: Command) -> String {
    let (status, output) = tracewing_testing::on_terminal(command).unwrap();
    assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&output));
    String::from_utf8(output).unwrap().replace("\r\n", "\n")
}

#[test]
fn sentences_and_episodes_are_broken_between_words() {
    let server = recording("server");
    let server = server.to_str().unwrap();
    let calls =
        ["latency", server, "--begin", "syscall_entry_*", "--end", "syscall_exit_*", "--match", "$tid"];
    for arguments in [&["breakdown", server][..], &calls] {
        let print = |columns| tracewing(arguments, None).env("COLUMNS", columns).succeeds().text();
        let (narrow, wide) = (print("60"), print("1000"));
        let is_sentence = |line: &&str| {
            let line = line.trim_start();
            line.starts_with("In the process: ") || line.starts_with("thread ") && line.contains(": ")
        };
        assert!(wide.lines().filter(is_sentence).any(|line| line.len() > 60), "{wide}");
        for line in narrow.lines().filter(is_sentence) {
            assert!(line.chars().count() <= 60, "{line}");
        }
    }
}

/// Their rows are printed before the widths of later cells are known.
#[test]
fn tables_printed_row_by_row_fit_the_terminal_and_say_what_they_hide() {
    for name in ["server", "system"] {
        let recording = recording(name);
        let arguments = ["sched", "timehist", recording.to_str().unwrap()];
        let print = |columns| tracewing(&arguments, None).env("COLUMNS", columns).succeeds().text();
        let rows = |text: &str| text.lines().filter(|line| line.contains('.')).count();
        let (narrow, wide, unlimited) = (print("80"), print("120"), print("0"));
        for (text, columns) in [(&narrow, 80), (&wide, 120)] {
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest.is_some_and(|longest| longest <= columns), "{longest:?}: {text}");
        }
        assert!(rows(&unlimited) > 10, "{unlimited}");
        assert_eq!(rows(&wide), rows(&unlimited));
        assert!(narrow.contains("Hidden columns: ") && narrow.contains("woken-by"), "{narrow}");
        assert!(wide.lines().next().is_some_and(|titles| titles.ends_with("woken-by")), "{wide}");
        assert!(!wide.contains("Hidden columns") && !unlimited.contains('…'), "{wide}");
    }
}

#[test]
fn a_pager_shows_what_is_read_on_a_terminal() {
    let server = recording("server");
    let server = server.to_str().unwrap();
    let piped = tracewing(&["threads", server], Some("exit 1")).env("COLUMNS", "80").ran();
    let plain = piped.text();
    assert!(plain.contains("Hidden columns"), "{plain}");
    let with_prefix = |text: &str| text.lines().map(|line| format!("P:{line}\n")).collect::<String>();
    let uncolored = |command| anstream::adapter::strip_str(&shown(command)).to_string();
    // With the terminal's width and colours, though its output is a pipe; a command for the shell, and one of
    // words.
    for pager in ["sed s/^/P:/", "sed 's/^/P:/' | cat"] {
        let text = shown(tracewing(&["threads", server], Some(pager)));
        assert!(text.starts_with(&format!("P:{BOLD}")), "{text:?}");
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), with_prefix(&plain));
    }
    // `$PAGER` comes second.
    let mut both = tracewing(&["threads", server], Some("sed s/^/P:/"));
    both.env("PAGER", "sed s/^/Q:/");
    assert_eq!(uncolored(both), with_prefix(&plain));
    let mut second = tracewing(&["threads", server], None);
    second.env("PAGER", "sed s/^/P:/");
    assert_eq!(uncolored(second), with_prefix(&plain));
    // None where none is wanted, or there is none.
    assert_eq!(uncolored(tracewing(&["threads", server, "--no-pager"], Some("sed s/^/P:/"))), plain);
    for none in ["", "cat"] {
        assert_eq!(uncolored(tracewing(&["threads", server], Some(none))), plain);
    }
    let text = uncolored(tracewing(&["threads", server], Some("no-such-pager")));
    assert!(text.starts_with("tracewing: cannot start the pager `no-such-pager`"), "{text}");
    assert!(text.ends_with(&plain), "{text}");
}

#[test]
fn what_fits_is_left_on_the_screen_by_less() {
    let server = recording("server");
    let text = shown(tracewing(&["stats", "-n", "1", server.to_str().unwrap()], None));
    assert!(text.contains("events lost") && text.contains(BOLD), "{text:?}");
}

#[test]
fn quitting_the_pager_ends_the_command() {
    let server = recording("server");
    // More than a pipe holds.
    let text = shown(tracewing(&["list", "--format", "json", server.to_str().unwrap()], Some("head -n 1")));
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn errors_are_shown_and_the_exit_status_stays() {
    let (status, output) =
        tracewing_testing::on_terminal(tracewing(&["list", "/nowhere"], Some("sed s/^/P:/"))).unwrap();
    let text = String::from_utf8(output).unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(text.contains(RED) && text.contains("/nowhere: No such file"), "{text:?}");
}

#[test]
fn what_is_not_read_has_no_pager() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let (out, server) = (out.to_str().unwrap(), recording("server"));
    let part = ["extract", server.to_str().unwrap(), "--to", "+1ms", "-o", out];
    assert!(!shown(tracewing(&part, Some("sed s/^/P:/"))).contains("P:"));
    assert!(!shown(tracewing(&["list", "--follow", out], Some("sed s/^/P:/"))).contains("P:"));
    let record = ["record", "--no-kernel", "-o", &format!("{out}-2"), "--", "echo", "said"];
    assert!(!shown(tracewing(&record, Some("sed s/^/P:/"))).contains("P:"));
}

#[test]
fn colours_are_for_terminals_unless_they_are_chosen() {
    let lossy = recording("lossy");
    let lossy = lossy.to_str().unwrap();
    let has_colors = |arguments: &[&str], variable: &str| {
        let mut command = tracewing(arguments, Some(""));
        command.env(variable, "1");
        shown(command).contains('\u{1b}')
    };
    assert!(has_colors(&["stats", lossy], "UNUSED"));
    assert!(!has_colors(&["stats", lossy], "NO_COLOR"));
    assert!(!has_colors(&["stats", lossy, "--color", "never"], "UNUSED"));
    assert!(has_colors(&["--color", "always", "stats", lossy], "NO_COLOR"));
    let piped = |arguments: &[&str]| {
        let output = tracewing(arguments, None).ran();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    assert!(!piped(&["stats", lossy]).contains('\u{1b}'));
    let always = piped(&["stats", lossy, "--color=always"]);
    // Headers, and losses as problems.
    assert!(always.contains(BOLD) && always.contains(YELLOW), "{always:?}");
    // Values are no place for colours.
    for format in ["csv", "json"] {
        let output = tracewing(&["stats", lossy, "--color=always", "--format", format], None).ran();
        assert!(!output.stdout.contains(&0x1b), "{format}");
    }
}
