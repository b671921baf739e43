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
    /// One of [`LISTED`], on every machine, but for few tests.
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

/// A cause that cannot be detected on the machine.
#[derive(Debug)]
pub struct Listed {
    /// Its name in [`Cause::Listed`].
    pub name: &'static str,
    /// Why tests may skip for it.
    pub why: &'static str,
    /// The tests that may, and functions by which tests may: file and function.
    pub places: &'static [(&'static str, &'static str)],
}

/// All such causes. `cargo xtask tidy` fails for a skip at another place.
pub const LISTED: [Listed; 12] = [
    Listed {
        name: "compiler option",
        why: "compilers of some processors and versions lack an option; the plain build of the same program is no skip",
        places: &[
            ("crates/cli/tests/functions/main.rs", "program_of"),
            ("crates/cli/tests/functions/views.rs", "arguments_and_results_stay_as_they_are"),
            (
                "crates/cli/tests/functions/choice.rs",
                "copies_that_gcc_has_made_are_asked_for_by_their_functions_name",
            ),
            ("crates/cli/tests/lock_programs/mod.rs", "program"),
        ],
    },
    Listed {
        name: "no Landlock",
        why: "kernels before 5.19, and those that start without it, cannot keep a process from changing files",
        places: &[("crates/session/src/fence.rs", "only_what_is_the_recordings_can_be_changed")],
    },
    Listed {
        name: "idle thread",
        why: "kernels of some virtual machines record no switch from the idle thread of a CPU",
        places: &[("crates/cli/tests/idle/mod.rs", "is_reported")],
    },
    Listed {
        name: "events lost",
        why: "a busy machine loses events, and the comparison is of complete recordings",
        places: &[("crates/cli/tests/breakdown.rs", "recorded")],
    },
    Listed {
        name: "no loss",
        why: "a fast machine loses nothing, and the test is about losses",
        places: &[("crates/cli/tests/profile/ends.rs", "lost_samples_are_counted")],
    },
    Listed {
        name: "large disk",
        why: "the test is about a disk with less space left than it asks for",
        places: &[
            ("crates/consumer/src/memory.rs", "a_file_that_is_too_large_takes_no_room_meanwhile"),
            ("crates/cli/tests/survival/main.rs", "a_disk_without_room_for_the_buffers_is_reported"),
        ],
    },
    Listed {
        name: "libc symbols",
        why: "libc6-dbg is large, and one test reads it",
        places: &[(
            "crates/programs/src/symbols/mod.rs",
            "stripped_files_have_the_names_that_are_installed_separately",
        )],
    },
    Listed {
        name: "event class",
        why: "kernels differ in their events; the test continues with the others",
        places: &[
            ("crates/kernel/tests/record.rs", "events_are_stamped_by_the_clock_that_was_asked_for"),
            ("crates/cli/tests/removed.rs", "what_is_taken_away_is_unknown_and_nothing_else_changes"),
            ("crates/cli/tests/removed_user.rs", "numbers_are_those_of_the_whole_or_unknown"),
        ],
    },
    Listed {
        name: "no control group",
        why: "containers and some machines do not permit control groups",
        places: &[("crates/cli/tests/attached/selected.rs", "make")],
    },
    Listed {
        name: "no namespaces",
        why: "containers and some machines do not permit namespaces",
        places: &[
            (
                "crates/cli/tests/attached/selected.rs",
                "numbers_of_processes_in_other_namespaces_are_the_recorders",
            ),
            (
                "crates/cli/tests/sessions/requests/place.rs",
                "roots_socket_is_for_the_group_where_there_is_one",
            ),
            ("crates/cli/tests/sessions/earlier.rs", "what_is_mounted_in_a_trace_stays"),
            (
                "crates/cli/tests/sessions/earlier.rs",
                "what_is_on_a_disk_that_is_not_mounted_is_not_forgotten",
            ),
        ],
    },
    Listed {
        name: "32-bit programs",
        why: "kernels can be built without them, and toolchains without `as --32`",
        places: &[
            ("crates/attach/tests/attach/refused.rs", "programs_of_32_bits"),
            (
                "crates/cli/tests/programs_32_bit.rs",
                "time_in_system_calls_that_are_not_recorded_is_not_the_programs",
            ),
            ("crates/cli/tests/programs_32_bit.rs", "time_in_int_0x80_is_not_the_programs"),
            (
                "crates/cli/tests/programs_32_bit.rs",
                "without_page_faults_a_32_bit_program_is_not_always_in_its_code",
            ),
            ("crates/kernel/src/asleep.rs", "calls_by_another_instruction_than_syscall_have_no_name"),
        ],
    },
    Listed {
        name: "reader's version",
        why: "an older babeltrace2 cannot read all traces",
        places: &[("crates/ctf/tests/common/mod.rs", "same_as_babeltrace")],
    },
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
            Cause::Listed(id) => LISTED.iter().any(|listed| listed.name == id),
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
