//! What prevents pre-loading the library that records locks and functions under a program, or leaves it
//! nothing to report, as the program's file shows.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{DT_NEEDED, EM_X86_64, ET_DYN, PT_INTERP};
use object::read::ReadCache;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Object, ObjectSymbol};
use rustix::process::{getegid, geteuid};
use tracewing_abi::functions::HOOKS;

/// The longest chain of scripts that name a script as their interpreter, as in the kernel.
const INTERPRETERS: usize = 5;

/// Why the library is not loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
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
                "gets privileges when it is executed: its loader ignores the library to pre-load; record it as \
                 the user whose privileges it gets"
            }
        })
    }
}

impl Obstacle {
    /// The obstacle for this program; `None` also where it cannot be read, which is reported elsewhere.
    pub(crate) fn find(program: &Path) -> Option<Self> {
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
pub(crate) fn has_sanitizer(program: &Path) -> bool {
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

/// Whether a file is a library for this machine that has the functions by which programs report theirs.
pub(crate) fn has_functions(library: &Path) -> bool {
    let has = || {
        let data = ReadCache::new(File::open(library).ok()?);
        let elf = ElfFile64::<Endianness, _>::parse(&data).ok()?;
        let header = elf.elf_header();
        let is_library = header.e_type(elf.endian()) == ET_DYN && header.e_machine(elf.endian()) == EM_X86_64;
        let has = |name: &&str| {
            elf.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name() == Ok(*name))
        };
        Some(is_library && HOOKS.iter().all(has))
    };
    has() == Some(true)
}

/// Why a program that the library is pre-loaded under reports no functions of its own; `None` where it does,
/// or cannot be read.
pub(crate) fn lack_of_functions(program: &Path) -> Option<&'static str> {
    let data = ReadCache::new(File::open(executed(program)).ok()?);
    let elf = ElfFile64::<Endianness, _>::parse(&data).ok()?;
    let needs = |names: &[&str]| {
        let mut needed = elf.dynamic_symbols().filter(ObjectSymbol::is_undefined);
        needed.any(|symbol| symbol.name().is_ok_and(|name| names.contains(&name)))
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

/// One of the reasons.
pub(crate) const TOO_LATE: &str = "is built with -pg, whose calls come too late to be followed: add -mfentry";

/// The section of Rust programs that have events, among them those of functions.
const SITES: &str = "tracewing_sites_2";

#[cfg(test)]
mod tests {
    use super::*;

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
    fn executables_show_what_prevents_joining() {
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
