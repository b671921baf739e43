//! System calls that may be made from a signal handler, or in a child between `fork` and `exec`.

use core::ffi::CStr;
use core::mem::{MaybeUninit, size_of};
use core::ptr::NonNull;

/// A descriptor that is closed at the end.
pub(crate) struct Fd(libc::c_int);

impl Fd {
    /// Takes over a descriptor that a system call has just made.
    fn new(fd: libc::c_int) -> Option<Self> {
        (fd >= 0).then_some(Self(fd))
    }

    /// The descriptor's number.
    pub(super) fn raw(&self) -> libc::c_int {
        self.0
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::close(self.0) };
    }
}

/// Runs `body` and leaves `errno` as it was: a program that emits an event between a failed call and its look at `errno`
/// must not notice.
pub(super) fn keeping_errno<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: the address of the calling thread's errno, valid as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let result = body();
    // SAFETY: as above.
    unsafe { *errno = before };
    result
}

/// The calling thread's id, from the kernel.
pub(super) fn thread_id() -> i32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// The process id, from the kernel.
pub(super) fn process_id() -> i32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::syscall(libc::SYS_getpid) as i32 }
}

/// The calling thread's name, as `ps -L` shows it: at most 15 bytes and a NUL.
pub(super) fn thread_name() -> [u8; 16] {
    let mut name = [0u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// The CPU that the thread runs on, or did a moment ago.
pub(super) fn current_cpu() -> usize {
    // SAFETY: no arguments; -1 where the kernel cannot tell.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// Private zeroes, page-aligned.
pub(super) fn map_private(size: usize) -> Option<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping where the kernel likes; nothing existing is touched.
    let base = unsafe { libc::mmap(core::ptr::null_mut(), size, access, flags, -1, 0) };
    if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
}

/// As [`map_private`], and a forked child finds zeroes again. `None` before Linux 4.14, too.
pub(super) fn map_wiped_on_fork(size: usize) -> Option<NonNull<u8>> {
    let base = map_private(size)?;
    // SAFETY: the mapping just made.
    if unsafe { libc::madvise(base.as_ptr().cast(), size, libc::MADV_WIPEONFORK) } == 0 {
        return Some(base);
    }
    // SAFETY: nobody else knows of it.
    unsafe { unmap(base, size) };
    None
}

/// Maps a region's file.
pub(super) fn map_shared(file: libc::c_int, size: usize) -> Option<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
    // SAFETY: a new mapping where the kernel likes.
    let base = unsafe { libc::mmap(core::ptr::null_mut(), size, access, flags, file, 0) };
    if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
}

/// Has the kernel map pages of a mapping (madvise(2), `MADV_POPULATE_WRITE`, Linux 5.14), as far as it can.
pub(super) fn populate(base: NonNull<u8>, offset: usize, len: usize) {
    let start = (base.addr().get() + offset).next_multiple_of(4096);
    let end = (base.addr().get() + offset + len) & !4095;
    let len = end.saturating_sub(start);
    // SAFETY: concerns only which pages are mapped, not what is in them.
    unsafe { libc::madvise(start as *mut libc::c_void, len, libc::MADV_POPULATE_WRITE) };
}

/// Zeroes in a shared mapping of their own, which has a name in `/proc/PID/maps`.
pub(super) fn map_named(name: &core::ffi::CStr, size: usize) -> Option<NonNull<u8>> {
    let length = libc::off_t::try_from(size).ok()?;
    let create = |flags: libc::c_uint| {
        // SAFETY: a NUL-terminated name and a number.
        Fd::new(unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), flags) } as libc::c_int)
    };
    // Kernels before 6.3 do not know MFD_NOEXEC_SEAL.
    let file = create(libc::MFD_CLOEXEC | libc::MFD_NOEXEC_SEAL).or_else(|| create(libc::MFD_CLOEXEC))?;
    // SAFETY: a descriptor of our own and a number.
    if unsafe { libc::ftruncate(file.raw(), length) } != 0 {
        return None;
    }
    map_shared(file.raw(), size)
}

/// Puts private zeroes in place of what is mapped at `base`.
///
/// # Safety
/// `base` begins a mapping of `size` bytes whose content nobody needs any more, and which may change under those who
/// still use it.
pub(super) unsafe fn map_zeroes_over(base: NonNull<u8>, size: usize) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the caller's. On failure the old mapping stays, which is as good for those who still use it.
    unsafe { libc::mmap(base.as_ptr().cast(), size, access, flags, -1, 0) };
}

