//! The file that contains the code at an address: described once per file, so that a reader of the trace can
//! name functions.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering::*};

use crate::hash::hash;

/// `_dl_find_object`, which takes no lock and allocates nothing; null if glibc is older than 2.35.
static FIND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The path of the program, which the loader does not store, and its length.
static PROGRAM: [AtomicU8; libc::PATH_MAX as usize] = [const { AtomicU8::new(0) }; libc::PATH_MAX as usize];
static PROGRAM_LENGTH: AtomicUsize = AtomicUsize::new(0);

pub(crate) struct Image {
    /// Address of its first byte.
    pub(crate) begin: usize,
    /// Address after its last byte.
    pub(crate) end: usize,
    /// Added to addresses in its file.
    bias: usize,
    /// Its path from the loader: NUL-terminated, valid as long as the object.
    path: *const c_char,
}

/// `struct dl_find_object` of glibc's dlfcn.h, and its additional members on other processors.
#[repr(C)]
struct Found {
    flags: u64,
    begin: *mut c_void,
    end: *mut c_void,
    link_map: *const LinkMap,
    exception_header: *mut c_void,
    reserved: [u64; 7],
}

/// The beginning of `struct link_map` of glibc's link.h.
#[repr(C)]
struct LinkMap {
    bias: usize,
    path: *const c_char,
}

/// Prepares later lookups. Must be called while the library is loaded.
pub(crate) fn prepare() {
    // SAFETY: a NUL-terminated name.
    FIND.store(unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) }, Relaxed);
    let mut path = [MaybeUninit::<u8>::uninit(); libc::PATH_MAX as usize];
    // SAFETY: a NUL-terminated path, and a buffer of that size.
    let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len()) };
    let length = usize::try_from(length).unwrap_or(0);
    for (place, byte) in PROGRAM.iter().zip(&path[..length]) {
        // SAFETY: `readlink` has written that many.
        place.store(unsafe { byte.assume_init() }, Relaxed);
    }
    PROGRAM_LENGTH.store(length, Release); // with `path_of`
}

/// The object that contains an address.
pub(crate) fn find(address: usize) -> Option<Image> {
    let find = FIND.load(Relaxed); // of code, which was there before
    if find.is_null() {
        return None;
    }
    // SAFETY: glibc's function of this type.
    let find: unsafe extern "C" fn(*mut c_void, *mut Found) -> c_int = unsafe { transmute(find) };
    let mut found = MaybeUninit::<Found>::zeroed();
    // SAFETY: room for what the function writes; it accepts any address.
    let answer = unsafe { find(ptr::without_provenance_mut(address), found.as_mut_ptr()) };
    if answer != 0 {
        return None;
    }
    // SAFETY: zeroes, or what the function has written: both are valid.
    let found = unsafe { found.assume_init() };
    // SAFETY: null, or the loader's description of an object that stays loaded, since the thread is in it.
    let map = unsafe { found.link_map.as_ref()? };
    Some(Image { begin: found.begin.addr(), end: found.end.addr(), bias: map.bias, path: map.path })
}

/// Calls `event` for the object that contains an address, if `is_due` accepts its number: begin, end, bias
/// and path.
pub(crate) fn describe(
    address: u64,
    is_due: impl FnOnce(u64) -> bool,
    event: impl FnOnce(u64, u64, u64, &str),
) {
    let Some(image) = find(address as usize) else { return };
    let mut program = [0; libc::PATH_MAX as usize];
    let path = match image.path.is_null() {
        true => &[][..],
        // SAFETY: a NUL-terminated string, which stays as long as the object.
        false => unsafe { CStr::from_ptr(image.path) }.to_bytes(),
    };
    let path = if path.is_empty() { path_of_program(&mut program) } else { path };
    let number = hash(path.iter().map(|byte| u64::from(*byte)).chain([image.begin as u64]));
    if is_due(number) {
        let Image { begin, end, bias, .. } = image;
        event(begin as u64, end as u64, bias as u64, core::str::from_utf8(path).unwrap_or("?"));
    }
}

fn path_of_program(buffer: &mut [u8; libc::PATH_MAX as usize]) -> &[u8] {
    let length = PROGRAM_LENGTH.load(Acquire); // with `prepare`
    for (byte, place) in buffer.iter_mut().zip(&PROGRAM[..length]) {
        *byte = place.load(Relaxed);
    }
    &buffer[..length]
}
