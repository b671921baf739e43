//! System calls that may be made from a signal handler, or in a child between `fork` and `exec`.

use core::ffi::CStr;
use core::mem::{MaybeUninit, size_of};
use core::ptr::NonNull;
use std::time::{Duration, Instant};

use tracewing_abi::message::Answer;

use super::{filtered, trust};

/// What the agent's threads are called, by which recorders know them.
const THREAD_NAME: &CStr = c"tracewing";

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

    /// Gives the number, and leaves it open.
    pub(super) fn leak(self) -> libc::c_int {
        let number = self.0;
        core::mem::forget(self);
        number
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::close(self.0) };
    }
}

/// Runs `body` and leaves `errno` as it was: a program that emits an event between a failed call and its look
/// at `errno` must not notice.
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

/// The name of the process's first thread, as `ps` shows it: at most 15 bytes, and zeroes; all zeroes if it
/// is unknown.
pub(super) fn first_thread_name() -> [u8; 16] {
    let mut name = [0u8; 16];
    if let Some(len) = read_file(c"/proc/self/comm", &mut name) {
        name[len.saturating_sub(1)..].fill(0); // the newline
    }
    name
}

/// Opens a file to be read.
pub(super) fn open(path: &CStr) -> Option<Fd> {
    // SAFETY: a NUL-terminated path and a number.
    Fd::new(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) })
}

/// Reads the first bytes of a file.
pub(super) fn read_file(path: &CStr, buffer: &mut [u8]) -> Option<usize> {
    let file = open(path)?;
    // SAFETY: the buffer is writable.
    let len = unsafe { libc::read(file.0, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(len).ok().filter(|len| *len > 0)
}

/// Names a thread of this process; an error's number, or 0.
pub(super) fn name_thread(tid: i32, name: &CStr) -> libc::c_int {
    let path = std::ffi::CString::new(format!("/proc/self/task/{tid}/comm")).unwrap_or_default();
    // SAFETY: a NUL-terminated path and a number.
    let Some(file) = Fd::new(unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) }) else {
        return errno();
    };
    // SAFETY: a string of that size.
    let written = unsafe { libc::write(file.0, name.as_ptr().cast(), name.count_bytes()) };
    if written < 0 { errno() } else { 0 }
}

/// The CPU that the thread runs on, or did a moment ago.
pub(super) fn current_cpu() -> usize {
    // SAFETY: no arguments; -1 if the kernel does not know.
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
    // SAFETY: no other code knows of it.
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

/// Bytes of memory, or of the disk, that a file takes.
pub(super) fn allocated(file: libc::c_int) -> usize {
    const BLOCK: usize = 512; // stat(2), whatever the file system's blocks are
    let mut data = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `data` has room for a stat, and all-zero is one.
    let data = unsafe { (libc::fstat(file, data.as_mut_ptr()) == 0).then(|| data.assume_init()) };
    data.map_or(0, |data| usize::try_from(data.st_blocks).unwrap_or(0).saturating_mul(BLOCK))
}

/// Has the kernel map pages of a mapping (madvise(2), `MADV_POPULATE_WRITE`, Linux 5.14), as many as it can.
pub(super) fn populate(base: NonNull<u8>, offset: usize, len: usize) {
    let start = (base.addr().get() + offset).next_multiple_of(4096);
    let end = (base.addr().get() + offset + len) & !4095;
    let len = end.saturating_sub(start);
    // SAFETY: concerns only which pages are mapped, not what is in them.
    unsafe { libc::madvise(start as *mut libc::c_void, len, libc::MADV_POPULATE_WRITE) };
}

/// Keeps a shared mapping from children that are forked from now on: they find nothing at its place. `false`
/// where it cannot be.
pub(super) fn keep_from_children(base: NonNull<u8>, size: usize) -> bool {
    // SAFETY: changes nothing in this process.
    unsafe { libc::madvise(base.as_ptr().cast(), size, libc::MADV_DONTFORK) == 0 }
}

/// Takes that back.
pub(super) fn leave_to_children(base: NonNull<u8>, size: usize) -> bool {
    // SAFETY: changes nothing in this process.
    unsafe { libc::madvise(base.as_ptr().cast(), size, libc::MADV_DOFORK) == 0 }
}

/// Puts private zeroes where nothing is mapped; `false` where something is, or the kernel (before Linux 4.17)
/// does not look.
pub(super) fn map_zeroes_into(base: NonNull<u8>, size: usize) -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: replaces nothing.
    let found = unsafe { libc::mmap(base.as_ptr().cast(), size, access, flags, -1, 0) };
    if found == libc::MAP_FAILED || found == base.as_ptr().cast() {
        return found != libc::MAP_FAILED;
    }
    // SAFETY: the mapping just made, whose address no other code has.
    unsafe { libc::munmap(found, size) };
    false
}

