//! Small stored recordings, and what each command prints of them, in every format. A change of output appears
//! as a difference here; after reviewing it,
//!
//!     UPDATE=1 cargo test -p tracewing-cli --test golden
//!
//! stores the new output. `golden/commands` says what runs on which recordings.

mod harness;

use harness::{Printed, RunExt};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Lines of a difference that are shown.
const SHOWN: usize = 20;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// What a command prints of a recording, exit code and standard error included.
fn printed(recording: &str, arguments: &str) -> String {
    let mut words = arguments.split(' ');
    let recordings = folder().join("recordings");
    let output = harness::tracewing()
        .args(words.next())
        .args(words.map(|word| if word == "TRACE" { recording } else { word }))
        .current_dir(&recordings)
        .env("TZ", "UTC")
        .env_remove("COLUMNS")
        .ran();
    let mut text = output.text();
    let errors = output.notes();
    if !errors.is_empty() {
        write!(text, "--- standard error\n{errors}").unwrap();
    }
    if !output.status.success() {
        writeln!(text, "--- {}", output.status).unwrap();
    }
    text.replace(recordings.to_str().unwrap(), "RECORDINGS")
}

/// Where two texts differ first, with the lines from there on.
fn difference(stored: &str, printed: &str) -> String {
    let same = stored.lines().zip(printed.lines()).take_while(|(left, right)| left == right).count();
    let from = |text: &str, mark: char| {
        let lines = text.lines().skip(same).take(SHOWN);
        lines.map(|line| format!("{mark} {line}\n")).collect::<String>()
    };
    format!("from line {}:\n{}{}", same + 1, from(stored, '-'), from(printed, '+'))
}

/// Name of the file with the output of a command line.
fn file_name(arguments: &str) -> String {
    let named = |char: char| if char.is_alphanumeric() || "-_.".contains(char) { char } else { '_' };
    let words = arguments.split(' ').filter(|word| *word != "TRACE");
    words.map(|word| word.chars().map(named).collect::<String>()).collect::<Vec<_>>().join(" ") + ".txt"
}

#[test]
fn every_command_prints_what_is_stored() {
    let update = env::var_os("UPDATE").is_some();
    let commands = fs::read_to_string(folder().join("commands")).unwrap();
    let mut wrong = String::new();
    let mut expected = Vec::new();
    for line in commands.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (recordings, arguments) = line.split_once(": ").expect("RECORDING ...: ARGUMENTS");
        for recording in recordings.split(' ') {
            let file = folder().join("expected").join(recording).join(file_name(arguments));
            let printed = printed(recording, arguments);
            if update {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(&file, &printed).unwrap();
            }
            let stored = fs::read_to_string(&file).unwrap_or_default();
            if stored != printed {
                writeln!(wrong, "tracewing {arguments} on {recording}, {}", difference(&stored, &printed))
                    .unwrap();
            }
            expected.push(file);
        }
    }
    for entry in fs::read_dir(folder().join("expected")).unwrap().flatten() {
        for file in fs::read_dir(entry.path()).unwrap().flatten().map(|file| file.path()) {
            if !expected.contains(&file) {
                writeln!(wrong, "{} belongs to no command", file.display()).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
