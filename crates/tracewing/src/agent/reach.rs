//! The agent's threads, through which recorders reach the process: each sleeps in `read` until its recorder
//! changes which classes are enabled, or ends.
//!
//! There is one for each recorder in each copy of the crate that takes part in its recording; none in a
//! program that only records itself. They block all signals, and their descriptors have high numbers, which
//! programs rarely use. If a program closes them anyway, it can no longer be reached, and is recorded as
//! before.
//!
//! A filter for system calls that the program has installed for all threads may end it for what this thread
//! does. Before the recorder acts, it looks for filters; if there are any, it says so ([`Farewell::Alone`]),
//! or just ends. Then this thread ends, too, with no system calls other than `read`, which returns the
//! message, and `exit`.

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracewing_abi::message::MAX_MESSAGE;
use tracewing_abi::message::ask::{Describe, Prepare, Taken};
use tracewing_abi::message::door::{Door, Enter, NO_THREAD};
use tracewing_abi::message::grant::{Done, decode_change};
use tracewing_abi::message::join::Join;
use tracewing_abi::message::late::{Farewell, Late};
use tracewing_ring::thread::RECORDINGS;

use super::access::Access;
use super::attach;
use super::control::{self, Granted, Rest};
use super::door::{self, End, Word};
use super::filtered::{self, Witness};
use super::join::{self, Candidate};
use super::system::{self, Fd, Identity};
use super::table::ClassTable;
use super::{fork, watch};

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

/// A descriptor of an agent's thread, plus one, and what that number means, for a forked child to close.
struct Open {
    descriptor: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

/// Connections.
static OPEN: [Open; RECORDINGS] = [const { Open::none() }; RECORDINGS];
/// What their threads have of [`Witness`].
static WITNESSES: [Open; RECORDINGS] = [const { Open::none() }; RECORDINGS];

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

    /// Wakes the threads that sleep on it.
    fn wake(&self) {
        let descriptor = self.descriptor.load(Acquire) - 1; // with `set`
        let identity = Identity { device: self.device.load(Relaxed), inode: self.inode.load(Relaxed) };
        if system::identity(descriptor) == Some(identity) {
            system::hang_up(descriptor);
        }
    }