/// Zeroes in a mapping of their own, which has a name in `/proc/PID/maps`. What a forked child writes there,
/// this process does not see.
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
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping where the kernel likes.
    let base = unsafe { libc::mmap(core::ptr::null_mut(), size, access, libc::MAP_PRIVATE, file.raw(), 0) };
    if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
}

/// Replaces the mapping at `base` with private zeroes.
///
/// # Safety
/// `base` begins a mapping of `size` bytes whose content is not needed any more, and may change while other
/// threads still use it.
pub(super) unsafe fn map_zeroes_over(base: NonNull<u8>, size: usize) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the caller's. On failure the old mapping stays, which is just as valid for threads that still
    // use it.
    unsafe { libc::mmap(base.as_ptr().cast(), size, access, flags, -1, 0) };
}

/// Unmaps a mapping.
///
/// # Safety
/// The mapping is not in use.
pub(super) unsafe fn unmap(base: NonNull<u8>, size: usize) {
    // SAFETY: the caller's.
    unsafe { libc::munmap(base.as_ptr().cast(), size) };
}

/// `membarrier(2)` with this command; `false` where the kernel has it not.
pub(super) fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call takes three integers and touches no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Until when a recorder is waited for; `None`: for as long as it takes.
pub(super) type Until = Option<Instant>;

/// Why a recorder has not done what it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// Not in time. What was begun can be gone on with.
    Late,
    /// Nor will it.
    Gone,
}

/// Connects to the recorder at the Unix socket `path`, for packets. Where its backlog is full, that takes
/// time.
pub(super) fn connect(path: &[u8], until: Until) -> Result<Fd, Failure> {
    // SAFETY: all-zero is a valid sockaddr_un.
    let mut address: libc::sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    if path.len() >= address.sun_path.len() {
        return Err(Failure::Gone);
    }
    for (to, from) in address.sun_path.iter_mut().zip(path) {
        *to = *from as libc::c_char;
    }
    // SAFETY: three integers.
    let socket =
        Fd::new(unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) })
            .ok_or(Failure::Gone)?;
    let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: `address` is a sockaddr_un of that size.
    let connect = || unsafe { libc::connect(socket.0, (&raw const address).cast(), size) as isize };
    waiting(&socket, libc::SO_SNDTIMEO, until, connect)?;
    if trust::is_trusted(&socket) { Ok(socket) } else { Err(Failure::Gone) }
}

/// A new connection of packets: both ends. What the kernel says of the process at the other end is this one.
pub(super) fn socket_pair() -> Option<(Fd, Fd)> {
    let mut ends = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: room for two descriptors.
    let made = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } == 0;
    made.then(|| (Fd(ends[0]), Fd(ends[1])))
}

/// Sends a packet with a descriptor, at once or not at all: `false` where there is no room for it.
pub(super) fn send_descriptor(socket: libc::c_int, message: &[u8], file: &Fd) -> Result<bool, Failure> {
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
    // SAFETY: all-zero is a valid msghdr.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: CMSG_SPACE only computes.
    header.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<libc::c_int>() as u32) } as _;
    // SAFETY: the control data has room for a whole cmsghdr and a descriptor.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(size_of::<libc::c_int>() as u32) as _;
        libc::CMSG_DATA(first).cast::<libc::c_int>().write_unaligned(file.0);
    }
    loop {
        // SAFETY: the header describes buffers of ours.
        let sent =
            unsafe { libc::sendmsg(socket, &raw const header, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) };
        match if sent >= 0 { 0 } else { errno() } {
            0 => return Ok(true),
            libc::EINTR => {}
            // Too many descriptors of this user are on their way.
            libc::EAGAIN | libc::ETOOMANYREFS => return Ok(false),
            _ => return Err(Failure::Gone),
        }
    }
}

/// Whether nothing is waited for any longer.
pub(super) fn is_over(until: Until) -> bool {
    until.is_some_and(|until| Instant::now() >= until)
}

/// Sleeps, on a thread of the agent's.
pub(super) fn sleep_quietly(time: Duration) {
    filtered::quietly(|| std::thread::sleep(time));
}

