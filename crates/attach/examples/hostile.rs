//! A process that answers a recorder that attaches to it wrongly: `hostile WAY`. It prints its process id,
//! reads standard input to its end, and exits with 0. What it answers by is the entry's function, which a
//! recorder has its first thread call.
//!
//! | way | the function |
//! |---|---|
//! | `number`, `least` | gives an address at which there is nothing |
//! | `error`, `failed` | gives an error; in the word of a door |
//! | `opening`, `nonsensical` | never opens its door; has a word that means nothing |
//! | `closed`, `file`, `stream`, `foreign` | gives a descriptor that is closed; of a file; of a stream; of a connection that another process has made |
//! | `endless` | does not return |
//! | `late` | returns after 3 s |
//! | `silent` | opens a door, and says nothing |
//! | `hang_up` | closes it |
//! | `huge` | sends the largest messages by it |
//! | `nonsense` | sends messages that mean nothing by it |
//! | `files` | sends many descriptors in each message |
//! | `flood` | sends connections, in a loop, and says nothing on them |
//! | `huge_hello` | sends connections, and the largest messages on them |
//! | `pause` | asks the recorder to pause |

use std::io::{Read, stdin};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use tracewing_abi::attach::Saved;
use tracewing_abi::message::control::Control;
use tracewing_abi::message::door::{Door, Enter, Knock};
use tracewing_abi::ways::Way;

/// What it says of its door.
static WORD: AtomicI64 = AtomicI64::new(0);
static WAY: OnceLock<String> = OnceLock::new();
/// A connection that this process's parent has made.
static FOREIGN: OnceLock<RawFd> = OnceLock::new();

/// Messages of one kind: more than a recorder takes in a second.
const MANY: usize = 5000;
/// Bytes of the largest message that a socket takes with its usual buffer.
const LARGEST: usize = 200_000;

tracewing_abi::attach_entry!(entry, function, now, no_ways);

/// A time of loading.
fn now() -> u64 {
    1
}

/// It is in no recording that another copy could join.
///
/// # Safety
/// None is needed: nothing is written.
unsafe extern "C" fn no_ways(_: *mut Way, _: usize) -> usize {
    0
}

fn main() {
    let way = std::env::args().nth(1).unwrap_or_default();
    if way == "foreign" {
        let (one, other) = pair(libc::SOCK_SEQPACKET);
        std::mem::forget(other);
        FOREIGN.get_or_init(|| one.into_raw_fd());
        // SAFETY: there are no other threads.
        let child = unsafe { libc::fork() };
        if child != 0 {
            let mut status = -1;
            // SAFETY: the child just made.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            std::process::exit(status);
        }
    }
    WAY.get_or_init(|| way);
    println!("{}", std::process::id());
    let _ = stdin().read_to_end(&mut Vec::new());
}

fn pair(kind: libc::c_int) -> (OwnedFd, OwnedFd) {
    let mut pair = [-1; 2];
    // SAFETY: room for two descriptors.
    let made = unsafe { libc::socketpair(libc::AF_UNIX, kind | libc::SOCK_CLOEXEC, 0, pair.as_mut_ptr()) };
    assert_eq!(made, 0);
    // SAFETY: the kernel has just made them.
    pair.map(|one| unsafe { OwnedFd::from_raw_fd(one) }).into()
}

extern "C" fn function(_: *const Saved, _: i64) -> i64 {
    let way = WAY.get().map(String::as_str).unwrap_or_default();
    match way {
        "number" => 1 << 40,
        "least" => i64::MIN,
        "error" => -i64::from(libc::EMFILE),
        "failed" => word(Door::Failed(libc::EMFILE).word()),
        "opening" => word(Door::Opening.word()),
        "nonsensical" => word(1 << 40),
        "closed" => word(Door::Open(555).word()),
        "file" => open(std::fs::File::open("/dev/zero").map_or(-1, |file| file.into_raw_fd())),
        "stream" => {
            let (one, other) = pair(libc::SOCK_STREAM);
            std::mem::forget(other);
            open(one.into_raw_fd())
        }
        "foreign" => open(FOREIGN.get().copied().unwrap_or(-1)),
        "endless" => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        "late" => {
            std::thread::sleep(Duration::from_secs(3));
            -1
        }
        _ => {
            let (own, recorders) = pair(libc::SOCK_SEQPACKET);
            std::thread::spawn(move || answer(way, &own));
            open(recorders.into_raw_fd())
        }
    }
}

/// Leaves a value in the word, and gives its address.
fn word(value: i64) -> i64 {
    WORD.store(value, Relaxed);
    WORD.as_ptr().addr() as i64
}

fn open(number: RawFd) -> i64 {
    word(Door::Open(number).word())
}

/// On its own end of a door.
fn answer(way: &str, own: &OwnedFd) {
    let mut entered = [0_u8; Enter::SIZE];
    // SAFETY: a live buffer.
    unsafe { libc::read(own.as_raw_fd(), entered.as_mut_ptr().cast(), entered.len()) };
    let mut message = vec![7; LARGEST];
    match way {
        "hang_up" => return,
        "huge" => (0..MANY).for_each(|_| send(own, &message, &[])),
        "nonsense" => (0..MANY).for_each(|number| send(own, &number.to_le_bytes(), &[])),
        "files" => {
            let (one, _other) = pair(libc::SOCK_SEQPACKET);
            (0..MANY).for_each(|_| send(own, &Knock::Join.encode(), &[one.as_raw_fd(); 200]));
        }
        "flood" | "huge_hello" => {
            for _ in 0..MANY {
                let (one, other) = pair(libc::SOCK_SEQPACKET);
                if way == "huge_hello" {
                    send(&other, &message, &[]);
                }
                send(own, &Knock::Join.encode(), &[one.as_raw_fd()]);
            }
        }
        "pause" => {
            let (one, other) = pair(libc::SOCK_SEQPACKET);
            let len = Control::Pause.encode(&mut message).unwrap_or_default();
            send(&other, &message[..len], &[]);
            send(own, &Knock::Ask.encode(), &[one.as_raw_fd()]);
        }
        _ => {}
    }
    // Both stay open.
    std::thread::sleep(Duration::from_secs(1000));
}

/// Waits for room; a message that is not taken does not matter.
fn send(socket: &OwnedFd, message: &[u8], files: &[RawFd]) {
    let mut control = [0_u64; 256];
    let mut part = libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
    // SAFETY: all-zero is a valid msghdr; the header describes buffers that live, with room for the files.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
        if !files.is_empty() {
            let bytes = size_of_val(files) as u32;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE(bytes) as _;
            let one = libc::CMSG_FIRSTHDR(&raw const header);
            (*one).cmsg_level = libc::SOL_SOCKET;
            (*one).cmsg_type = libc::SCM_RIGHTS;
            (*one).cmsg_len = libc::CMSG_LEN(bytes) as _;
            std::ptr::copy_nonoverlapping(files.as_ptr(), libc::CMSG_DATA(one).cast(), files.len());
        }
        libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL);
    }
}
