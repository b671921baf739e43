//! Joining a recording: at the program's start, when the environment says where a recorder listens; and in a forked
//! child that needs buffers of its own.
//!
//! The handshake is `tracewing_abi::message`'s. A recorder that does not answer within [`PATIENCE`] is as good as none:
//! the program then runs unrecorded. Nothing is ever printed.

use std::sync::OnceLock;

use tracewing_abi::SOCKET_VARIABLE;
use tracewing_abi::message::snapshot::{Asker, Question, Taken};
use tracewing_abi::message::{Answer, ClassesWriter, Hello, MAX_MESSAGE, decode_ids};
use tracewing_abi::region::VERSION;

use super::attach::{Visit, attach_file, can_publish, joined};
use super::smp;
use super::system::{self, Fd};
use super::table::ClassTable;
use crate::SnapshotError;
use crate::class::{self, EventClass};

/// Seconds that each step of the handshake may take.
const PATIENCE: i64 = 2;
/// Seconds that a snapshot may take.
const SNAPSHOT_PATIENCE: i64 = 30;

/// The recorder's socket. Set once, before any other thread of this copy of the crate can run.
static SOCKET: OnceLock<Vec<u8>> = OnceLock::new();

/// Runs when the program starts, or the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    system::keeping_errno(|| {
        if let Some(path) = socket_path() {
            let _ = join(SOCKET.get_or_init(|| path));
        }
    });
}

/// The path in the environment. None in a program that runs with raised privileges: it must not be told where to connect
/// by who started it.
fn socket_path() -> Option<Vec<u8>> {
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

fn join(path: &[u8]) -> Option<()> {
    let socket = say_hello(path, None)?;
    system::stay_loaded();
    let classes: Vec<&'static EventClass> = class::all().collect();
    let mut buffer = vec![0; MAX_MESSAGE];
    let mut rest = &classes[..];
    while !rest.is_empty() {
        let mut message = ClassesWriter::new(&mut buffer).ok()?;
        let fitting = rest.iter().take_while(|class| message.push(class.description()).is_ok()).count();
        if fitting == 0 {
            // One class that is larger than a message: it stays off.

            rest = &rest[1..];
            continue;
        }
        system::send(&socket, message.finish())?;
        let (answer, _) = system::receive(&socket, &mut buffer)?;
        let ids = decode_ids(answer).ok()?;
        for (class, id) in rest.iter().zip(ids.take(fitting)) {
            class.set_id(id.into());
        }
        rest = &rest[fitting..];
    }
    if let Some(table) = ClassTable::new(&joined()?.region.recording()) {
        table.keep();
    }
    Some(())
}

/// In a forked child: gets buffers for this process, in place of its parent's, from the parent's recorder.
///
/// Callable from a signal handler.
pub(super) fn rejoin(parents: &Visit) {
    if let Some(path) = SOCKET.get() {
        say_hello(path, Some(parents));
    }
}

/// Has the recorder take a snapshot, and waits for its answer.
pub(crate) fn ask_for_snapshot(asker: Asker, buffer: &mut [u8]) -> Result<Taken<'_>, SnapshotError> {
    let socket = SOCKET.get().and_then(|path| system::connect(path, SNAPSHOT_PATIENCE));
    let socket = socket.ok_or(SnapshotError::NotRecorded)?;
    let sent = system::send(&socket, &Question::Snapshot(asker).encode());
    let answer = sent.and_then(|()| system::receive(&socket, buffer)).ok_or(SnapshotError::NoAnswer)?;
    Taken::decode(answer.0).map_err(|_| SnapshotError::NoAnswer)
}

/// The first half of the handshake: buffers, `before` being those that the process has so far.
fn say_hello(path: &[u8], before: Option<&Visit>) -> Option<Fd> {
    let socket = system::connect(path, PATIENCE)?;
    let pid = system::process_id() as u32;
    let hello = Hello { version: VERSION, pid, can_publish: can_publish(), rejoin: before.is_some() };
    system::send(&socket, &hello.encode())?;
    let mut buffer = [0; Answer::SIZE];
    let (answer, file) = system::receive(&socket, &mut buffer)?;
    let Ok(Answer::Welcome { size, shared }) = Answer::decode(answer) else { return None };
    let joined = attach_file(file?.raw(), usize::try_from(size).ok()?, shared, before)?;
    // SAFETY: a region that a recorder gave is never unmapped.
    unsafe { smp::offer(joined) };
    Some(socket)
}
