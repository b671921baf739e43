//! One connection: the messages of `tracewing_abi::message`, as a state machine that never waits.
//!
//! Which of a program's classes are on is decided when the answer is sent, by the rules of that moment: only
//! the ids that the program waits for are kept here. One change is under way at a time, so no socket buffer
//! fills up, and a program that does not answer delays no other.
//!
//! A program is disconnected if it sends nonsense or too much, or stays silent before it has joined.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IoSlice;
use std::mem::{MaybeUninit, replace};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, send, sendmsg};
use tracewing_abi::message::ask::{Describe, Prepare, Taken};
use tracewing_abi::message::control::Control;
use tracewing_abi::message::grant::{Done, Grant, GrantsWriter};
use tracewing_abi::message::join::Join;
use tracewing_abi::message::late::{Farewell, Late};
use tracewing_abi::message::snapshot::Question;
use tracewing_abi::message::{Answer, Hello, Joining, MAX_MESSAGE, decode_classes};
use tracewing_units::Pid;

use crate::credentials::{Peer, is_alive};
use crate::program::Program;
use crate::seccomp::is_filtered;

/// Time that a program has for its next message while it joins.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// What a program may ask for.
pub(crate) trait Host {
    /// What to answer a program that says hello, with buffers where it needs some. `None` if it cannot be
    /// recorded.
    fn join(&mut self, peer: Peer, hello: &Hello) -> Option<(Vec<OwnedFd>, Answer)>;
    /// The program has got that answer.
    fn joined(&mut self, peer: Peer, hello: &Hello);
    /// Nothing is known of its events between two times of day, in nanoseconds since 1970; without the second
    /// one, until now.
    fn missed(&mut self, peer: Peer, program: &Program, from: u64, to: Option<u64>);
    /// A child has taken over the buffers that the program had for it.
    fn taken(&mut self, peer: Peer);
    /// Ids for class descriptions, one each; 0 where a class is not taken.
    fn describe(&mut self, peer: Peer, descriptions: &[&[u8]]) -> Vec<u16>;
    /// What the current rules make of each of these classes in a program. `None` if the recording cannot
    /// continue.
    fn decide(&mut self, program: &Program, ids: &[u16]) -> Option<Vec<Decided>>;
}

/// What becomes of the events of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Decided {
    pub on: bool,
    /// As [`Grant::filter`].
    pub filter: Box<[u8]>,
}

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

/// A program that has joined, or more of its classes.
pub(crate) struct Member {
    pub(crate) program: Program,
    /// [`Hello::copy`].
    pub(crate) copy: u64,
    pub(crate) joining: Joining,
    /// Its classes, and whether they were on in the last message to it.
    pub(crate) classes: BTreeMap<u16, bool>,
    /// Classes that it has described and has had no answer for, in their order.
    due: VecDeque<u16>,
    /// Classes whose rules have changed since the last message to it.
    pub(crate) unconfirmed: BTreeSet<u16>,
    /// The number of its last change, and whether it has yet to be answered.
    change: u32,
    is_asked: bool,
    /// Sites that it could not switch in the last change that went wrong, and why not.
    pub(crate) failure: Option<(u32, String)>,
    /// When it was last asked for classes that it has made.
    pub(crate) asked: Option<Instant>,
    /// Since when nothing is known of its events, where this recorder was too late. A time of day, in
    /// nanoseconds since 1970.
    pub(crate) unknown_since: Option<u64>,
    /// When it began to join, and until when it waited for that.
    since: u64,
    until: u64,
}

/// What to do next with a connection.
#[derive(Debug)]
pub(crate) enum Fate {
    Stays,
    /// It has just joined.
    Joins,
    Ends,
    /// It has asked something, and ends with the answer.
    Asks(Question),
    /// It asks for a change of the recording; the message is this many bytes at the beginning of the buffer.
    /// It ends with the answer.
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

    /// What to wait for: a program that does not read what it was sent gets no more of it, and is not
    /// listened to.
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
        // Its process may have made the socket, and have a copy of it whose flags it can change.
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

    /// Has the program describe the classes that it has made. If it does not read what it is sent, it is
    /// asked again.
    pub(crate) fn ask_for_classes(&self) {
        self.answer(&Describe.encode());
    }

    /// Has the program get buffers for its next child.
    pub(crate) fn ask_to_prepare(&self) {
        self.answer(&Prepare.encode());
    }

    /// Asks the program to do nothing from now on. Nothing else is sent afterwards.
    pub(crate) fn leave_alone(&self) {
        self.answer(&Farewell::Alone.encode());
    }

    /// Lets the program know that the recording is over.
    pub(crate) fn dismiss(&self) {
        self.answer(&Farewell::Over.encode());
    }

    /// Notes what was missed of a program that has died since it said hello.
    pub(crate) fn died(&self, host: &mut dyn Host, buffer: &mut [u8]) {
        let len = recv(&self.socket, &mut *buffer, RecvFlags::DONTWAIT).map_or(0, |(len, _)| len);
        if let Ok(hello) = Hello::decode(&buffer[..len.min(buffer.len())]) {
            self.missed(host, &hello);
        }
    }

