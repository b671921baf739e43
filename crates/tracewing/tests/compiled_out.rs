//! Without the feature `sites` the macros leave nothing in a program: no instruction and no data.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod common;

use common::dependency;
use std::process::Command;
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
    let has = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    for text in ["in_vain", "tracewing_sites", ".note.tracewing"] {
        assert!(!has(&bytes, text), "{text:?} is in the program");
    }
    let with_sites = std::fs::read(build("compiled_in", "\"sites\"")).unwrap();
    assert!(
        ["declared_in_vain", "tracewing_sites"].iter().all(|text| has(&with_sites, text)),
        "how it is looked for"
    );
}
