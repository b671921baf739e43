//! Sites are switched while eight threads execute them, with signals, forks and a library that is loaded and
//! unloaded. The test builds `hammer/program.rs` and runs it for 3 seconds, or `TRACEWING_HAMMER_SECONDS`,
//! with each kind of library.

mod common;

use common::dependencies;
use std::process::Command;
use tracewing_testing::Workspace;

fn hammer(kind: &str, crate_type: &str, rustflags: &str) {
    let workspace = Workspace::new(
        env!("CARGO_TARGET_TMPDIR"),
        &format!("hammer_{kind}"),
        &["library", "plugin", "program"],
    );
    let library = "library = { path = \"../library\" }\n";
    workspace.package(
        "library",
        &format!("[lib]\ncrate-type = [{crate_type:?}]"),
        include_str!("linking/library.rs"),
        &dependencies("\"sites\""),
    );
    workspace.package(
        "plugin",
        "[lib]\ncrate-type = [\"cdylib\"]",
        include_str!("linking/plugin.rs"),
        library,
    );
    workspace.package(
        "program",
        "[[bin]]\nname = \"program\"",
        include_str!("hammer/program.rs"),
        &format!("{library}libc = \"0.2\"\n"),
    );
    let output = workspace
        .cargo("build")
        .args(["--workspace", "--release"])
        .env("RUSTFLAGS", rustflags)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let folder = workspace.target().join("release");
    let libdir = Command::new("rustc").args(["--print", "target-libdir"]).output().unwrap();
    let libdir = String::from_utf8(libdir.stdout).unwrap();
    let libraries =
        std::env::join_paths([folder.clone(), folder.join("deps"), libdir.trim().into()]).unwrap();
    let seconds = std::env::var("TRACEWING_HAMMER_SECONDS").unwrap_or_else(|_| "3".into());
    let output = Command::new(folder.join("program"))
        .args([seconds.as_str(), kind])
        .arg(folder.join("libplugin.so"))
        .env("LD_LIBRARY_PATH", libraries)
        .output()
        .unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{kind}: {} {text}{errors}", output.status);
    println!("{kind}: {text}");
    let counts: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(counts.len() == 5 && counts.iter().all(|&count| count > 0), "something was not tried: {text}");
}

#[test]
fn with_a_library_that_has_its_own_copy() {
    hammer("plugin", "rlib", "");
}

#[test]
fn with_a_library_that_shares_the_copy() {
    hammer("shared", "dylib", "-Cprefer-dynamic");
}
