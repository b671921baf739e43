//! Taking connections: which processes are let in, and how much work those that are not can cause.
//!
//! Other users cannot connect (see `socket`). What programs of the recording can cause is bounded: a look takes a batch of
//! connections; those that come to nothing (turned away, silent, nonsense) have a budget a second, and while it is used up
//! the recorder does not listen. A process, and another user, has so many places for connections that have said
//! nothing yet: the oldest one makes room.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::process::{Uid, getuid};

use crate::client::Client;
use crate::credentials::{Peer, is_alive, is_one_user, peer, pin};
use crate::recorder::{CONTROL, LISTENER, Recorder};
use crate::socket::{BACKLOG, Listener, accept};
use crate::system::open_files;

/// Connections that are taken in one turn of the loop.
const BATCH: usize = 64;
/// Silent connections of one process, of another user, and of all users.
const OF_A_PROCESS: usize = 32;
const OF_A_USER: usize = 64;
const OF_ALL: usize = 512;
/// Connections of askers at one time.
const MOST_ASKERS: usize = 64;
/// Descriptors that are kept for a program that has just come, and for askers.
const RESERVED: usize = 8;

/// Which socket a connection has come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Join,
    Control,
}

impl Door {
    pub(crate) const ALL: [Self; 2] = [Self::Join, Self::Control];

    fn number(self) -> u64 {
        match self {
            Self::Join => LISTENER,
            Self::Control => CONTROL,
        }
    }

    fn of(self, listener: &Listener) -> BorrowedFd<'_> {
        match self {
            Self::Join => listener.join(),
            Self::Control => listener.control(),
        }
    }
}

/// Whether a descriptor, whose number was the lowest that was free, leaves only those that are reserved.
fn is_reserved(file: &OwnedFd) -> bool {
    usize::try_from(file.as_raw_fd()).is_ok_and(|number| number >= open_files().saturating_sub(RESERVED))
}

/// Whether there are descriptors besides those that are reserved.
fn has_descriptors(any: &OwnedFd) -> bool {
    any.try_clone().is_ok_and(|copy| !is_reserved(&copy))
}

impl Recorder<'_> {
    pub(crate) fn listen(&mut self) {
        let now = Instant::now();
        for door in Door::ALL {
            let mut may = || {
                door == Door::Control
                    || (self.connections.wasted.has_any(now) && has_descriptors(&self.epoll))
            };
            if !self.listening[door as usize]
                && may()
                && let Some(listener) = &self.listener
            {
                let data = EventData::new_u64(door.number());
                let added = epoll::add(&self.epoll, door.of(listener), data, EventFlags::IN);
                self.listening[door as usize] = added.is_ok();
            }
        }
    }

    /// Those who wait get their turn at a later look.
    fn stop_listening(&mut self, door: Door) {
        if let Some(listener) = &self.listener {
            let _ = epoll::delete(&self.epoll, door.of(listener));
        }
        self.listening[door as usize] = false;
    }

    pub(crate) fn accept(&mut self, door: Door) {
        for _ in 0..BATCH {
            let now = Instant::now();
            let Some(listener) = &self.listener else { return };
            if door == Door::Join && !self.connections.wasted.has_any(now) {
                return self.stop_listening(door);
            }
            match accept(door.of(listener)) {
                Ok(socket) => {
                    let is_last = door == Door::Join && is_reserved(&socket);
                    if self.arrive(socket, door, now).is_none() {
                        self.connections.wasted.take(now);
                    }
                    if is_last {
                        return self.stop_listening(door);
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                // Out of descriptors, say.
                Err(_) => return self.stop_listening(door),
            }
        }
    }

    /// At the end: who waits still has not joined, which is noted.
    pub(crate) fn turn_away_waiting(&mut self) {
        let Some(listener) = &self.listener else { return };
        let (now, owner) = (Instant::now(), getuid());
        let is_members = |peer: &Peer| owner == Uid::ROOT || peer.uid == owner.as_raw();
        let waiting = (0..BACKLOG).map_while(|_| accept(listener.join()).ok());
        for socket in waiting {
            if let Some(peer) = peer(socket.as_fd()).filter(is_members) {
                Client::asker(socket, peer, now).died(&mut self.join, &mut self.message);
            }
        }
        let clients = self.connections.clients.values();
        clients.for_each(|client| client.gave_up(&mut self.join, &mut self.message));
    }

    /// A connection has come. `None` if it is turned away.
    fn arrive(&mut self, socket: OwnedFd, door: Door, now: Instant) -> Option<()> {
        let Some(peer) = peer(socket.as_fd()) else {
            self.join.note("a process of another PID namespace is not recorded".to_owned());
            return None;
        };
        let owner = getuid();
        let client = match door {
            Door::Control => {
                let may_ask = peer.uid == owner.as_raw() || peer.uid == Uid::ROOT.as_raw();
                may_ask.then(|| Client::asker(socket, peer, now))?
            }
            Door::Join => {
                let is_root = owner == Uid::ROOT;
                (is_root || peer.uid == owner.as_raw()).then_some(())?;
                let Some(pidfd) = pin(socket.as_fd(), peer).filter(is_alive) else {
                    let client = Client::asker(socket, peer, now);
                    client.died(&mut self.join, &mut self.message);
                    return None;
                };
                (is_root || is_one_user(peer, &pidfd)).then(|| Client::program(socket, peer, pidfd, now))?
            }
        };
        if door == Door::Join && !self.connections.quota.take(peer, 1) {
            self.join.note_of(peer, "it, or its user, has as many connections as it may have");
            return None;
        }
        self.make_room(peer, door, now);
        let number = self.connections.add(client, door);
        let added = match self.connections.clients.get(&number) {
            Some(client) => epoll::add(&self.epoll, client, EventData::new_u64(number), EventFlags::IN),
            None => Ok(()),
        };
        match added {
            // What it has to say has mostly come with it.
            Ok(()) => self.client_ready(number),
            Err(_) => self.disconnect(number),
        }
        Some(())
    }

    /// Ends the oldest of the silent connections that are in the way of one more.
    fn make_room(&mut self, new: Peer, door: Door, now: Instant) {
        let connections = &self.connections;
        let oldest = |most: usize, is_one: &dyn Fn(Peer) -> bool| {
            let mut silent = connections.silent.iter().filter(|(_, (peer, at))| *at == door && is_one(*peer));
            let first = silent.next().map(|(number, _)| *number);
            first.filter(|_| silent.count() + 1 >= most)
        };
        let owner = getuid().as_raw();
        let in_the_way = match door {
            Door::Control => oldest(MOST_ASKERS, &|_| true),
            Door::Join => oldest(OF_A_PROCESS, &|peer| peer.pid == new.pid)
                .or_else(|| (new.uid != owner).then(|| oldest(OF_A_USER, &|peer| peer.uid == new.uid))?)
                .or_else(|| (new.uid != owner).then(|| oldest(OF_ALL / 2, &|peer| peer.uid != owner))?)
                .or_else(|| oldest(OF_ALL, &|_| true)),
        };
        if let Some(number) = in_the_way {
            self.connections.wasted.take(now);
            self.disconnect(number);
        }
    }
}
