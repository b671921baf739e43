//! One connection: the messages of `tracewing_abi::message`, as a state machine that never waits.
//!
//! What a program is told of its classes is decided when it is sent, by the rules of that moment: kept here are only the ids
//! that it waits for. One change is under way at a time, so nobody's socket buffer fills up, and a program that does not
//! answer keeps nobody else waiting.
//!
//! A program that sends nonsense, or more than it should, is disconnected, as is who keeps silent before it has joined.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IoSlice;
use std::mem::{MaybeUninit, replace};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, send, sendmsg};
use tracewing_abi::message::control::Control;
use tracewing_abi::message::grant::{Done, Grant, GrantsWriter};
use tracewing_abi::message::join::Join;
use tracewing_abi::message::snapshot::Question;
use tracewing_abi::message::{Answer, Hello, Joining, MAX_MESSAGE, decode_classes};

use crate::program::Program;
use crate::socket::Peer;

/// Time that a program has for its next message while it joins.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// What a program may ask for.
pub(crate) trait Host {
    /// What to answer a program that says hello, with buffers where it needs some. `None` if it cannot be recorded.
    fn join(&mut self, peer: Peer, hello: &Hello) -> Option<(Option<OwnedFd>, Answer)>;
    /// The program has got that answer.
    fn joined(&mut self, peer: Peer, hello: &Hello);
    /// It did not wait for that answer, or for what becomes of its classes.
    fn missed(&mut self, program: &Program);
    /// Ids for class descriptions, one each; 0 where a class is not taken.
    fn describe(&mut self, descriptions: &[&[u8]]) -> Vec<u16>;
    /// What becomes of the events of classes in a program, by the rules of the moment, one each. `None` if the recording
    /// cannot go on.
    fn decide(&mut self, program: &Program, ids: &[u16]) -> Option<Vec<Decided>>;
}

/// What becomes of the events of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Decided {
    pub on: bool,
    /// As [`Grant::filter`].
    pub filter: Box<[u8]>,
}

/// A connection.
pub(crate) struct Client {
    socket: OwnedFd,
    peer: Peer,
    stage: Stage,
    /// Until when it has to say something.
    deadline: Option<Instant>,
    /// What the loop waits for.
    pub(crate) interest: EventFlags,
}

enum Stage {
    /// It has said nothing yet.
    Silent,
    Member(Member),
    /// It waits for the answer to a [`Control`].
    Asking,
}

/// A program that has joined, or more of its classes.
pub(crate) struct Member {
    pub(crate) program: Program,
    /// [`Hello::copy`].
    pub(crate) copy: u64,
    pub(crate) joining: Joining,
    /// Its classes, and whether they were on when it was last told.
    pub(crate) classes: BTreeMap<u16, bool>,
    /// Classes that it has described and was told nothing of yet, in their order.
    due: VecDeque<u16>,
    /// Classes of which it was not told yet that rules have changed.
    pub(crate) behind: BTreeSet<u16>,
    /// The number of its last change, and whether it has yet to be answered.
    change: u32,
    is_asked: bool,
    /// Sites that it could not switch in the last change that went wrong, and why not.
    pub(crate) failure: Option<(u32, String)>,
}

/// What becomes of a connection.
#[derive(Debug)]
pub(crate) enum Fate {
    Stays,
    /// It has just joined.
    Joins,
    Ends,
    /// It has asked something, and ends with the answer.
    Asks(Question),
    /// It wants the recording changed; the message is the buffer's first so many bytes. It ends with the answer.
    Controls(usize),
}

impl Client {
    pub(crate) fn new(socket: OwnedFd, peer: Peer, now: Instant) -> Self {
        let deadline = Some(now + PATIENCE);
        Self { socket, peer, stage: Stage::Silent, deadline, interest: EventFlags::IN }
    }

    /// The process at the other end.
    pub(crate) fn pid(&self) -> i32 {
        self.peer.pid.as_raw_nonzero().get()
    }

    /// Its user.
    pub(crate) fn uid(&self) -> u32 {
        self.peer.uid
    }

    /// The program, once it has joined.
    pub(crate) fn member(&self) -> Option<&Member> {
        match &self.stage {
            Stage::Member(member) => Some(member),
            Stage::Silent | Stage::Asking => None,
        }
    }

    pub(crate) fn member_mut(&mut self) -> Option<&mut Member> {
        match &mut self.stage {
            Stage::Member(member) => Some(member),
            Stage::Silent | Stage::Asking => None,
        }
    }

    /// Whether it will be disconnected if it stays silent.
    pub(crate) fn is_hurried(&self) -> bool {
        self.deadline.is_some()
    }

    /// Has it disconnected when it is silent for [`PATIENCE`], joined or not.
    pub(crate) fn hurry(&mut self, now: Instant) {
        self.deadline = Some(now + PATIENCE);
    }

    /// Whether it has kept the recorder waiting for too long.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// What to wait for: a program that does not read what it was sent gets no more of it, and is not listened to.
    pub(crate) fn wanted_interest(&self) -> EventFlags {
        match self.member() {
            Some(member) if !member.due.is_empty() => EventFlags::OUT,
            _ => EventFlags::IN,
        }
    }

