//! Which waits are for other threads, and by which means: determined by the system calls in which one waits
//! and the other wakes it.
//!
//! | waits in | woken in | over |
//! |---|---|---|
//! | a futex call | a system call | futex |
//! | a call for sockets, or of the next line | a call for sockets, softirq `NET_RX` | socket |
//! | any call | `kill` and the like | signal |
//! | `read`, `write`, `splice` and the like, `poll`, `epoll_wait`, `select` | `read`, `write`, `close` and the like, an exit | pipe |
//!
//! `read` and `write` do not reveal the kind of their file. If the recording has the events
//! `sock_send_length` and `sock_recv_length`, these show it.

use serde::Serialize;
use tracewing_trace::super_trace::Waker;

/// What connects two threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ipc {
    /// A pipe, or something else that `read` and `write` are used on: an eventfd, a terminal.
    Pipe,
    /// A socket.
    Socket,
    /// A futex: a lock, a condition variable, the end of a thread.
    Futex,
    /// A signal that the other one sends.
    Signal,
}

impl Ipc {
    /// All kinds, in the order of tables.
    pub const ALL: [Ipc; 4] = [Ipc::Pipe, Ipc::Socket, Ipc::Futex, Ipc::Signal];
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// Another thread, over this.
    Thread(Ipc),
    Else,
    /// No event shows it: it may have been another thread.
    Unknown,
    /// Nothing has ended it yet, or events are missing: it may be another thread, in any call by a signal.
    Unseen,
}

/// What a name means: of a system call, or of an interrupt.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Means {
    Futex,
    Socket,
    /// It reads or writes data.
    Stream,
    /// It waits until data can flow.
    Ready,
    /// It sends a signal.
    Signal,
    /// It closes files.
    Close,
    /// It makes a process or thread.
    Start,
    /// It ends a process or thread.
    End,
    /// The softirq that delivers packets.
    Network,
    /// A softirq, no event says which: perhaps the one that delivers packets.
    Softirq,
    #[default]
    Other,
}

impl Means {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "futex" | "futex_wait" | "futex_waitv" | "futex_wake" | "futex_requeue" => Means::Futex,
            "sendto" | "recvfrom" | "sendmsg" | "recvmsg" | "sendmmsg" | "recvmmsg" | "connect"
            | "accept" | "accept4" | "shutdown" => Means::Socket,
            "read" | "write" | "readv" | "writev" | "splice" | "tee" | "vmsplice" | "sendfile64"
            | "sendfile" | "preadv2" | "pwritev2" => Means::Stream,
            "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => {
                Means::Ready
            }
            "kill" | "tkill" | "tgkill" | "rt_sigqueueinfo" | "rt_tgsigqueueinfo" | "pidfd_send_signal" => {
                Means::Signal
            }
            "close" | "close_range" | "dup2" | "dup3" => Means::Close,
            "clone" | "clone3" | "fork" | "vfork" => Means::Start,
            "exit" | "exit_group" => Means::End,
            "NET_RX" => Means::Network,
            "softirq" => Means::Softirq,
            _ => Means::Other,
        }
    }
}

/// What ended a wait in a call.
pub(super) fn cause(
    waited: Means,
    by: &Waker,
    means: impl Fn(tracewing_trace::super_trace::Name) -> Means,
) -> Cause {
    let woke = match (by.interrupt, by.call) {
        (Some(interrupt), _) => match means(interrupt) {
            Means::Softirq if over(waited, Means::Network).is_some() => return Cause::Unknown,
            woke @ Means::Network => Some(woke),
            _ => None,
        },
        (None, None) if by.tid.is_none() => return Cause::Unknown,
        (None, call) => call.map(means),
    };
    woke.and_then(|woke| over(waited, woke)).map_or(Cause::Else, Cause::Thread)
}

/// Over what a thread that waited in one call was woken in another one, or by a softirq; `None` if it waited
/// for something else than another thread.
fn over(waited: Means, woke: Means) -> Option<Ipc> {
    match (waited, woke) {
        (_, Means::Signal) => Some(Ipc::Signal),
        (Means::Futex, Means::Network) => None,
        (Means::Futex, _) => Some(Ipc::Futex),
        (Means::Socket | Means::Stream | Means::Ready, Means::Socket | Means::Network) => Some(Ipc::Socket),
        (Means::Socket, Means::Stream | Means::Close | Means::End) => Some(Ipc::Socket),
        (Means::Stream | Means::Ready, Means::Stream | Means::Close | Means::End) => Some(Ipc::Pipe),
        _ => None,
    }
}
