//! The descriptors that the recorder waits for, and what each of them is.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io;

use crate::Error;

/// Descriptors taken from the kernel at once.
const BATCH: usize = 64;

/// What a connection is for: each has a socket of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Join,
    Control,
}

/// What a descriptor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    /// A socket at which connections arrive.
    Listener(Purpose),
    /// The signals for the recorder.
    Signals,
    /// The recorded command has ended.
    Child,
    /// Processes that ran already.
    Processes,
    /// Attempts to attach to processes have ended.
    Attacher,
    /// The door with this number, of a process that was attached to.
    Door(u64),
    /// The connection with this number.
    Client(u64),
}

/// As the kernel keeps it for us; connections are counted from [`Token::FIRST`].
impl Token {
    const JOIN: u64 = 0;
    const CONTROL: u64 = 1;
    const SIGNALS: u64 = 2;
    const CHILD: u64 = 3;
    const PROCESSES: u64 = 4;
    const ATTACHER: u64 = 5;
    const FIRST: u64 = 6;
    /// The numbers of doors begin here.
    const DOORS: u64 = 1 << 63;

    fn encode(self) -> EventData {
        EventData::new_u64(match self {
            Self::Listener(Purpose::Join) => Self::JOIN,
            Self::Listener(Purpose::Control) => Self::CONTROL,
            Self::Signals => Self::SIGNALS,
            Self::Child => Self::CHILD,
            Self::Processes => Self::PROCESSES,
            Self::Attacher => Self::ATTACHER,
            Self::Door(number) => Self::DOORS + number,
            Self::Client(number) => Self::FIRST + number,
        })
    }

    fn decode(data: EventData) -> Self {
        match data.u64() {
            Self::JOIN => Self::Listener(Purpose::Join),
            Self::CONTROL => Self::Listener(Purpose::Control),
            Self::SIGNALS => Self::Signals,
            Self::CHILD => Self::Child,
            Self::PROCESSES => Self::Processes,
            Self::ATTACHER => Self::Attacher,
            Self::DOORS.. => Self::Door(data.u64() - Self::DOORS),
            number => Self::Client(number - Self::FIRST),
        }
    }
}

/// The set of descriptors.
pub(crate) struct Poll(OwnedFd);

impl Poll {
    pub(crate) fn new() -> Result<Self, Error> {
        epoll::create(CreateFlags::CLOEXEC).map(Self).map_err(Error::system("epoll_create"))
    }

    pub(crate) fn add(&self, file: impl AsFd, token: Token, interest: EventFlags) -> io::Result<()> {
        epoll::add(&self.0, file, token.encode(), interest)
    }

    pub(crate) fn modify(&self, file: impl AsFd, token: Token, interest: EventFlags) -> io::Result<()> {
        epoll::modify(&self.0, file, token.encode(), interest)
    }

    pub(crate) fn remove(&self, file: impl AsFd) {
        let _ = epoll::delete(&self.0, file);
    }

    /// Waits until some are ready, or the time is over. A signal ends the wait, too.
    pub(crate) fn wait(&self, timeout: Duration) -> impl Iterator<Item = Token> + use<> {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        let nothing = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [nothing; BATCH];
        let ready = epoll::wait(&self.0, &mut events, Some(&timeout)).unwrap_or_default();
        events.into_iter().take(ready).map(|event| Token::decode(event.data))
    }

    /// The set's own descriptor, for a look at how many there are.
    pub(crate) fn own(&self) -> &OwnedFd {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_gives_back_what_it_was_given() {
        for token in [
            Token::Listener(Purpose::Join),
            Token::Listener(Purpose::Control),
            Token::Signals,
            Token::Child,
            Token::Processes,
            Token::Attacher,
            Token::Door(0),
            Token::Door(7),
            Token::Client(0),
            Token::Client(1 << 40),
        ] {
            assert_eq!(Token::decode(token.encode()), token);
        }
    }
}
