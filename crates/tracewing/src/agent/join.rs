//! Joining recordings: at the program's start, when the environment says where recorders listen; and in a forked
//! child that needs buffers of its own.
//!
//! The handshake is `tracewing_abi::message`'s. A recorder that does not answer within [`PATIENCE`] is as good as none:
//! the program then runs unrecorded. Nothing is ever printed.

use std::sync::{Arc, Mutex, PoisonError};

use tracewing_abi::SOCKET_VARIABLE;
use tracewing_abi::message::grant::{Done, decode_change, decode_grants};
use tracewing_abi::message::snapshot::{Asker, Question, Taken};
use tracewing_abi::message::{Answer, ClassesWriter, Hello, Joining, MAX_MESSAGE};
use tracewing_abi::region::VERSION;
use tracewing_ring::thread::RECORDINGS;

use super::attach::{self, Path, Visit, attach_file, can_publish, joined};
use super::control::{self, Granted};
use super::reach::{self, Connection};
use super::smp;
use super::system::{self, Fd};
use super::table::ClassTable;
use crate::SnapshotError;
use crate::class::EventClass;

/// Seconds that each step of the handshake may take: as long as a recorder may wait for a busy disk, since what it promises
/// is in its files first.
const PATIENCE: i64 = 10;
/// Seconds that a snapshot may take.
const SNAPSHOT_PATIENCE: i64 = 30;

/// Runs when the program starts, or the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    system::keeping_errno(|| {
        if let Some(paths) = socket_paths() {
            let paths = paths.split(|byte| *byte == b':').filter(|path| !path.is_empty()).take(RECORDINGS);
            reach::begin(paths.filter_map(join).collect());
        }
    });
}

