//! `tracewing list` and `tracewing info` as a shell sees them: output, exit status, what goes to standard
//! error.

#[path = "../../trace/tests/common/mod.rs"]
mod common;
mod harness;

use common::{Packet, class, tick, write_trace};
use harness::{Json, Printed, RunExt, of};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

/// A trace of `events` events and 3 lost ones.
fn trace(folder: &Path, events: u32) {
    let ticks: Vec<_> = (0..events).map(|number| tick(1000 + u64::from(number), number)).collect();
    let mut bytes = Packet::new(1, 0, 1000, 2_000_000).bytes(&ticks);
    bytes.extend(Packet { seq: 1, discarded: 3, ..Packet::new(1, 0, 2_000_000, 3_000_000) }.bytes(&[]));
    write_trace(folder, &class(Some(1), 1_000_000_000), &[("s0", bytes)]);
}

#[test]
fn events_go_to_stdout_and_losses_to_stderr() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), 3);
    let output = of(folder.path(), &["list", "--clock-seconds", "-n", "2", "-e", "test:*"]).ran();
    assert!(output.status.success());
    assert_eq!(
        output.text(),
        "[1795235140.123457789] (+?.?????????) test:tick: { cpu_id = 0 }, { tid = 7 }, { n = 0 }\n\
         [1795235140.123457790] (+0.000000001) test:tick: { cpu_id = 0 }, { tid = 7 }, { n = 1 }\n"
    );
    let output = of(folder.path(), &["list", "--clock-seconds"]).ran();
    let warning = output.notes();
    assert!(
        warning.starts_with("WARNING: Tracer discarded 3 events between [1795235140.125456789]"),
        "{warning}"
    );
}

#[test]
fn unmatched_names_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), 1);
    for command in ["list", "stats"] {
        let output = of(folder.path(), &[command, "-e", "test:*", "-e", "tset:*"]).ran();
        assert!(output.status.success());
        let notes = output.notes();
        assert!(notes.contains("no event is called `tset:*`") && !notes.contains("`test:*`"), "{notes}");
        let notes = of(folder.path(), &[command, "-e", "tik"]).ran().notes();
        assert!(notes.contains("no event is called `tik`; is `test:tick` meant?"), "{notes}");
    }
}

/// `tracewing` with a recording of its own choice.
fn here(folder: &Path, arguments: &[&str]) -> Output {
    harness::tracewing().current_dir(folder).args(arguments).ran()
}

#[test]
fn without_a_trace_the_newest_one_here_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let output = here(folder.path(), &["list"]);
    assert!(!output.status.success());
    assert!(output.notes().contains("the current folder has no recording of yours"), "{}", output.notes());
    let date = |name: &str, minutes: u64| {
        let metadata = File::open(folder.path().join(name).join("metadata")).unwrap();
        metadata.set_modified(SystemTime::now() - Duration::from_secs(60 * minutes)).unwrap();
    };
    for (name, events, minutes) in [("new", 2, 5), ("old", 1, 50), ("foreign", 3, 1)] {
        let trace_folder = folder.path().join(name);
        std::fs::create_dir(&trace_folder).unwrap();
        trace(&trace_folder, events);
        date(name, minutes);
    }
    // What another user has planted is not taken for one's own.
    let has_foreign = chown(folder.path().join("foreign"), Some(65_534), None).is_ok();
    for command in [&["list", "--no-delta"][..], &["info"], &["convert", "--to", "json", "-o", "-"]] {
        let output = here(folder.path(), command);
        let name = if has_foreign { "new" } else { "foreign" };
        assert!(output.status.success() && output.notes().contains(&format!("reading {name}\n")));
        if has_foreign && command[0] == "list" {
            assert_eq!(output.text().lines().count(), 2);
        }
    }
}

#[test]
fn stamps_are_in_the_local_zone_unless_asked_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), 1);
    let print = |zone: &str, args: &[&str]| {
        let mut command = harness::tracewing();
        command.args(["list", "--clock-date", "--no-delta"]).args(args).arg(folder.path()).env("TZ", zone);
        command.ran().text()
    };
    // Written as POSIX has them, so that no zone files are needed.
    assert!(print("EST5", &[]).starts_with("[2026-11-20 23:25:40.123457789] "));
    assert!(print("EST5", &["--clock-gmt"]).starts_with("[2026-11-21 04:25:40.123457789] "));
    assert!(print("<+0530>-5:30", &["--from", "09:55:40"]).starts_with("[2026-11-21 09:55:40.123457789] "));
    assert_eq!(print("<+0530>-5:30", &["--from", "09:55:41"]), "");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), 20_000);
    for args in [["list", "--format=text"], ["list", "--format=json"]] {
        let mut child = harness::tracewing()
            .args(args)
            .arg(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut some = [0; 100];
        child.stdout.take().unwrap().read_exact(&mut some).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", output.status);
        assert_eq!(output.notes(), "");
    }
}

