//! `cargo xtask book`: builds the book of `docs/` with mdBook, and installs that if it is missing. The book
//! is not part of the tests: `tidy` checks its links.

use crate::packages::on_path;
use crate::steps::{cargo, run as run_command, target_folder};
use anyhow::{Context, Result};
use clap::Args;
use std::path::PathBuf;
use std::process::Command;

/// What `cargo xtask book` accepts.
#[derive(Args)]
pub struct Options {
    /// Where to write the pages [default: target/book]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Builds the book and prints where it begins.
pub fn run(options: &Options) -> Result<()> {
    let target = target_folder()?;
    let output = std::path::absolute(options.output.clone().unwrap_or_else(|| target.join("book")))?;
    let mdbook = mdbook(&target.join("tools"))?;
    run_command(Command::new(mdbook).arg("build").arg("--dest-dir").arg(&output))?;
    println!("the book begins at {}", output.join("index.html").display());
    Ok(())
}

/// The program: of the machine, else of the tools' folder, into which cargo installs it once.
fn mdbook(tools: &std::path::Path) -> Result<PathBuf> {
    if on_path("mdbook") {
        return Ok("mdbook".into());
    }
    let installed = tools.join("bin/mdbook");
    if !installed.is_file() {
        println!("book: installing mdbook into {} (some minutes, once)", tools.display());
        let root = tools.to_str().context("the target folder is not UTF-8")?;
        cargo(&["install", "mdbook", "--locked", "--root", root])
            .context("install mdbook by hand (https://rust-lang.github.io/mdBook/guide/installation.html)")?;
    }
    Ok(installed)
}
