//! One program's connection: the handshake of `tracewing_abi::message`, as a state machine that never waits.
//!
//! A program that sends nonsense, more than it should, or nothing in time is disconnected; it then simply is not recorded.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, send, sendmsg};
use tracewing_abi::message::snapshot::Question;
use tracewing_abi::message::{Answer, Hello, MAX_MESSAGE, decode_classes, encode_ids};

use crate::socket::Peer;

/// Time that a program has for its next message.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// What a program may ask for.
pub(crate) trait Host {
    /// Buffers for a program: their file, and what to say of them. `None` if it cannot be recorded.
    fn join(&mut self, peer: Peer, hello: &Hello) -> Option<(OwnedFd, Answer)>;
    /// Ids for class descriptions, one each. `None` if the recording cannot go on.
    fn register(&mut self, descriptions: &[&[u8]]) -> Option<Vec<u16>>;
}

/// A connection.
pub(crate) struct Client {
    socket: OwnedFd,
    peer: Peer,
    joined: bool,
    deadline: Instant,
}

/// Whether a connection stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Stays,
    Ends,
    /// It has asked something, and ends with the answer.
    Asks(Question),
}

impl Client {
    pub(crate) fn new(socket: OwnedFd, peer: Peer, now: Instant) -> Self {
        Self { socket, peer, joined: false, deadline: now + PATIENCE }
    }

    /// The process at the other end.
    pub(crate) fn pid(&self) -> i32 {
        self.peer.pid.as_raw_nonzero().get()
    }

    /// Whether it has kept the recorder waiting for too long.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        now >= self.deadline
    }

    /// Takes one message, if there is one, and answers it. `buffer` has room for one byte more than a message.
    pub(crate) fn readable(&mut self, host: &mut dyn Host, buffer: &mut [u8], now: Instant) -> Fate {
        let len = match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => return Fate::Ends,
            Ok((len, _)) => len,
            Err(Errno::AGAIN | Errno::INTR) => return Fate::Stays,
            Err(_) => return Fate::Ends,
        };
        if len > MAX_MESSAGE {
            return Fate::Ends;
        }
        if !self.joined && Question::is_one(&buffer[..len]) {
            return Question::decode(&buffer[..len]).map_or(Fate::Ends, Fate::Asks);
        }
        self.deadline = now + PATIENCE;
        let answered =
            if self.joined { self.classes(host, &buffer[..len]) } else { self.hello(host, &buffer[..len]) };
        if answered.is_some() { Fate::Stays } else { Fate::Ends }
    }

    /// Sends the answer to what was asked. Who does not wait for it does not get it.
    pub(crate) fn answer(&self, message: &[u8]) {
        let _ = send(&self.socket, message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    fn hello(&mut self, host: &mut dyn Host, message: &[u8]) -> Option<()> {
        let hello = Hello::decode(message).ok()?;
        let Some((file, answer)) = host.join(self.peer, &hello) else {
            let _ = send(&self.socket, &Answer::Refused.encode(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            return None;
        };
        let answer = answer.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = [file.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&files));
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.socket, &[IoSlice::new(&answer)], &mut control, flags).ok()?;
        self.joined = true;
        Some(())
    }

    fn classes(&mut self, host: &mut dyn Host, message: &[u8]) -> Option<()> {
        let descriptions: Vec<&[u8]> = decode_classes(message).ok()?.collect::<Result<_, _>>().ok()?;
        let ids = host.register(&descriptions)?;
        // A description takes two bytes or more, as an id does, so this fits whatever was received.
        let mut answer = vec![0; message.len() + 2];
        let len = encode_ids(&ids, &mut answer).ok()?;
        send(&self.socket, &answer[..len], SendFlags::DONTWAIT | SendFlags::NOSIGNAL).ok()?;
        Some(())
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
