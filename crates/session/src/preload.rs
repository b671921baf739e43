//! What a library that is pre-loaded records of a command: its locks, and its functions where it was built
//! for that.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use tracewing_abi::functions::FUNCTIONS_VARIABLE;
use tracewing_abi::locks::{ALL_CHAINS, CHAINS_VARIABLE, LIBRARY, NO_CHAINS};
use tracewing_vocabulary::{function, lock};

use crate::embedded;
use crate::obstacle::{Obstacle, TOO_LATE, has_functions, has_sanitizer, lack_of_functions};

/// The kernel's events about contended locks of the kernel, about waits for locks of programs (futexes), and
/// about executed files.
pub(crate) const KERNEL_EVENTS: &[&str] =
    &["lock:contention_begin", "lock:contention_end", "syscalls:sys_*_futex*", "sched:sched_process_exec"];

const PRELOAD: &str = "LD_PRELOAD";

/// Records what a pre-loaded library reports.
#[derive(Debug, Clone)]
pub struct Preload {
    /// The library to pre-load ([`find_library`]).
    pub library: PathBuf,
    /// Records locks, and call chains of these acquisitions.
    pub locks: Option<Chains>,
    /// Shell patterns: records the functions of C and C++ with matching names. Empty for none.
    pub functions: Vec<String>,
}

/// Which acquisitions of locks are recorded with call chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Chains {
    /// Of those that wait.
    #[default]
    Contended,
    /// Of all, which costs as much as an exception being thrown, each time.
    All,
    /// No acquisition.
    None,
}

/// The pattern for the events of locks.
pub const LOCK_EVENTS: &str = lock::GLOB;

/// Event patterns for functions with matching names. For C and C++, the library itself selects the functions;
/// each function of Rust has events of its own.
pub fn function_events(functions: &[String]) -> Vec<String> {
    let of_library = function::Class::ALL.iter().map(|class| class.name().to_owned());
    let of_rust = functions.iter().flat_map(|glob| {
        [function::Entry::NAME, function::Exit::NAME].map(|event| format!("{event}:{glob}"))
    });
    of_library.into_iter().chain(of_rust).collect()
}

/// There is no library to pre-load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoLibrary {
    /// It is in none of these places, or may not be read there, and the program does not contain it.
    Nowhere(Vec<PathBuf>),
    /// The one that the program contains cannot be put into the user's cache folder.
    NoPlace(String),
    /// The loader's variable cannot hold such a path.
    Path(PathBuf),
    /// It is another file, or only a part of the library.
    Other(PathBuf),
}

impl fmt::Display for NoLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere(looked) => {
                write!(f, "--locks and --functions need {LIBRARY}, and none of these can be read:")?;
                looked.iter().try_for_each(|path| write!(f, "\n  {}", path.display()))?;
                write!(
                    f,
                    "\n`cargo build --release -p tracewing-preload` builds it in target/release; copy it to one of these paths"
                )
            }
            Self::NoPlace(why) => write!(
                f,
                "--locks and --functions need a file {LIBRARY}, and tracewing cannot write it to the cache folder: {why}; set \
                 XDG_CACHE_HOME to a folder of your own"
            ),
            Self::Path(path) => write!(
                f,
                "the loader cannot load {}: no library to pre-load can have spaces, colons or dollar signs in its path; \
                 install tracewing elsewhere, or set XDG_CACHE_HOME to a folder without them",
                path.display()
            ),
            Self::Other(path) => write!(
                f,
                "{} is not the library that locks and functions need, or not all of it: copy it once more; `cargo build --release \
                 -p tracewing-preload` makes it",
                path.display()
            ),
        }
    }
}

impl std::error::Error for NoLibrary {}

/// The library to pre-load: next to the running executable, in `../lib/tracewing`, or else the one that the
/// program contains, in the user's cache folder.
///
/// # Errors
/// It is in none of these places, its path cannot be given to the loader, or it is another file.
pub fn find_library(embedded: Option<&[u8]>) -> Result<PathBuf, NoLibrary> {
    let executable = env::current_exe().and_then(fs::canonicalize).unwrap_or_default();
    let folder = executable.parent().unwrap_or(Path::new("/"));
    let installed = folder.parent().unwrap_or(folder).join("lib/tracewing");
    let looked = vec![folder.join(LIBRARY), installed.join(LIBRARY)];
    let can_be_read = |path: &&PathBuf| path.is_file() && File::open(path).is_ok();
    let path = match (looked.iter().find(can_be_read).cloned(), embedded) {
        (Some(path), _) => path,
        (None, Some(library)) => {
            embedded::put(library).map_err(|error| NoLibrary::NoPlace(error.to_string()))?
        }
        (None, None) => return Err(NoLibrary::Nowhere(looked)),
    };
    if path.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte)) {
        return Err(NoLibrary::Path(path));
    }
    if has_functions(&path) { Ok(path) } else { Err(NoLibrary::Other(path)) }
}

