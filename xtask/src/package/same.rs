//! What makes a package depend on nothing but the commit and the compiler, and a second build that shows it.

use super::{built, line, make};
use crate::steps::target_folder;
use anyhow::{Context, Result, bail, ensure};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where programs of the package say that their sources are: the package has some of them there.
const SOURCES: &str = "/usr/share/doc/tracewing";

/// Flags of the compiler, as cargo takes them from the environment instead of those that its user has set:
/// the paths of the clone, of cargo's folder and of the compiler do not get into programs.
pub(super) fn flags() -> Result<String> {
    let root = crate::root()?.canonicalize()?;
    let about = line(Command::new("rustc").arg("-vV").current_dir(&root))?;
    let commit = about.lines().find_map(|line| line.strip_prefix("commit-hash: ")).unwrap_or("unknown");
    let sysroot = line(Command::new("rustc").args(["--print", "sysroot"]).current_dir(&root))?;
    let library = Path::new(&sysroot).join("lib/rustlib/src/rust");
    let of_library = format!("/rustc/{commit}");
    let (target, home) = (target_folder()?, cargo_home()?);
    Ok(remapped(&[
        (root.as_path(), SOURCES),
        (target.as_path(), "/target"),
        (home.as_path(), "/cargo"),
        (library.as_path(), &of_library),
    ]))
}

/// Of several that fit a path, the last one is applied.
fn remapped(places: &[(&Path, &str)]) -> String {
    let flags = places.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    flags.collect::<Vec<_>>().join("\u{1f}")
}

/// The folder in which cargo keeps the sources of crates.
fn cargo_home() -> Result<PathBuf> {
    if let Some(home) = env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    Ok(env::home_dir().context("neither CARGO_HOME nor HOME is set")?.join(".cargo"))
}

/// Fails if the package would not be that of the commit, unless its date is given, too.
pub(super) fn is_committed() -> Result<()> {
    if env::var_os("SOURCE_DATE_EPOCH").is_some() {
        return Ok(());
    }
    let changes = line(Command::new("git").args(["status", "--porcelain"]).current_dir(crate::root()?))?;
    ensure!(
        changes.is_empty(),
        "files differ from the commit whose date the package would have; commit them, or set \
         SOURCE_DATE_EPOCH:\n{changes}"
    );
    Ok(())
}

/// Where the first build is kept during the second one.
fn first_of(built: &Path) -> PathBuf {
    built.with_extension("first")
}

/// Puts the first build back, if a second one was killed.
pub(super) fn restore(built: &Path) -> Result<()> {
    let first = first_of(built);
    if !first.exists() {
        return Ok(());
    }
    if built.exists() {
        fs::remove_dir_all(built)?;
    }
    fs::rename(&first, built).with_context(|| format!("cannot move {}", first.display()))
}

/// Makes the package once more, of programs that are all built anew: in the same folder, since programs name
/// the places of their sources.
pub(super) fn again(package: &Path, debug: bool) -> Result<()> {
    let first = fs::read(package)?;
    let built = built(debug)?;
    let aside = first_of(&built);
    fs::rename(&built, &aside).with_context(|| format!("cannot move {}", built.display()))?;
    let out = package.parent().context("a package is in a folder")?;
    let second = make(out, debug).and_then(|package| Ok(fs::read(package)?));
    restore(&built)?;
    if second? != first {
        let kept = package.with_extension("first.deb");
        fs::write(&kept, first)?;
        bail!("a second build gives another package: {}, before {}", package.display(), kept.display());
    }
    println!("a second build gives the same {} bytes", first.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_a_flag() {
        let flags = remapped(&[(Path::new("/a b"), "/c"), (Path::new("/d"), "/e")]);
        assert_eq!(flags, "--remap-path-prefix=/a b=/c\u{1f}--remap-path-prefix=/d=/e");
    }

    #[test]
    fn a_second_build_that_was_killed_leaves_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let built = folder.path().join("release");
        let content = || fs::read_to_string(built.join("program")).unwrap();
        let write = |folder: &Path, text| {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("program"), text).unwrap();
        };
        write(&built, "only");
        restore(&built).unwrap();
        assert_eq!(content(), "only");
        write(&first_of(&built), "first");
        write(&built, "second");
        restore(&built).unwrap();
        assert_eq!((content().as_str(), first_of(&built).exists()), ("first", false));
    }
}
