//! Shared code of the tests of several packages.
//!
//! | module | contents |
//! |---|---|
//! | this one | programs that tests build: targets of the project's workspace, workspaces of their own; copies |
//! | `run` | running commands within a limit of time, and what they printed |
//! | `skip`, `machine` | features of this machine; tests that cannot run on it |
//! | `users`, `signals`, `terminal`, `seccomp` | other users, default signals, pseudo-terminals, system call filters |
//! | `account` | comparisons with the kernel's own account of time |

#![warn(unreachable_pub)]

mod account;
mod machine;
mod run;
mod seccomp;
mod signals;
mod skip;
mod terminal;
mod users;

pub use account::{agrees_with_the_kernels, charged_before, hidden, stolen};
pub use machine::{installed, traceable};
pub use run::{Printed, RunExt, wait_until};
pub use seccomp::{allow_only, fail, filter, refuse_namespaces};
pub use signals::{signal, with_default_signals};
pub use skip::{Cause, LISTED, Listed, skip};
pub use terminal::{OnTerminal, on_terminal};
pub use users::{NOBODY, STRANGER, am_root, become_user, is_root};

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set by `cargo xtask test`, which builds all targets of the project before it runs the tests. A build of
/// one package has fewer features, so it would compile most of the project anew for each of them.
const ALL_BUILT: &str = "TRACEWING_ALL_BUILT";

/// Builds a target of the project as `cargo build` does with these arguments, unless all have been built;
/// returns the folder of executables. `within` is a test's `CARGO_TARGET_TMPDIR`.
///
/// # Panics
/// The build fails.
pub fn build(within: &str, arguments: &[&str]) -> PathBuf {
    let target = Path::new(within).parent().expect("a folder of the target folder");
    if env::var_os(ALL_BUILT).is_some() && !arguments.contains(&"--release") {
        return target.join("debug");
    }
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--target-dir"])
        .arg(target)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(status.is_ok_and(|status| status.success()), "cargo build {arguments:?}");
    target.join("debug")
}

/// Copies a program in order to execute it. A separate process does the copying: otherwise a child that
/// another test forks meanwhile could inherit the copy open for writing, and the kernel executes no such file
/// (`ETXTBSY`).
///
/// # Panics
/// The copy fails.
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let (from, to) = (from.as_ref(), to.as_ref());
    let status = Command::new("cp").arg(from).arg(to).status();
    assert!(status.is_ok_and(|status| status.success()), "cp {} {}", from.display(), to.display());
}

/// A workspace that tests fill and build; later runs do not rebuild unchanged files.
pub struct Workspace {
    folder: PathBuf,
}

impl Workspace {
    /// The workspace `name` with these packages, in a permanent folder: a test's `CARGO_TARGET_TMPDIR`.
    ///
    /// # Panics
    /// It cannot be written. The same applies to the other methods.
    pub fn new(within: &str, name: &str, members: &[&str]) -> Self {
        let workspace = Self { folder: Path::new(within).join(name) };
        workspace.write("Cargo.toml", &format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n"));
        // The versions that the project itself uses, so that nothing has to be downloaded.
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
        if let Ok(lock) = fs::read_to_string(lock) {
            workspace.write("Cargo.lock", &lock);
        }
        workspace
    }

    /// Adds a package of one target, whose source is `main.rs`; `dependencies` and what follows them are
    /// TOML.
    pub fn package(&self, name: &str, target: &str, source: &str, dependencies: &str) {
        let manifest = format!(
            "[package]\nname = {name:?}\nedition = \"2024\"\n{target}\npath = \"main.rs\"\n\
             [dependencies]\n{dependencies}"
        );
        self.write(&format!("{name}/Cargo.toml"), &manifest);
        self.write(&format!("{name}/main.rs"), source);
    }

    /// Adds a source file to a package; `path` is relative to its `main.rs`.
    pub fn module(&self, name: &str, path: &str, source: &str) {
        self.write(&format!("{name}/{path}"), source);
    }

    /// Writes a file, unless it already has this content.
    fn write(&self, path: &str, text: &str) {
        let path = self.folder.join(path);
        if fs::read_to_string(&path).ok().as_deref() != Some(text) {
            fs::create_dir_all(path.parent().expect("in the workspace")).expect("folders can be made");
            fs::write(path, text).expect("files can be written");
        }
    }

    /// Folder of the build's output.
    pub fn target(&self) -> PathBuf {
        self.folder.join("target")
    }

    /// Cargo in the workspace, with no flags from outside.
    pub fn cargo(&self, command: &str) -> Command {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([command, "--quiet", "--offline"]).current_dir(&self.folder);
        cargo
            .env("CARGO_TARGET_DIR", self.target())
            .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS");
        cargo
    }
}
