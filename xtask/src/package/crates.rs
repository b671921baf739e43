//! The public crates as crates.io would get them: whether they can be published, whether their names are
//! free, and what `cargo install` gives.

use super::{line, output};
use crate::steps::{run as run_command, target_folder};
use anyhow::{Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All public crates as crates.io would get them, with the oldest compiler that they promise. What all of
/// them depend on is compiled once.
pub fn check() -> Result<()> {
    let public = public()?;
    check_licences(&public)?;
    check_names(&public)?;
    let target = target_folder()?.join("crates");
    let mut publish = oldest_cargo()?;
    run_command(publish.args(["publish", "--workspace", "--dry-run", "--allow-dirty"]).env(TARGET, &target))?;
    try_installed(&target)
}

/// Where cargo puts what it compiles, also what it compiles to check a package.
const TARGET: &str = "CARGO_TARGET_DIR";

/// The oldest cargo, and with it the oldest compiler, that the crates promise to be compiled by.
fn oldest_cargo() -> Result<Command> {
    let oldest = format!("{}.0", env!("CARGO_PKG_RUST_VERSION"));
    let rustup = |arguments: &[&str]| Command::new("rustup").args(arguments).output();
    let mut cargo = if rustup(&["--version"]).is_err() {
        let version = line(Command::new("rustc").arg("--version"))?;
        println!("no rustup: the crates are checked by {version}, not by {oldest}");
        Command::new("cargo")
    } else {
        if !rustup(&["run", &oldest, "rustc", "--version"])?.status.success() {
            let install = ["toolchain", "install", &oldest, "--profile", "minimal"];
            run_command(Command::new("rustup").args(install))?;
        }
        println!("the crates are checked by Rust {oldest}");
        let mut cargo = Command::new("rustup");
        cargo.args(["run", &oldest, "cargo"]);
        cargo
    };
    // Nothing looks at back traces here, and the debug information of each crate is most of what it takes.
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env_remove("CARGO");
    Ok(cargo)
}

/// A crate that is published.
struct Public {
    folder: PathBuf,
    manifest: String,
}

impl Public {
    /// A text of the manifest.
    fn text(&self, key: &str) -> Option<&str> {
        let line = self.manifest.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
        line.strip_suffix('"')
    }
}

fn public() -> Result<Vec<Public>> {
    let mut all = Vec::new();
    for folder in fs::read_dir(crate::root()?.join("crates"))? {
        let folder = folder?.path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
        if !manifest.contains("publish = false") {
            all.push(Public { folder, manifest });
        }
    }
    Ok(all)
}

/// Each public crate has the texts of its licences, since a package contains only what is in its folder.
fn check_licences(public: &[Public]) -> Result<()> {
    for Public { folder, .. } in public {
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let has = folder.join(licence).is_file();
            ensure!(has, "{} has no {licence}: link it to the one of the repository", folder.display());
        }
    }
    Ok(())
}

/// No other crate of crates.io has the name of a public one.
fn check_names(public: &[Public]) -> Result<()> {
    for of in public {
        let (Some(name), Some(description)) = (of.text("name"), of.text("description")) else {
            bail!("{} has no name or no description", of.folder.display());
        };
        // In a workspace, cargo shows that of the workspace.
        let info =
            Command::new("cargo").args(["info", name]).current_dir("/").env_remove("CARGO").output()?;
        let (found, said) = (String::from_utf8_lossy(&info.stdout), String::from_utf8_lossy(&info.stderr));
        ensure!(
            info.status.success() || said.contains("could not find"),
            "crates.io does not say whether it has {name}: {said}"
        );
        ensure!(!info.status.success() || found.contains(description), "crates.io has another crate {name}");
    }
    println!("no other crate of crates.io has the name of one of these {}", public.len());
    Ok(())
}

/// `cargo install tracewing-cli` with the crates that `cargo publish` would upload, into a folder of its own.
/// The executable is all that it installs, and records locks.
fn try_installed(target: &Path) -> Result<()> {
    let packages = target.join("package");
    let version = concat!("-", env!("CARGO_PKG_VERSION"));
    let root = packages.join("root");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    let mut install = oldest_cargo()?;
    install.args(["install", "--debug", "--root"]).arg(&root).env(TARGET, target);
    install.arg("--path").arg(packages.join(format!("tracewing-cli{version}")));
    for folder in fs::read_dir(&packages)? {
        let folder = folder?.path();
        let name = folder.file_name().and_then(|name| name.to_str()?.strip_suffix(version));
        if let Some(name) = name.filter(|name| *name != "tracewing-cli") {
            install.arg("--config").arg(format!("patch.crates-io.{name}.path={folder:?}"));
        }
    }
    run_command(&mut install)?;
    let tracewing = || {
        let mut tracewing = Command::new(root.join("bin/tracewing"));
        tracewing.env("XDG_CACHE_HOME", root.join("cache"));
        tracewing
    };
    let (numbers, trace) = (root.join("numbers"), root.join("trace"));
    fs::write(&numbers, (0..200_000).map(|number| format!("{number}\n")).collect::<String>())?;
    let mut record = tracewing();
    record.args(["record", "--no-kernel", "--locks", "-o"]).arg(&trace);
    record.args(["--", "sort", "--parallel=2", "-S", "4M", "-r", "-o", "/dev/null"]).arg(&numbers);
    run_command(&mut record)?;
    let info = String::from_utf8(output(tracewing().arg("info").arg(&trace))?)?;
    ensure!(info.contains("lock:"), "the installed command has recorded no events of locks");
    fs::remove_dir_all(&root)?;
    println!("cargo install gives all that record --locks needs");
    Ok(())
}
