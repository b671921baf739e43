//! The agent finds every event class, whatever compiler and linker do with the sections: builds a program
//! with a library and a plug-in in several ways and lets them print what they found.

mod common;

use common::dependency;
use std::path::Path;
use std::process::Command;
use tracewing_testing::Workspace;

/// One way to build.
struct Build {
    release: bool,
    rustflags: &'static str,
    /// Variables `CARGO_PROFILE_RELEASE_…`.
    profile: &'static [(&'static str, &'static str)],
    /// Whether programs built so can load plug-ins.
    plugins: bool,
}

const PLAIN: Build = Build { release: true, rustflags: "", profile: &[], plugins: true };

fn workspace() -> Workspace {
    let workspace =
        Workspace::new(env!("CARGO_TARGET_TMPDIR"), "linking", &["library", "plugin", "no_class", "program"]);
    let binary = |name: &str| format!("[[bin]]\nname = {name:?}");
    let tracewing = dependency("\"sites\"");
    let library = format!("{tracewing}library = {{ path = \"../library\" }}\n");
    let libc = format!("{library}libc = \"0.2\"\n");
    workspace.package("library", "[lib]", include_str!("linking/library.rs"), &tracewing);
    workspace.package(
        "plugin",
        "[lib]\ncrate-type = [\"cdylib\"]",
        include_str!("linking/plugin.rs"),
        &library,
    );
    workspace.package("no_class", &binary("no_class"), include_str!("linking/no_class.rs"), &tracewing);
    workspace.package("program", &binary("program"), include_str!("linking/program.rs"), &libc);
    workspace
}

fn run(program: &Path, arguments: &[&Path]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn check(what: &str, build: Build) {
    let Build { release, rustflags, profile, plugins } = build;
    let workspace = workspace();
    // With an explicit target the flags do not reach macros, which are thus built once.
    let mut cargo = workspace.cargo("build");
    cargo.args(["--workspace", "--target", "x86_64-unknown-linux-gnu"]).env("RUSTFLAGS", rustflags);
    if release {
        cargo.arg("--release");
    }
    if !plugins {
        cargo.args(["--exclude", "plugin"]);
    }
    for (key, value) in profile {
        cargo.env(format!("CARGO_PROFILE_RELEASE_{key}"), value);
    }
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));

    let folder = if release { "release" } else { "debug" };
    let built = workspace.target().join("x86_64-unknown-linux-gnu").join(folder);
    // The library's own: always the threads' introduction and first events, and what the linker keeps of the
    // rest.
    let own = run(&built.join("no_class"), &[]);
    let own: Vec<&str> = own.trim_end().strip_prefix("only ").unwrap_or_default().split(' ').collect();
    assert!(own.contains(&"tracewing:thread"), "{what}: {own:?}");
    let is_own = |name: &&str| {
        ["tracewing:thread", "tracewing:first", "tracewing:panic", "lock:place", "lock:condition_signalled"]
            .contains(name)
    };
    assert!(own.iter().all(is_own), "{what}: {own:?}");
    let program = |state: &str| {
        [
            "library:from_library One U32",
            "library:generic One U8",
            "library:generic Text U8",
            "program:ad_hoc One Bool",
            "program:empty nothing",
            "program:from_program One I64",
        ]
        .map(|class| format!("program {class} {state}\n"))
        .concat()
    };
    let mut expected =
        format!("{}program evaluates 0\n{}program evaluates 5\n", program("off"), program("on"));
    if plugins {
        expected += "plugin library:from_library One U32 off\nplugin library:generic One U8 off\n\
                     plugin library:generic Text U8 off\nplugin plugin:ad_hoc One Char off\n\
                     plugin plugin:from_plugin One F64 off\nplugin evaluates 0\n";
    }
    let plugin = built.join("libplugin.so");
    let arguments: &[&Path] = if plugins { &[&plugin] } else { &[] };
    assert_eq!(run(&built.join("program"), arguments), expected, "{what}");
}

#[test]
fn classes_are_found_in_every_build() {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")) {
        tracewing_testing::skip(tracewing_testing::Cause::Processor, "builds for x86_64-unknown-linux-gnu");
        return;
    }
    check("debug", Build { release: false, ..PLAIN });
    check("release", PLAIN);
    check(
        "fat LTO, stripped, one unit",
        Build {
            profile: &[("LTO", "fat"), ("STRIP", "symbols"), ("CODEGEN_UNITS", "1"), ("PANIC", "abort")],
            ..PLAIN
        },
    );
    check("thin LTO, many units", Build { profile: &[("LTO", "thin"), ("CODEGEN_UNITS", "64")], ..PLAIN });
    check("GNU ld", Build { rustflags: "-Clinker-features=-lld", ..PLAIN });
    check(
        "GNU ld, fat LTO, small",
        Build {
            rustflags: "-Clinker-features=-lld",
            profile: &[("LTO", "fat"), ("OPT_LEVEL", "z")],
            ..PLAIN
        },
    );
    check(
        "lld's own idea of what may be dropped",
        Build { rustflags: "-Clink-arg=-Wl,-z,start-stop-gc", ..PLAIN },
    );
    check("exported symbols", Build { rustflags: "-Clink-arg=-rdynamic", ..PLAIN });
    check("fixed addresses", Build { rustflags: "-Crelocation-model=static", plugins: false, ..PLAIN });
    check("static", Build { rustflags: "-Ctarget-feature=+crt-static", plugins: false, ..PLAIN });
}
