//! A program's first message, and what becomes of a program that dies before or after it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, recv, send, sendmsg};
use tracewing_abi::message::{Answer, Hello, Joining};

use super::host::Host;
use super::member::{Member, reported, time_of_day};
use super::{Client, FLAGS, Stage};
use crate::credentials::is_alive;
use crate::program::Program;
use crate::seccomp::is_filtered;

impl Client {
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

    pub(super) fn hello(&mut self, host: &mut dyn Host, message: &[u8]) -> Option<()> {
        let hello = Hello::decode(message).ok()?;
        let [since, until] = hello.waits.map(reported);
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

    /// Another process may have its id by now; its name must not be used.
    fn missed(&self, host: &mut dyn Host, hello: &Hello) {
        if hello.joining == Joining::Program {
            host.missed(self.peer, &Program::nameless(self.pid()), reported(hello.waits[0]), None);
        }
    }
}
