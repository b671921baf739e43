//! The beginning of a conversation with a recorder: the greeting, and the buffers that come with its answer.

use std::time::Instant;

use tracewing_abi::message::door::Knock;
use tracewing_abi::message::late::Farewell;
use tracewing_abi::message::{Answer, Hello, Joining};
use tracewing_abi::region::VERSION;

use crate::agent::UNCALLED;
use crate::agent::access::Access;
use crate::agent::attach::{Buffers, can_publish};
use crate::agent::connection::leave_alone;
use crate::agent::control;
use crate::agent::socket::{self, Failure, Until};
use crate::agent::system::{self, Fd};

/// Connects to a recorder and says hello.
pub(super) fn greet(access: &Access, joining: Joining, waits: [u64; 2], until: Until) -> Result<Fd, Failure> {
    let copy = (&raw const UNCALLED).addr() as u64;
    let pid = system::process_id().as_unsigned();
    let hello = Hello { version: VERSION, pid, can_publish: can_publish(), joining, copy, waits };
    let socket = access.connect(Knock::Join, until)?;
    socket::send(&socket, &hello.encode(), until)?;
    Ok(socket)
}

/// What a recorder passes to a process that needs buffers, mapped.
pub(super) struct Given {
    pub(super) buffers: Buffers,
    /// Those for the next child.
    pub(super) spare: Option<Buffers>,
    /// Number of what is for the next child.
    pub(super) number: u64,
}

/// Receives a recorder's answer to a process that needs buffers.
pub(super) fn welcomed(socket: &Fd, until: Until) -> Result<Given, Failure> {
    // A child that is forked in the meantime must inherit neither descriptors nor mappings.
    let mut buffer = [0; Answer::SIZE];
    heed(socket::look(socket, &mut buffer, until)?, until);
    control::with_lock(|| {
        // It is there; a thread that waited could end here, with the lock.
        let (answer, [file, children, spare, spares_children]) =
            socket::receive(socket, &mut buffer, Some(Instant::now()))?;
        let Ok(Answer::Welcome { size, shared, spare: number }) = Answer::decode(answer) else {
            return Err(Failure::Gone);
        };
        let size = usize::try_from(size).map_err(|_| Failure::Gone)?;
        let buffers = file.and_then(|file| Buffers::map(&file, children.as_ref(), size, shared));
        let spare = spare.and_then(|spare| Buffers::map(&spare, spares_children.as_ref(), size, false));
        Ok(Given { buffers: buffers.ok_or(Failure::Gone)?, spare, number })
    })
}

/// Receives a recorder's answer to a process that has its buffers already.
pub(super) fn known(socket: &Fd, until: Until) -> Result<(), Failure> {
    let mut buffer = [0; Answer::SIZE];
    let (answer, _) = socket::receive(socket, &mut buffer, until)?;
    if Answer::decode(answer) == Ok(Answer::Known) { Ok(()) } else { Err(Failure::Gone) }
}

/// Receives a message. On a thread of the agent's, that ends here if the recorder has found that the process
/// is filtered.
pub(super) fn receive<'a>(socket: &Fd, buffer: &'a mut [u8], until: Until) -> Result<&'a [u8], Failure> {
    let (message, _) = socket::receive(socket, buffer, until)?;
    heed(message, until);
    Ok(message)
}

fn heed(message: &[u8], until: Until) {
    if until.is_none() && Farewell::decode(message) == Some(Farewell::Alone) {
        leave_alone();
    }
}
