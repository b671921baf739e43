//! Sites are found and switched whatever compiler and linker do with the sections: the test builds a program
//! with a library and plug-ins in several ways, and runs it to look for sites and switch them.

mod common;

use common::dependencies;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tracewing_programs::image::Files;
use tracewing_programs::sites::{Listing, State};
use tracewing_testing::Workspace;

const GNU: &str = "x86_64-unknown-linux-gnu";
const MUSL: &str = "x86_64-unknown-linux-musl";

/// One way to build.
struct Build {
    release: bool,
    target: &'static str,
    rustflags: &'static str,
    /// Variables `CARGO_PROFILE_RELEASE_…`.
    profile: &'static [(&'static str, &'static str)],
    /// Whether programs built this way can load libraries.
    plugins: bool,
    /// Whether program and plug-in share the library, and with it the crate, as a Rust `dylib`.
    shared: bool,
    /// Whether the linker drops functions that nothing calls.
    drops: bool,
}

const PLAIN: Build = Build {
    release: true,
    target: GNU,
    rustflags: "",
    profile: &[],
    plugins: true,
    shared: false,
    drops: true,
};

fn workspace(shared: bool) -> Workspace {
    let name = if shared { "linking_shared" } else { "linking" };
    let workspace = Workspace::new(env!("CARGO_TARGET_TMPDIR"), name, &["library", "plugin", "program"]);
    let kind = format!("[lib]\ncrate-type = [{:?}]", if shared { "dylib" } else { "rlib" });
    let library = "library = { path = \"../library\" }\n";
    let libc = format!("{library}libc = \"0.2\"\n");
    workspace.package("library", &kind, include_str!("linking/library.rs"), &dependencies("\"sites\""));
    workspace.package(
        "plugin",
        "[lib]\ncrate-type = [\"cdylib\"]",
        include_str!("linking/plugin.rs"),
        library,
    );
    workspace.package("program", "[[bin]]\nname = \"program\"", include_str!("linking/program.rs"), &libc);
    workspace
}

fn run(program: &Path, arguments: &[&str]) -> String {
    let folder = program.parent().unwrap();
    let libraries =
        std::env::join_paths([folder.to_owned(), folder.join("deps"), libdir(GNU).unwrap()]).unwrap();
    let output = Command::new(program).args(arguments).env("LD_LIBRARY_PATH", libraries).output().unwrap();
    assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn check(what: &str, build: Build) {
    let Build { release, target, rustflags, profile, plugins, shared, drops } = build;
    let workspace = workspace(shared);
    let mut cargo = workspace.cargo("build");
    cargo.args(["--workspace", "--target", target]).env("RUSTFLAGS", rustflags);
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

    let built = workspace.target().join(target).join(if release { "release" } else { "debug" });
    let plugin = built.join("libplugin.so");
    let arguments: &[&str] = match plugins {
        true => &[if shared { "shared" } else { "plugin" }, plugin.to_str().unwrap()],
        false => &[],
    };
    let output = run(&built.join("program"), arguments);
    let never_called = if drops { "" } else { "never called 1\n" };
    let expected = format!("cat 1\ndog 1\ninlined 2\nlibrary 1\n{never_called}program 1\ndone\n");
    assert_eq!(output, expected, "{what}");

    // A reader of the files finds the same sites without running any of them.
    let mut files = vec![built.join("program")];
    if shared {
        files.push(built.join("liblibrary.so"));
    }
    assert_eq!(listed(&files) + "done\n", expected, "{what}, files");
    if plugins {
        files.push(plugin);
        let listed = listed(&files);
        assert!(listed.lines().any(|line| line == "plugin 1"), "{what}, files: {listed}");
    }
}

/// The number of copies of each site in the files.
fn listed(files: &[PathBuf]) -> String {
    let listing = Listing::of(&Files::open(files).unwrap());
    assert_eq!(listing.remarks, [""; 0]);
    let mut sites = BTreeMap::new();
    for site in &listing.sites {
        assert_eq!(site.state, State::Off);
        assert!(site.file.ends_with(".rs") && site.line > 0 && site.address.is_some());
        *sites.entry(site.class.name.as_str()).or_insert(0) += 1;
    }
    sites.iter().map(|(name, count)| format!("{name} {count}\n")).collect()
}

/// The folder of a target's standard library, if it is installed.
fn libdir(target: &str) -> Option<PathBuf> {
    let output =
        Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_dir().then_some(path)
}

#[test]
fn sites_are_found_in_every_build() {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")) {
        tracewing_testing::skip(tracewing_testing::Cause::Processor, format_args!("builds for {GNU}"));
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
    // Keeps a whole section if anything refers to its beginning, and with it the functions of its sites.
    check("GNU ld", Build { rustflags: "-Clinker-features=-lld", drops: false, ..PLAIN });
    check(
        "GNU ld, fat LTO, small",
        Build {
            rustflags: "-Clinker-features=-lld",
            profile: &[("LTO", "fat"), ("OPT_LEVEL", "z")],
            ..PLAIN
        },
    );
    check("what the linker may drop", Build { rustflags: "-Clink-arg=-Wl,-z,start-stop-gc", ..PLAIN });
    check("nothing dropped", Build { rustflags: "-Clink-dead-code", drops: false, ..PLAIN });
    check("exported symbols", Build { rustflags: "-Clink-arg=-rdynamic", drops: false, ..PLAIN });
    let shared = Build { rustflags: "-Cprefer-dynamic", shared: true, drops: false, ..PLAIN };
    check("shared, debug", Build { release: false, ..shared });
    check("shared", shared);
    check("packed relocations", Build { rustflags: "-Clink-arg=-Wl,-z,pack-relative-relocs", ..PLAIN });
    check("fixed addresses", Build { rustflags: "-Crelocation-model=static", plugins: false, ..PLAIN });
    check("static", Build { rustflags: "-Ctarget-feature=+crt-static", plugins: false, ..PLAIN });
    if libdir(MUSL).is_some() {
        check("static with musl, GNU ld", Build { target: MUSL, plugins: false, drops: false, ..PLAIN });
        check(
            "musl, fixed addresses, fat LTO",
            Build {
                target: MUSL,
                rustflags: "-Crelocation-model=static",
                profile: &[("LTO", "fat")],
                plugins: false,
                ..PLAIN
            },
        );
    } else {
        tracewing_testing::skip(
            tracewing_testing::Cause::Program("x86_64-unknown-linux-musl"),
            format_args!("static programs with musl (rustup target add {MUSL})"),
        );
    }
}
