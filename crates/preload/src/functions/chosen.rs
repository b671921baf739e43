//! Which functions are wanted, and from which file they are.
//!
//! Patterns are compared with the names of functions once, when the library is loaded: each loaded file gets
//! a bit per byte of code, which is set at the begins of those that are wanted. So a call costs the search
//! for its file, of which there are few, and a bit. Files without instrumented functions get theirs, too: gcc
//! gives the address of what another file has (libstdc++) for a function that it has inlined. Files that are
//! loaded later are not read, since the first call that comes from there may be in a place where nothing may
//! be allocated: all of their functions are wanted.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use core::slice;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use std::path::{Path, PathBuf};

use libc::{dl_iterate_phdr, dl_phdr_info, size_t};
use tracewing::emit;
use tracewing_abi::functions::{ALL_FUNCTIONS, HOOKS};
use tracewing_programs::symbols::{asked_for, functions, needs_one_of};

use super::registers::saved;
use crate::image::{self, Image};
use crate::seen::{Seen, round};

/// Files that are remembered; those of more are looked up at each call, and all of their functions are
/// wanted.
const FILES: usize = 256;

/// Bytes from a function's begin that are it for who asks: `__fentry__` returns behind `endbr64` (4 bytes),
/// `push r10` (2) and the call (5 or 6), where the function goes on.
const BEGIN: u64 = 13;

static KNOWN: [File; FILES] = [const { File::none() }; FILES];

/// Where the code of a file begins that is not loaded any more.
const GONE: usize = usize::MAX;

/// Those that there is no room for.
static TOLD: Seen = Seen::new();

/// The code of a file.
struct File {
    begin: AtomicUsize,
    /// 0 while it is not known.
    size: AtomicUsize,
    /// A bit for each byte; null where all are wanted.
    wanted: AtomicPtr<u8>,
    /// In which round it was told; 0: in none.
    told: AtomicU64,
}

impl File {
    const fn none() -> Self {
        Self {
            begin: AtomicUsize::new(0),
            size: AtomicUsize::new(0),
            wanted: AtomicPtr::new(ptr::null_mut()),
            told: AtomicU64::new(0),
        }
    }

    fn wants(&self, offset: usize) -> bool {
        let bits = self.wanted.load(Relaxed); // there before the size
        // SAFETY: null, or a bit for each byte of the file's, which `offset` is one of: only what is found
        // while the library is loaded has bits, so a place that another file has taken meanwhile has either
        // those of the first or none.
        bits.is_null() || unsafe { *bits.add(offset / 8) } & 1 << (offset % 8) != 0
    }
}

/// Whether the function that has this address is wanted. Its file is told first, if that is due.
#[inline(always)]
pub(super) fn is_wanted(address: usize) -> bool {
    for file in &KNOWN {
        let size = file.size.load(Acquire); // with `add`: the rest is there
        if size == 0 {
            break;
        }
        let offset = address.wrapping_sub(file.begin.load(Relaxed));
        if offset < size {
            let wants = file.wants(offset);
            if wants && file.told.load(Relaxed) != round() {
                tell(address, file);
            }
            return wants;
        }
    }
    learn(address);
    true
}

#[cold]
#[inline(never)]
fn learn(address: usize) {
    saved(|| {
        tell_of(address, |number| TOLD.is_due(number));
        if let Some(image) = image::find(address) {
            add(image.begin, image.end - image.begin, ptr::null_mut());
        }
    });
}

#[cold]
#[inline(never)]
fn tell(address: usize, file: &File) {
    saved(|| {
        let now = round(); // before it is told: that may open a sub-buffer
        tell_of(address, |_| true);
        file.told.store(now, Relaxed);
    });
}

fn tell_of(address: usize, is_due: impl FnOnce(u64) -> bool) {
    image::tell(address as u64, is_due, |begin, end, bias, path| {
        emit!(super::Image { begin, end, bias, path });
    });
}

