//! One connection: the messages of `tracewing_abi::message`, as a state machine that never waits.
//!
//! Which of a program's classes are on is decided when the answer is sent, by the rules of that moment: only
//! the ids that the program waits for are kept here. One change is under way at a time, so no socket buffer
//! fills up, and a program that does not answer delays no other.
//!
//! A program is disconnected if it sends nonsense or too much, or stays silent before it has joined.

mod hello;
mod host;
mod member;

pub(crate) use host::{Decided, Host};
pub(crate) use member::{Member, time_of_day};

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tracewing_abi::message::ask::{Again, Describe, Prepare};
use tracewing_abi::message::control::Control;
use tracewing_abi::message::join::Join;
use tracewing_abi::message::late::Farewell;
use tracewing_abi::message::snapshot::Question;
use tracewing_abi::message::{Joining, MAX_MESSAGE};
use tracewing_units::Pid;

use crate::credentials::Peer;
use crate::seccomp::is_filtered;

/// Time that a program has for its next message while it joins.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// A connection from a program, before and after it has joined.
pub(crate) struct Client {
    socket: OwnedFd,
    peer: Peer,
    /// Filters for system calls of its process that let through what it does.
    filters: u32,
    stage: Stage,
    /// When it has to have sent a message.
    deadline: Option<Instant>,
    /// What the loop waits for.
    pub(crate) interest: EventFlags,
}

enum Stage {
    /// It has sent nothing yet, and has to send its hello; its process, while that has to be known.
    Arrived(OwnedFd),
    /// It has sent nothing yet, and has to send a question.
    Silent,
    Member(Box<Member>),
    /// It waits for the answer to a [`Control`].
    Asking,
}

/// What to do next with a connection.
#[derive(Debug)]
pub(crate) enum Fate {
    Stays,
    /// It has just joined.
    Joins,
    Ends,
    /// The client has sent a question; the connection ends with the answer.
    Asks(Question),
    /// The client requests a change of the recording; the message has this many bytes at the beginning of the
    /// buffer. The connection ends with the answer.
    Controls(usize),
}

impl Client {
    /// A process that is to join, with its `pidfd` and the number of `filters` that were checked.
    pub(crate) fn program(socket: OwnedFd, peer: Peer, pidfd: OwnedFd, filters: u32, now: Instant) -> Self {
        Self { stage: Stage::Arrived(pidfd), filters, ..Self::asker(socket, peer, now) }
    }

    /// A process that may ask and change.
    pub(crate) fn asker(socket: OwnedFd, peer: Peer, now: Instant) -> Self {
        let deadline = Some(now + PATIENCE);
        Self { socket, peer, filters: 0, stage: Stage::Silent, deadline, interest: EventFlags::IN }
    }

    /// Whether it has come to join, and not to ask.
    pub(crate) fn is_program(&self) -> bool {
        matches!(self.stage, Stage::Arrived(_) | Stage::Member(_))
    }

