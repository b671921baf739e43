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

use core::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::Mutex;
use std::time::Duration;

use tracewing_abi::message::MAX_MESSAGE;
use tracewing_abi::message::ask::{Again, Describe, Prepare};
use tracewing_abi::message::door::{Door, Enter, NO_THREAD};
use tracewing_abi::message::grant::{Done, decode_change};
use tracewing_abi::message::late::Farewell;
use tracewing_ring::thread::RECORDINGS;

use super::access::Access;
use super::connection::{
    self, Connection, IS_OVER, OPEN, Open, WITNESSES, hung_up, invited, stand_back, sweep,
};
use super::control::{self, Granted};
use super::door::{self, End, Word};
use super::filtered::{self, Witness};
use super::join::{self, Candidate};
use super::system;
use super::threads::{self, IS_ALONE, STACK, THREADS};
use super::{fork, socket, watch};

/// Follows the invitations that have come, each on a thread of its own: the recorder may keep it waiting.
fn follow() {
    let invited = connection::take_invitations();
    let is_new = |access: &Access| !join::recorders().any(|known| known == *access);
    invited.into_iter().filter(is_new).map(Candidate::invited).for_each(join_later);
}

/// Whether the program has forbidden threads of the agent from now on.
static IS_OVER_FOR_GOOD: AtomicBool = AtomicBool::new(false);
/// Recorders that have not answered yet.
static PENDING: Mutex<Vec<Access>> = Mutex::new(Vec::new());

/// Starts a thread for a connection, and waits until it sleeps: it makes no system call then that a filter
/// could mind which the program installs. Without one the process is recorded all the same.
pub(super) fn begin(connection: Connection) {
    if threads::start(move || serve(connection)) {
        threads::wait_until_asleep();
    }
}

/// Starts a thread that completes a late handshake with a recorder.
pub(super) fn join_later(candidate: Candidate) {
    let access = candidate.access();
    if let Ok(mut pending) = PENDING.try_lock() {
        pending.push(access);
    }
    threads::start(move || join_now(candidate));
}

/// Joins a recorder that wants the process while it runs, or was not in time, and serves it.
fn join_now(candidate: Candidate) {
    let access = candidate.access();
    let connection = candidate.join_at_last();
    if let Ok(mut pending) = PENDING.try_lock() {
        pending.retain(|other| *other != access);
    }
    if keeps(access) {
        watch::attached();
    }
    connection.into_iter().for_each(serve);
}

/// Whether the process takes part in the recording of a recorder that it has tried to join; if not, its door
/// is closed.
pub(super) fn keeps(access: Access) -> bool {
    let is_recorded = join::recorders().any(|known| known == access);
    if !is_recorded {
        access.close();
    }
    is_recorded
}

/// How long a recorder that may live may take until it has taken what was made for it.
const TAKING: Duration = Duration::from_secs(10);

/// On a thread that a recorder has borrowed, which blocks signals: starts an agent's thread that makes a door
/// and joins that recorder by it, whose process id this is, or 0. Returns the address of the word that says
/// so; an error number if that fails. Allocates nothing except what the C library's threads need.
pub(super) fn open_door(recorder: i32) -> Result<usize, i32> {
    let word = Word::take(recorder).ok_or(libc::EBUSY)?;
    if !threads::begin_vouched() {
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
    if !is_over && system::spawn(STACK, enter, address as *mut libc::c_void) {
        return Ok(address);
    }
    word.say(Door::Closed);
    THREADS.fetch_sub(1, Release); // with `end`
    threads::end_acting();
    Err(if is_over { libc::ESHUTDOWN } else { NO_THREAD })
}

extern "C" fn enter(word: *mut libc::c_void) -> *mut libc::c_void {
    // They are blocked already, unless the recorder was killed just before the thread was made.
    system::block_signals();
    threads::begin(|| {
        Word::at(word.addr()).iter().for_each(enter_by);
        THREADS.fetch_sub(1, Release); // with `end`
        threads::end_acting();
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
        fork::notice(begin_in_child);
        if let Ok(mut pending) = PENDING.try_lock() {
            pending.push(access);
        }
        join_now(Candidate::invited(access));
    }
}

/// In a forked child: connects to its parent's recorders, from threads of its own.
pub(super) fn begin_in_child() {
    threads::forked();
    door::forked();
    if filtered::is_alone() {
        return;
    }
    let asks = |slot: &usize| join::needs_buffers(*slot) || OPEN[*slot].is_some();
    let slots: Vec<usize> = (0..RECORDINGS).filter(asks).collect();
    slots.iter().filter(|slot| join::forks(**slot)).for_each(|slot| OPEN[*slot].report_taken());
    slots.iter().for_each(|slot| OPEN[*slot].close());
    WITNESSES.iter().for_each(Open::close);
    slots.into_iter().for_each(|slot| {
        threads::start(move || join::share(slot).into_iter().for_each(serve));
    });
    // Not waited for: the parent's thread may have had it.
    let pending = PENDING.try_lock().map(|mut pending| core::mem::take(&mut *pending)).unwrap_or_default();
    pending.into_iter().map(Candidate::of).for_each(join_later);
}

/// Ends the threads permanently, and waits until they have ended, if they can: they do nothing from now on.
pub(crate) fn end() {
    IS_OVER_FOR_GOOD.store(true, SeqCst); // with `open_door`
    IS_ALONE.store(true, SeqCst); // with `serve`
    let is_there = || THREADS.load(Acquire) != 0; // with `threads::end`
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

/// Takes one message. `false` when the recorder has gone, or does not make sense.
fn read(connection: &Connection, buffer: &mut [u8]) -> bool {
    let len = socket::read(&connection.socket, buffer);
    let message = &buffer[..len];
    // With `end`.
    if IS_ALONE.load(SeqCst) {
        return false;
    }
    match Farewell::decode(message) {
        Some(Farewell::Alone) => {
            IS_ALONE.store(true, Relaxed); // says nothing about other memory
            stand_back(connection.slot);
        }
        Some(Farewell::Over) => {
            IS_OVER[connection.slot].store(true, Relaxed); // this thread's
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
    if Again::decode(message).is_some() {
        watch::notify();
        return true;
    }
    if Prepare::decode(message).is_some() {
        join::prepare_for_children(connection.slot);
        return true;
    }
    let Ok((number, grants)) = decode_change(message) else { return false };
    let Ok(grants) = grants.map(|grant| grant.map(Granted::from)).collect::<Result<Vec<_>, _>>() else {
        return false;
    };
    let changed = control::change(connection.slot, grants.into_iter());
    let failed = u32::try_from(changed.failed).unwrap_or(u32::MAX);
    let why = changed.why.map(|why| why.to_string()).unwrap_or_default();
    let done = Done { number, failed, why: &why };
    let mut answer = [0; Done::LARGEST];
    done.encode(&mut answer).ok().is_some_and(|answer| socket::send(&connection.socket, answer, None).is_ok())
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
        threads::fall_asleep();
        let continues = read(&connection, &mut buffer);
        // With `end`.
        if IS_ALONE.load(SeqCst) {
            stand_back(slot);
        }
        if continues {
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
