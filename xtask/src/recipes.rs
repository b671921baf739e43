//! `cargo xtask recipes`: runs the commands of `docs/how-to/recipes.md` on a small program for each framework
//! and language (`contrib/recipes`), and looks for what the page promises in their output.
//!
//! The commands and the lines that a program adds are taken from the page, so that it shows what was run.

use crate::packages::{self, FOR_RECIPES};
use crate::steps::{Steps, cargo, target_folder};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = "docs/how-to/recipes.md";

/// The programs of the recipes, and a package of their own for those in Rust.
const PROGRAMS: &str = "contrib/recipes";

/// What `cargo xtask recipes` accepts.
#[derive(Args)]
pub struct Options {
    /// Only these recipes, such as `axum` or `go` [default: all]
    names: Vec<String>,
}

/// The commands of a section of the page, on one program.
struct Recipe {
    name: &'static str,
    section: &'static str,
    /// Which of the section's blocks of commands: from 0.
    block: usize,
    program: Program,
    /// What the output of the commands contains.
    shows: &'static [&'static str],
}

/// How a program gets into the folder in which the commands run.
enum Program {
    /// Built by cargo under the first name; the commands call it by the second one.
    Rust(&'static str, &'static str),
    /// A file, and the command that compiles it, if it needs one.
    Source(&'static str, &'static [&'static str]),
}

const GO: Program = Program::Source("main.go", &["go", "build", "-o", "server", "main.go"]);
const JAVA: Program = Program::Source("Program.java", &["javac", "Program.java"]);
const PYTHON: Program = Program::Source("program.py", &[]);
const NODE: Program = Program::Source("program.js", &[]);

const fn recipe(
    name: &'static str,
    (section, block): (&'static str, usize),
    program: Program,
    shows: &'static [&'static str],
) -> Recipe {
    Recipe { name, section, block, program, shows }
}

const ASYNC: (&str, usize) = ("Async Rust", 0);
const THREADS: &str = "Threads in Rust";
const METHOD: &str = "/grpc.health.v1.Health/Check";
const PAIRED: &str = "1000 periods; unmatched: 0 begin events, 0 end events";

const RECIPES: &[Recipe] = &[
    recipe("axum", ASYNC, Program::Rust("axum", "server"), &["/prices"]),
    recipe("tower", ASYNC, Program::Rust("tower", "server"), &["order"]),
    recipe("tonic", ASYNC, Program::Rust("tonic", "server"), &[METHOD]),
    recipe("hyper", ASYNC, Program::Rust("hyper", "server"), &["request"]),
    recipe("actix-web", ASYNC, Program::Rust("actix-web", "server"), &["/prices"]),
    recipe("rayon", (THREADS, 0), Program::Rust("rayon", "my-program"), &["rayon-0", "rayon-1", "digest"]),
    recipe("crossbeam", (THREADS, 1), Program::Rust("my-program", "my-program"), &[PAIRED]),
    recipe("python", ("Python", 0), PYTHON, &["\"inner\"", "inner"]),
    recipe("python-samples", ("Python", 1), PYTHON, &["py::inner:"]),
    recipe("node", ("Node.js", 0), NODE, &["JS:*work"]),
    recipe("go", ("Go", 0), GO, &["server:main.work", " main.work "]),
    recipe("java", ("Java", 0), JAVA, &["tid"]),
    recipe("java-samples", ("Java", 1), JAVA, &["long Program.work(long)"]),
];

/// Builds tracewing and the programs, and runs the recipes.
pub fn run(options: &Options) -> Result<()> {
    for name in &options.names {
        ensure!(RECIPES.iter().any(|recipe| recipe.name == name), "no recipe is called {name}");
    }
    packages::ensure(FOR_RECIPES)?;
    let page = fs::read_to_string(crate::root()?.join(PAGE))?;
    let target = target_folder()?;
    let built = target.join("recipes");
    let mut steps = Steps::default();
    steps.run("the page has the programs' lines", || check_lines(&page));
    cargo(&["build", "--package", "tracewing-cli", "--package", "tracewing-preload"])?;
    let manifest = format!("{PROGRAMS}/Cargo.toml");
    let built_as_text = built.display().to_string();
    cargo(&["build", "--locked", "--manifest-path", &manifest, "--target-dir", &built_as_text])?;
    for recipe in RECIPES {
        if options.names.is_empty() || options.names.iter().any(|name| name == recipe.name) {
            steps.run(recipe.name, || recipe.try_in(&built, &target.join("debug"), &page));
        }
    }
    steps.finish()
}

impl Recipe {
    /// Runs the commands in an empty folder below `built`.
    fn try_in(&self, built: &Path, tracewing: &Path, page: &str) -> Result<()> {
        let folder = built.join("run");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        self.program.put_into(&folder, built)?;
        let commands = blocks(page, self.section);
        let commands = commands.get(self.block).context("the page lacks the commands")?;
        if commands.contains("python3.12") && !works("python3.12") {
            println!("left out: there is no python3.12");
            return Ok(());
        }
        let mut shell = Command::new("bash");
        shell.args(["-e", "-o", "pipefail", "-c", &script(commands)]).current_dir(&folder);
        shell.env("PATH", path_with(&[&folder, tracewing])?).env("XDG_CONFIG_HOME", &folder);
        if let Some(library) = java_library() {
            shell.env("JVM", library);
        }
        let output = shell.output().context("cannot start bash")?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let missing = self.shows.iter().find(|text| !printed.contains(**text));
        if !output.status.success() || missing.is_some() {
            print!("{printed}{}", String::from_utf8_lossy(&output.stderr));
        }
        ensure!(output.status.success(), "the commands ended with {}", output.status);
        ensure!(missing.is_none(), "the output lacks {missing:?}");
        Ok(fs::remove_dir_all(&folder)?)
    }
}

impl Program {
    fn put_into(&self, folder: &Path, built: &Path) -> Result<()> {
        match *self {
            Self::Rust(name, called) => {
                symlink(built.join("debug").join(name), folder.join(called))?;
            }
            Self::Source(file, compile) => {
                fs::copy(crate::root()?.join(PROGRAMS).join(file), folder.join(file))?;
                if let Some((compiler, arguments)) = compile.split_first() {
                    let status = Command::new(compiler).args(arguments).current_dir(folder).status();
                    let status = status.with_context(|| format!("cannot start {compiler}"))?;
                    ensure!(status.success(), "{compiler} ended with {status}");
                }
            }
        }
        Ok(())
    }
}

/// The blocks of commands in a section of the page: its indented lines.
fn blocks(page: &str, section: &str) -> Vec<String> {
    let title = format!("## {section}");
    let lines = page.lines().skip_while(|line| *line != title).skip(1);
    let mut blocks: Vec<String> = Vec::new();
    let mut is_within = false;
    for line in lines.take_while(|line| !line.starts_with("## ")) {
        match (line.strip_prefix("    "), is_within) {
            (Some(command), true) => blocks.last_mut().expect("it has begun").push_str(command),
            (Some(command), false) => blocks.push(command.to_owned()),
            (None, _) => {}
        }
        is_within = line.starts_with("    ");
        if is_within {
            blocks.last_mut().expect("it has begun").push('\n');
        }
    }
    blocks
}

/// The commands as a script: each recording replaces the one before, and what is to be run while it is made
/// is run once it has begun.
fn script(commands: &str) -> String {
    let commands = commands.replace("tracewing record ", "rm -rf trace; tracewing record ");
    let (during, after): (Vec<&str>, Vec<&str>) =
        commands.lines().partition(|line| line.ends_with("# while it runs"));
    let mut script = after.join("\n");
    for command in during {
        // It does not find the recording before it has begun, and never after its end.
        let waiting = format!("until {command}\ndo test ! -e ended; sleep 0.01; done");
        script = format!("({waiting}) & during=$!\n{script}\ntouch ended\nwait $during");
    }
    script
}

/// What the page says that a program adds is in the program of that name.
fn check_lines(page: &str) -> Result<()> {
    let mut count = 0;
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let cells = line.replace("\\|", "\u{1}");
        let cells: Vec<String> = cells.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect();
        let crate_name = cells[1].split(' ').next().unwrap_or_default();
        let Some(recipe) = RECIPES.iter().find(|recipe| recipe.name == crate_name) else { continue };
        let Program::Rust(..) = recipe.program else { continue };
        let file = format!("{PROGRAMS}/src/bin/{crate_name}.rs");
        let source = fs::read_to_string(crate::root()?.join(&file)).with_context(|| file.clone())?;
        let Some(code) = cells[2].split('`').nth(1) else { bail!("{PAGE}: no code for {crate_name}") };
        ensure!(source.contains(code), "{file} lacks `{code}`");
        count += 1;
    }
    let expected = RECIPES.iter().filter(|recipe| matches!(recipe.program, Program::Rust(..))).count();
    ensure!(count == expected, "{PAGE} has lines of {count} programs, not of {expected}");
    Ok(())
}

/// Whether a program starts and succeeds: a version manager may have one that only says what it lacks.
fn works(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The library of the virtual machine that `java` runs.
fn java_library() -> Option<PathBuf> {
    let java = PathBuf::from("/usr/bin/java").canonicalize().ok()?;
    Some(java.parent()?.parent()?.join("lib/server/libjvm.so"))
}

fn path_with(folders: &[&Path]) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = folders.iter().map(|folder| folder.to_path_buf());
    Ok(std::env::join_paths(folders.chain(std::env::split_paths(&path)))?)
}