/// The paths in the environment, separated by colons. None in a program that runs with raised privileges: it must not be told where to connect
/// by who started it.
fn socket_paths() -> Option<Vec<u8>> {
    let mut name = [0u8; SOCKET_VARIABLE.len() + 1];
    name[..SOCKET_VARIABLE.len()].copy_from_slice(SOCKET_VARIABLE.as_bytes());
    // SAFETY: a number; 0 where the kernel does not say.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    // SAFETY: a NUL-terminated name. The environment is not changed while a program or library starts.
    let value = unsafe { libc::getenv(name.as_ptr().cast()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a NUL-terminated string that stays while nobody changes the environment; copied at once.
    let path = unsafe { std::ffi::CStr::from_ptr(value) }.to_bytes();
    (!path.is_empty()).then(|| path.to_vec())
}

/// Joins the recorder that listens at a path.
pub(super) fn join(path: &[u8]) -> Option<Connection> {
    let path = Path::new(path)?;
    let (socket, file, size, shared) = say_hello(&path, Joining::Program)?;
    let (slot, joined) = attach::take_part(file.raw(), size, shared, path)?;
    // SAFETY: nobody leaves a recording while it is being joined, and `attach::leave` unmaps nothing that was offered.
    unsafe { smp::offer(slot, joined) };
    let first = Arc::new(Mutex::new(Some(socket)));
    let socket = first.clone();
    let tell = move |classes: &[&'static EventClass]| {
        // Out of its place for this one use: a child that is forked meanwhile finds the lock free, and another thread that
        // has classes to tell makes a connection of its own.
        let taken = socket.lock().unwrap_or_else(PoisonError::into_inner).take();
        match taken {
            Some(first) => match describe(&first, classes) {
                Some(grants) => {
                    *socket.lock().unwrap_or_else(PoisonError::into_inner) = Some(first);
                    grants.into()
                }
                // The recorder takes the hang-up for what it is.
                None => control::Answer::default(),
            },
            None => tell_later(&path, classes).unwrap_or_default(),
        }
    };
    control::join(slot, Arc::new(tell));
    let table = attach::joined(slot).and_then(|joined| ClassTable::new(slot, &joined.region.recording()));
    let socket = first.lock().unwrap_or_else(PoisonError::into_inner).take();
    Connection::new(slot, socket, table)
}

/// Describes classes, and gives what the recorder grants.
fn describe(socket: &Fd, classes: &[&'static EventClass]) -> Option<Vec<Granted>> {
    let mut buffer = vec![0; MAX_MESSAGE];
    let mut grants: Vec<Granted> = Vec::new();
    while grants.len() < classes.len() {
        let rest = &classes[grants.len()..];
        let mut message = ClassesWriter::new(&mut buffer).ok()?;
        let fitting = rest.iter().take_while(|class| message.push(class.description()).is_ok()).count();
        if fitting == 0 {
            // One class that is larger than a message: it stays off.
            grants.push(Granted { id: 0, on: false, filter: Vec::new() });
            continue;
        }
        system::send(socket, message.finish())?;
        let all = grants.len() + fitting;
        while grants.len() < all {
            let (answer, _) = system::receive(socket, &mut buffer)?;
            if reach::invited(answer) {
                continue;
            }
            if let Ok((number, changes)) = decode_change(answer) {
                // The rules have changed meanwhile. None of these classes is on yet.
                for change in changes {
                    let change = Granted::from(change.ok()?);
                    grants
                        .iter_mut()
                        .filter(|grant| grant.id == change.id)
                        .for_each(|grant| *grant = change.clone());
                }
                let mut done = [0; Done::LARGEST];
                system::send(socket, Done { number, failed: 0, why: "" }.encode(&mut done).ok()?)?;
                continue;
            }
            let before = grants.len();
            for grant in decode_grants(answer).ok()? {
                grants.push(grant.ok()?.into());
            }
            if grants.len() == before {
                return None;
            }
        }
    }
    Some(grants)
}

/// Describes classes that came later, over a connection of their own.
fn tell_later(path: &Path, classes: &[&'static EventClass]) -> Option<control::Answer> {
    let socket = system::connect(path.bytes(), PATIENCE)?;
    let grants = is_known(&socket, Joining::More).then(|| describe(&socket, classes))??;
    Some(control::Answer { grants, connection: Some(socket), turn: None })
}

/// In a forked child: a connection to the recorder of its parent.
pub(super) fn share(slot: usize) -> Option<Connection> {
    let path = joined(slot)?.path();
    let socket = system::connect(path.bytes(), PATIENCE)?;
    is_known(&socket, Joining::Sharer).then(|| Connection::new(slot, Some(socket), None))?
}

fn is_known(socket: &Fd, joining: Joining) -> bool {
    let mut buffer = [0; Answer::SIZE];
    let answer = system::send(socket, &hello(joining).encode())
        .and_then(|()| system::receive(socket, &mut buffer))
        .and_then(|(answer, _)| Answer::decode(answer).ok());
    answer == Some(Answer::Known)
}

/// In a forked child: gets buffers for this process, in place of its parent's, from the parent's recorder.
///
/// Callable from a signal handler.
pub(super) fn rejoin(parents: &Visit) {
    if let Some((_, file, size, shared)) = say_hello(&parents.path(), Joining::Child)
        && let Some(joined) =
            attach_file(parents.slot(), file.raw(), size, shared, parents.path(), Some(parents))
    {
        // SAFETY: `attach::leave` unmaps nothing that was offered, for which it looks again when the caller's visit is over.
        unsafe { smp::offer(parents.slot(), joined) };
    }
}

/// The recorders of the process, by their sockets.
pub(crate) fn recorders() -> impl Iterator<Item = Path> {
    (0..RECORDINGS).filter_map(|slot| Some(joined(slot)?.path())).filter(|path| !path.bytes().is_empty())
}

/// Has a recorder take a snapshot, and waits for its answer.
pub(crate) fn ask_for_snapshot<'a>(
    recorder: &Path,
    asker: Asker,
    buffer: &'a mut [u8],
) -> Result<Taken<'a>, SnapshotError> {
    let socket = system::connect(recorder.bytes(), SNAPSHOT_PATIENCE).ok_or(SnapshotError::NotRecorded)?;
    let sent = system::send(&socket, &Question::Snapshot(asker).encode());
    let answer = sent.and_then(|()| system::receive(&socket, buffer)).ok_or(SnapshotError::NoAnswer)?;
    Taken::decode(answer.0).map_err(|_| SnapshotError::NoAnswer)
}

fn hello(joining: Joining) -> Hello {
    let copy = (&raw const AT_START).addr() as u64;
    Hello { version: VERSION, pid: system::process_id() as u32, can_publish: can_publish(), joining, copy }
}

/// The first half of the handshake: connection, buffers, their size, and whether others write to them, too.
fn say_hello(path: &Path, joining: Joining) -> Option<(Fd, Fd, usize, bool)> {
    let socket = system::connect(path.bytes(), PATIENCE)?;
    system::send(&socket, &hello(joining).encode())?;
    let mut buffer = [0; Answer::SIZE];
    let (answer, file) = system::receive(&socket, &mut buffer)?;
    let Ok(Answer::Welcome { size, shared }) = Answer::decode(answer) else { return None };
    Some((socket, file?, usize::try_from(size).ok()?, shared))
}
