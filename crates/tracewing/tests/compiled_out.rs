//! Without the feature `sites` the macros leave nothing in a program: no instruction and no data.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod common;

use common::dependency;
use std::process::Command;
use tracewing_abi::site::{NOTE_OWNER, NOTE_SIZE, NOTE_TYPE};
use tracewing_testing::Workspace;

/// The instructions of a function, without addresses. `None`, with a line on stderr, where there is no
/// objdump.
fn instructions(program: &std::path::Path, function: &str) -> Option<Vec<String>> {
    let mut objdump = Command::new("objdump");
    objdump.args(["-d", "--no-show-raw-insn", &format!("--disassemble={function}")]).arg(program);
    let output = match objdump.output() {
        Ok(output) => output,
        Err(error) => {
            tracewing_testing::skip(
                tracewing_testing::Cause::Program("objdump"),
                format_args!("objdump: {error}"),
            );
            return None;
        }
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let lines =
        text.lines().filter_map(|line| line.split_once(":\t").map(|(_, line)| line.trim().to_owned()));
    Some(lines.collect())
}

fn build(name: &str, features: &str) -> std::path::PathBuf {
    let workspace = Workspace::new(env!("CARGO_TARGET_TMPDIR"), name, &["program"]);
    let binary = "[[bin]]\nname = \"program\"";
    workspace.package("program", binary, include_str!("compiled_out/program.rs"), &dependency(features));
    let output = workspace.cargo("build").arg("--release").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    workspace.target().join("release/program")
}

/// The head of the ELF note that leads to a program's sites. The note by which recorders attach is of the
/// agent, which stays.
fn note_of_sites() -> Vec<u8> {
    let head = [NOTE_OWNER.len() as u32 + 1, NOTE_SIZE as u32, NOTE_TYPE].map(u32::to_le_bytes).concat();
    [&head, NOTE_OWNER.as_bytes(), &[0]].concat()
}

#[test]
fn without_the_feature_nothing_of_an_event_is_left() {
    let program = build("compiled_out", "");
    assert!(Command::new(&program).status().unwrap().success());
    let (Some(with), Some(without)) =
        (instructions(&program, "with_events"), instructions(&program, "without_events"))
    else {
        return;
    };
    // One of two equal functions may be a jump to the other, or have the other's address.
    if let ([_, ..], [_, ..]) = (&with[..], &without[..]) {
        assert!(with == without || with.iter().any(|line| line.contains("without_events")), "{with:#?}");
    }
    let bytes = std::fs::read(&program).unwrap();
    let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    let note = note_of_sites();
    for part in [b"in_vain", &b"tracewing_sites"[..], &note] {
        assert!(!has(&bytes, part), "{:?} is in the program", String::from_utf8_lossy(part));
    }
    let with_sites = std::fs::read(build("compiled_in", "\"sites\"")).unwrap();
    assert!(
        [b"declared_in_vain", &b"tracewing_sites"[..], &note].iter().all(|part| has(&with_sites, part)),
        "how it is looked for"
    );
}