/// Unmaps a mapping.
///
/// # Safety
/// Nobody uses the mapping.
pub(super) unsafe fn unmap(base: NonNull<u8>, size: usize) {
    // SAFETY: the caller's.
    unsafe { libc::munmap(base.as_ptr().cast(), size) };
}

/// `membarrier(2)` with this command; `false` where the kernel has it not.
pub(super) fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call takes three integers and touches no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Connects to the Unix socket at `path`, for packets, with a bound on how long a send or receive may take.
pub(super) fn connect(path: &[u8], seconds: i64) -> Option<Fd> {
    // SAFETY: all-zero is a valid sockaddr_un.
    let mut address: libc::sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    if path.len() >= address.sun_path.len() {
        return None;
    }
    for (to, from) in address.sun_path.iter_mut().zip(path) {
        *to = *from as libc::c_char;
    }
    // SAFETY: three integers.
    let socket =
        Fd::new(unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) })?;
    let limit = libc::timeval { tv_sec: seconds, tv_usec: 0 };
    for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
        let size = size_of::<libc::timeval>() as libc::socklen_t;
        // SAFETY: `limit` is a timeval, as the options want.
        unsafe { libc::setsockopt(socket.0, libc::SOL_SOCKET, option, (&raw const limit).cast(), size) };
    }
    let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: `address` is a sockaddr_un of that size.
    let connected =
        uninterrupted(|| unsafe { libc::connect(socket.0, (&raw const address).cast(), size) as isize });
    (connected == 0).then_some(socket)
}

/// Closes a descriptor by its number.
pub(super) fn close(descriptor: libc::c_int) {
    // SAFETY: a number; the caller knows that it is its own.
    unsafe { libc::close(descriptor) };
}

/// The same socket by a high number, where programs do not look for theirs.
pub(super) fn out_of_the_way(socket: Fd) -> Fd {
    const LOWEST: libc::c_int = 900;
    // SAFETY: two integers.
    Fd::new(unsafe { libc::fcntl(socket.0, libc::F_DUPFD_CLOEXEC, LOWEST) }).unwrap_or(socket)
}

/// Lets a receive on the socket take as long as it takes.
pub(super) fn wait_for_ever(socket: &Fd) {
    let limit = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let size = size_of::<libc::timeval>() as libc::socklen_t;
    // SAFETY: `limit` is a timeval, as the option wants.
    unsafe {
        libc::setsockopt(socket.0, libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const limit).cast(), size)
    };
}

/// What a descriptor refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) device: libc::dev_t,
    pub(super) inode: libc::ino_t,
}

/// `None` where the number refers to nothing.
pub(super) fn identity(descriptor: libc::c_int) -> Option<Identity> {
    let mut data = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `data` has room for a stat, and all-zero is one.
    let data = unsafe { (libc::fstat(descriptor, data.as_mut_ptr()) == 0).then(|| data.assume_init()) }?;
    Some(Identity { device: data.st_dev, inode: data.st_ino })
}

/// Waits until one of the sockets, of at most as many as there can be recordings, can be read or is no socket any more;
/// gives its index. `None` when that could not be said: look again.
pub(super) fn wait_readable<'a>(sockets: impl Iterator<Item = &'a Fd>) -> Option<usize> {
    const MOST: usize = tracewing_ring::thread::RECORDINGS;
    let mut files = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; MOST];
    let count = files.iter_mut().zip(sockets).map(|(file, socket)| file.fd = socket.0).count();
    let files = &mut files[..count];
    // SAFETY: an array of that many.
    let ready = unsafe { libc::poll(files.as_mut_ptr(), count as libc::nfds_t, -1) };
    if ready > 0 {
        return files.iter().position(|file| file.revents != 0);
    }
    if errno() == libc::EINTR {
        return None;
    }
    // The program's limit on open files is below their number, or a filter for system calls refuses: look now and then.
    std::thread::sleep(std::time::Duration::from_millis(50));
    files.iter().position(|file| {
        // SAFETY: no room is needed to look whether there is anything.
        let peeked =
            unsafe { libc::recv(file.fd, core::ptr::null_mut(), 0, libc::MSG_PEEK | libc::MSG_DONTWAIT) };
        peeked >= 0 || !matches!(errno(), libc::EAGAIN | libc::EINTR)
    })
}

/// Repeats a system call that signals interrupt, but not for ever.
fn uninterrupted(mut call: impl FnMut() -> isize) -> isize {
    const ATTEMPTS: u32 = 1000;
    let mut result = -1;
    for _ in 0..ATTEMPTS {
        result = call();
        if result >= 0 || errno() != libc::EINTR {
            break;
        }
    }
    result
}