impl Preload {
    /// Whether a pattern for events is one by which the user has not named events, but what the library
    /// records.
    pub(crate) fn asks_for(&self, pattern: &str) -> bool {
        let functions = || function_events(&self.functions).iter().any(|event| event == pattern);
        (self.locks.is_some() && pattern == LOCK_EVENTS) || (!self.functions.is_empty() && functions())
    }

    /// Environment variables with which the command loads the library; none where that would do harm. `note`
    /// gets lines for the user.
    pub(crate) fn variables(
        &self,
        program: &Path,
        note: &mut dyn FnMut(String),
    ) -> Vec<(OsString, OsString)> {
        let found = Obstacle::find(program);
        let shown = program.display();
        match &found {
            Some(obstacle) => note(self.report(program, *obstacle)),
            None if !self.functions.is_empty() => {
                if let Some(lack) = lack_of_functions(program) {
                    note(format!("functions: {shown} {lack}"));
                }
            }
            None => {}
        }
        if found == Some(Obstacle::OtherLibc) {
            return Vec::new();
        }
        let before = env::var_os(PRELOAD).unwrap_or_default();
        let mut variables = vec![(PRELOAD.into(), after(before, &self.library))];
        // Also for what the command starts.
        if let Some(value) = with_any_order(env::var_os(ASAN_OPTIONS).unwrap_or_default()) {
            if has_sanitizer(program) {
                note(format!(
                    "{shown} has AddressSanitizer, which lets no other library be loaded before its own: it gets \
                     {ASAN_OPTIONS}={}",
                    value.display()
                ));
            }
            variables.push((ASAN_OPTIONS.into(), value));
        }
        variables.extend(self.locks.map(|chains| (CHAINS_VARIABLE.into(), chains.word().into())));
        if !self.functions.is_empty() {
            variables.push((FUNCTIONS_VARIABLE.into(), self.functions.join("\n").into()));
        }
        variables
    }

    /// What to report about a program that the command has executed by this name, if the library is not
    /// loaded into it, or cannot follow its functions.
    pub(crate) fn of_executed(&self, name: &Path, program: &Path) -> Option<String> {
        if let Some(obstacle) = Obstacle::find(program) {
            let more = if obstacle == Obstacle::OtherLibc {
                "; its loader may refuse to start it with the library"
            } else {
                ""
            };
            return Some(self.report(name, obstacle) + more);
        }
        // Most programs that are started have nothing to report; this one seems to have been built for it.
        let lack = if self.functions.is_empty() { None } else { lack_of_functions(program) };
        lack.filter(|lack| *lack == TOO_LATE).map(|lack| format!("functions: {} {lack}", name.display()))
    }

    fn report(&self, program: &Path, obstacle: Obstacle) -> String {
        match self.locks {
            Some(_) => format!("locks: {} {obstacle}{KERNEL}", program.display()),
            None => format!("functions: {} {obstacle}", program.display()),
        }
    }
}

/// The variable with AddressSanitizer's options, with colons between them; of several values of one, the last
/// counts.
const ASAN_OPTIONS: &str = "ASAN_OPTIONS";

/// Its value with the option that has it bear libraries that are loaded before its own; nothing where the
/// user has chosen.
fn with_any_order(before: OsString) -> Option<OsString> {
    const OPTION: &[u8] = b"verify_asan_link_order";
    let mut options = before.into_vec();
    if options.windows(OPTION.len()).any(|part| part == OPTION) {
        return None;
    }
    if !options.is_empty() {
        options.push(b':');
    }
    options.extend_from_slice(OPTION);
    options.extend_from_slice(b"=0");
    Some(OsString::from_vec(options))
}

impl Chains {
    /// The word for the library.
    fn word(self) -> &'static str {
        match self {
            Self::Contended => "",
            Self::All => ALL_CHAINS,
            Self::None => NO_CHAINS,
        }
    }
}

/// What can be had of locks in any case.
const KERNEL: &str = "; the kernel's events (syscall_entry_futex) show where its threads wait";

/// The library after those that are pre-loaded in any case: some of these have to come first.
fn after(before: OsString, library: &Path) -> OsString {
    let mut all = before.into_vec();
    if !all.is_empty() {
        all.push(b':');
    }
    all.extend_from_slice(library.as_os_str().as_bytes());
    OsString::from_vec(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_comes_after_those_preloaded_already() {
        let library = Path::new("/x/y.so");
        assert_eq!(after(OsString::new(), library), "/x/y.so");
        assert_eq!(after("libasan.so.8".into(), library), "libasan.so.8:/x/y.so");
    }

    #[test]
    fn sanitizers_accept_the_library_before_them() {
        let options = |before: &str| with_any_order(before.into());
        assert_eq!(options(""), Some("verify_asan_link_order=0".into()));
        assert_eq!(options("detect_leaks=0"), Some("detect_leaks=0:verify_asan_link_order=0".into()));
        assert_eq!(options("verify_asan_link_order=1"), None);
    }
}
