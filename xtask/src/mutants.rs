//! `cargo xtask mutants`: puts one fault after the other into a copy of the ring, and sees that a test finds
//! it.
//!
//! `catalogue.rs` lists the faults: a weaker ordering, a check that is missing. Each names the test that must
//! fail. A fault that does not compile, or that the test lets pass, fails the command: then either the test
//! is too weak, or the code has an ordering or a check that it does not need.

mod catalogue;

use crate::steps::target_folder;
use anyhow::{Context, Result, bail, ensure};
use catalogue::{By, MUTANTS, Mutant};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

/// Seconds that a test has to find a fault.
const LONGEST: u32 = 240;
/// What timeout(1) ends with when they are over.
const TOO_LATE: i32 = 124;

/// What `cargo xtask mutants` accepts.
#[derive(Args)]
pub struct Options {
    /// Only the faults whose file or description contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Print the list as the table in docs/explanation/mutants.md
    #[arg(long)]
    list: bool,
}

/// Puts in each fault that the options choose; fails if a test does not find one.
pub fn run(options: &Options) -> Result<()> {
    let is_chosen = |mutant: &&Mutant| {
        let text = options.filter.as_deref().unwrap_or_default();
        mutant.file.contains(text) || mutant.fault.contains(text)
    };
    let mutants: Vec<_> = MUTANTS.iter().filter(is_chosen).collect();
    if options.list {
        print!("{}", table(&mutants));
        return Ok(());
    }
    let tree = Tree::new()?;
    let (begin, mut failures) = (Instant::now(), 0);
    for mutant in &mutants {
        let start = Instant::now();
        let result = tree.try_out(mutant);
        failures += u32::from(result.is_err());
        let result = result.map_or_else(|error| format!("NOT FOUND: {error:#}"), |()| "found".to_owned());
        println!("{:6.1} s  {}: {}: {result}", start.elapsed().as_secs_f64(), mutant.file, mutant.fault);
    }
    println!("{} faults, {:.0} s", mutants.len(), begin.elapsed().as_secs_f64());
    ensure!(failures == 0, "{failures} faults were not found");
    Ok(())
}

/// The faults as a table in Markdown.
fn table(mutants: &[&Mutant]) -> String {
    let mut text = String::from("| file | fault | found by |\n|---|---|---|\n");
    for mutant in mutants {
        let (kind, test) = match mutant.by {
            By::Loom(test) => ("loom", test),
            By::Ring(test) => ("tests", test),
        };
        let test = if test.is_empty() { "all of them".to_owned() } else { format!("`{test}`") };
        text.push_str(&format!("| `{}` | {} | {kind}: {test} |\n", mutant.file, mutant.fault));
    }
    text
}

/// A copy of the crates that the ring consists of.
struct Tree {
    root: PathBuf,
}

impl Tree {
    fn new() -> Result<Self> {
        let (from, root) = (crate::root()?, target_folder()?.join("mutants/tree"));
        for part in ["crates/abi", "crates/ring", "crates/testing", "crates/units"] {
            copy(&from.join(part), &root.join(part))?;
        }
        let manifest = fs::read_to_string(from.join("Cargo.toml")).context("cannot read Cargo.toml")?;
        let members = |line: &str| match line.starts_with("members = ") {
            true => "members = [\"crates/*\"]\n".to_owned(),
            false => format!("{line}\n"),
        };
        let manifest: String = manifest.lines().map(members).collect();
        fs::write(root.join("Cargo.toml"), manifest).context("cannot write the copy's Cargo.toml")?;
        fs::copy(from.join("Cargo.lock"), root.join("Cargo.lock")).context("cannot copy Cargo.lock")?;
        Ok(Self { root })
    }

    /// An error if the fault is not found.
    fn try_out(&self, mutant: &Mutant) -> Result<()> {
        let path = self.root.join("crates/ring").join(mutant.file);
        let good = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(good.contains(mutant.from), "the catalogue's text is not in the file any more");
        fs::write(&path, good.replacen(mutant.from, mutant.to, 1)).context("cannot write the fault")?;
        let result = self.test(mutant);
        fs::write(&path, good).context("cannot take the fault back")?;
        result
    }

    fn test(&self, mutant: &Mutant) -> Result<()> {
        let built = self.cargo(mutant, &["--no-run"])?;
        if !built.status.success() {
            bail!("it does not compile:\n{}", String::from_utf8_lossy(&built.stderr));
        }
        let (By::Loom(test) | By::Ring(test)) = mutant.by;
        let tested = self.cargo(mutant, &["--", test])?;
        ensure!(tested.status.code() != Some(TOO_LATE), "`{test}` has not found it after {LONGEST} s");
        ensure!(!tested.status.success(), "`{test}` lets it pass");
        Ok(())
    }

    fn cargo(&self, mutant: &Mutant, arguments: &[&str]) -> Result<Output> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let (test, flags) = match mutant.by {
            By::Loom(_) => ("loom", "--cfg loom"),
            By::Ring(_) => ("ring", ""),
        };
        let mut command = if arguments.contains(&"--no-run") {
            Command::new(cargo)
        } else {
            let mut command = Command::new("timeout");
            command.arg(LONGEST.to_string()).arg(cargo);
            command
        };
        command
            .args(["test", "--release", "--quiet", "--package", "tracewing-ring", "--test", test])
            .args(arguments)
            .current_dir(&self.root)
            .env("RUSTFLAGS", flags)
            .env("RUST_BACKTRACE", "0")
            .env("CARGO_TARGET_DIR", target_folder()?.join("mutants").join(test))
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .output()
            .context("cannot start timeout (Debian package coreutils)")
    }
}

/// Copies a folder over whatever is there.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("cannot empty {}", to.display()))?;
    }
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)
                .with_context(|| format!("cannot copy {}", entry.path().display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_can_be_put_in() {
        let ring = crate::root().unwrap().join("crates/ring");
        for Mutant { file, fault, from, .. } in MUTANTS {
            let text = fs::read_to_string(ring.join(file)).unwrap();
            assert!(text.contains(from), "{file} does not have {from:?} ({fault})");
        }
    }
}