    /// Whether it has said nothing yet.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.stage, Stage::Arrived(_) | Stage::Silent)
    }

    /// Whether the next thing to do with it is to read a message, as a program.
    pub(crate) fn is_heard(&self) -> bool {
        self.is_program() && self.interest() == EventFlags::IN
    }

    /// Filters for system calls of its process that let through what it does.
    pub(crate) fn filters(&self) -> u32 {
        self.filters
    }

    /// Process and user at the other end.
    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    /// The process at the other end.
    pub(crate) fn pid(&self) -> Pid {
        self.peer.pid
    }

    /// The program, once it has joined.
    pub(crate) fn member(&self) -> Option<&Member> {
        match &self.stage {
            Stage::Member(member) => Some(member),
            Stage::Arrived(_) | Stage::Silent | Stage::Asking => None,
        }
    }

    pub(crate) fn member_mut(&mut self) -> Option<&mut Member> {
        match &mut self.stage {
            Stage::Member(member) => Some(member),
            Stage::Arrived(_) | Stage::Silent | Stage::Asking => None,
        }
    }

    /// Has it disconnected when it is silent for [`PATIENCE`], joined or not.
    pub(crate) fn hurry(&mut self, now: Instant) {
        self.deadline = Some(now + PATIENCE);
    }

    /// Whether it has kept the recorder waiting for too long.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// Which readiness to wait for. While a program does not read what was sent, nothing more is sent to it,
    /// and nothing is read from it.
    pub(crate) fn interest(&self) -> EventFlags {
        match self.member() {
            Some(member) if !member.due.is_empty() => EventFlags::OUT,
            _ => EventFlags::IN,
        }
    }

    /// Continues after the descriptor became ready: sends what is due, or takes one message. `buffer` has
    /// room for one byte more than a message.
    pub(crate) fn ready(&mut self, host: &mut dyn Host, buffer: &mut [u8], now: Instant) -> Fate {
        if self.member().is_some_and(|member| !member.due.is_empty()) {
            return if self.send(host).is_some() { Fate::Stays } else { Fate::Ends };
        }
        // The client may have made the socket itself, and may have a copy through which it changes the flags.
        let len = match recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Fate::Ends,
            Ok((len, _)) => len,
            Err(Errno::AGAIN | Errno::INTR) => return Fate::Stays,
            Err(_) => return Fate::Ends,
        };
        if len > MAX_MESSAGE {
            return Fate::Ends;
        }
        if self.deadline.is_some() {
            self.deadline = Some(now + PATIENCE);
        }
        let message = &buffer[..len];
        match &mut self.stage {
            Stage::Silent if Question::is_one(message) => {
                Question::decode(message).map_or(Fate::Ends, Fate::Asks)
            }
            Stage::Silent if Control::is_one(message) => {
                (self.stage, self.deadline) = (Stage::Asking, None);
                Fate::Controls(len)
            }
            Stage::Silent => Fate::Ends,
            Stage::Arrived(_) => self.hello(host, message).map_or(Fate::Ends, |()| Fate::Joins),
            // A filter may have come while it waited, and may end it for what it does next.
            Stage::Member(member) if member.is_late() && is_filtered(member.program.pid, self.filters) => {
                member.unknown_since = None;
                host.missed(self.peer, &member.program, member.since, None);
                self.leave_alone();
                Fate::Ends
            }
            Stage::Member(member) => {
                let taken = member.take(host, self.peer, message).and_then(|()| self.send(host));
                if taken.is_some() { Fate::Stays } else { Fate::Ends }
            }
            // It sends nothing more.
            Stage::Asking => Fate::Ends,
        }
    }

    /// Sends a message without waiting for room, such as an answer. A program that does not read its messages
    /// does not get it.
    pub(crate) fn answer(&self, message: &[u8]) {
        let _ = send(&self.socket, message, FLAGS);
    }

    /// Passes on the invitation to a further recording. A program that does not read its messages misses it.
    pub(crate) fn invite(&self, path: &[u8]) {
        let mut message = [0; Join::LARGEST];
        if let Ok(message) = (Join { path }).encode(&mut message) {
            self.answer(message);
        }
    }

    /// Requests descriptions of the classes that the program has made. If the program does not read the
    /// request, it is sent again.
    pub(crate) fn ask_for_classes(&self) {
        self.answer(&Describe.encode());
    }

    /// Has the program report again what it reports only once. A program that does not read its messages
    /// misses it.
    pub(crate) fn ask_again(&self) {
        self.answer(&Again.encode());
    }

    /// Has the program get buffers for its next child.
    pub(crate) fn ask_to_prepare(&self) {
        self.answer(&Prepare.encode());
    }

    /// Requests that the program does nothing more for this recording. This is the last message.
    pub(crate) fn leave_alone(&self) {
        self.answer(&Farewell::Alone.encode());
    }

    /// Reports the end of the recording to the program.
    pub(crate) fn dismiss(&self) {
        self.answer(&Farewell::Over.encode());
    }

    /// Sends grants, and then a change, if they are due and the socket takes them. `None` if the
    /// connection, or the recording, is at its end.
    pub(crate) fn send(&mut self, host: &mut dyn Host) -> Option<()> {
        let Stage::Member(member) = &mut self.stage else { return Some(()) };
        while let Some(grants) = member.grants(host)? {
            match send(&self.socket, &grants.message, FLAGS) {
                Ok(_) => member.mark_sent(grants),
                Err(Errno::AGAIN | Errno::INTR) => return Some(()),
                Err(_) => {
                    if !grants.is_change && member.joining == Joining::Program {
                        member.unknown_since = None;
                        host.missed(self.peer, &member.program, member.since, None);
                    }
                    return None;
                }
            }
        }
        Some(())
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
