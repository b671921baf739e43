//! What a library that is pre-loaded records of a command: its locks, and its functions where it was built for that; and what
//! stands in the way.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{DT_NEEDED, EM_X86_64, PT_INTERP};
use object::read::ReadCache;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Object, ObjectSymbol};
use rustix::process::{getegid, geteuid};
use tracewing_abi::functions::{ENTRY, EXIT, FUNCTIONS_VARIABLE, HOOKS};
use tracewing_abi::locks::{ALL_CHAINS, CHAINS_VARIABLE, LIBRARY, NO_CHAINS};

/// The kernel's events about locks: its own that are contended, and the waiting for those of programs; and about what is executed.
pub(crate) const KERNEL_EVENTS: &[&str] =
    &["lock:contention_begin", "lock:contention_end", "syscalls:sys_*_futex*", "sched:sched_process_exec"];

/// The loader's variable.
const PRELOAD: &str = "LD_PRELOAD";

/// Scripts that name a script as their interpreter, one behind the other, at most; as the kernel has it.
const INTERPRETERS: usize = 5;

/// Records what a pre-loaded library tells of.
#[derive(Debug, Clone)]
pub struct Preload {
    /// The library to pre-load ([`find_library`]).
    pub library: PathBuf,
    /// Records locks; of which acquisitions there are call chains.
    pub locks: Option<Chains>,
    /// Records functions of C and C++ whose names match one of these shell patterns, if there are any.
    pub functions: Vec<String>,
}

/// Of which acquisitions of locks there are call chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Chains {
    /// Of those that wait.
    #[default]
    Contended,
    /// Of all, which costs as much as an exception being thrown, each time.
    All,
    /// Of none.
    None,
}

/// The pattern for the events of locks.
pub const LOCK_EVENTS: &str = "lock:*";

/// Patterns for the events of functions whose names match these: the library chooses itself of what it tells, those of Rust have
/// an event each.
pub fn function_events(functions: &[String]) -> Vec<String> {
    let of_library = [ENTRY, EXIT, "function:not_followed", "function:image"].map(str::to_owned);
    let of_rust = functions.iter().flat_map(|glob| [ENTRY, EXIT].map(|event| format!("{event}:{glob}")));
    of_library.into_iter().chain(of_rust).collect()
}

/// There is no library to pre-load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoLibrary {
    /// It is in none of these places, or may not be read there.
    Nowhere(Vec<PathBuf>),
    /// The loader cannot be told of such a path.
    Path(PathBuf),
}

impl fmt::Display for NoLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere(looked) => {
                write!(f, "locks and functions need the library {LIBRARY}, which can be read as none of")?;
                looked.iter().try_for_each(|path| write!(f, "\n  {}", path.display()))?;
                write!(f, "\n`cargo build --release -p tracewing-preload` makes it; copy it to one of them")
            }
            Self::Path(path) => write!(
                f,
                "the loader cannot be told of {}: no library to pre-load can have spaces, colons or dollar signs in its path; \
                 install tracewing elsewhere",
                path.display()
            ),
        }
    }
}

impl std::error::Error for NoLibrary {}

/// The library to pre-load: beside the running executable, or in `../lib/tracewing`.
///
/// # Errors
/// It is in neither place, or nowhere whence it can be loaded.
pub fn find_library() -> Result<PathBuf, NoLibrary> {
    let executable = env::current_exe().and_then(fs::canonicalize).unwrap_or_default();
    let folder = executable.parent().unwrap_or(Path::new("/"));
    let installed = folder.parent().unwrap_or(folder).join("lib/tracewing");
    let looked = vec![folder.join(LIBRARY), installed.join(LIBRARY)];
    let can_be_read = |path: &&PathBuf| path.is_file() && File::open(path).is_ok();
    match looked.iter().find(can_be_read).cloned() {
        None => Err(NoLibrary::Nowhere(looked)),
        Some(path) if path.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte)) => {
            Err(NoLibrary::Path(path))
        }
        Some(path) => Ok(path),
    }
}

impl Preload {
    /// Whether a pattern for events is one by which the user has not named events, but what the library records.
    pub(crate) fn asks_for(&self, pattern: &str) -> bool {
        let functions = || function_events(&self.functions).iter().any(|event| event == pattern);
        (self.locks.is_some() && pattern == LOCK_EVENTS) || (!self.functions.is_empty() && functions())
    }