    /// Goes on after the descriptor became ready: sends what is due, or takes one message. `buffer` has room for one byte
    /// more than a message.
    pub(crate) fn ready(&mut self, host: &mut dyn Host, buffer: &mut [u8], now: Instant) -> Fate {
        if self.member().is_some_and(|member| !member.due.is_empty()) {
            return if self.send(host).is_some() { Fate::Stays } else { Fate::Ends };
        }
        let len = match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
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
            Stage::Silent => self.hello(host, message).map_or(Fate::Ends, |()| Fate::Joins),
            Stage::Member(member) => {
                let taken = member.take(host, message).and_then(|()| self.send(host));
                if taken.is_some() { Fate::Stays } else { Fate::Ends }
            }
            // It has nothing more to say.
            Stage::Asking => Fate::Ends,
        }
    }

    /// Sends what nobody waits to be sent: the answer to what was asked, say. Who does not wait for it does not get it.
    pub(crate) fn answer(&self, message: &[u8]) {
        let _ = send(&self.socket, message, FLAGS);
    }

    /// Passes on the invitation to a further recording. Who does not read what it is sent misses it.
    pub(crate) fn invite(&self, path: &[u8]) {
        let mut message = [0; Join::LARGEST];
        if let Ok(message) = (Join { path }).encode(&mut message) {
            self.answer(message);
        }
    }

    fn hello(&mut self, host: &mut dyn Host, message: &[u8]) -> Option<()> {
        let hello = Hello::decode(message).ok()?;
        let Some((file, answer)) = host.join(self.peer, &hello) else {
            let _ = send(&self.socket, &Answer::Refused.encode(), FLAGS);
            return None;
        };
        let answer = answer.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files = file.as_ref().map(|file| [file.as_fd()]);
        if let Some(files) = &files {
            control.push(SendAncillaryMessage::ScmRights(files));
        }
        let program = Program::of(self.pid());
        if sendmsg(&self.socket, &[IoSlice::new(&answer)], &mut control, FLAGS).is_err() {
            host.missed(&program);
            return None;
        }
        host.joined(self.peer, &hello);
        self.deadline = None;
        self.stage = Stage::Member(Member {
            program,
            copy: hello.copy,
            joining: hello.joining,
            classes: BTreeMap::new(),
            due: VecDeque::new(),
            behind: BTreeSet::new(),
            change: 0,
            is_asked: false,
            failure: None,
        });
        Some(())
    }

    /// Sends grants, and then a change, as far as they are due and the socket takes them. `None` if the connection, or the
    /// recording, is at its end.
    pub(crate) fn send(&mut self, host: &mut dyn Host) -> Option<()> {
        let Stage::Member(member) = &mut self.stage else { return Some(()) };
        while let Some(grants) = member.grants(host)? {
            match send(&self.socket, &grants.message, FLAGS) {
                Ok(_) => member.told(grants),
                Err(Errno::AGAIN | Errno::INTR) => return Some(()),
                Err(_) => {
                    if !grants.is_change {
                        host.missed(&member.program);
                    }
                    return None;
                }
            }
        }
        Some(())
    }
}

/// A message, and what it says.
struct Grants {
    message: Vec<u8>,
    told: Vec<(u16, bool)>,
    is_change: bool,
}

impl Member {
    /// Whether it has joined as a program does at first, and described no class.
    pub(crate) fn has_told_nothing(&self) -> bool {
        self.joining == Joining::Program && self.classes.is_empty() && self.due.is_empty()
    }

    /// Whether it knows, and has confirmed, what the rules of the moment make of its classes.
    pub(crate) fn is_settled(&self) -> bool {
        self.behind.is_empty() && !self.is_asked
    }

    /// A message from a program that has joined. `None` if it makes no sense.
    fn take(&mut self, host: &mut dyn Host, message: &[u8]) -> Option<()> {
        if let Ok(done) = Done::decode(message) {
            if !replace(&mut self.is_asked, false) || done.number != self.change {
                return None;
            }
            if done.failed > 0 {
                self.failure = Some((done.failed, done.why.to_owned()));
            }
            return Some(());
        }
        let descriptions: Vec<&[u8]> = decode_classes(message).ok()?.collect::<Result<_, _>>().ok()?;
        self.due = host.describe(&descriptions).into();
        Some(())
    }

    /// The next message that is due, if there is one.
    fn grants(&self, host: &mut dyn Host) -> Option<Option<Grants>> {
        let is_change = self.due.is_empty();
        // Who brings more classes is not told of changes: its program's first connection is, once this one ends.
        let is_told = self.joining != Joining::More && !self.is_asked && !self.behind.is_empty();
        if is_change && !is_told {
            return Some(None);
        }
        let mut message = vec![0; MAX_MESSAGE];
        let mut writer = if is_change {
            GrantsWriter::change(&mut message, self.change.wrapping_add(1)).ok()?
        } else {
            GrantsWriter::grants(&mut message).ok()?
        };
        let ids: Vec<u16> = if is_change {
            self.behind.iter().copied().collect()
        } else {
            self.due.iter().copied().collect()
        };
        let decided = host.decide(&self.program, &ids)?;
        let mut told = Vec::new();
        for (&id, decided) in ids.iter().zip(&decided) {
            if writer.push(Grant { id, on: decided.on, filter: &decided.filter }).is_err() {
                break;
            }
            told.push((id, decided.on));
        }
        let len = writer.finish().len();
        message.truncate(len);
        Some(Some(Grants { message, told, is_change }))
    }

    fn told(&mut self, grants: Grants) {
        for (id, on) in grants.told {
            if grants.is_change {
                self.behind.remove(&id);
            } else {
                self.due.pop_front();
            }
            if id != 0 {
                self.classes.insert(id, on);
            }
        }
        if grants.is_change {
            self.change = self.change.wrapping_add(1);
            self.is_asked = true;
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
