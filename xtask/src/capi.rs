//! `cargo xtask capi`: builds the library for C and C++ and installs it with its header, for `pkg-config`.

use crate::packages;
use crate::steps::{cargo, target_folder};
use anyhow::{Context, Result};
use clap::Args;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What `cargo xtask capi` accepts.
#[derive(Args)]
pub struct Options {
    /// Folder that gets `include`, `lib` and `lib/pkgconfig`
    #[arg(long, default_value = "/usr/local", value_name = "DIR")]
    prefix: PathBuf,

    /// Install what a debug build gives: for tests
    #[arg(long)]
    debug: bool,
}

/// Builds, copies, and writes `tracewing.pc`.
pub fn run(options: &Options) -> Result<()> {
    packages::ensure(packages::FOR_CAPI)?;
    let mut build = vec!["build", "--package", "tracewing-capi"];
    if !options.debug {
        build.push("--release");
    }
    cargo(&build)?;
    let built = target_folder()?.join(if options.debug { "debug" } else { "release" });
    fs::create_dir_all(&options.prefix)
        .with_context(|| format!("cannot make {}", options.prefix.display()))?;
    let prefix = options.prefix.canonicalize()?;
    let (include, lib) = (prefix.join("include"), prefix.join("lib"));
    let pkgconfig = lib.join("pkgconfig");
    for folder in [&include, &pkgconfig] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let source = crate::root()?.join("crates/capi");
    copy(&source.join("include/tracewing.h"), &include.join("tracewing.h"))?;
    copy(&built.join("libtracewing_capi.a"), &lib.join("libtracewing.a"))?;
    copy(&built.join("libtracewing_capi.so"), &lib.join("libtracewing.so.0"))?;
    let link = lib.join("libtracewing.so");
    if link.symlink_metadata().is_ok() {
        fs::remove_file(&link)?;
    }
    symlink("libtracewing.so.0", &link).with_context(|| format!("cannot make {}", link.display()))?;
    let template = fs::read_to_string(source.join("tracewing.pc.in"))?;
    let filled = template
        .replace("@PREFIX@", &prefix.display().to_string())
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    fs::write(pkgconfig.join("tracewing.pc"), filled)?;
    println!("installed below {}; with PKG_CONFIG_PATH={}:", prefix.display(), pkgconfig.display());
    println!("  cc program.c $(pkg-config --cflags --libs tracewing)");
    Ok(())
}

/// A library that runs may not be written to, so the new file takes the old one's place.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let new = to.with_extension("new");
    fs::copy(from, &new)
        .and_then(|_| fs::rename(&new, to))
        .with_context(|| format!("cannot write {}", to.display()))
}
