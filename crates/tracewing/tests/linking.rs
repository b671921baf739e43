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
    /// Option of the compiler that only the linker sees: it is given to the last step of each file alone, so
    /// that nothing else is built anew.
    link: Option<&'static str>,
    /// Variables `CARGO_PROFILE_RELEASE_…`.
    profile: &'static [(&'static str, &'static str)],
    /// Whether programs built so can load plug-ins.
    plugins: bool,
}

const PLAIN: Build = Build { release: true, rustflags: "", link: None, profile: &[], plugins: true };

/// What is linked.
const LINKED: [&str; 3] = ["no_class", "plugin", "program"];

fn workspace() -> Workspace {
    let workspace =
        Workspace::new(env!("CARGO_TARGET_TMPDIR"), "linking", &["library", "plugin", "no_class", "program"]);
    let binary = |name: &str| format!("[[bin]]\nname = {name:?}");
    // Each package needs the same features of libc, which is then built once.
    let tracewing = dependency("\"sites\"") + "libc = \"0.2\"\n";
    let library = format!("{tracewing}library = {{ path = \"../library\" }}\n");
    workspace.package("library", "[lib]", include_str!("linking/library.rs"), &tracewing);
    workspace.package(
        "plugin",
        "[lib]\ncrate-type = [\"cdylib\"]",
        include_str!("linking/plugin.rs"),
        &library,
    );
    workspace.package("no_class", &binary("no_class"), include_str!("linking/no_class.rs"), &tracewing);
    workspace.package("program", &binary("program"), include_str!("linking/program.rs"), &library);
    workspace
}

fn run(program: &Path, arguments: &[&Path]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// cargo for a build of some packages; `command` is `build` or `rustc`.
fn cargo(workspace: &Workspace, command: &str, build: &Build, packages: &[&str]) -> Command {
    // With an explicit target the flags do not reach macros, which are thus built once.
    let mut cargo = workspace.cargo(command);
    cargo.args(["--target", "x86_64-unknown-linux-gnu"]).env("RUSTFLAGS", build.rustflags);
    if build.release {
        cargo.arg("--release");
    }
    for package in packages.iter().filter(|package| build.plugins || **package != "plugin") {
        cargo.args(["--package", package]);
    }
    for (key, value) in build.profile {
        cargo.env(format!("CARGO_PROFILE_RELEASE_{key}"), value);
    }
    cargo
}

fn check(what: &str, build: Build) {
    let workspace = workspace();
    let mut builds = vec![cargo(&workspace, "build", &build, &LINKED)];
    if let Some(option) = build.link {
        builds = LINKED.map(|package| cargo(&workspace, "rustc", &build, &[package])).into();
        builds.iter_mut().for_each(|cargo| _ = cargo.args(["--", option]));
    }
    for mut cargo in builds {
        let output = cargo.output().unwrap();
        assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    }

    let Build { release, plugins, .. } = build;
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
    check("GNU ld", Build { link: Some("-Clinker-features=-lld"), ..PLAIN });
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
        Build { link: Some("-Clink-arg=-Wl,-z,start-stop-gc"), ..PLAIN },
    );
    check("exported symbols", Build { link: Some("-Clink-arg=-rdynamic"), ..PLAIN });
    check("fixed addresses", Build { rustflags: "-Crelocation-model=static", plugins: false, ..PLAIN });
    check("static", Build { rustflags: "-Ctarget-feature=+crt-static", plugins: false, ..PLAIN });
}