    /// In a child: informs the recorder of a process that its child has taken over buffers.
    fn tell_taken(&self) {
        let descriptor = self.descriptor.load(Acquire) - 1; // with `set`
        let identity = Identity { device: self.device.load(Relaxed), inode: self.inode.load(Relaxed) };
        if system::identity(descriptor) == Some(identity) {
            system::send_at_once(descriptor, &Taken.encode());
        }
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
    /// Takes over the socket of a recording that was joined, and the table that it is to have as long as it
    /// lasts. `None` without a socket: the process is recorded all the same.
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

    /// Reports what the recorder has missed.
    pub(super) fn report(&self, late: Late) {
        let _ = system::send(&self.socket, &late.encode(), None);
    }

    /// Takes one message. `false` when the recorder has gone, or does not make sense.
    fn read(&self, buffer: &mut [u8]) -> bool {
        let len = system::read(&self.socket, buffer);
        let message = &buffer[..len];
        // With `end`.
        if IS_ALONE.load(SeqCst) {
            return false;
        }
        match Farewell::decode(message) {
            Some(Farewell::Alone) => {
                IS_ALONE.store(true, Relaxed); // says nothing about other memory
                stand_back(self.slot);
            }
            Some(Farewell::Over) => {
                IS_OVER[self.slot].store(true, Relaxed); // this thread's
                return true;
            }
            None if message.is_empty() => return false,
            None => {}
        }
        if invited(message) {
            return true;
        }
        if Describe::decode(message).is_some() {
            control::send_news();
            return true;
        }
        if Prepare::decode(message).is_some() {
            join::prepare_for_children(self.slot);
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
        done.encode(&mut answer).ok().is_some_and(|answer| system::send(&self.socket, answer, None).is_ok())
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

/// Follows the invitations that have come, each on a thread of its own: the recorder may keep it waiting.
fn follow() {
    let invited = INVITATIONS.try_lock().map(|mut all| core::mem::take(&mut *all)).unwrap_or_default();
    let is_new = |access: &Access| !join::recorders().any(|known| known == *access);
    invited.into_iter().filter(is_new).map(Candidate::invited).for_each(join_later);
}

/// Whether the program wants no threads of the agent's from now on.
static IS_OVER_FOR_GOOD: AtomicBool = AtomicBool::new(false);
/// Recordings whose recorder was killed.
static ORPHANS: Mutex<Vec<(usize, Option<ClassTable>)>> = Mutex::new(Vec::new());
/// Whether the process is to be left alone.
static IS_ALONE: AtomicBool = AtomicBool::new(false);
/// Recordings whose recorder has said that they are over.
static IS_OVER: [AtomicBool; RECORDINGS] = [const { AtomicBool::new(false) }; RECORDINGS];
/// Threads of this kind.
static THREADS: AtomicU32 = AtomicU32::new(0);
/// The thread that was started last, once it is about to sleep; 0 before that.
static ASLEEP: AtomicI32 = AtomicI32::new(0);
/// Recorders that have not answered yet.
static PENDING: Mutex<Vec<Access>> = Mutex::new(Vec::new());

/// How long a thread may take until it sleeps.
const START: Duration = Duration::from_millis(100);

/// Starts a thread for a connection, and waits until it sleeps: it makes no system call then that a filter
/// could mind which the program installs. Without one the process is recorded all the same.
pub(super) fn begin(connection: Connection) {
    if start(move || serve(connection)) {
        let begin = Instant::now();
        // Acquire, with `serve`.
        while !system::is_asleep(ASLEEP.load(Acquire)) && begin.elapsed() < START {
            std::thread::yield_now();
        }
    }
}

/// Starts a thread that completes a late handshake with a recorder.
pub(super) fn join_later(candidate: Candidate) {
    let access = candidate.access();
    if let Ok(mut pending) = PENDING.try_lock() {
        pending.push(access);
    }
    start(move || join_now(candidate));
}

/// Joins a recorder that wants the process while it runs, or was not in time, and serves it.
fn join_now(candidate: Candidate) {
    let access = candidate.access();
    let connection = candidate.join_at_last();
    if let Ok(mut pending) = PENDING.try_lock() {
        pending.retain(|other| *other != access);
    }
    if join::recorders().any(|known| known == access) {
        watch::attached();
    } else {
        access.close();
    }
    connection.into_iter().for_each(serve);
}

/// How long a recorder that may live may take until it has taken what was made for it.
const TAKING: Duration = Duration::from_secs(10);

/// On a thread that a recorder has borrowed, which blocks signals: starts an agent's thread that makes a door
/// and joins that recorder by it, whose process id this is, or 0. Returns the address of the word that says
/// so; an error number if that fails. Allocates nothing except what the C library's threads need.
pub(super) fn open_door(recorder: i32) -> Result<usize, i32> {
    let word = Word::take(recorder).ok_or(libc::EBUSY)?;
    if !filtered::begin_vouched() {
        word.say(Door::Closed);
        return Err(libc::EAGAIN);
    }
    THREADS.fetch_add(1, Relaxed);
    // The recorder has looked at the filters. With `end`: one of the two sees the other.
    IS_ALONE.store(false, SeqCst); // with `end`
    // With `end`.
    let is_over = IS_OVER_FOR_GOOD.load(SeqCst);
    if is_over {
        IS_ALONE.store(true, SeqCst); // with `serve`
    }
    let address = word.address();
    if !is_over && system::spawn_plain(STACK, enter, address as *mut libc::c_void) {
        return Ok(address);
    }
    word.say(Door::Closed);
    THREADS.fetch_sub(1, Release); // with `end`
    filtered::end_acting();
    Err(if is_over { libc::ESHUTDOWN } else { NO_THREAD })
}

extern "C" fn enter(word: *mut libc::c_void) -> *mut libc::c_void {
    // They are blocked already, unless the recorder was killed just before the thread was made.
    system::block_signals();
    system::begin_thread(|| {
        Word::at(word.addr()).iter().for_each(enter_by);
        THREADS.fetch_sub(1, Release); // with `end`
        filtered::end_acting();
    });
    core::ptr::null_mut()
}

/// Joins by a door, one end of which the recorder takes.
fn enter_by(word: &Word) {
    let recorder = word.recorder();
    let (own, recorders) = match End::pair() {
        Ok(ends) => ends,
        Err(error) => return word.say(Door::Failed(error)),
    };
    word.say(Door::Open(recorders.raw()));
    let mut message = [0; Enter::SIZE];
    let len = own.receive(&mut message, &recorder, TAKING);
    word.say(Door::Closed);
    drop(recorders);
    let Ok(Enter { recording }) = Enter::decode(&message[..len]) else { return };
    sweep();
    if !join::is_in(&recording)
        && let Some(access) = own.into_access()
    {
        fork::notice();
        if let Ok(mut pending) = PENDING.try_lock() {
            pending.push(access);
        }
        join_now(Candidate::invited(access));
    }
}

/// Cleans up recordings whose recorders were killed.
fn sweep() {
    for (slot, table) in control::with_lock(|| core::mem::take(&mut *orphans())) {
        control::forget(slot);
        attach::leave(slot);
        drop(table);
    }
}

/// Has a thread of its own finish a conversation.
pub(super) fn go_on(rest: Rest) {
    start(rest);
}

/// In a forked child: connects to its parent's recorders, from threads of its own.
pub(super) fn begin_in_child() {
    THREADS.store(0, Relaxed); // the parent's
    door::forked();
    filtered::forked();
    if is_alone() {
        return;
    }
    let asks = |slot: &usize| join::needs_buffers(*slot) || OPEN[*slot].is_some();
    let slots: Vec<usize> = (0..RECORDINGS).filter(asks).collect();
    slots.iter().filter(|slot| join::forks(**slot)).for_each(|slot| OPEN[*slot].tell_taken());
    slots.iter().for_each(|slot| OPEN[*slot].close());
    WITNESSES.iter().for_each(Open::close);
    slots.into_iter().for_each(|slot| {
        start(move || join::share(slot).into_iter().for_each(serve));
    });
    // Not waited for: the parent's thread may have had it.
    let pending = PENDING.try_lock().map(|mut pending| core::mem::take(&mut *pending)).unwrap_or_default();
    pending.into_iter().map(Candidate::of).for_each(join_later);
}

/// Ends the threads permanently, and waits until they have ended, if they can: they do nothing from now on.
pub(crate) fn end() {
    IS_OVER_FOR_GOOD.store(true, SeqCst); // with `open_door`
    IS_ALONE.store(true, SeqCst); // with `serve`
    let is_there = || THREADS.load(Acquire) != 0; // with `stand_back`
    for _ in 0..LOOKS {
        if !is_there() {
            return;
        }
        OPEN.iter().for_each(Open::wake);
        std::thread::sleep(LOOK);
    }
}

/// Looks for threads that are to end, and the time between them.
const LOOKS: u32 = 100;
const LOOK: Duration = Duration::from_millis(1);

fn start(body: impl FnOnce() + Send + 'static) -> bool {
    THREADS.fetch_add(1, Relaxed);
    ASLEEP.store(0, Relaxed);
    filtered::begin_acting();
    let body = move || {
        body();
        THREADS.fetch_sub(1, Release); // with `end`
        filtered::end_acting();
    };
    let is_started = system::spawn(STACK, Box::new(body));
    if !is_started {
        THREADS.fetch_sub(1, Relaxed);
        filtered::end_acting();
    }
    is_started
}

/// Ends this thread without anything that a filter could mind.
fn stand_back(slot: usize) -> ! {
    OPEN[slot].forget();
    filtered::end_acting();
    end_thread()
}

/// The same because the recorder has found a filter.
pub(super) fn leave_alone() -> ! {
    IS_ALONE.store(true, Relaxed); // says nothing about other memory
    filtered::end_acting();
    end_thread()
}

/// The same for a thread that does not act.
pub(super) fn end_thread() -> ! {
    THREADS.fetch_sub(1, Release); // with `end`
    system::end_thread()
}

/// Whether the agent is to make no system calls: the recorder, or the program, says that a filter may mind.
pub(super) fn is_alone() -> bool {
    IS_ALONE.load(Relaxed) || filtered::is_noticed()
}

fn serve(connection: Connection) {
    let slot = connection.slot;
    let mut buffer = vec![0; MAX_MESSAGE];
    let witness = Witness::new();
    if let Some((witness, identity)) =
        witness.as_ref().and_then(|witness| Some((witness, system::identity(witness.file().raw())?)))
    {
        WITNESSES[slot].set(witness.file().raw(), identity);
    }
    loop {
        follow();
        if !connection.is_itself() {
            WITNESSES[slot].forget();
            return connection.let_go();
        }
        ASLEEP.store(system::thread_id(), Release); // with `begin`
        let goes_on = connection.read(&mut buffer);
        // With `end`.
        if IS_ALONE.load(SeqCst) {
            stand_back(slot);
        }
        if goes_on {
            continue;
        }
        let is_over = IS_OVER[slot].swap(false, Relaxed);
        if !is_over && !witness.as_ref().is_some_and(Witness::sees_none) {
            stand_back(slot);
        }
        OPEN[slot].forget();
        WITNESSES[slot].forget();
        return hung_up(slot, connection.table);
    }
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
    attach::leave(slot);
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