/// Sends one packet.
pub(super) fn send(socket: &Fd, message: &[u8]) -> Option<()> {
    let (start, len) = (message.as_ptr().cast(), message.len());
    // SAFETY: the slice is readable.
    let sent = uninterrupted(|| unsafe { libc::send(socket.0, start, len, libc::MSG_NOSIGNAL) });
    (sent == len as isize).then_some(())
}

/// Room for one descriptor in a packet's control data, aligned as that wants.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Receives one packet, with the descriptor that came along, if one did.
pub(super) fn receive<'a>(socket: &Fd, buffer: &'a mut [u8]) -> Option<(&'a [u8], Option<Fd>)> {
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all-zero is a valid msghdr.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    // The field's type is the C library's own.
    header.msg_controllen = control.0.len() as _;
    // SAFETY: the header describes buffers of ours.
    let len = uninterrupted(|| unsafe { libc::recvmsg(socket.0, &raw mut header, libc::MSG_CMSG_CLOEXEC) });
    let file = received_descriptor(&header);
    let len = usize::try_from(len).ok().filter(|len| *len > 0)?;
    if header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
        return None;
    }
    Some((&buffer[..len], file))
}

fn received_descriptor(header: &libc::msghdr) -> Option<Fd> {
    // SAFETY: the kernel has filled the control data in; the macros give null or a whole cmsghdr inside it.
    let first = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
    // SAFETY: CMSG_LEN only computes.
    let one = unsafe { libc::CMSG_LEN(size_of::<libc::c_int>() as u32) } as usize;
    if first.cmsg_level != libc::SOL_SOCKET
        || first.cmsg_type != libc::SCM_RIGHTS
        || (first.cmsg_len as usize) < one
    {
        return None;
    }
    // SAFETY: the message holds at least one descriptor, by its length.
    Fd::new(unsafe { libc::CMSG_DATA(first).cast::<libc::c_int>().read_unaligned() })
}

/// Blocks all signals of the calling thread while `body` runs.
pub(super) fn without_signals<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: the sets are initialised by the calls that take them.
    unsafe {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let result = body();
        libc::sigprocmask(libc::SIG_SETMASK, before.as_ptr(), core::ptr::null_mut());
        result
    }
}

/// Starts a thread that nobody waits for, with all signals blocked; says whether it could. Not one of the standard library's, which
/// would give it a stack for signal handlers and panic where the kernel refuses that.
pub(super) fn spawn(name: &'static CStr, stack: usize, body: Box<dyn FnOnce() + Send>) -> bool {
    struct Start(&'static CStr, Box<dyn FnOnce() + Send>);
    extern "C" fn run(start: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: made below, for this thread alone.
        let Start(name, body) = *unsafe { Box::from_raw(start.cast::<Start>()) };
        // SAFETY: a string, for the calling thread.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
        // What a panic has to say has been said; the program goes on without the thread.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        core::ptr::null_mut()
    }
    let start = Box::into_raw(Box::new(Start(name, body)));
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // The thread inherits the mask.
    // SAFETY: the attributes are initialised first; `run` takes the box if the thread is made.
    let result = without_signals(|| unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack);
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        let result = libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run, start.cast());
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        result
    });
    if result != 0 {
        // SAFETY: nobody has taken it.
        drop(unsafe { Box::from_raw(start) });
    }
    result == 0
}

fn errno() -> libc::c_int {
    // SAFETY: the calling thread's errno.
    unsafe { *libc::__errno_location() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_has_its_name_and_no_signals() {
        let (send, receive) = channel();
        let body = move || {
            let mut set = MaybeUninit::<libc::sigset_t>::uninit();
            // SAFETY: initialised by the call that takes it.
            let blocked = unsafe {
                libc::pthread_sigmask(libc::SIG_BLOCK, core::ptr::null(), set.as_mut_ptr());
                libc::sigismember(set.as_ptr(), libc::SIGTERM)
            };
            send.send((thread_name(), blocked)).unwrap();
            panic!("nobody minds");
        };
        assert!(spawn(c"a name", 256 << 10, Box::new(body)));
        let (name, blocked) = receive.recv().unwrap();
        assert!(name.starts_with(b"a name\0") && blocked == 1);
    }

    #[test]
    fn a_thread_that_cannot_be_is_no_harm() {
        assert!(!spawn(c"large", 1 << 46, Box::new(|| ())));
    }
}
