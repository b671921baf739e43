//! System calls that wait, each again and again: with a time-out (`timed`), or until a child ends the wait
//! (`woken`). What they return, and when, is compared with what they return without a recorder.

mod timed;
mod woken;

use std::io::Error;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Time-outs, and the time after which a child ends a wait.
const TIME: Duration = Duration::from_millis(20);
static SPEC: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// A wait that takes longer has begun anew.
const LONGEST: Duration = Duration::from_secs(5);
/// Time between two waits, in a call in which the thread can be borrowed.
const BETWEEN: Duration = Duration::from_millis(1);

type Wait = Box<dyn FnMut() -> Waited>;
/// A call's name, and what prepares it.
type Call = (&'static str, fn() -> Wait);

fn all() -> impl Iterator<Item = &'static Call> {
    timed::ALL.iter().chain(woken::ALL)
}

/// The names of all calls.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|(name, _)| *name)
}

/// What removes what does not end with the process.
static REMOVE: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

fn remove_at_end(remove: impl FnOnce() + Send + 'static) {
    *REMOVE.lock().unwrap() = Some(Box::new(remove));
}

/// Waits by a call for so long, again and again, and counts what differs.
pub fn again(call: &str, milliseconds: i64) -> i64 {
    let Some((_, prepare)) = all().find(|(name, _)| *name == call) else { return -1 };
    let mut wait = prepare();
    let begin = Instant::now();
    let mut differences = 0;
    while begin.elapsed() < Duration::from_millis(milliseconds as u64) {
        let Waited { result, expected, time } = wait();
        if result != expected || time < TIME || time > LONGEST {
            eprintln!("{call}: {result} in place of {expected}, in {time:?}");
            differences += 1;
        }
        std::thread::sleep(BETWEEN);
    }
    REMOVE.lock().unwrap().take().into_iter().for_each(|remove| remove());
    differences
}

/// What a wait has come to.
struct Waited {
    /// A negative error number where it failed.
    result: i64,
    expected: i64,
    time: Duration,
}

/// A call that is to return this, or to fail with this error where it is negative.
fn expect(expected: i32, call: impl FnOnce() -> i64) -> Waited {
    expect_since(Instant::now(), expected, call)
}

/// The same of one that ends at a time which was computed after `begin`.
fn expect_since(begin: Instant, expected: i32, call: impl FnOnce() -> i64) -> Waited {
    let result = call();
    let error = Error::last_os_error().raw_os_error().unwrap_or(0);
    let result = if result < 0 { -i64::from(error) } else { result };
    Waited { result, expected: expected.into(), time: begin.elapsed() }
}

/// The same, while a child does something after a while.
fn meanwhile(act: impl FnOnce(), expected: i32, call: impl FnOnce() -> i64) -> Waited {
    let begin = Instant::now();
    // SAFETY: there are no other threads; the child makes system calls only, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        sleep(TIME);
        act();
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    let mut waited = expect(expected, call);
    waited.time = begin.elapsed();
    // SAFETY: the child just made, or collected already.
    unsafe { libc::waitpid(child, null_mut(), 0) };
    waited
}

fn sleep(time: Duration) {
    // SAFETY: a number.
    unsafe { libc::usleep(time.as_micros() as u32) };
}

/// The time after a time-out that begins now.
fn until(clock: libc::clockid_t) -> libc::timespec {
    // SAFETY: all-zero is a time, which the clock overwrites.
    let mut until = unsafe {
        let mut now = zeroed();
        libc::clock_gettime(clock, &raw mut now);
        now
    };
    until.tv_nsec += SPEC.tv_nsec;
    until.tv_sec += until.tv_nsec / 1_000_000_000;
    until.tv_nsec %= 1_000_000_000;
    until
}

fn pair() -> [i32; 2] {
    let mut ends = [-1; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()) }, 0);
    ends
}

