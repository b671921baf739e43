//! `cargo xtask package`: a Debian package with everything that `tracewing` needs, the same bytes each time;
//! its trial in a bare Debian; and the check of the crates as crates.io gets them.

use crate::packages;
use crate::steps::{cargo, run as run_command, target_folder};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `cargo xtask package` accepts.
#[derive(Args)]
pub struct Options {
    /// Folder that gets the package [default: target/debian]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Package what a debug build gives: for tests
    #[arg(long)]
    debug: bool,

    /// Also install the package in a bare Debian, and record there; needs root, and Debian's archive
    #[arg(long = "try")]
    tries: bool,

    /// Check all public crates as `cargo publish` does, install the command from them, and record
    /// locks with it; make no package
    #[arg(long, conflicts_with_all = ["out", "debug", "tries"])]
    crates: bool,
}

/// Units of systemd in `contrib/systemd`, and where Debian has them.
const UNITS: [(&str, &str); 2] = [
    ("tracewing.service", "usr/lib/systemd/system/tracewing.service"),
    ("user/tracewing.service", "usr/lib/systemd/user/tracewing.service"),
];

/// Shells, and where Debian has their completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/tracewing"),
    ("zsh", "usr/share/zsh/vendor-completions/_tracewing"),
    ("fish", "usr/share/fish/vendor_completions.d/tracewing.fish"),
];

/// The programs that the tutorial and other pages record.
const EXAMPLES: [&str; 3] = ["quotes", "reactivity", "shop"];

const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tracewing

Files: *
Copyright: the authors of tracewing
License: Apache-2.0 or MIT
 On Debian systems, the text of Apache-2.0 is in /usr/share/common-licenses/Apache-2.0; that of MIT follows.
 .
";

/// What the trial runs in the bare Debian: a program with locks and threads is recorded and read, and the bug
/// of the tutorial is found.
const TRIAL: &str = "set -e
dpkg -i /tracewing.deb
tracewing --version
seq 200000 > /numbers
tracewing record --locks -o /trace -- sort --parallel=2 -S 4M -r /numbers -o /sorted
tracewing info /trace > /info
tracewing threads /trace -n 3
tracewing locks /trace -n 3
test -n \"$(tracewing list -n 1 /trace)\"
test -s /usr/share/man/man1/tracewing-record.1.gz
test -s /usr/lib/systemd/system/tracewing.service
test -s /usr/share/bash-completion/completions/tracewing
PATH=$PATH:/usr/lib/tracewing/examples
tracewing record -q -o /slow -- quotes --seconds 2
tracewing latency /slow --begin quotes:request --end quotes:answer --match '$task' -n 1
tracewing locks /slow --by caller -n 1 2>&1 | tee /locks
grep 'examples/quotes/src/cache.rs:[0-9]*, is held across an .await' /locks
tracewing record -q -o /fixed -- quotes --seconds 2 --fixed
tracewing locks /fixed --by caller 2>&1 | tee /locks
if grep 'is held across an .await' /locks; then exit 1; fi
test -s /usr/share/doc/tracewing/docs/tutorial.md
dpkg -r tracewing
test ! -e /usr/bin/tracewing
";

pub fn run(options: &Options) -> Result<()> {
    if options.crates {
        return check_crates();
    }
    packages::ensure(packages::FOR_PACKAGE)?;
    let profile: &[&str] = if options.debug { &[] } else { &["--release"] };
    let mut packages = vec!["-p", "tracewing-cli", "-p", "tracewing-preload"];
    packages.extend(EXAMPLES.iter().flat_map(|example| ["-p", example]));
    cargo(&[&["build"], profile, &packages].concat())?;
    let built = target_folder()?.join(if options.debug { "debug" } else { "release" });
    let out = match &options.out {
        Some(out) => out.clone(),
        None => target_folder()?.join("debian"),
    };
    let tree = out.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    fill(&tree, &built)?;
    let package = build(&tree, &out)?;
    println!("{}", package.display());
    if options.tries { try_in_root(&package, &out.join("root")) } else { Ok(()) }
}

/// Everything that the package installs.
fn fill(tree: &Path, built: &Path) -> Result<()> {
    let program = tree.join("usr/bin/tracewing");
    let library = tree.join("usr/lib/tracewing/libtracewing_preload.so");
    copy(&built.join("tracewing"), &program, 0o755)?;
    copy(&built.join("libtracewing_preload.so"), &library, 0o644)?;
    output(Command::new("strip").args(["--strip-debug"]).arg(&program).arg(&library))?;
    for example in EXAMPLES {
        // With line tables: the pages show lines of their sources.
        copy(&built.join(example), &tree.join("usr/lib/tracewing/examples").join(example), 0o755)?;
    }
    for (shell, path) in COMPLETIONS {
        write(&tree.join(path), &output(Command::new(&program).args(["completions", shell]))?)?;
    }
    write_manuals(&program, &tree.join("usr/share/man/man1"))?;
    let root = crate::root()?;
    for (unit, path) in UNITS {
        write(&tree.join(path), &fs::read(root.join("contrib/systemd").join(unit))?)?;
    }
    let about = tree.join("usr/share/doc/tracewing");
    let mit = fs::read_to_string(root.join("LICENSE-MIT"))?;
    let mit = mit.lines().map(|line| if line.is_empty() { " .\n".to_owned() } else { format!(" {line}\n") });
    write(&about.join("copyright"), (COPYRIGHT.to_owned() + &mit.collect::<String>()).as_bytes())?;
    copy_book(&root.join("docs"), &about.join("docs"))?;
    write(&about.join("README.md"), &fs::read(root.join("README.md"))?)?;
    let changes = about.join("changelog");
    write(&changes, &fs::read(root.join("CHANGELOG.md"))?)?;
    compress(&changes)
}

