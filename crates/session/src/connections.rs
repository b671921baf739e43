//! The connections of all programs: kept while a program is recorded, so that it can receive changes, and
//! looked up by process. How they are accepted is in `recorder`.
//!
//! A program that has closed its connection may still write events until it is dead.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::process::getuid;
use tracewing_abi::message::join::Join;
use tracewing_abi::message::{Joining, MAX_MESSAGE};
use tracewing_units::Pid;

use crate::client::{Client, Member};
use crate::credentials::Peer;
use crate::limits::{Budget, Limit, Quota};
use crate::poll::Purpose;
use crate::program::{Program, parent};

/// Further recorders that programs are invited to: as many as they join.
const MOST_OTHERS: usize = 7;
/// Maximum number of connections of one process, including dead ones by which it may still be known.
const MOST_OF_A_PROCESS: usize = 1024;
/// Connections without a result: how many at once, and how many per second.
const WASTED: (u32, f64) = (1024, 2000.0);
/// Maximum number of programs that have left before it is checked which of them are dead.
const MANY_LEFT: usize = 1024;

/// Why programs are not invited to a further recorder.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotInvited {
    /// Nothing is at that path, or it does not fit a message.
    #[error("there is no recorder at {}", .0.display())]
    NoRecorder(PathBuf),
    #[error("its programs take part in {MOST_OTHERS} other recordings")]
    Many,
}

/// All connections, by their numbers in the loop.
pub(crate) struct Connections {
    pub(crate) clients: BTreeMap<u64, Client>,
    next: u64,
    /// Programs that can get changes: a connection by process id and copy of the library.
    members: BTreeMap<(Pid, u64), u64>,
    /// Connections that are kept open; programs beyond that are recorded and get no changes.
    most: usize,
    /// Programs whose connection has ended, dead or not.
    left: BTreeMap<(Pid, u64), Program>,
    look_at_left: usize,
    /// Sockets of recorders that want the same programs.
    others: Vec<PathBuf>,
    /// Connections that have sent nothing yet, the oldest first, and their origin.
    pub(crate) silent: BTreeMap<u64, (Peer, Purpose)>,
    /// The shares of processes and users in the connections.
    pub(crate) quota: Quota,
    /// Connections without a result.
    pub(crate) wasted: Budget,
    /// Connections that have sent too much in too short a time: the recorder does not read from them before
    /// the next look.
    resting: Vec<u64>,
    /// Room for one message.
    pub(crate) message: Vec<u8>,
}

impl Connections {
    /// None yet, in a process that may open `files` files: half of them can be connections.
    pub(crate) fn new(files: usize) -> Self {
        let limit = Limit::of(files / 2, MOST_OF_A_PROCESS);
        Self {
            clients: BTreeMap::new(),
            next: 0,
            members: BTreeMap::new(),
            most: files / 2,
            left: BTreeMap::new(),
            look_at_left: MANY_LEFT,
            others: Vec::new(),
            silent: BTreeMap::new(),
            quota: Quota::new(getuid().as_raw(), limit),
            wasted: Budget::new(WASTED.0, WASTED.1, Instant::now()),
            resting: Vec::new(),
            message: vec![0; MAX_MESSAGE + 1],
        }
    }

    /// Takes a connection, and gives its number.
    pub(crate) fn add(&mut self, client: Client, purpose: Purpose) -> u64 {
        let number = self.next;
        self.next += 1;
        self.silent.insert(number, (client.peer(), purpose));
        self.clients.insert(number, client);
        number
    }