fn pipe() -> [i32; 2] {
    let mut ends = [-1; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    ends
}

fn close(descriptors: &[i32]) {
    descriptors.iter().for_each(|descriptor| {
        // SAFETY: a number.
        unsafe { libc::close(*descriptor) };
    });
}

/// Reads up to so many bytes.
fn read(from: i32, most: usize) -> i64 {
    let mut bytes = [MaybeUninit::<u8>::uninit(); 4096];
    // SAFETY: room for more bytes.
    unsafe { libc::read(from, bytes.as_mut_ptr().cast(), most.min(bytes.len())) as i64 }
}

/// Writes so many bytes, the first of which is 1.
fn write(to: i32, count: usize) -> i64 {
    let mut bytes = [0_u8; 4096];
    bytes[0] = 1;
    // SAFETY: more bytes, which are live.
    unsafe { libc::write(to, bytes.as_ptr().cast(), count.min(bytes.len())) as i64 }
}

/// Receives eight bytes, by `recvmsg`.
fn receive_message(socket: i32, flags: i32) -> i64 {
    let mut bytes = [0_u8; 8];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: all-zero is a message without parts, which gets one.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        libc::recvmsg(socket, &raw mut message, flags) as i64
    }
}

fn receive(socket: i32, flags: i32) -> i64 {
    let mut bytes = [0_u8; 8];
    // SAFETY: room for as many bytes.
    unsafe { libc::recv(socket, bytes.as_mut_ptr().cast(), bytes.len(), flags) as i64 }
}

/// Sets an option of a socket.
fn set<T>(socket: i32, option: i32, value: T) {
    let size = size_of::<T>() as u32;
    // SAFETY: a value of that size.
    let set = unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, option, (&raw const value).cast(), size) };
    assert_eq!(set, 0);
}

fn limit() -> libc::timeval {
    libc::timeval { tv_sec: 0, tv_usec: SPEC.tv_nsec / 1000 }
}

/// Fills a pipe or socket.
fn fill(end: i32) {
    // SAFETY: flags of a descriptor.
    unsafe {
        let flags = libc::fcntl(end, libc::F_GETFL);
        libc::fcntl(end, libc::F_SETFL, flags | libc::O_NONBLOCK);
        while write(end, 4096) > 0 {}
        libc::fcntl(end, libc::F_SETFL, flags);
    }
}

/// A signal, which is blocked.
fn blocked() -> libc::sigset_t {
    // SAFETY: all-zero is an empty set.
    unsafe {
        let mut mask: libc::sigset_t = zeroed();
        libc::sigaddset(&raw mut mask, libc::SIGUSR2);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const mask, null_mut());
        mask
    }
}

/// A listener whose backlog is full.
struct Full {
    listener: i32,
    address: libc::sockaddr_un,
    size: u32,
}

impl Full {
    fn new() -> Self {
        // SAFETY: system calls with live values of the types that they take.
        unsafe {
            let listener = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0);
            let mut address: libc::sockaddr_un = zeroed();
            address.sun_family = libc::AF_UNIX as u16;
            let mut size = size_of::<libc::sockaddr_un>() as u32;
            assert_eq!(libc::bind(listener, (&raw const address).cast(), size_of::<u16>() as u32), 0);
            assert_eq!(libc::listen(listener, 0), 0);
            libc::getsockname(listener, (&raw mut address).cast(), &raw mut size);
            let full = Self { listener, address, size };
            assert_eq!(full.connect(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)), 0);
            full
        }
    }

    fn connect(&self, socket: i32) -> i64 {
        // SAFETY: an address of that size.
        unsafe { libc::connect(socket, (&raw const self.address).cast(), self.size).into() }
    }
}

/// Sets a terminal up, whose readers wait for so many characters, or so many tenths of a second. Gives its
/// ends.
fn terminal(characters: u8, tenths: u8) -> [i32; 2] {
    let (mut own, mut other) = (-1, -1);
    // SAFETY: room for two descriptors, and for the settings.
    unsafe {
        let none = std::ptr::null();
        assert_eq!(libc::openpty(&raw mut other, &raw mut own, null_mut(), none, none.cast()), 0);
        let mut settings: libc::termios = zeroed();
        libc::tcgetattr(own, &raw mut settings);
        libc::cfmakeraw(&raw mut settings);
        (settings.c_cc[libc::VMIN], settings.c_cc[libc::VTIME]) = (characters, tenths);
        libc::tcsetattr(own, libc::TCSANOW, &raw const settings);
    }
    [own, other]
}