/// The pages and pictures of the book, so that they can be read without a clone.
fn copy_book(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let copy = to.join(path.file_name().context("an entry has a name")?);
        if path.is_dir() {
            copy_book(&path, &copy)?;
        } else {
            write(&copy, &fs::read(&path)?)?;
        }
    }
    Ok(())
}

/// A page for the program, and for each command of it, as its help lists them.
fn write_manuals(program: &Path, folder: &Path) -> Result<()> {
    let page = |words: &[&str]| output(Command::new(program).arg("man").args(words));
    let mut commands = vec![Vec::new()];
    while let Some(words) = commands.pop() {
        let words: Vec<String> = words;
        let names: Vec<&str> = words.iter().map(String::as_str).collect();
        let help = output(Command::new(program).args(&names).arg("--help"))?;
        for below in commands_of(&String::from_utf8(help)?) {
            commands.push([words.clone(), vec![below]].concat());
        }
        let file = folder.join([&["tracewing"], &names[..]].concat().join("-") + ".1");
        write(&file, &page(&names)?)?;
        compress(&file)?;
    }
    Ok(())
}

/// The names below `Commands:` in a help.
fn commands_of(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !["", "help"].contains(name)).map(str::to_owned).collect()
}

/// Makes the package of a tree. Whatever is made of the same files has the same bytes.
fn build(tree: &Path, out: &Path) -> Result<PathBuf> {
    let architecture = line(Command::new("dpkg").arg("--print-architecture"))?;
    let version = env!("CARGO_PKG_VERSION");
    let kilobytes = line(Command::new("du").args(["-ks", "--apparent-size"]).arg(tree))?;
    let kilobytes = kilobytes.split_whitespace().next().unwrap_or("0").to_owned();
    let control = format!(
        "Package: tracewing\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: the authors of tracewing <root@localhost>\n\
         Installed-Size: {kilobytes}\nDepends: libc6 (>= {}), libgcc-s1\nRecommends: less\nSection: devel\nPriority: optional\n\
         Description: records programs and the Linux kernel in one trace, and reads it back\n \
         Scheduler, interrupts, system calls, locks, functions, samples, and events of programs,\n in CTF. \
         The command tracewing, the library for record --locks and --functions, manual\n pages, completions and units of systemd.\n",
        glibc(&tree.join("usr/bin/tracewing"))?
    );
    let sums = "cd \"$1\" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum";
    let sums = output(Command::new("sh").args(["-c", sums, "sh"]).arg(tree))?;
    write(&tree.join("DEBIAN/control"), control.as_bytes())?;
    write(&tree.join("DEBIAN/md5sums"), &sums)?;
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

/// The oldest C library that has all symbols that a program asks for.
fn glibc(program: &Path) -> Result<String> {
    let symbols = String::from_utf8(output(Command::new("objdump").arg("-T").arg(program))?)?;
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let version = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        version.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>()
    });
    let newest = versions.max().context("the program needs no version of the C library")?;
    Ok(newest.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
}

/// Installs the package in a Debian that has nothing else, records there, and removes it.
fn try_in_root(package: &Path, root: &Path) -> Result<()> {
    packages::ensure(packages::FOR_TRIAL)?;
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    run_command(Command::new("debootstrap").args(["--variant=minbase", "bookworm"]).arg(root))?;
    fs::copy(package, root.join("tracewing.deb"))?;
    fs::write(root.join("trial"), TRIAL)?;
    // In a mount namespace of its own, so that nothing stays mounted.
    let script = "mount -t proc proc \"$1/proc\" && mount --rbind /sys \"$1/sys\" && mount --rbind /dev \"$1/dev\" \
                  && exec chroot \"$1\" sh -x /trial";
    let tried = run_command(Command::new("unshare").args(["--mount", "sh", "-c", script, "sh"]).arg(root));
    let info = fs::read_to_string(root.join("info")).unwrap_or_default();
    fs::remove_dir_all(root)?;
    tried?;
    ensure!(info.contains("lock:"), "the recording in the bare Debian has no events of locks");
    println!("the package records in a bare Debian");
    Ok(())
}

/// All public crates as crates.io would get them, with the oldest compiler that they promise. What all of
/// them depend on is compiled once.
fn check_crates() -> Result<()> {
    check_licences()?;
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

/// Each public crate has the texts of its licences, since a package contains only what is in its folder.
fn check_licences() -> Result<()> {
    for folder in fs::read_dir(crate::root()?.join("crates"))? {
        let folder = folder?.path();
        let is_public = !fs::read_to_string(folder.join("Cargo.toml"))?.contains("publish = false");
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let has = folder.join(licence).is_file();
            ensure!(
                has || !is_public,
                "{} has no {licence}: link it to the one of the repository",
                folder.display()
            );
        }
    }
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

fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    write(to, &fs::read(from).with_context(|| format!("cannot read {}", from.display()))?)?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}

/// Writes a file and the folders above it, with the permissions that Debian's have.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().context("a file is in a folder")?;
    fs::create_dir_all(folder)?;
    for folder in folder.ancestors().take_while(|folder| !folder.ends_with("tree")) {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o644))?)
}

/// Without name and time, so that the result depends on the content alone.
fn compress(path: &Path) -> Result<()> {
    output(Command::new("gzip").args(["-9n"]).arg(path)).map(drop)
}

/// What a command prints.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let name = command.get_program().display().to_string();
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!("{name} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

fn line(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8(output(command)?)?.trim().to_owned())
}