    /// Removes a connection that ends.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Client> {
        self.silent.remove(&number);
        let client = self.clients.remove(&number)?;
        if client.is_program() {
            self.quota.give_back(client.peer(), 1);
        }
        Some(client)
    }

    /// Connections that are kept open, at most.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Does not read from connection `number` before the next look.
    pub(crate) fn rest(&mut self, number: u64) {
        self.resting.push(number);
    }

    pub(crate) fn is_resting(&self, number: u64) -> bool {
        self.resting.contains(&number)
    }

    pub(crate) fn take_resting(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.resting)
    }

    /// The connection over which changes reach a program, by process id and copy of the library.
    pub(crate) fn main(&self, key: (Pid, u64)) -> Option<u64> {
        self.members.get(&key).copied()
    }

    pub(crate) fn forget_main(&mut self, key: (Pid, u64)) {
        self.members.remove(&key);
    }

    /// Programs that can get changes, a connection each.
    pub(crate) fn members(&self) -> impl Iterator<Item = (u64, &Member)> {
        self.members.values().filter_map(|number| Some((*number, self.clients.get(number)?.member()?)))
    }

    /// Process ids of those whose process still is what has joined.
    pub(crate) fn living(&self) -> impl Iterator<Item = Pid> {
        let programs = self.members().map(|(_, member)| &member.program);
        programs.filter(|program| program.is_alive()).map(|program| program.pid)
    }

    /// Addresses in the copies of tracewing of one process that have joined.
    pub(crate) fn copies_of(&self, pid: Pid) -> Vec<u64> {
        self.members.range((pid, 0)..=(pid, u64::MAX)).map(|((_, copy), _)| *copy).collect()
    }

    /// The connections of one process over which changes reach it.
    pub(crate) fn of_process(&self, pid: Pid) -> Vec<u64> {
        self.members.range((pid, 0)..=(pid, u64::MAX)).map(|(_, number)| *number).collect()
    }

    /// Programs that are recorded and cannot be reached.
    pub(crate) fn unreachable(&mut self) -> impl Iterator<Item = &Program> {
        self.left.retain(|_, program| program.is_alive());
        self.left.values()
    }

    /// Has all programs, those that join later included, join a further recorder.
    ///
    /// # Errors
    /// The path makes no sense, or there are too many recorders.
    pub(crate) fn invite(&mut self, path: &Path) -> Result<(), NotInvited> {
        self.others.retain(|other| other.exists());
        if !path.is_absolute() || !path.exists() || path.as_os_str().len() > Join::LONGEST_PATH {
            return Err(NotInvited::NoRecorder(path.to_owned()));
        }
        if self.others.len() >= MOST_OTHERS {
            return Err(NotInvited::Many);
        }
        self.others.push(path.to_owned());
        let members = self.members.values().filter_map(|number| self.clients.get(number));
        members.for_each(|client| client.invite(path.as_os_str().as_bytes()));
        Ok(())
    }

    /// A program's connection has ended.
    pub(crate) fn leave(&mut self, member: &Member) {
        let pid = member.program.pid;
        if self.left.range((pid, 0)..=(pid, u64::MAX)).count() < MOST_OF_A_PROCESS {
            self.left.insert((pid, member.copy), member.program.clone());
        }
        if self.left.len() >= self.look_at_left {
            self.left.retain(|_, program| program.is_alive());
            self.look_at_left = MANY_LEFT.max(2 * self.left.len());
        }
    }

    /// A program has just joined by connection `number`. Gives whether that can stay open.
    pub(crate) fn keep(&mut self, number: u64, rules_differ: bool, all: impl FnOnce() -> Vec<u16>) -> bool {
        let has_room = self.clients.len() <= self.most;
        let Some(member) = self.clients.get(&number).and_then(Client::member) else { return true };
        let (pid, copy, joining) = (member.program.pid, member.copy, member.joining);
        let inherited = match joining {
            Joining::Child | Joining::Sharer | Joining::Heir => Some(self.parents_classes(pid, copy, all)),
            Joining::Program | Joining::More | Joining::Parent => None,
        };
        if !joining.is_passing() {
            self.left.retain(|(left, _), _| *left != pid);
            let before = has_room.then(|| self.members.insert((pid, copy), number)).flatten();
            // It has executed another file, or is hostile.
            if let Some(client) = before.and_then(|before| self.clients.get_mut(&before)) {
                client.hurry(Instant::now());
            }
        }
        if let Some(client) = self.clients.get_mut(&number) {
            // A forked child joins whatever its parent has joined.
            for other in self.others.iter().filter(|other| joining == Joining::Program && other.exists()) {
                client.invite(other.as_os_str().as_bytes());
            }
            if !has_room {
                client.hurry(Instant::now());
            }
            if let (Some(inherited), Some(member)) = (inherited, client.member_mut()) {
                if rules_differ {
                    member.unconfirmed.extend(inherited.keys());
                }
                member.classes = inherited;
            }
        }
        has_room
    }

    /// The classes that a forked child has: those of its parent, or all if the parent is no longer known.
    fn parents_classes(&self, pid: Pid, copy: u64, all: impl FnOnce() -> Vec<u16>) -> BTreeMap<u16, bool> {
        let parent = parent(pid).and_then(|parent| self.members.get(&(parent, copy)));
        let parent = parent.and_then(|number| self.clients.get(number)?.member());
        match parent {
            Some(parent) => parent.classes.clone(),
            None => all().into_iter().map(|id| (id, false)).collect(),
        }
    }
}