/// Repeats a call on a socket that signals interrupt, as long as may be waited; once in any case.
fn waiting(
    socket: &Fd,
    option: libc::c_int,
    until: Until,
    mut call: impl FnMut() -> isize,
) -> Result<usize, Failure> {
    const SHORTEST: Duration = Duration::from_micros(1); // 0 would sleep permanently
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let limit = left.map_or(Duration::ZERO, |left| left.max(SHORTEST));
        let limit = libc::timeval {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_usec: libc::suseconds_t::from(limit.subsec_micros()),
        };
        let size = size_of::<libc::timeval>() as libc::socklen_t;
        // SAFETY: `limit` is a timeval, as the options want.
        unsafe { libc::setsockopt(socket.0, libc::SOL_SOCKET, option, (&raw const limit).cast(), size) };
        // Without a limit it is a thread of the agent's that waits.
        let called = if until.is_none() { filtered::quietly(&mut call) } else { call() };
        if let Ok(result) = usize::try_from(called) {
            return Ok(result);
        }
        match errno() {
            libc::EINTR | libc::EAGAIN if left.is_none_or(|left| !left.is_zero()) => {}
            libc::EINTR | libc::EAGAIN => return Err(Failure::Late),
            _ => return Err(Failure::Gone),
        }
    }
}

/// Closes a descriptor by its number.
pub(super) fn close(descriptor: libc::c_int) {
    // SAFETY: a number; the caller knows that it is its own.
    unsafe { libc::close(descriptor) };
}

/// Ends a socket's conversation for both sides; the descriptor stays.
pub(super) fn hang_up(socket: libc::c_int) {
    // SAFETY: numbers; the caller knows that it is its own.
    unsafe { libc::shutdown(socket, libc::SHUT_RDWR) };
}

/// Whether the thread of this process with this id sleeps; false if there is none.
pub(super) fn is_asleep(tid: i32) -> bool {
    let mut stat = [0; 64];
    let path = std::ffi::CString::new(format!("/proc/self/task/{tid}/stat")).unwrap_or_default();
    let len = if tid == 0 { None } else { read_file(&path, &mut stat) };
    // Its name, in parentheses, comes before its state.
    len.is_some_and(|len| stat[..len].windows(3).any(|part| part == b") S"))
}

/// The same socket by a high number, where programs do not look for theirs.
pub(super) fn out_of_the_way(socket: Fd) -> Fd {
    const LOWEST: libc::c_int = 900;
    // SAFETY: two integers.
    Fd::new(unsafe { libc::fcntl(socket.0, libc::F_DUPFD_CLOEXEC, LOWEST) }).unwrap_or(socket)
}

/// Lets a receive on the socket take as long as it takes.
pub(super) fn wait_for_ever(socket: &Fd) {
    wait_no_longer(socket, Duration::ZERO);
}

/// Limits how long a receive on the socket may take; zero: no limit.
pub(super) fn wait_no_longer(socket: &Fd, time: Duration) {
    let limit = libc::timeval {
        tv_sec: time.as_secs() as libc::time_t,
        tv_usec: libc::suseconds_t::from(time.subsec_micros()),
    };
    let size = size_of::<libc::timeval>() as libc::socklen_t;
    // SAFETY: `limit` is a timeval, as the option wants.
    unsafe {
        libc::setsockopt(socket.0, libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const limit).cast(), size)
    };
}

/// What a descriptor refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Sends one packet.
pub(super) fn send(socket: &Fd, message: &[u8], until: Until) -> Result<(), Failure> {
    let (start, len) = (message.as_ptr().cast(), message.len());
    // SAFETY: the slice is readable.
    let send = || unsafe { libc::send(socket.0, start, len, libc::MSG_NOSIGNAL) };
    let sent = waiting(socket, libc::SO_SNDTIMEO, until, send)?;
    if sent == len { Ok(()) } else { Err(Failure::Gone) }
}

