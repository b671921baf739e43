//! The agent's thread, by which recorders reach the process: it sleeps in `poll` until one of them says what it wants of
//! the classes from now on, or ends.
//!
//! There is one in each copy of the crate that takes part in a recorder's recording; none in a program that only records
//! itself. It blocks all signals, and its descriptors have high numbers, out of the program's way. A program may close
//! them all the same: then it cannot be reached any more, and is recorded as it was.

use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::*};
use std::sync::Mutex;

use tracewing_abi::message::MAX_MESSAGE;
use tracewing_abi::message::grant::{Done, decode_change};
use tracewing_abi::message::join::Join;
use tracewing_ring::thread::RECORDINGS;

use super::attach::{self, Path};
use super::control::{self, Granted};
use super::join;
use super::system::{self, Fd, Identity};
use super::table::ClassTable;

/// Bytes of the thread's stack.
const STACK: usize = 256 << 10;

/// A recorder that can reach the process.
pub(super) struct Connection {
    slot: usize,
    socket: Fd,
    /// Whether the number still means this socket.
    identity: Identity,
    /// Stays while the recorder has not ended properly: a core dump is read by it.
    table: Option<ClassTable>,
}

/// A connection's descriptor, plus one, and what that number means, for a forked child to close.
struct Open {
    descriptor: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

static OPEN: [Open; RECORDINGS] = [const { Open::none() }; RECORDINGS];

impl Open {
    const fn none() -> Self {
        Self { descriptor: AtomicI32::new(0), device: AtomicU64::new(0), inode: AtomicU64::new(0) }
    }

    fn set(&self, descriptor: i32, identity: Identity) {
        self.device.store(identity.device, Relaxed);
        self.inode.store(identity.inode, Relaxed);
        self.descriptor.store(descriptor + 1, Release); // with `close`
    }

    fn forget(&self) {
        self.descriptor.store(0, Relaxed);
    }

    fn is_some(&self) -> bool {
        self.descriptor.load(Relaxed) != 0
    }

    /// Unless the number is the program's by now.
    fn close(&self) {
        let descriptor = self.descriptor.swap(0, Acquire) - 1; // with `set`
        let identity = Identity { device: self.device.load(Relaxed), inode: self.inode.load(Relaxed) };
        if system::identity(descriptor) == Some(identity) {
            system::close(descriptor);
        }
    }
}

impl Connection {
    /// Takes over the socket of a recording that was joined, and the table that it is to have as long as it lasts. `None`
    /// without a socket: the process is recorded all the same.
    pub(super) fn new(slot: usize, socket: Option<Fd>, table: Option<ClassTable>) -> Option<Self> {
        let socket = socket.map(system::out_of_the_way);
        let identity = socket.as_ref().and_then(|socket| system::identity(socket.raw()));
        let (Some(socket), Some(identity)) = (socket, identity) else {
            table.into_iter().for_each(ClassTable::keep);
            return None;
        };
        system::wait_for_ever(&socket);
        OPEN[slot].set(socket.raw(), identity);
        Some(Self { slot, socket, identity, table })
    }

    fn is_itself(&self) -> bool {
        system::identity(self.socket.raw()) == Some(self.identity)
    }

    /// Forgets the descriptor, which is the program's now.
    fn let_go(self) {
        OPEN[self.slot].forget();
        core::mem::forget(self.socket);
        self.table.into_iter().for_each(ClassTable::keep);
    }

    /// Takes one message. `false` when the recorder has gone, or does not make sense.
    fn read(&self, buffer: &mut [u8]) -> bool {
        let Some((message, _)) = system::receive(&self.socket, buffer) else { return false };
        if invited(message) {
            return true;
        }
        let Ok((number, grants)) = decode_change(message) else { return false };
        let Ok(grants) = grants.map(|grant| grant.map(Granted::from)).collect::<Result<Vec<_>, _>>() else {
            return false;
        };
        let changed = control::change(self.slot, grants.into_iter());
        let failed = u32::try_from(changed.failed).unwrap_or(u32::MAX);
        let done = Done { number, failed, why: changed.why.as_deref().unwrap_or_default() };
        let mut answer = [0; Done::LARGEST];
        done.encode(&mut answer).ok().and_then(|answer| system::send(&self.socket, answer)).is_some()
    }
}

/// Recorders that the process was invited to join, and has not joined yet.
static INVITATIONS: Mutex<Vec<Path>> = Mutex::new(Vec::new());

/// Whether a message is an invitation to a further recording, which the thread then follows.
pub(super) fn invited(message: &[u8]) -> bool {
    let Ok(Join { path }) = Join::decode(message) else { return false };
    // Not waited for: a process may have been forked while its parent had the lock.
    if let (Some(path), Ok(mut invitations)) = (Path::new(path), INVITATIONS.try_lock()) {
        invitations.push(path);
    }
    true
}

/// Follows the invitations that have come.
fn follow() -> impl Iterator<Item = Connection> {
    let paths = INVITATIONS.try_lock().map(|mut paths| core::mem::take(&mut *paths)).unwrap_or_default();
    let is_new = |path: &Path| !join::recorders().any(|known| known.bytes() == path.bytes());
    paths.into_iter().filter(is_new).filter_map(|path| join::join(path.bytes()))
}

/// Starts the thread. Without one the process is recorded all the same.
pub(super) fn begin(connections: Vec<Connection>) {
    if connections.is_empty() {
        return;
    }
    start(move || serve(connections));
}

/// In a forked child: connects to its parent's recorders, from a thread of its own.
pub(super) fn begin_in_child() {
    let slots: Vec<usize> = (0..RECORDINGS).filter(|slot| OPEN[*slot].is_some()).collect();
    if slots.is_empty() {
        return;
    }
    slots.iter().for_each(|slot| OPEN[*slot].close());
    start(move || serve(slots.into_iter().filter_map(join::share).collect()));
}

fn start(body: impl FnOnce() + Send + 'static) {
    system::spawn(c"tracewing", STACK, Box::new(body));
}

fn serve(mut connections: Vec<Connection>) {
    let mut buffer = vec![0; MAX_MESSAGE];
    while !connections.is_empty() {
        connections.extend(follow());
        let ready = system::wait_readable(connections.iter().map(|connection| &connection.socket));
        let Some(at) = ready else { continue };
        if !connections[at].is_itself() {
            connections.remove(at).let_go();
        } else if !connections[at].read(&mut buffer) {
            let connection = connections.remove(at);
            OPEN[connection.slot].forget();
            if !over(connection.slot) {
                connection.table.into_iter().for_each(ClassTable::keep);
            }
        }
    }
}

/// The recorder is gone. If it has ended, so does the process's part, and this says so; if it was killed, events go on into
/// the buffers, which may be files, or be found in a core dump.
fn over(slot: usize) -> bool {
    if attach::joined(slot).is_some_and(|joined| !joined.region.is_closed()) {
        return false;
    }
    control::forget(slot);
    attach::leave(slot);
    true
}