    /// What the command's environment has for the library to be loaded; nothing where that would do harm. `note` is told what
    /// the user has to know.
    pub(crate) fn variables(
        &self,
        program: &Path,
        note: &mut dyn FnMut(String),
    ) -> Vec<(OsString, OsString)> {
        let found = Obstacle::find(program);
        let shown = program.display();
        match &found {
            Some(obstacle) => note(self.told(program, *obstacle)),
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
        let mut variables = vec![(PRELOAD.into(), behind(before, &self.library))];
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

    /// What to tell of a program that the command has executed by this name, if the library is not loaded into it, or cannot follow its
    /// functions.
    pub(crate) fn of_executed(&self, name: &Path, program: &Path) -> Option<String> {
        if let Some(obstacle) = Obstacle::find(program) {
            return Some(self.told(name, obstacle));
        }
        // Most programs that are started have nothing to tell of; this one seems to have been built for it.
        let lack = if self.functions.is_empty() { None } else { lack_of_functions(program) };
        lack.filter(|lack| *lack == TOO_LATE).map(|lack| format!("functions: {} {lack}", name.display()))
    }

    fn told(&self, program: &Path, obstacle: Obstacle) -> String {
        match self.locks {
            Some(_) => format!("locks: {} {obstacle}{KERNEL}", program.display()),
            None => format!("functions: {} {obstacle}", program.display()),
        }
    }
}

/// The variable by which AddressSanitizer is told what to do, options with colons between them; of several values of one, the last
/// counts.
const ASAN_OPTIONS: &str = "ASAN_OPTIONS";

/// Its value with the option that has it bear libraries that are loaded before its own; nothing where the user has chosen.
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
    /// As the library is told.
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

/// Why a program that the library is pre-loaded under tells of no functions of its own; nothing where it does, or cannot be read.
fn lack_of_functions(program: &Path) -> Option<&'static str> {
    let data = ReadCache::new(File::open(executed(program)).ok()?);
    let elf = ElfFile64::<Endianness, _>::parse(&data).ok()?;
    let needs = |names: &[&str]| {
        let mut wanted = elf.dynamic_symbols().filter(ObjectSymbol::is_undefined);
        wanted.any(|symbol| symbol.name().is_ok_and(|name| names.contains(&name)))
    };
    // A Rust program has functions with `#[traced]`, or the user wants others.
    if needs(&HOOKS) || elf.section_by_name(SITES).is_some() {
        return None;
    }
    Some(match needs(&["mcount"]) {
        true => TOO_LATE,
        false => {
            "has no instrumented functions of its own: build it by gcc or clang with -finstrument-functions or with \
             -pg -mfentry, or give its Rust functions #[tracewing::traced]"
        }
    })
}

const TOO_LATE: &str = "is built with -pg, whose calls come too late to be followed: add -mfentry";

/// The section of Rust programs that have events, among them those of functions.
const SITES: &str = "tracewing_sites_2";

/// The library behind those that are pre-loaded in any case: some of these have to come first.
fn behind(before: OsString, library: &Path) -> OsString {
    let mut all = before.into_vec();
    if !all.is_empty() {
        all.push(b':');
    }
    all.extend_from_slice(library.as_os_str().as_bytes());
    OsString::from_vec(all)
}

/// Why the library is not loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    Static,
    OtherProcessor,
    OtherLibc,
    Privileged,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Static => "is statically linked: nothing can be pre-loaded under it",
            Self::OtherProcessor => "is no 64-bit x86 program: its loader leaves the library out",
            Self::OtherLibc => "does not use glibc, for which the library to pre-load is made",
            Self::Privileged => {
                "gets privileges when it is executed: its loader ignores what it is told to pre-load; record it as \
                 the user whose privileges it gets"
            }
        })
    }
}

impl Obstacle {
    /// What stands in the way for this program; nothing where it cannot be read, which others will tell.
    fn find(program: &Path) -> Option<Self> {
        let metadata = fs::metadata(program).ok()?;
        let gets_user = metadata.mode() & libc::S_ISUID != 0 && metadata.uid() != geteuid().as_raw();
        let gets_group = metadata.mode() & libc::S_ISGID != 0 && metadata.gid() != getegid().as_raw();
        let gets_capabilities = !geteuid().is_root()
            && rustix::fs::getxattr(program, "security.capability", &mut [0_u8; 64][..]).is_ok();
        if gets_user || gets_group || gets_capabilities {
            return Some(Self::Privileged);
        }
        of_elf(&executed(program))
    }
}

/// What is executed for a program: itself, or what its first line names.
fn executed(program: &Path) -> PathBuf {
    let executed = (0..INTERPRETERS).try_fold(program.to_owned(), |path, _| match interpreter(&path) {
        Some(interpreter) => Ok(interpreter),
        None => Err(path),
    });
    executed.unwrap_or_else(|path| path)
}

