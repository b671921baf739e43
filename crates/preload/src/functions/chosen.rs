//! Which functions are recorded, and their files.
//!
//! Patterns are compared with the names of functions once, when the library is loaded: each loaded file gets
//! a bit per byte of code, which is set at the begins of recorded functions. So a call costs the search for
//! its file among few, and a bit test. Files without instrumented functions get bits, too: gcc passes the
//! address of another file's copy (libstdc++) for a function that it has inlined. Files that are loaded later
//! are not read, since the first call from there may be in a place where nothing may be allocated: all of
//! their functions are recorded.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use core::slice;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use std::path::{Path, PathBuf};

use libc::{dl_iterate_phdr, dl_phdr_info, size_t};
use tracewing::emit;
use tracewing_abi::functions::{ALL_FUNCTIONS, HOOKS};
use tracewing_programs::symbols::{functions, needs_one_of, request_names};

use super::registers::saved;
use crate::image::{self, Image};
use crate::seen::{Seen, round};

/// Number of remembered files; further files are looked up at each call, and all of their functions are
/// recorded.
const FILES: usize = 256;

/// Bytes from a function's beginning in which an address identifies it: `__fentry__` returns after `endbr64`
/// (4 bytes), `push r10` (2) and the call (5 or 6), where the function continues.
const BEGIN: u64 = 13;

static KNOWN: [File; FILES] = [const { File::none() }; FILES];

/// Begin of a file that is no longer loaded.
const GONE: usize = usize::MAX;

/// Files for which there is no room.
static DESCRIBED: Seen = Seen::new();

/// The code of a file.
struct File {
    begin: AtomicUsize,
    /// 0 until the entry is complete.
    size: AtomicUsize,
    /// A bit for each byte; null if all functions are recorded.
    enabled: AtomicPtr<u8>,
    /// The round in which the file was last described; 0: never.
    described: AtomicU64,
}

impl File {
    const fn none() -> Self {
        Self {
            begin: AtomicUsize::new(0),
            size: AtomicUsize::new(0),
            enabled: AtomicPtr::new(ptr::null_mut()),
            described: AtomicU64::new(0),
        }
    }

    fn enables(&self, offset: usize) -> bool {
        let bits = self.enabled.load(Relaxed); // there before the size
        // SAFETY: null, or a bit for each byte of the file, of which `offset` is one: only files found while
        // the library is loaded have bits, so a place that another file has taken meanwhile has either those
        // of the first or none.
        bits.is_null() || unsafe { *bits.add(offset / 8) } & 1 << (offset % 8) != 0
    }
}

/// Whether the function with this address is recorded. Its file is described first, if that is due.
#[inline(always)]
pub(super) fn is_enabled(address: usize) -> bool {
    for file in &KNOWN {
        let size = file.size.load(Acquire); // with `add`: the rest is there
        if size == 0 {
            break;
        }
        let offset = address.wrapping_sub(file.begin.load(Relaxed));
        if offset < size {
            let is_enabled = file.enables(offset);
            if is_enabled && file.described.load(Relaxed) != round() {
                describe(address, file);
            }
            return is_enabled;
        }
    }
    learn(address);
    true
}

#[cold]
#[inline(never)]
fn learn(address: usize) {
    saved(|| {
        describe_object(address, |number| DESCRIBED.is_due(number));
        if let Some(image) = image::find(address) {
            add(image.begin, image.end - image.begin, ptr::null_mut());
        }
    });
}

#[cold]
#[inline(never)]
fn describe(address: usize, file: &File) {
    saved(|| {
        let now = round(); // before the description: that may open a sub-buffer
        describe_object(address, |_| true);
        file.described.store(now, Relaxed);
    });
}

fn describe_object(address: usize, is_due: impl FnOnce(u64) -> bool) {
    image::describe(address as u64, is_due, |begin, end, bias, path| {
        emit!(super::Image { begin, end, bias, path });
    });
}

/// Forgets files that are no longer loaded; all functions of files loaded in their place are recorded.
pub(super) fn forget_unloaded() {
    for file in &KNOWN {
        let (begin, size) = (file.begin.load(Relaxed), file.size.load(Relaxed));
        let is_it = |image: Image| image.begin == begin && image.end - image.begin == size;
        if size != 0 && !image::find(begin).is_some_and(is_it) {
            file.begin.store(GONE, Relaxed);
        }
    }
}

/// Adds a file, unless another thread has done so, or there are too many.
fn add(begin: usize, size: usize, enabled: *mut u8) {
    let is_known = |file: &File| file.begin.load(Relaxed) == begin && file.size.load(Relaxed) == size;
    if KNOWN.iter().any(is_known) {
        return;
    }
    let take = |file: &File, free: usize| file.begin.compare_exchange(free, begin, Relaxed, Relaxed).is_ok();
    let is_free = |file: &&File| take(file, 0) || take(file, GONE);
    if let Some(file) = KNOWN.iter().find(is_free) {
        file.enabled.store(enabled, Relaxed);
        file.size.store(size, Release); // with `is_enabled`
    }
}

/// A file as the loader describes it.
struct Loaded {
    image: Image,
    /// Added to addresses in the file.
    bias: usize,
    path: PathBuf,
    has_hooks: bool,
}

/// Finds the functions that match the patterns, one per line, in all loaded files, if any has instrumented
/// functions. Must be called while the library is loaded.
pub(super) fn prepare(patterns: &str) {
    let patterns: Vec<&str> = patterns.lines().collect();
    if patterns.contains(&ALL_FUNCTIONS) {
        return;
    }
    let mut files: Vec<Loaded> = Vec::new();
    // SAFETY: a callback of the right type, and its argument.
    unsafe { dl_iterate_phdr(Some(collect), (&raw mut files).cast()) };
    if files.iter().any(|file| file.has_hooks) {
        files.sort_by_key(|file| !file.has_hooks); // most calls are of the first
        files.iter().for_each(|file| file.choose(&patterns));
    }
}

/// # Safety
/// `info` is the loader's, `files` a `Vec<Loaded>` that no other code uses.
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

/// Whether one of the patterns matches the function with this symbol.
fn is_chosen(symbol: &str, patterns: &[&str]) -> bool {
    let names = request_names(symbol);
    let matches =
        |pattern: &str, name: &str| tracewing_rules::pattern::matches(pattern.bytes(), name.bytes());
    patterns.iter().any(|pattern| names.iter().any(|name| matches(pattern, name)))
}
