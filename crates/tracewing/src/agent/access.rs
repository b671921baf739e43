//! How a process reaches a recorder: by the path that it listens on; or, if the recorder has attached to the
//! process, through a door (`tracewing_abi::message::door`), which works across namespaces.
//!
//! A door is a descriptor with a high number, which programs rarely use. A forked child inherits it, and each
//! process closes its own once the recording is over. If the program has closed it, its number may refer to
//! another file: that is checked before every use.

use core::ffi::c_int;
use std::time::Duration;

use tracewing_abi::CONTROL_SOCKET;
use tracewing_abi::message::door::Knock;
use tracewing_abi::ways::Way;

use super::socket::{self, Failure, Until};
use super::system::{self, Fd, Identity};
use super::threads;

/// Time between two attempts to send by a door that is full.
const AGAIN: Duration = Duration::from_millis(1);

/// A way to a recorder. Kept without allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// None: a session of the program's own.
    None,
    Path(Path),
    Door(Door),
}

/// The path of a recorder's socket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Path {
    bytes: [u8; 108],
    len: usize,
}

/// A socket that a recorder reads from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Door {
    number: c_int,
    identity: Identity,
}

impl Access {
    /// `None` for a path that is longer than a socket's can be.
    pub(super) fn path(path: &[u8]) -> Option<Self> {
        let mut bytes = [0; 108];
        bytes.get_mut(..path.len())?.copy_from_slice(path);
        Some(Self::Path(Path { bytes, len: path.len() }))
    }

    /// By a door, which stays open until [`Access::close`].
    pub(super) fn door(number: c_int, identity: Identity) -> Self {
        Self::Door(Door { number, identity })
    }

    /// The recorder that another copy of the crate reaches by this way. Its door stays its own: this is
    /// another descriptor for it. `None` if it is closed by now.
    pub(super) fn of_neighbour(way: &Way) -> Option<Self> {
        if let Some(path) = way.path() {
            return Self::path(path);
        }
        let identity = Identity { device: way.device, inode: way.inode };
        let door = system::copy(way.door)?;
        (system::identity(door.raw()) == Some(identity)).then(|| {
            let access = Self::door(door.raw(), identity);
            core::mem::forget(door);
            access
        })
    }

    /// The way, for another copy of the crate.
    pub(super) fn way(&self, recording: [u8; 16]) -> Option<Way> {
        let way = Way { recording, ..Way::NONE };
        match *self {
            Self::None => None,
            Self::Path(Path { bytes: path, len }) => Some(Way { path, len: len as u32, ..way }),
            Self::Door(Door { number, identity: Identity { device, inode } }) => {
                Some(Way { door: number, device, inode, ..way })
            }
        }
    }

    /// Whether there is a recorder.
    pub(super) fn is_some(&self) -> bool {
        *self != Self::None
    }

    /// A new connection, for what `knock` says.
    pub(super) fn connect(&self, knock: Knock, until: Until) -> Result<Fd, Failure> {
        match (self, knock) {
            (Self::None, _) => Err(Failure::Gone),
            (Self::Path(path), Knock::Join) => socket::connect(path.bytes(), until),
            (Self::Path(path), Knock::Ask) => {
                let folder = path.bytes().iter().rposition(|byte| *byte == b'/').ok_or(Failure::Gone)? + 1;
                let control = [&path.bytes()[..folder], CONTROL_SOCKET.as_bytes()].concat();
                socket::connect(&control, until)
            }
            (Self::Door(door), _) => door.connect(knock, until),
        }
    }

    /// Closes a door; of a path there is nothing to close.
    pub(super) fn close(&self) {
        if let Self::Door(door) = self
            && door.is_itself()
        {
            system::close(door.number);
        }
    }
}

impl Path {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Door {
    fn is_itself(&self) -> bool {
        system::identity(self.number) == Some(self.identity)
    }

    /// The kernel has checked the other end's permission, as for a debugger, so it is not checked again.
    fn connect(&self, knock: Knock, until: Until) -> Result<Fd, Failure> {
        if !self.is_itself() {
            return Err(Failure::Gone);
        }
        let (own, recorders) = socket::socket_pair().ok_or(Failure::Gone)?;
        // The door is other threads' and processes', too: no time-out of its own can be set.
        while !socket::send_descriptor(self.number, &knock.encode(), &recorders)? {
            if socket::is_over(until) {
                return Err(Failure::Late);
            }
            match until {
                None => threads::sleep(AGAIN),
                Some(_) => std::thread::sleep(AGAIN),
            }
        }
        Ok(own)
    }
}