/// The program that a script names in its first line.
fn interpreter(script: &Path) -> Option<PathBuf> {
    const LONGEST: u64 = 256; // BINPRM_BUF_SIZE, which is all that the kernel looks at
    let mut line = Vec::new();
    BufReader::new(File::open(script).ok()?.take(LONGEST)).read_until(b'\n', &mut line).ok()?;
    let words = line.strip_prefix(b"#!")?.trim_ascii();
    let end = words.iter().position(u8::is_ascii_whitespace).unwrap_or(words.len());
    (end > 0).then(|| OsStr::from_bytes(&words[..end]).into())
}

/// What an executable says of itself.
fn of_elf(path: &Path) -> Option<Obstacle> {
    let file = ReadCache::new(File::open(path).ok()?);
    let mut magic = [0; 4];
    File::open(path).ok()?.read_exact(&mut magic).ok()?;
    let Ok(elf) = ElfFile64::<Endianness, _>::parse(&file) else {
        return (&magic == b"\x7fELF").then_some(Obstacle::OtherProcessor);
    };
    let endian = elf.endian();
    if elf.elf_header().e_machine(endian) != EM_X86_64 {
        return Some(Obstacle::OtherProcessor);
    }
    let headers = elf.elf_program_headers();
    let Some(loader) = headers.iter().find(|header| header.p_type(endian) == PT_INTERP) else {
        return Some(Obstacle::Static);
    };
    let loader = loader.data(endian, &file).ok()?;
    let is_glibcs = loader.windows(b"ld-linux".len()).any(|window| window == b"ld-linux");
    (!is_glibcs).then_some(Obstacle::OtherLibc)
}

/// Whether a program is linked with AddressSanitizer in a library of its own.
fn has_sanitizer(program: &Path) -> bool {
    let needs = || {
        let file = ReadCache::new(File::open(executed(program)).ok()?);
        let elf = ElfFile64::<Endianness, _>::parse(&file).ok()?;
        let (endian, sections) = (elf.endian(), elf.elf_section_table());
        let (entries, strings) = sections.dynamic(endian, &file).ok()??;
        let strings = sections.strings(endian, &file, strings).ok()?;
        let needed = entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED);
        let mut names = needed.filter_map(|entry| strings.get(u32::try_from(entry.val(endian)).ok()?).ok());
        Some(names.any(|name| name.starts_with(b"libasan") || name.starts_with(b"libclang_rt.asan")))
    };
    needs() == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_comes_behind_what_is_preloaded_already() {
        let library = Path::new("/x/y.so");
        assert_eq!(behind(OsString::new(), library), "/x/y.so");
        assert_eq!(behind("libasan.so.8".into(), library), "libasan.so.8:/x/y.so");
    }

    #[test]
    fn sanitizers_are_told_what_is_loaded_before_them() {
        let told = |before: &str| with_any_order(before.into());
        assert_eq!(told(""), Some("verify_asan_link_order=0".into()));
        assert_eq!(told("detect_leaks=0"), Some("detect_leaks=0:verify_asan_link_order=0".into()));
        assert_eq!(told("verify_asan_link_order=1"), None);
    }

    #[test]
    fn scripts_lead_to_their_interpreters() {
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let first = script("first", "#! /bin/sh -e\necho\n");
        assert_eq!(interpreter(&first), Some("/bin/sh".into()));
        assert_eq!(interpreter(&script("empty", "#!\n")), None);
        assert_eq!(interpreter(&script("text", "/bin/sh\n")), None);
        assert_eq!(interpreter(Path::new("/bin/sh")), None);
        let endless = folder.path().join("endless");
        fs::write(&endless, format!("#!{}\n", endless.display())).unwrap();
        assert_eq!(Obstacle::find(&endless), None);
        assert_eq!(Obstacle::find(&first), Obstacle::find(Path::new("/bin/sh")));
    }

    #[test]
    fn executables_tell_what_stands_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let is = |bytes: &[u8]| {
            let path = folder.path().join("program");
            fs::write(&path, bytes).unwrap();
            Obstacle::find(&path)
        };
        let shell = fs::read("/bin/sh").unwrap();
        let with = |at: usize, value: u8| {
            let mut bytes = shell.clone();
            bytes[at] = value;
            bytes
        };
        assert_eq!(is(&shell), None);
        assert_eq!(is(&with(4, 1)), Some(Obstacle::OtherProcessor)); // EI_CLASS: 32 bits
        assert_eq!(is(&with(18, 183)), Some(Obstacle::OtherProcessor)); // e_machine
        assert_eq!(is(b"\x7fELF"), Some(Obstacle::OtherProcessor));
        assert_eq!(is(b"x"), None);
        assert_eq!(is(b""), None);
        let interpreter = shell.windows(8).position(|window| window == b"ld-linux").unwrap();
        assert_eq!(is(&with(interpreter, b'm')), Some(Obstacle::OtherLibc));
        // e_phnum: no program headers, hence no loader.
        assert_eq!(is(&with(56, 0)), Some(Obstacle::Static));
    }
}
