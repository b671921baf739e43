//! `cargo xtask recipes`: runs the commands of `docs/how-to/recipes.md` on a small program for each framework
//! and language (`contrib/recipes`), and looks for what the page promises in the output of each command.
//!
//! The commands and the lines that a program adds are taken from the page, so that it shows what was run.
//! `tidy` compares the page with the programs and with the list of recipes; it runs nothing.

mod page;

use crate::packages::{self, FOR_RECIPES};
use crate::steps::{Steps, cargo, target_folder};
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use page::faults;

/// The page with the recipes.
pub const PAGE: &str = "docs/how-to/recipes.md";

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
    /// For each of the commands, what its output contains.
    shows: &'static [&'static [&'static str]],
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
    shows: &'static [&'static [&'static str]],
) -> Recipe {
    Recipe { name, section, block, program, shows }
}

const ASYNC: (&str, usize) = ("Async Rust", 0);
const THREADS: &str = "Threads in Rust";
/// `tracewing record` prints what the program does; the next commands show whether it has recorded.
const RECORDED: &[&str] = &[];
const ROUTE: &[&[&str]] = &of_requests(&["/prices/{item}"]);
const ORDER: &[&[&str]] = &of_requests(&["order"]);
const METHOD: &[&[&str]] = &of_requests(&["Health/Check"]);
const REQUEST: &[&[&str]] = &of_requests(&["request"]);
/// What `tracewing latency` prints at its end if there are periods.
const COUNTED: &str = " periods; unmatched: ";
const PAIRED: &str = "1000 periods; unmatched: 0 begin events, 0 end events";

/// What the commands for async Rust show: the names of requests.
const fn of_requests(name: &'static [&'static str]) -> [&'static [&'static str]; 4] {
    [RECORDED, name, name, name]
}

const RECIPES: &[Recipe] = &[
    recipe("axum", ASYNC, Program::Rust("axum", "server"), ROUTE),
    recipe("tower", ASYNC, Program::Rust("tower", "server"), ORDER),
    recipe("tonic", ASYNC, Program::Rust("tonic", "server"), METHOD),
    recipe("hyper", ASYNC, Program::Rust("hyper", "server"), REQUEST),
    recipe("actix-web", ASYNC, Program::Rust("actix-web", "server"), ROUTE),
    recipe(
        "rayon",
        (THREADS, 0),
        Program::Rust("rayon", "my-program"),
        &[RECORDED, &["rayon-0", "rayon-1"], &["digest"]],
    ),
    recipe("crossbeam", (THREADS, 1), Program::Rust("my-program", "my-program"), &[RECORDED, &[PAIRED]]),
    recipe("python", ("Python", 0), PYTHON, &[RECORDED, &["\"inner\""], &["inner"]]),
    recipe("python-samples", ("Python", 1), PYTHON, &[RECORDED, &["py::inner:"]]),
    recipe("node", ("Node.js", 0), NODE, &[RECORDED, &["JS:*work"]]),
    recipe("go", ("Go", 0), GO, &[RECORDED, &["server:main.work"], RECORDED, &[" main.work "]]),
    recipe("java", ("Java", 0), JAVA, &[RECORDED, &["tid", COUNTED], RECORDED, &[COUNTED]]),
    recipe("java-samples", ("Java", 1), JAVA, &[RECORDED, &["long Program.work(long)"]]),
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
    steps.run("the page agrees with the programs", || {
        let root = crate::root()?;
        let found = faults(&page, |path| fs::read_to_string(root.join(path)).ok());
        ensure!(found.is_empty(), "{PAGE}: {}", found.join("\n"));
        Ok(())
    });
    cargo(&["build", "--package", "tracewing-cli", "--package", "tracewing-preload"])?;
    let manifest = format!("{PROGRAMS}/Cargo.toml");
    let built_as_text = built.display().to_string();
    cargo(&["build", "--locked", "--manifest-path", &manifest, "--target-dir", &built_as_text])?;
    for recipe in RECIPES {
        if !options.names.is_empty() && options.names.iter().all(|name| name != recipe.name) {
            continue;
        }
        match recipe.lacks(&page) {
            Some(reason) => steps.leave_out(recipe.name, reason),
            None => steps.run(recipe.name, || recipe.try_in(&built, &target.join("debug"), &page)),
        }
    }
    steps.finish()
}

impl Recipe {
    /// Its commands, with the lines that continue them.
    fn commands(&self, page: &str) -> Option<Vec<String>> {
        page::blocks(page, self.section).into_iter().nth(self.block)
    }

    /// Why it cannot be run on this machine.
    fn lacks(&self, page: &str) -> Option<&'static str> {
        let commands = self.commands(page)?;
        let is_called = commands.iter().any(|command| command.contains("python3.12"));
        (is_called && !works("python3.12")).then_some("there is no python3.12")
    }

    /// Runs the commands in an empty folder below `built`.
    fn try_in(&self, built: &Path, tracewing: &Path, page: &str) -> Result<()> {
        let folder = built.join("run");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        self.program.put_into(&folder, built)?;
        let commands = self.commands(page).context("the page lacks the commands")?;
        let mut shell = Command::new("bash");
        shell.args(["-e", "-o", "pipefail", "-c", &script(&commands)]).current_dir(&folder);
        shell.env("PATH", path_with(&[&folder, tracewing])?).env("XDG_CONFIG_HOME", &folder);
        if let Some(library) = java_library() {
            shell.env("JVM", library);
        }
        let output = shell.output().context("cannot start bash")?;
        let printed = |number| fs::read_to_string(folder.join(output_of(number))).unwrap_or_default();
        ensure!(
            output.status.success(),
            "the commands ended with {}; they have printed:\n{}{}",
            output.status,
            (0..commands.len()).map(printed).collect::<String>(),
            String::from_utf8_lossy(&output.stderr)
        );
        for (number, (command, shows)) in commands.iter().zip(self.shows).enumerate() {
            let printed = printed(number);
            for text in *shows {
                ensure!(printed.contains(text), "`{command}` has not printed {text:?}:\n{printed}");
            }
        }
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

/// The file that gets what a command prints.
fn output_of(number: usize) -> String {
    format!("printed-{number}")
}

/// The commands as a script: each recording replaces the one before, and what is to be run while it is made
/// is run once it has begun.
fn script(commands: &[String]) -> String {
    let (mut script, mut during) = (String::new(), Vec::new());
    for (number, command) in commands.iter().enumerate() {
        let is_during = command.ends_with("# while it runs");
        // A comment may end the command.
        let command = format!("{{ {command}\n}} > {}", output_of(number));
        if is_during {
            during.push(command);
        } else if command.contains("tracewing record ") {
            script += &format!("rm -rf trace\n{command}\n");
        } else {
            script += &format!("{command}\n");
        }
    }
    for command in during {
        // It does not find the recording before it has begun, and never after its end.
        let waiting = format!("until {command}\ndo test ! -e ended; sleep 0.01; done");
        script = format!("({waiting}) & during=$!\n{script}\ntouch ended\nwait $during");
    }
    script
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
