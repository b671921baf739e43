//! With `tokio_unstable` every task of a runtime is told, and none of them twice.

#[path = "../../tracing/tests/recorded/mod.rs"]
mod recorded;

use recorded::{named, read, told, with_origins};
use tracewing_testing::Workspace;

#[test]
fn tasks_that_nobody_instrumented() {
    let workspace = Workspace::new(env!("CARGO_TARGET_TMPDIR"), "unstable", &["program"]);
    let here = env!("CARGO_MANIFEST_DIR");
    let dependencies = format!(
        "tokio = {{ version = \"1\", features = [\"rt\"] }}\n\
         tracewing = {{ path = \"{here}/../tracewing\" }}\n\
         tracewing-tokio = {{ path = {here:?} }}\n"
    );
    workspace.package(
        "program",
        "[[bin]]\nname = \"program\"",
        include_str!("unstable/program.rs"),
        &dependencies,
    );
    let output = workspace.cargo("build").env("RUSTFLAGS", "--cfg tokio_unstable").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    let mut program = std::process::Command::new(workspace.target().join("debug/program"));
    assert!(program.arg(&trace).status().unwrap().success());
    let events = with_origins(read(&trace));
    let idle = ["worker", "park", "unpark"];
    let lines: Vec<String> =
        told(&events).into_iter().filter(|line| idle.iter().all(|idle| !line.starts_with(idle))).collect();
    assert_eq!(
        lines,
        [
            "create #1 -  hooked",
            "switch - #1 none",
            "create own #1 own hooked",
            "switch #1 - blocked",
            "switch - own none",
            "switch own - yielded",
            "wake own",
            "switch - own none",
            "switch own - ended",
            "switch - #1 none",
            "exit #1 unknown",
            "switch #1 - ended",
            "create #3 -  hooked",
            "switch - #3 none",
            "switch #3 - budget",
            "switch - #3 none",
            "exit #3 unknown",
            "switch #3 - ended",
            "create #4 -  hooked",
            "switch - #4 none",
            "switch #4 - blocked",
            "switch - #4 none",
            "exit #4 unknown",
            "switch #4 - ended",
            "create #5 -  hooked",
            "switch - #5 none",
            "create inside #5 inside hooked",
            "switch #5 inside nested",
            "switch inside #5 ended",
            "exit #5 unknown",
            "switch #5 - ended",
            "create local - local hooked",
            "switch - local none",
            "switch local - ended",
            "create blocking - blocking hooked",
            "switch - blocking none",
            "switch blocking - ended",
            "create #9 -  hooked",
            "exit #9 cancelled",
        ]
    );
    let library = named(&events, "user_thread:create")[0];
    assert_eq!(library.payload["file"], "program/main.rs");
}
