//! What dpkg gets of a package: its description, the scripts that it runs, and the archive of all files.

use super::{line, output, write};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Run after the package is installed: makes the group, and the folder that its members may read, with or
/// without systemd.
const AFTER_INSTALLATION: &str = "\
#!/bin/sh
set -e
if [ \"$1\" = configure ]; then
    if command -v systemd-sysusers > /dev/null && command -v systemd-tmpfiles > /dev/null; then
        systemd-sysusers tracewing.conf
        systemd-tmpfiles --create tracewing.conf
    else
        groupadd --system --force tracewing
        install -d -o root -g tracewing -m 2750 /var/lib/tracewing
    fi
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
";

/// Run before the package is removed: its units stop, and nothing of systemd's refers to them any more.
const BEFORE_REMOVAL: &str = "\
#!/bin/sh
set -e
if [ \"$1\" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now tracewing.socket tracewing.service || true
fi
";

/// Run after the package is removed. When it is purged, folders that its programs and its unit have made for
/// root go, too, unless there is anything in them.
const AFTER_REMOVAL: &str = "\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
if [ \"$1\" = purge ]; then
    for folder in /var/lib/tracewing/sessions/service-*-* /var/lib/tracewing/sessions /var/lib/tracewing \\
        /run/tracewing; do
        rmdir \"$folder\" 2> /dev/null || true
    done
fi
";

/// Makes the package of a tree. Whatever is made of the same files has the same bytes.
pub(super) fn build(tree: &Path, out: &Path) -> Result<PathBuf> {
    let architecture = line(Command::new("dpkg").arg("--print-architecture"))?;
    let version = env!("CARGO_PKG_VERSION");
    let kilobytes = line(Command::new("du").args(["-ks", "--apparent-size"]).arg(tree))?;
    let kilobytes = kilobytes.split_whitespace().next().unwrap_or("0").to_owned();
    let control = format!(
        "Package: tracewing\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: the authors of tracewing <root@localhost>\n\
         Installed-Size: {kilobytes}\nDepends: libc6 (>= {}), libgcc-s1, passwd\nRecommends: less, man-db\nSuggests: bash-completion\nSection: devel\nPriority: optional\n\
         Description: records programs and the Linux kernel in one trace, and reads it back\n \
         Scheduler, interrupts, system calls, locks, functions, samples, and events of programs,\n in CTF. \
         The command tracewing, the library for record --locks and --functions, manual\n pages, completions and units of systemd.\n",
        glibc(tree)?
    );
    let sums = "cd \"$1\" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum";
    let sums = output(Command::new("sh").args(["-c", sums, "sh"]).arg(tree))?;
    write(&tree.join("DEBIAN/control"), control.as_bytes())?;
    write(&tree.join("DEBIAN/md5sums"), &sums)?;
    let scripts = [("postinst", AFTER_INSTALLATION), ("prerm", BEFORE_REMOVAL), ("postrm", AFTER_REMOVAL)];
    for (name, script) in scripts {
        let path = tree.join("DEBIAN").join(name);
        write(&path, script.as_bytes())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    // All other folders have got theirs when they were filled.
    fs::set_permissions(tree, fs::Permissions::from_mode(0o755))?;
    // Times of files are those of the commit, so that they do not depend on when the package is made.
    let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(epoch) => epoch,
        Err(_) => line(Command::new("git").args(["log", "-1", "--format=%ct"]))?,
    };
    let package = out.join(format!("tracewing_{version}_{architecture}.deb"));
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"]).arg(tree).arg(&package);
    output(dpkg.env("SOURCE_DATE_EPOCH", epoch))?;
    Ok(package)
}

/// The oldest C library that has all symbols that the programs and libraries of a tree ask for.
fn glibc(tree: &Path) -> Result<String> {
    let mut newest = None;
    for file in files_of(tree)? {
        if fs::read(&file)?.starts_with(b"\x7fELF") {
            let symbols = String::from_utf8(output(Command::new("objdump").arg("-T").arg(&file))?)?;
            newest = newest.max(newest_glibc(&symbols));
        }
    }
    let newest = newest.context("no program needs a version of the C library")?;
    Ok(newest.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
}

/// The newest version of the C library in a table of symbols, as objdump prints it.
fn newest_glibc(symbols: &str) -> Option<Vec<u32>> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let version = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        version.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>()
    });
    versions.max()
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_of(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_all_symbols_is_needed() {
        let symbols = "0 DF *UND* 0 (GLIBC_2.9) read\n0 DF *UND* 0 (GLIBC_2.34) dlsym\n0 (GLIBC_PRIVATE) x\n";
        assert_eq!(newest_glibc(symbols), Some(vec![2, 34]));
        assert_eq!(newest_glibc("no symbols"), None);
    }
}
