//! Forked children: how they get connections and buffers of their own, and their parents those for the next.

use tracewing_abi::message::Joining;

use super::greeting::{Given, greet, known, welcomed};
use crate::agent::attach::{self, Visit, attach_buffers, joined};
use crate::agent::connection::Connection;
use crate::agent::{smp, spare};

/// In a forked child, on the agent's thread: a connection to the recorder of its parent, and buffers where it
/// needs its own.
pub(in super::super) fn share(slot: usize) -> Option<Connection> {
    let parents = joined(slot)?;
    if !parents.has_region() {
        return rejoin(&parents);
    }
    let (joining, number) = match parents.number() {
        Some(number) => (Joining::Heir, number),
        None => (Joining::Sharer, 0),
    };
    let access = parents.access();
    drop(parents);
    let socket = greet(&access, joining, [number, 0], None).ok()?;
    known(&socket, None).ok()?;
    Connection::new(slot, Some(socket), None)
}

/// In a forked child: whether a recorder is to give it buffers of its own.
pub(in super::super) fn needs_buffers(slot: usize) -> bool {
    joined(slot).is_some_and(|parents| !parents.has_region() && parents.access().is_some())
}

/// In a forked child: whether its parent needs buffers for the next one.
pub(in super::super) fn forks(slot: usize) -> bool {
    joined(slot).is_some_and(|joined| !joined.is_inherited() && joined.access().is_some())
}

/// Gets buffers for the children that the process forks next.
pub(in super::super) fn prepare_for_children(slot: usize) {
    while spare::is_wanted(slot) {
        let Some(access) = joined(slot).filter(|joined| joined.has_region()).map(|joined| joined.access())
        else {
            return;
        };
        let given = greet(&access, Joining::Parent, [0; 2], None).and_then(|socket| welcomed(&socket, None));
        let Ok(Given { buffers, number, .. }) = given else { return };
        spare::keep(slot, buffers, number);
    }
}

/// In a forked child, on the agent's thread: gets buffers for this process, in place of its parent's, from
/// the parent's recorder. Without any, the child is recorded no longer.
fn rejoin(parents: &Visit) -> Option<Connection> {
    let slot = parents.slot();
    let joined = greet(&parents.access(), Joining::Child, [0; 2], None).ok().and_then(|socket| {
        let given = welcomed(&socket, None).ok()?;
        let joined = attach_buffers(slot, given.buffers, parents.access(), Some(parents))?;
        Some((socket, joined))
    });
    let Some((socket, joined)) = joined else {
        attach::end(parents);
        parents.access().close();
        return None;
    };
    // SAFETY: `attach::leave` unmaps nothing that was offered; it checks for that again after this visit.
    unsafe { smp::offer(slot, joined) };
    Connection::new(slot, Some(socket), None)
}
