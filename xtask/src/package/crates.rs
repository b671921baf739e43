//! The public crates as crates.io would get them: whether they can be published, whether their names are
//! free, and what `cargo install` gives.

use super::output;
use crate::steps::{cargo_command, run as run_command, target_folder};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All public crates as crates.io would get them, with the oldest compiler that they promise. What all of
/// them depend on is compiled once.
pub fn check() -> Result<()> {
    let public = public()?;
    check_licences(&public)?;
    check_pages(&public)?;
    check_names(&public)?;
    check_documentation(&public)?;
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
    let rustc = Command::new("rustup").args(["run", &oldest, "rustc", "--version"]).output();
    let rustc =
        rustc.with_context(|| format!("rustup is needed for Rust {oldest}, the oldest that works"))?;
    if !rustc.status.success() {
        let install = ["toolchain", "install", &oldest, "--profile", "minimal"];
        run_command(Command::new("rustup").args(install))?;
    }
    println!("the crates are checked by Rust {oldest}");
    let mut cargo = Command::new("rustup");
    cargo.args(["run", &oldest, "cargo"]);
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

/// What crates.io shows of a crate has no links to files, and no pictures: it has only what is in the crate.
fn check_pages(public: &[Public]) -> Result<()> {
    for of in public {
        let Some(page) = of.text("readme") else { continue };
        let path = of.folder.join(page);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if let Some(target) = dead_link(&text) {
            bail!("{}: crates.io has no {target}", path.display());
        }
    }
    Ok(())
}

/// The target of a link that leads neither to the web nor to a heading.
fn dead_link(page: &str) -> Option<&str> {
    let mut targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.find(|target| !target.contains("://") && !target.starts_with('#'))
}

/// The documentation of the libraries has no warnings with all features that docs.rs shows.
fn check_documentation(public: &[Public]) -> Result<()> {
    let mut doc = cargo_command(&["doc", "--lib", "--no-deps", "--locked"])?;
    for of in public {
        let name = of.text("name").context("a crate has a name")?;
        doc.args(["--package", name]);
        if of.manifest.contains("\n[package.metadata.docs.rs]\nall-features = true\n") {
            let features = features(&of.manifest).map(|feature| format!("{name}/{feature}"));
            doc.args(features.flat_map(|feature| ["--features".to_owned(), feature]));
        }
    }
    run_command(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

/// The features of a manifest.
fn features(manifest: &str) -> impl Iterator<Item = &str> {
    let lines = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .filter(|name| !name.starts_with('#'))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_those_of_their_table() {
        let manifest = "[package]\nname = \"a\"\n\n[features]\n# b = c\ndefault = [\"d\"]\nd = [\n    \"dep:e\",\n]\n\n[dependencies]\nf = \"1\"\n";
        assert_eq!(features(manifest).collect::<Vec<_>>(), ["default", "d"]);
        assert_eq!(features("[dependencies]\nf = \"1\"\n").count(), 0);
    }

    #[test]
    fn links_to_files_are_dead() {
        assert_eq!(dead_link("[a](https://b.org) [c](#d)"), None);
        assert_eq!(dead_link("[a](https://b.org) ![c](docs/d.svg)"), Some("docs/d.svg"));
    }
}
