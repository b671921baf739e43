//! Keeps a library from being unloaded.

use core::ffi::{CStr, c_int, c_void};

/// Longest path that the kernel accepts, with its NUL.
const PATH: usize = libc::PATH_MAX as usize;

struct Search {
    address: usize,
    /// Path of the library, in the dynamic linker's form; empty for the program itself.
    path: Option<[u8; PATH]>,
}

/// Keeps the library with the code or data at `address` loaded until the process ends, however often it is
/// closed. Returns `true` on success, and always for the program itself. Returns `false` if no object has
/// this address or the dynamic linker refuses.
///
/// For code that leaves a thread, a handler or an address in use after its return. Must not be called while
/// [`objects`](crate::objects) are held, nor in a signal handler.
pub fn pin(address: *const ()) -> bool {
    let mut search = Search { address: address as usize, path: None };
    // SAFETY: `look` gets what it expects, and does not outlive the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    let Some(path) = search.path else { return false };
    let Ok(path) = CStr::from_bytes_until_nul(&path) else { return false };
    if path.is_empty() {
        return true;
    }
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: a string; the library is loaded already, so no code of it runs.
    !unsafe { libc::dlopen(path.as_ptr(), flags) }.is_null()
}

unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker passes a valid description of an object, and `pin`'s search.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    // SAFETY: the linker's own array.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let holds = headers.iter().filter(|h| h.p_type == libc::PT_LOAD).any(|h| {
        let start = (info.dlpi_addr as usize).wrapping_add(h.p_vaddr as usize);
        search.address.wrapping_sub(start) < h.p_memsz as usize
    });
    if !holds {
        return 0;
    }
    let mut path = [0; PATH];
    if !info.dlpi_name.is_null() {
        // SAFETY: a string of the linker's.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
        // A path longer than the kernel accepts is left out, and not found.
        let Some(room) = path.get_mut(..name.len()) else { return 1 };
        room.copy_from_slice(name);
    }
    search.path = Some(path);
    1
}
