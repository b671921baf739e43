//! Tests that cannot run on a machine: each reports that through [`skip`], with a cause from this module's
//! list.
//!
//! In CI (`CI=true`) causes are checked: a test fails if it skips for a cause that does not hold on this
//! machine. So a green run there has run everything that the machine can run. `cargo xtask test` installs the
//! programs that tests compare with, so their absence is not accepted as a cause in CI.

use std::fmt::Display;
use std::path::Path;
use std::{env, fs, thread};

/// Why a test may skip, and on which machines the cause holds.
#[derive(Debug, Clone, Copy)]
pub enum Cause<'a> {
    /// A program is not installed: only those of [`OPTIONAL`].
    Program(&'a str),
    /// The test needs root: the process belongs to another user.
    Root,
    /// The test needs kernel events: there is no tracefs, or the process is not root's.
    KernelEvents,
    /// The test needs uprobes: the kernel has none, or the process is not root's.
    Uprobes,
    /// The test needs this value in a file of kernel settings: the file has another one.
    Setting(&'a str, &'a str),
    /// The test needs two CPUs: there is one.
    OneCpu,
    /// The test needs an x86-64: the processor is another one.
    Processor,
    /// The test needs the time stamp counter as a clock: the kernel does not use it.
    Tsc,
    /// The test needs a file or folder outside of the project: it does not exist.
    File(&'a Path),
    /// The test needs a variable that names its input: it is not set.
    Variable(&'a str),
    /// The test needs a kernel of this version: it is older.
    Kernel(u32, u32),
    /// One of [`LISTED`], on every machine.
    Listed(&'static str),
}

/// Programs that `cargo xtask test` does not install, with the reason.
const OPTIONAL: [(&str, &str); 5] = [
    ("x86_64-unknown-linux-musl", "a target of rustup, which a distribution's toolchain cannot add"),
    ("valgrind", "takes minutes under a debug build"),
    ("rr", "needs hardware counters"),
    ("nginx", "a server, and a large package for one test"),
    ("postgres", "a server, and a large package for one test"),
];

/// Causes that cannot be detected on the machine, with the reason why tests may skip for them.
const LISTED: [(&str, &str); 11] = [
    (
        "compiler option",
        "compilers of some processors and versions lack an option; the plain build of the same program is no skip",
    ),
    ("idle thread", "kernels of some virtual machines record no switch from the idle thread of a CPU"),
    ("events lost", "a busy machine loses events, and the comparison is of complete recordings"),
    ("no loss", "a fast machine loses nothing, and the test is about losses"),
    ("large disk", "the test is about a disk with less space left than it asks for"),
    ("libc symbols", "libc6-dbg is large, and one test reads it"),
    ("event class", "kernels differ in their events; the test continues with the others"),
    ("no control group", "containers and some machines do not permit control groups"),
    ("no namespaces", "containers and some machines do not permit namespaces"),
    ("32-bit programs", "kernels can be built without them, and toolchains without `as --32`"),
    ("reader's version", "an older babeltrace2 cannot read all traces"),
];

/// Prints why a test skips.
///
/// # Panics
/// In CI, if the cause does not hold on this machine.
pub fn skip(cause: Cause<'_>, why: impl Display) {
    eprintln!("skipped: {why}");
    judge(cause, why, env::var_os("CI").is_some_and(|ci| ci == "true"));
}

fn judge(cause: Cause<'_>, why: impl Display, is_ci: bool) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    assert!(
        !is_ci || cause.holds(),
        "{test} skips ({why}), but {cause:?} is no cause for that here: see crates/testing/src/skip.rs"
    );
}

impl Cause<'_> {
    /// Whether the cause prevents tests from running on this machine.
    fn holds(self) -> bool {
        match self {
            Cause::Program(program) => {
                OPTIONAL.iter().any(|(name, _)| *name == program) && !is_installed(program)
            }
            Cause::Root => !is_root(),
            Cause::KernelEvents => !is_root() || !has_tracefs(""),
            Cause::Uprobes => !is_root() || !has_tracefs("uprobe_events"),
            Cause::Setting(file, value) => read(file).trim() != value,
            Cause::OneCpu => thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1),
            Cause::Processor => cfg!(not(target_arch = "x86_64")),
            Cause::Tsc => {
                read("/sys/devices/system/clocksource/clocksource0/current_clocksource").trim() != "tsc"
            }
            Cause::File(path) => !path.exists(),
            Cause::Variable(name) => env::var_os(name).is_none(),
            Cause::Kernel(major, minor) => version() < (major, minor),
            Cause::Listed(id) => LISTED.iter().any(|(listed, _)| *listed == id),
        }
    }
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

fn has_tracefs(file: &str) -> bool {
    ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].iter().any(|root| {
        let root = Path::new(root);
        root.join("events").is_dir() && root.join(file).exists()
    })
}

pub(crate) fn is_installed(program: &str) -> bool {
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).any(|path| path.join(program).is_file())
}

fn version() -> (u32, u32) {
    let release = read("/proc/sys/kernel/osrelease");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "is no cause for that here")]
    fn a_skip_without_cause_fails_in_ci() {
        judge(Cause::Kernel(1, 0), "planted", true);
    }

    #[test]
    fn a_skip_with_cause_and_any_outside_ci_are_let_through() {
        judge(Cause::Kernel(1000, 0), "planted", true);
        judge(Cause::Kernel(1, 0), "planted", false);
    }

    #[test]
    fn causes_are_looked_up_on_the_machine() {
        let here = env::current_dir().expect("a folder");
        assert!(!Cause::File(&here).holds());
        assert!(Cause::File(&here.join("no such file")).holds());
        assert!(!Cause::Program("sh").holds());
        // Programs that `cargo xtask test` installs exist in CI.
        assert!(!Cause::Program("babeltrace2").holds());
        assert!(Cause::Variable("TRACEWING_NO_SUCH_VARIABLE").holds());
        assert!(!Cause::Kernel(1, 0).holds() && Cause::Kernel(1000, 0).holds());
        assert!(Cause::Listed("large disk").holds() && !Cause::Listed("no time").holds());
        assert_eq!(Cause::Root.holds(), !is_root());
        if is_root() {
            assert_eq!(Cause::KernelEvents.holds(), !has_tracefs(""));
        }
    }
}