#[test]
fn damage_is_an_error_after_what_precedes_it() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), 3);
    let file = folder.path().join("s0");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 20]).unwrap();
    for command in ["list", "info"] {
        let output = of(folder.path(), &[command]).ran();
        assert_eq!(output.status.code(), Some(1));
        let error = output.notes();
        assert!(
            error.lines().any(|line| {
                line.starts_with("error: ") && line.contains("s0, byte 156: packet 1 claims 108 bytes")
            }),
            "{error}"
        );
        assert!(output.text().contains("test:tick"));
    }
}

#[test]
fn what_is_no_trace_or_no_time_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["list", "info"] {
        let output = of(folder.path(), &[command]).ran();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        assert!(output.notes().contains("no file `metadata`"));
    }
    trace(folder.path(), 1);
    let output = of(folder.path(), &["list", "--from", "yesterday"]).ran();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.notes().contains("`yesterday` is not a time"));
    let output = of(folder.path(), &["list", "--names", "some"]).ran();
    assert!(output.notes().contains("unknown name `some`; give payload,"));
}

#[test]
fn info_in_tables_and_in_json() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), 5);
    let output = of(folder.path(), &["info", "--clock-gmt"]).ran();
    let tables = output.text();
    assert!(!tables.contains('\u{1b}'), "colours belong on a terminal: {tables:?}");
    for part in ["2026-11-21 04:25:40.123457789", "tsc, 1000000000 Hz", "test:tick", "n u32", "3 events from"]
    {
        assert!(tables.contains(part), "{part} is not in\n{tables}");
    }
    // What the recorder noted stands at the top.
    let note = r#"{"version": "9", "state": "cut_short", "notes": ["no room"], "command": ["make", "-j2"], "host": {"name": "box"},
        "event_rules": ["enable -e 'shop:*'"], "majors": "3", "changes": [{"time": 500000005, "what": "pause"}],
        "clock": {"frequency": 1000000000, "begin": {"cycles": 5, "realtime_ns": 1795235140000000005, "uncertainty_ns": 25},
        "end": {"cycles": 1000000005, "realtime_ns": 1795235141000000002, "uncertainty_ns": 25}}}"#;
    let parent = tempfile::tempdir().unwrap();
    trace(&parent.path().join("user"), 5);
    std::fs::write(parent.path().join("tracewing.json"), note).unwrap();
    let tables = of(parent.path(), &["info", "--clock-gmt"]).ran().text();
    for part in [
        "tracewing 9, cut short",
        "make -j2",
        "note      no room",
        "box",
        "5 cycles at 2026-11-21 04:25:40.000000005",
        "drift     3 ns",
        "events    enable -e 'shop:*'\nevents    --major 3\nchanged   pause at 2026-11-21 04:25:40.500000005",
    ] {
        assert!(tables.contains(part), "{part} is not in\n{tables}");
    }
    let output = of(folder.path(), &["info", "--format", "json"]).ran();
    let report: serde_json::Value = output.json();
    assert_eq!(report["traces"][0]["streams"][0]["lost_events"], 3);
    assert_eq!(report["traces"][0]["event_classes"][0]["events"], 5);
}

#[test]
fn help_and_completions() {
    for command in ["list", "info"] {
        let output = harness::tracewing().args([command, "--help"]).ran();
        assert!(output.text().contains("Examples:"));
    }
    for shell in ["bash", "zsh", "fish"] {
        let output = harness::tracewing().args(["completions", shell]).ran();
        assert!(output.text().contains("clock-cycles"), "{shell}");
    }
}

