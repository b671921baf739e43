//! The sockets at which connections arrive, and whether the recorder listens to them.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::epoll::EventFlags;

use crate::poll::{Poll, Purpose, Token};
use crate::socket::Listener;
use crate::system::open_files;

/// Descriptors that are kept for a program that has just come, and for askers.
const RESERVED: usize = 8;

impl Purpose {
    pub(crate) fn of(self, listener: &Listener) -> BorrowedFd<'_> {
        match self {
            Self::Join => listener.join(),
            Self::Control => listener.control(),
        }
    }
}

/// Whether a descriptor, whose number was the lowest that was free, leaves only those that are reserved.
pub(crate) fn is_reserved(file: &OwnedFd) -> bool {
    usize::try_from(file.as_raw_fd()).is_ok_and(|number| number >= open_files().saturating_sub(RESERVED))
}

/// Whether there are descriptors in addition to those that are reserved.
pub(crate) fn has_descriptors(any: &OwnedFd) -> bool {
    any.try_clone().is_ok_and(|copy| !is_reserved(&copy))
}

/// The sockets at which connections arrive.
pub(crate) struct Entrance {
    /// `None` at the recording's end.
    pub(crate) listener: Option<Listener>,
    /// At which of its sockets connections are taken.
    listening: [bool; 2],
}

impl Entrance {
    pub(crate) fn new(listener: Listener) -> Self {
        Self { listener: Some(listener), listening: [false; 2] }
    }

    /// Where programs connect.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.listener.as_ref().map(Listener::path)
    }

    pub(crate) fn is_closed(&self, purpose: Purpose) -> bool {
        self.listener.is_some() && !self.listening[purpose as usize]
    }

    /// Takes connections for this purpose, if none are taken.
    pub(crate) fn open(&mut self, purpose: Purpose, poll: &Poll) {
        if let Some(listener) = self.listener.as_ref().filter(|_| self.is_closed(purpose)) {
            let added = poll.add(purpose.of(listener), Token::Listener(purpose), EventFlags::IN);
            self.listening[purpose as usize] = added.is_ok();
        }
    }

    /// Connections that wait get their turn at a later look.
    pub(crate) fn close(&mut self, purpose: Purpose, poll: &Poll) {
        if let Some(listener) = &self.listener {
            poll.remove(purpose.of(listener));
        }
        self.listening[purpose as usize] = false;
    }
}
