//! Connections to recorders, as all of the agent sees them: of which recording each is, what a forked child
//! does with its parent's, and what becomes of a recording whose recorder is gone.

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::*};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracewing_abi::message::ask::Taken;
use tracewing_abi::message::join::Join;
use tracewing_abi::message::late::Late;
use tracewing_ring::thread::RECORDINGS;

use super::access::Access;
use super::system::{self, Fd, Identity};
use super::table::ClassTable;
use super::threads::{self, IS_ALONE};
use super::{attach, control, socket, spare};

/// A recorder that can reach the process.
pub(super) struct Connection {
    pub(super) slot: usize,
    pub(super) socket: Fd,
    /// Whether the number still means this socket.
    identity: Identity,
    /// Stays while the recorder has not ended properly: a core dump is read by it.
    pub(super) table: Option<ClassTable>,
}

/// A descriptor of an agent's thread, plus one, and what that number means, for a forked child to close.
pub(super) struct Open {
    descriptor: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

pub(super) static OPEN: [Open; RECORDINGS] = [const { Open::none() }; RECORDINGS];
/// What their threads have of [`Witness`](super::filtered::Witness).
pub(super) static WITNESSES: [Open; RECORDINGS] = [const { Open::none() }; RECORDINGS];

impl Open {
    const fn none() -> Self {
        Self { descriptor: AtomicI32::new(0), device: AtomicU64::new(0), inode: AtomicU64::new(0) }
    }

    pub(super) fn set(&self, descriptor: i32, identity: Identity) {
        self.device.store(identity.device, Relaxed);
        self.inode.store(identity.inode, Relaxed);
        self.descriptor.store(descriptor + 1, Release); // with `close`
    }

    pub(super) fn forget(&self) {
        self.descriptor.store(0, Relaxed);
    }

    /// Wakes the threads that sleep on it.
    pub(super) fn wake(&self) {
        let descriptor = self.descriptor.load(Acquire) - 1; // with `set`
        let identity = Identity { device: self.device.load(Relaxed), inode: self.inode.load(Relaxed) };
        if system::identity(descriptor) == Some(identity) {
            socket::hang_up(descriptor);
        }
    }

    /// In a child: informs the recorder of a process that its child has taken over buffers.
    pub(super) fn report_taken(&self) {
        let descriptor = self.descriptor.load(Acquire) - 1; // with `set`
        let identity = Identity { device: self.device.load(Relaxed), inode: self.inode.load(Relaxed) };
        if system::identity(descriptor) == Some(identity) {
            socket::send_at_once(descriptor, &Taken.encode());
        }
    }

    pub(super) fn is_some(&self) -> bool {
        self.descriptor.load(Relaxed) != 0
    }

    /// Unless the number is the program's by now.
    pub(super) fn close(&self) {
        let descriptor = self.descriptor.swap(0, Acquire) - 1; // with `set`
        let identity = Identity { device: self.device.load(Relaxed), inode: self.inode.load(Relaxed) };
        if system::identity(descriptor) == Some(identity) {
            system::close(descriptor);
        }
    }
}

impl Connection {
    /// Takes over the socket of a recording that was joined, and the table that it is to have as long as it
    /// lasts. `None` without a socket: the process is recorded all the same.
    pub(super) fn new(slot: usize, socket: Option<Fd>, table: Option<ClassTable>) -> Option<Self> {
        let socket = socket.map(system::out_of_the_way);
        let identity = socket.as_ref().and_then(|socket| system::identity(socket.raw()));
        let (Some(socket), Some(identity)) = (socket, identity) else {
            table.into_iter().for_each(ClassTable::keep);
            return None;
        };
        socket::wait_without_limit(&socket);
        OPEN[slot].set(socket.raw(), identity);
        Some(Self { slot, socket, identity, table })
    }

    pub(super) fn is_itself(&self) -> bool {
        system::identity(self.socket.raw()) == Some(self.identity)
    }

    /// Forgets the descriptor, which is the program's now.
    pub(super) fn let_go(self) {
        OPEN[self.slot].forget();
        core::mem::forget(self.socket);
        self.table.into_iter().for_each(ClassTable::keep);
    }

    /// Reports what the recorder has missed.
    pub(super) fn report(&self, late: Late) {
        let _ = socket::send(&self.socket, &late.encode(), None);
    }
}

/// Recorders that the process was invited to join, and has not joined yet.
static INVITATIONS: Mutex<Vec<Access>> = Mutex::new(Vec::new());

/// Whether a message is an invitation to a further recording, which the thread then follows.
pub(super) fn invited(message: &[u8]) -> bool {
    let Ok(Join { path }) = Join::decode(message) else { return false };
    // Not waited for: a process may have been forked while its parent had the lock.
    if let (Some(access), Ok(mut invitations)) = (Access::path(path), INVITATIONS.try_lock()) {
        invitations.push(access);
    }
    true
}

/// The invitations that have come since the last call.
pub(super) fn take_invitations() -> Vec<Access> {
    INVITATIONS.try_lock().map(|mut all| core::mem::take(&mut *all)).unwrap_or_default()
}

/// Recordings whose recorder was killed.
static ORPHANS: Mutex<Vec<(usize, Option<ClassTable>)>> = Mutex::new(Vec::new());
/// Recordings whose recorder has said that they are over.
pub(super) static IS_OVER: [AtomicBool; RECORDINGS] = [const { AtomicBool::new(false) }; RECORDINGS];
/// Cleans up recordings whose recorders were killed.
pub(super) fn sweep() {
    for (slot, table) in control::with_lock(|| core::mem::take(&mut *orphans())) {
        control::forget(slot);
        spare::leave(slot);
        drop(table);
    }
}

/// Ends this thread without anything that a filter could mind.
pub(super) fn stand_back(slot: usize) -> ! {
    OPEN[slot].forget();
    threads::end_acting();
    threads::end()
}

/// The same because the recorder has found a filter.
pub(super) fn leave_alone() -> ! {
    IS_ALONE.store(true, Relaxed); // says nothing about other memory
    threads::end_acting();
    threads::end()
}

/// A recorder is gone; the process has buffers of its recording already.
pub(super) fn hung_up(slot: usize, table: Option<ClassTable>) {
    if !over(slot) {
        orphan(slot, table);
    }
}

/// The recorder is gone. If it has ended, the process leaves the recording, and this returns true; if it was
/// killed, events continue to go into the buffers, which may be files, or be found in a core dump.
fn over(slot: usize) -> bool {
    if attach::joined(slot).is_some_and(|joined| !joined.region.is_closed()) {
        return false;
    }
    control::forget(slot);
    spare::leave(slot);
    true
}

/// The buffers stay until another recorder attaches, and the table with them; the door leads nowhere.
fn orphan(slot: usize, table: Option<ClassTable>) {
    attach::joined(slot).iter().for_each(|joined| joined.access().close());
    control::with_lock(|| orphans().push((slot, table)));
}

/// Only under the agent's lock, so that a forked child finds it free.
fn orphans() -> MutexGuard<'static, Vec<(usize, Option<ClassTable>)>> {
    ORPHANS.lock().unwrap_or_else(PoisonError::into_inner)
}
