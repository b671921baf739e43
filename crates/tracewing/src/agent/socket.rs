//! Packets to and from recorders: system calls that may be made as those of `system`, and wait as the agent's
//! threads do.

use core::mem::{MaybeUninit, size_of};
use std::time::{Duration, Instant};

use tracewing_abi::message::Answer;

use super::system::{Fd, errno};
use super::{threads, trust};

/// Until when a recorder is waited for; `None`: for as long as it takes.
pub(super) type Until = Option<Instant>;

/// Why a recorder has not done what it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The time is over. What was begun can be continued.
    Late,
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
    let connect = || unsafe { libc::connect(socket.raw(), (&raw const address).cast(), size) as isize };
    waiting(&socket, libc::SO_SNDTIMEO, until, connect)?;
    if trust::is_trusted(&socket) { Ok(socket) } else { Err(Failure::Gone) }
}

/// A new connection of packets: both ends. What the kernel says of the process at the other end is this one.
pub(super) fn socket_pair() -> Option<(Fd, Fd)> {
    let mut ends = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: room for two descriptors.
    let made = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } == 0;
    if made { Fd::new(ends[0]).zip(Fd::new(ends[1])) } else { None }
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
        libc::CMSG_DATA(first).cast::<libc::c_int>().write_unaligned(file.raw());
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
        unsafe { libc::setsockopt(socket.raw(), libc::SOL_SOCKET, option, (&raw const limit).cast(), size) };
        // Without a limit it is a thread of the agent's that waits.
        let called = if until.is_none() { threads::quietly(&mut call) } else { call() };
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

/// Ends a socket's conversation for both sides; the descriptor stays.
pub(super) fn hang_up(socket: libc::c_int) {
    // SAFETY: numbers; the caller knows that it is its own.
    unsafe { libc::shutdown(socket, libc::SHUT_RDWR) };
}

/// Lets a receive on the socket take as long as it takes.
pub(super) fn wait_without_limit(socket: &Fd) {
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
        libc::setsockopt(socket.raw(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const limit).cast(), size)
    };
}

/// Sends `message` as one packet, before `until`.
pub(super) fn send(socket: &Fd, message: &[u8], until: Until) -> Result<(), Failure> {
    let (start, len) = (message.as_ptr().cast(), message.len());
    // SAFETY: the slice is readable.
    let send = || unsafe { libc::send(socket.raw(), start, len, libc::MSG_NOSIGNAL) };
    let sent = waiting(socket, libc::SO_SNDTIMEO, until, send)?;
    if sent == len { Ok(()) } else { Err(Failure::Gone) }
}

/// Reads a file, or receives one packet without a descriptor as long as that takes: by `read`, which every
/// filter for system calls allows. 0 bytes where the recorder has hung up. On a thread of the agent's.
pub(super) fn read(socket: &Fd, buffer: &mut [u8]) -> usize {
    // SAFETY: the buffer is writable.
    let read = || unsafe { libc::read(socket.raw(), buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(threads::in_read(read)).unwrap_or(0)
}

/// The same, on a socket whose receives have a time-out. `None` where nothing has come in that time.
pub(super) fn read_for_a_while(socket: &Fd, buffer: &mut [u8]) -> Option<usize> {
    // SAFETY: the buffer is writable.
    let read = || unsafe { libc::read(socket.raw(), buffer.as_mut_ptr().cast(), buffer.len()) };
    match usize::try_from(threads::in_read(read)) {
        Ok(len) => Some(len),
        Err(_) if matches!(errno(), libc::EAGAIN | libc::EINTR) => None,
        Err(_) => Some(0),
    }
}

/// Room for descriptors in a packet's control data, aligned as that wants.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Waits until there is a packet, and gives it, without taking it or what comes along. Nothing where the
/// other side has hung up.
pub(super) fn look<'a>(socket: &Fd, buffer: &'a mut [u8], until: Until) -> Result<&'a [u8], Failure> {
    let (start, len) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the buffer is writable.
    let look = || unsafe { libc::recv(socket.raw(), start, len, libc::MSG_PEEK) };
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
    let receive = || unsafe { libc::recvmsg(socket.raw(), &raw mut header, libc::MSG_CMSG_CLOEXEC) };
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