/// Reads a file, or receives one packet without a descriptor as long as that takes: by `read`, which every
/// filter for system calls allows. 0 bytes where the recorder has hung up. On a thread of the agent's.
pub(super) fn read(socket: &Fd, buffer: &mut [u8]) -> usize {
    // SAFETY: the buffer is writable.
    let read = || unsafe { libc::read(socket.0, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(filtered::in_read(read)).unwrap_or(0)
}

/// Ends the calling thread, and nothing else: no destructor, no memory given back, no other system call.
pub(super) fn end_thread() -> ! {
    loop {
        // SAFETY: ends the thread, whose stack stays mapped.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}

/// The time of day, in nanoseconds since 1970.
pub(super) fn time_of_day() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Room for descriptors in a packet's control data, aligned as that wants.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Waits until there is a packet, and gives it, without taking it or what comes along. Nothing where the
/// other side has hung up.
pub(super) fn look<'a>(socket: &Fd, buffer: &'a mut [u8], until: Until) -> Result<&'a [u8], Failure> {
    let (start, len) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the buffer is writable.
    let look = || unsafe { libc::recv(socket.0, start, len, libc::MSG_PEEK) };
    let len = waiting(socket, libc::SO_RCVTIMEO, until, look)?;
    Ok(&buffer[..len])
}

/// Sends a packet on a socket that has this number, at once or not at all.
pub(super) fn send_at_once(socket: libc::c_int, message: &[u8]) {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the slice is readable.
    unsafe { libc::send(socket, message.as_ptr().cast(), message.len(), flags) };
}

/// The descriptors that came along with a packet.
pub(super) type Files = [Option<Fd>; Answer::FILES];

/// Receives one packet, with the descriptors that came along.
pub(super) fn receive<'a>(
    socket: &Fd,
    buffer: &'a mut [u8],
    until: Until,
) -> Result<(&'a [u8], Files), Failure> {
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
    let receive = || unsafe { libc::recvmsg(socket.0, &raw mut header, libc::MSG_CMSG_CLOEXEC) };
    let len = waiting(socket, libc::SO_RCVTIMEO, until, receive)?;
    let files = received_descriptors(&header);
    if len == 0 || header.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
        return Err(Failure::Gone);
    }
    Ok((&buffer[..len], files))
}

fn received_descriptors(header: &libc::msghdr) -> Files {
    let none = [const { None }; Answer::FILES];
    // SAFETY: the kernel has filled the control data in; the macros give null or a whole cmsghdr inside it.
    let Some(first) = (unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }) else { return none };
    // SAFETY: CMSG_LEN only computes.
    let empty = unsafe { libc::CMSG_LEN(0) } as usize;
    if first.cmsg_level != libc::SOL_SOCKET || first.cmsg_type != libc::SCM_RIGHTS {
        return none;
    }
    let len: usize = first.cmsg_len as _; // the field's type is the C library's own
    let count = len.saturating_sub(empty) / size_of::<libc::c_int>();
    // SAFETY: as above.
    let data = unsafe { libc::CMSG_DATA(first) }.cast::<libc::c_int>();
    // All that have come are taken over, and closed where they are too many.
    let mut files = none;
    for at in 0..count {
        // SAFETY: by its length, the message holds this many descriptors.
        let file = Fd::new(unsafe { data.add(at).read_unaligned() });
        if let Some(place) = files.get_mut(at) {
            *place = file;
        }
    }
    files
}

/// Blocks all signals of the calling thread.
pub(super) fn block_signals() {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is initialised by the first call.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), core::ptr::null_mut());
    }
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

/// Starts a detached thread with all signals blocked; returns whether it could. Not one of the standard
/// library's, which would give it a stack for signal handlers and panic if the kernel refuses that.
pub(super) fn spawn(stack: usize, body: Box<dyn FnOnce() + Send>) -> bool {
    extern "C" fn run(start: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: made below, for this thread alone.
        let body = *unsafe { Box::from_raw(start.cast::<Box<dyn FnOnce() + Send>>()) };
        begin_thread(body);
        core::ptr::null_mut()
    }
    let start = Box::into_raw(Box::new(body));
    let is_started = without_signals(|| spawn_plain(stack, run, start.cast()));
    if !is_started {
        // SAFETY: no thread has taken it.
        drop(unsafe { Box::from_raw(start) });
    }
    is_started
}

/// The first thing that a thread of the agent's does.
pub(super) fn begin_thread(body: impl FnOnce()) {
    // SAFETY: a string, for the calling thread.
    unsafe { libc::prctl(libc::PR_SET_NAME, THREAD_NAME.as_ptr()) };
    super::identity::verify();
    // The panic has printed its message; the program continues without the thread.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
}

/// As [`spawn`], without memory of this crate's, and with the calling thread's signal mask: for a thread that
/// a recorder has borrowed, which blocks all signals. Each system call here costs that thread some 60 µs.
pub(super) fn spawn_plain(
    stack: usize,
    run: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void,
    argument: *mut libc::c_void,
) -> bool {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: the attributes are initialised first; `run` takes the argument if the thread is made.
    let result = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack);
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        let result = libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run, argument);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        result
    };
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

    fn thread_name() -> [u8; 16] {
        let mut name = [0u8; 16];
        // SAFETY: PR_GET_NAME writes at most 16 bytes.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        name
    }

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
        assert!(spawn(256 << 10, Box::new(body)));
        let (name, blocked) = receive.recv().unwrap();
        assert!(name.starts_with(b"tracewing\0") && blocked == 1);
    }

    #[test]
    fn a_thread_that_cannot_be_is_no_harm() {
        assert!(!spawn(1 << 46, Box::new(|| ())));
    }
}