/// What bash offers for the last of the words.
fn offered(script: &Path, words: &[&str]) -> String {
    const COMPLETE: &str = "source $0
        COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1))
        _tracewing_or_session tracewing \"${COMP_WORDS[-1]}\" \"${COMP_WORDS[-2]}\"
        echo \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    bash.current_dir(script.parent().unwrap());
    bash.args(["-c", COMPLETE]).arg(script).arg("tracewing").args(words);
    bash.env("XDG_STATE_HOME", script.parent().unwrap()).ran().text()
}

#[test]
fn bash_offers_columns_and_sessions() {
    if !tracewing_testing::installed(&["bash"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, harness::run(&["completions", "bash"]).stdout).unwrap();
    let none = offered(&script, &["session", "start", ""]);
    assert!(none.contains("--help") && !none.contains('*'), "there is no session: {none}");
    let sessions = folder.path().join("tracewing/sessions");
    std::fs::create_dir_all(sessions.join("service-1-2")).unwrap();
    // Names of files are not run, and nothing but names of sessions is offered.
    let ran = folder.path().join("ran");
    for name in ["web", "kernel", "a b", "`>ran`", "$(>ran)", "w*"] {
        std::fs::write(sessions.join(format!("{name}.toml")), "").unwrap();
    }
    for (words, expected) in [
        (&["session", "start", ""][..], "kernel web\n"),
        (&["channel", "add", "w"], "web\n"),
        (&["top", "k"], "kernel\n"),
        (&["threads", "--sort", "blocked_n"], "blocked_ns\n"),
        (&["session", "start", "web", ""], ""),
    ] {
        let offered = offered(&script, words);
        let is_expected = if expected.is_empty() { !offered.contains("web") } else { offered == expected };
        assert!(is_expected, "{words:?}: {offered}");
    }
    assert!(offered(&script, &["top", "--int"]).contains("--interval"));
    assert!(!ran.exists());
    let mut bash = Command::new("bash");
    let registered = bash.args(["-c", "source $0; complete -p tracewing"]).arg(&script).ran().text();
    assert!(registered.contains("-F _tracewing_or_session "), "{registered}");
    if chown(&sessions, Some(65534), None).is_ok() {
        let offered = offered(&script, &["top", "k"]);
        assert!(!offered.contains("kernel"), "the folder is another user's: {offered}");
    }
}

#[test]
fn a_file_gives_options_that_the_command_line_has_not() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), 3);
    let config = folder.path().join("tracewing/config.toml");
    std::fs::create_dir(config.parent().unwrap()).unwrap();
    let list = |file: &str, options: &[&str]| {
        std::fs::write(&config, file).unwrap();
        of(folder.path(), &[&["list"], options].concat()).env("XDG_CONFIG_HOME", folder.path()).ran()
    };
    let lines = |output: &Output| output.text().lines().count();
    let file = "[list]\ncount = 1\nno-delta = true\n[record]\nquiet = true\n";
    let output = list(file, &[]);
    assert_eq!(lines(&output), 1, "{}", output.notes());
    assert!(!output.text().contains("(+"), "{}", output.text());
    assert_eq!(lines(&list(file, &["-n", "2"])), 2);
    for none in [&["--config", "/dev/null"][..], &["--config", ""], &["--no-default", "count"]] {
        assert_eq!(lines(&list(file, none)), 3, "{none:?}");
    }
    let output = list("[list]\nfollow = true", &["--super"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.notes().contains("--follow of "), "{}", output.notes());
    if chown(&config, Some(65_534), None).is_ok() {
        let output = of(folder.path(), &["list"]).env("XDG_CONFIG_HOME", folder.path()).ran();
        assert_eq!(lines(&output), 3, "{}", output.notes());
        assert!(output.notes().contains("is ignored: it belongs to another user"), "{}", output.notes());
        chown(&config, Some(0), None).unwrap();
        // Nor does a home that is closed to the user.
        let mut other = Command::new("setpriv");
        other
            .args(["--reuid", "65534", "--clear-groups", harness::TRACEWING, "rules"])
            .env("HOME", folder.path());
        let closed = other.env_remove("XDG_CONFIG_HOME").ran();
        assert!(!closed.notes().contains("defaults"), "{}", closed.notes());
    }
    for (file, options, expected) in [
        ("[list]\ncuont = 1", &[][..], "[list]: there is no option --cuont"),
        ("[list]\ncount = 'one'", &[], "with the options in"),
        ("", &["--config", "absent"], "there is no file absent"),
    ] {
        let output = list(file, options);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.notes().contains(expected), "{}", output.notes());
    }
}
