//! `cargo xtask package`: a Debian package with everything that `tracewing` needs, the same bytes each time.
//!
//! | module | does |
//! |---|---|
//! | `same` | what makes the bytes the same, and a second build that is compared |
//! | `control` | what dpkg gets: the description, the scripts, the archive |
//! | `notices` | the crates that are linked into the programs, and their notices |
//! | `links` | pages, without links to files that are not in the package |
//! | `trial` | installs it in a bare Debian, and in one that systemd has started |
//! | `crates` | checks the crates as crates.io gets them |

mod control;
mod crates;
mod links;
mod notices;
mod same;
mod trial;

use crate::packages;
use crate::steps::{cargo_command, run as run_command, target_folder};
use anyhow::{Context, Result, bail};
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

    /// Also install the package where systemd runs, in a container, and try its units there; needs root,
    /// and Debian's archive
    #[arg(long)]
    units: bool,

    /// Also build everything a second time, and check that the package has the same bytes
    #[arg(long)]
    again: bool,

    /// Check all public crates as `cargo publish` does, install the command from them, and record
    /// locks with it; make no package
    #[arg(long, conflicts_with_all = ["out", "debug", "tries", "units", "again"])]
    crates: bool,
}

/// What systemd reads, in `contrib`, and where Debian has it.
const UNITS: [(&str, &str); 6] = [
    ("systemd/tracewing.service", "usr/lib/systemd/system/tracewing.service"),
    ("systemd/tracewing.socket", "usr/lib/systemd/system/tracewing.socket"),
    ("systemd/user/tracewing.service", "usr/lib/systemd/user/tracewing.service"),
    ("systemd/user/tracewing.socket", "usr/lib/systemd/user/tracewing.socket"),
    ("sysusers.d/tracewing.conf", "usr/lib/sysusers.d/tracewing.conf"),
    ("tmpfiles.d/tracewing.conf", "usr/lib/tmpfiles.d/tracewing.conf"),
];

/// Shells, and where Debian has their completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/tracewing"),
    ("zsh", "usr/share/zsh/vendor-completions/_tracewing"),
    ("fish", "usr/share/fish/vendor_completions.d/tracewing.fish"),
];

/// The programs that the tutorial and other pages record.
const EXAMPLES: [&str; 3] = ["quotes", "reactivity", "shop"];

pub fn run(options: &Options) -> Result<()> {
    if options.crates {
        return crates::check();
    }
    packages::ensure(packages::FOR_PACKAGE)?;
    if !options.debug {
        same::is_committed()?;
    }
    same::restore(&built(options.debug)?)?;
    let out = match &options.out {
        Some(out) => out.clone(),
        None => target_folder()?.join("debian"),
    };
    let package = make(&out, options.debug)?;
    println!("{}", package.display());
    if options.again {
        same::again(&package, options.debug)?;
    }
    if options.tries {
        trial::in_bare_debian(&package, &out.join("root"))?;
    }
    if options.units {
        trial::of_units(&package, &out.join("machine"))?;
    }
    Ok(())
}

/// Builds the programs, and the package of them.
fn make(out: &Path, debug: bool) -> Result<PathBuf> {
    let profile: &[&str] = if debug { &[] } else { &["--release"] };
    let mut build = cargo_command(&[&["build", "--locked"], profile, &of_programs()].concat())?;
    run_command(build.env("CARGO_ENCODED_RUSTFLAGS", same::flags()?))?;
    let tree = out.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    fill(&tree, &built(debug)?)?;
    control::build(&tree, out)
}

/// What selects the packages of the programs, for cargo.
fn of_programs() -> Vec<&'static str> {
    let programs = ["tracewing-cli", "tracewing-preload"].iter().chain(&EXAMPLES);
    programs.flat_map(|program| ["-p", *program]).collect()
}

/// The folder of the programs that cargo has built.
fn built(debug: bool) -> Result<PathBuf> {
    Ok(target_folder()?.join(if debug { "debug" } else { "release" }))
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
        let sources = Path::new("examples").join(example).join("src");
        copy_folder(&crate::root()?.join(&sources), &tree.join("usr/share/doc/tracewing").join(sources))?;
    }
    for (shell, path) in COMPLETIONS {
        write(&tree.join(path), &output(Command::new(&program).args(["completions", shell]))?)?;
    }
    write_manuals(&program, &tree.join("usr/share/man/man1"))?;
    let root = crate::root()?;
    for (unit, path) in UNITS {
        write(&tree.join(path), &fs::read(root.join("contrib").join(unit))?)?;
    }
    let about = tree.join("usr/share/doc/tracewing");
    let linked = notices::linked(&of_programs())?;
    let mit = fs::read_to_string(root.join("LICENSE-MIT"))?;
    write(&about.join("copyright"), notices::copyright(&linked, &mit)?.as_bytes())?;
    let texts = about.join("notices");
    write(&texts, notices::texts(&linked)?.as_bytes())?;
    compress(&texts)?;
    copy_folder(&root.join("docs"), &about.join("docs"))?;
    // Debian has the changes compressed, under a name of its own; README leads to the other file.
    let changes = about.join("changelog");
    write(&changes, &fs::read(root.join("CHANGELOG.md"))?)?;
    compress(&changes)?;
    let pages = ["CHANGELOG.md", "README.md"];
    let is_there = |file: &str| pages.contains(&file) || about.join(file).exists();
    for page in pages {
        let text = fs::read_to_string(root.join(page))?;
        write(&about.join(page), links::without_dead(&text, is_there).as_bytes())?;
    }
    Ok(())
}

/// Pages and pictures of the book, or sources of examples, so that they can be read without a clone.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let copy = to.join(path.file_name().context("an entry has a name")?);
        if path.is_dir() {
            copy_folder(&path, &copy)?;
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