/// Forgets files that are not loaded any more; of what is loaded where they were, all functions are wanted.
pub(super) fn forget_unloaded() {
    for file in &KNOWN {
        let (begin, size) = (file.begin.load(Relaxed), file.size.load(Relaxed));
        let is_it = |image: Image| image.begin == begin && image.end - image.begin == size;
        if size != 0 && !image::find(begin).is_some_and(is_it) {
            file.begin.store(GONE, Relaxed);
        }
    }
}

/// Adds a file, unless another thread has, or there are too many.
fn add(begin: usize, size: usize, wanted: *mut u8) {
    let is_known = |file: &File| file.begin.load(Relaxed) == begin && file.size.load(Relaxed) == size;
    if KNOWN.iter().any(is_known) {
        return;
    }
    let take = |file: &File, free: usize| file.begin.compare_exchange(free, begin, Relaxed, Relaxed).is_ok();
    let is_free = |file: &&File| take(file, 0) || take(file, GONE);
    if let Some(file) = KNOWN.iter().find(is_free) {
        file.wanted.store(wanted, Relaxed);
        file.size.store(size, Release); // with `is_wanted`
    }
}

/// A file as the loader has it.
struct Loaded {
    image: Image,
    /// What is added to addresses in the file.
    bias: usize,
    path: PathBuf,
    has_hooks: bool,
}

/// Finds the functions that the patterns are for, one a line, in all files that are loaded, if any has
/// instrumented functions. To be called while the library is loaded.
pub(super) fn prepare(patterns: &str) {
    let patterns: Vec<&str> = patterns.lines().collect();
    if patterns.contains(&ALL_FUNCTIONS) {
        return;
    }
    let mut files: Vec<Loaded> = Vec::new();
    // SAFETY: a callback of the right type, and what it gets.
    unsafe { dl_iterate_phdr(Some(collect), (&raw mut files).cast()) };
    if files.iter().any(|file| file.has_hooks) {
        files.sort_by_key(|file| !file.has_hooks); // most calls are of the first
        files.iter().for_each(|file| file.choose(&patterns));
    }
}

/// # Safety
/// `info` is the loader's, `files` a `Vec<Loaded>` that nobody else has.
unsafe extern "C" fn collect(info: *mut dl_phdr_info, _: size_t, files: *mut c_void) -> c_int {
    // SAFETY: the caller's.
    let (info, files) = unsafe { (&*info, &mut *files.cast::<Vec<Loaded>>()) };
    // SAFETY: the loader's table of that many headers, and its NUL-terminated name.
    let (headers, name) = unsafe {
        (slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()), CStr::from_ptr(info.dlpi_name))
    };
    let is_code =
        |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0;
    let bias = info.dlpi_addr as usize;
    let code = headers.iter().find(is_code).map(|code| bias.wrapping_add(code.p_vaddr as usize));
    let path = Path::new(if name.is_empty() { "/proc/self/exe" } else { name.to_str().unwrap_or_default() });
    if let Some(image) = code.and_then(image::find) {
        files.push(Loaded { image, bias, path: path.to_owned(), has_hooks: needs_one_of(path, &HOOKS) });
    }
    0
}

impl Loaded {
    fn choose(&self, patterns: &[&str]) {
        let Image { begin, end, .. } = self.image;
        let mut bits = vec![0_u8; (end - begin).div_ceil(8)];
        for function in functions(&self.path, |symbol| is_chosen(symbol, patterns)) {
            let offset = (function.begin as usize).wrapping_add(self.bias).wrapping_sub(begin);
            for byte in (0..function.size.clamp(1, BEGIN) as usize).map(|more| offset.wrapping_add(more)) {
                if let Some(bits) = bits.get_mut(byte / 8) {
                    *bits |= 1 << (byte % 8);
                }
            }
        }
        add(begin, end - begin, bits.leak().as_mut_ptr());
    }
}

/// Whether one of the patterns is for the function with this symbol.
fn is_chosen(symbol: &str, patterns: &[&str]) -> bool {
    let names = asked_for(symbol);
    let matches =
        |pattern: &str, name: &str| tracewing_rules::pattern::matches(pattern.bytes(), name.bytes());
    patterns.iter().any(|pattern| names.iter().any(|name| matches(pattern, name)))
}