    /// It is not listened to any more. What it had to say is noted, if it was to join.
    pub(crate) fn gave_up(&self, host: &mut dyn Host, buffer: &mut [u8]) {
        if matches!(self.stage, Stage::Arrived(_)) {
            self.died(host, buffer);
        }
    }

    /// Another process may have its id by now; its name must not be used.
    fn missed(&self, host: &mut dyn Host, hello: &Hello) {
        if hello.joining == Joining::Program {
            host.missed(self.peer, &Program::nameless(self.pid()), hello.waits[0], None);
        }
    }

    fn hello(&mut self, host: &mut dyn Host, message: &[u8]) -> Option<()> {
        let hello = Hello::decode(message).ok()?;
        let [since, until] = hello.waits;
        let is_late = hello.joining == Joining::Program && until < time_of_day();
        // As in `ready`.
        if is_late && is_filtered(self.pid(), self.filters) {
            self.leave_alone();
            host.missed(self.peer, &Program::of(self.pid()), since, None);
            return None;
        }
        let Some((files, answer)) = host.join(self.peer, &hello) else {
            let _ = send(&self.socket, &Answer::Refused.encode(), FLAGS);
            return None;
        };
        let answer = answer.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(Answer::FILES))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
        if !files.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&files));
        }
        let program = Program::of(self.pid());
        // Whatever was read of its id was read of this process.
        if !matches!(&self.stage, Stage::Arrived(pidfd) if is_alive(pidfd)) {
            self.missed(host, &hello);
            return None;
        }
        if sendmsg(&self.socket, &[IoSlice::new(&answer)], &mut control, FLAGS).is_err() {
            if hello.joining == Joining::Program {
                host.missed(self.peer, &program, since, None);
            }
            return None;
        }
        host.joined(self.peer, &hello);
        self.deadline = None;
        self.stage = Stage::Member(Box::new(Member {
            program,
            copy: hello.copy,
            joining: hello.joining,
            classes: BTreeMap::new(),
            due: VecDeque::new(),
            unconfirmed: BTreeSet::new(),
            change: 0,
            is_asked: false,
            failure: None,
            asked: None,
            unknown_since: is_late.then_some(since),
            since,
            until,
        }));
        Some(())
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

/// A message, and what it says.
struct Grants {
    message: Vec<u8>,
    sent: Vec<(u16, bool)>,
    is_change: bool,
}

impl Member {
    /// Whether its program continued before it had received everything.
    fn is_late(&self) -> bool {
        self.joining == Joining::Program && self.until < time_of_day() && self.classes.is_empty()
    }

    /// Whether it has joined as a program does at first, and described no class.
    pub(crate) fn has_no_classes(&self) -> bool {
        self.joining == Joining::Program && self.classes.is_empty() && self.due.is_empty()
    }

    /// Whether it has confirmed what the current rules make of its classes.
    pub(crate) fn is_settled(&self) -> bool {
        self.unconfirmed.is_empty() && !self.is_asked
    }

    /// Handles a message from a program that has joined. `None` if the message is invalid.
    fn take(&mut self, host: &mut dyn Host, peer: Peer, message: &[u8]) -> Option<()> {
        if let Ok(done) = Done::decode(message) {
            if !replace(&mut self.is_asked, false) || done.number != self.change {
                return None;
            }
            if done.failed > 0 {
                self.failure = Some((done.failed, done.why.to_owned()));
            }
            return Some(());
        }
        if let Ok(late) = Late::decode(message) {
            self.unknown_since = None;
            host.missed(peer, &self.program, late.from, Some(late.to));
            return Some(());
        }
        if Taken::decode(message).is_some() {
            host.taken(peer);
            return Some(());
        }
        let descriptions: Vec<&[u8]> = decode_classes(message).ok()?.collect::<Result<_, _>>().ok()?;
        self.due = host.describe(peer, &descriptions).into();
        Some(())
    }

    /// The next message that is due, if there is one.
    fn grants(&self, host: &mut dyn Host) -> Option<Option<Grants>> {
        let is_change = self.due.is_empty();
        // A connection that brings more classes gets no changes: its program's first connection does, once
        // this one ends.
        let may_send = !self.joining.is_passing() && !self.is_asked && !self.unconfirmed.is_empty();
        if is_change && !may_send {
            return Some(None);
        }
        let mut message = vec![0; MAX_MESSAGE];
        let mut writer = if is_change {
            GrantsWriter::change(&mut message, self.change.wrapping_add(1)).ok()?
        } else {
            GrantsWriter::grants(&mut message).ok()?
        };
        let ids: Vec<u16> = if is_change {
            self.unconfirmed.iter().copied().collect()
        } else {
            self.due.iter().copied().collect()
        };
        let decided = host.decide(&self.program, &ids)?;
        let mut sent = Vec::new();
        for (&id, decided) in ids.iter().zip(&decided) {
            if writer.push(Grant { id, on: decided.on, filter: &decided.filter }).is_err() {
                break;
            }
            sent.push((id, decided.on));
        }
        let len = writer.finish().len();
        message.truncate(len);
        Some(Some(Grants { message, sent, is_change }))
    }

    fn mark_sent(&mut self, grants: Grants) {
        for (id, on) in grants.sent {
            if grants.is_change {
                self.unconfirmed.remove(&id);
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

/// The time of day, in nanoseconds since 1970.
pub(crate) fn time_of_day() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
