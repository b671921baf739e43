//! Taking connections: which processes are let in, and how much work those that are not can cause.
//!
//! Other users cannot connect (see `socket`). What programs of the recording can cause is bounded: a look
//! takes a batch of connections; those that come to nothing (turned away, silent, nonsense) have a budget a
//! second, and while it is used up the recorder does not listen. A process, and another user, has so many
//! places for connections that have said nothing yet: the oldest one makes room.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::process::{Uid, getuid};

use super::Recorder;
use crate::client::Client;
use crate::credentials::{Peer, is_alive, is_one_user, peer, pin};
use crate::entrance::{has_descriptors, is_reserved};
use crate::poll::{Purpose, Token};
use crate::socket::{BACKLOG, accept};

/// Connections that are taken in one turn of the loop.
const BATCH: usize = 64;
/// Silent connections of one process, of another user, and of all users.
const OF_A_PROCESS: usize = 32;
const OF_A_USER: usize = 64;
const OF_ALL: usize = 512;
/// Connections of askers at one time.
const MOST_ASKERS: usize = 64;

impl Recorder<'_> {
    pub(crate) fn listen(&mut self) {
        let now = Instant::now();
        self.entrance.open(Purpose::Control, &self.poll);
        if self.entrance.is_closed(Purpose::Join)
            && self.connections.wasted.refill(now)
            && has_descriptors(self.poll.own())
        {
            self.entrance.open(Purpose::Join, &self.poll);
        }
        if self.attaching.doors.are_closed() && self.connections.wasted.refill(now) {
            self.attaching.doors.open(&self.poll);
        }
    }

    pub(crate) fn accept(&mut self, purpose: Purpose) {
        for _ in 0..BATCH {
            let now = Instant::now();
            let Some(listener) = &self.entrance.listener else { return };
            if purpose == Purpose::Join && !self.connections.wasted.refill(now) {
                return self.entrance.close(purpose, &self.poll);
            }
            match accept(purpose.of(listener)) {
                Ok(socket) => {
                    let is_last = purpose == Purpose::Join && is_reserved(&socket);
                    if self.arrive(socket, purpose, 0, now).is_none() {
                        self.connections.wasted.take(now);
                    }
                    if is_last {
                        return self.entrance.close(purpose, &self.poll);
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                // Out of descriptors, say.
                Err(_) => return self.entrance.close(purpose, &self.poll),
            }
        }
    }

    /// At the end: programs that still wait have not joined, which is noted.
    pub(crate) fn turn_away_waiting(&mut self) {
        let Some(listener) = &self.entrance.listener else { return };
        let (now, owner) = (Instant::now(), getuid());
        let is_members = |peer: &Peer| owner == Uid::ROOT || peer.uid == owner.as_raw();
        let waiting = (0..BACKLOG).map_while(|_| accept(listener.join()).ok());
        for socket in waiting.chain(self.attaching.doors.take_waiting()) {
            if let Some(peer) = peer(socket.as_fd()).filter(is_members) {
                Client::asker(socket, peer, now).died(&mut self.join, &mut self.connections.message);
            }
        }
        let clients = self.connections.clients.values();
        clients.for_each(|client| client.gave_up(&mut self.join, &mut self.connections.message));
    }

    /// A connection has come, of a process whose filters for system calls were looked at, as far as there are
    /// no more than so many. `None` if it is turned away.
    pub(super) fn arrive(
        &mut self,
        socket: OwnedFd,
        purpose: Purpose,
        filters: u32,
        now: Instant,
    ) -> Option<()> {
        let Some(peer) = peer(socket.as_fd()) else {
            self.join.note("a process of another PID namespace is not recorded".to_owned());
            return None;
        };
        let owner = getuid();
        let client = match purpose {
            Purpose::Control => {
                let may_ask = peer.uid == owner.as_raw() || peer.uid == Uid::ROOT.as_raw();
                may_ask.then(|| Client::asker(socket, peer, now))?
            }
            Purpose::Join => {
                let is_root = owner == Uid::ROOT;
                (is_root || peer.uid == owner.as_raw()).then_some(())?;
                let Some(pidfd) = pin(socket.as_fd(), peer).filter(is_alive) else {
                    let client = Client::asker(socket, peer, now);
                    client.died(&mut self.join, &mut self.connections.message);
                    return None;
                };
                (is_root || is_one_user(peer, &pidfd))
                    .then(|| Client::program(socket, peer, pidfd, filters, now))?
            }
        };
        if purpose == Purpose::Join && !self.connections.quota.take(peer, 1) {
            self.join.note_of(peer, "it, or its user, has as many connections as it may have");
            return None;
        }
        self.make_room(peer, purpose, now);
        let number = self.connections.add(client, purpose);
        let added = match self.connections.clients.get(&number) {
            Some(client) => self.poll.add(client, Token::Client(number), EventFlags::IN),
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
    fn make_room(&mut self, new: Peer, purpose: Purpose, now: Instant) {
        let connections = &self.connections;
        let oldest = |most: usize, is_one: &dyn Fn(Peer) -> bool| {
            let mut silent =
                connections.silent.iter().filter(|(_, (peer, at))| *at == purpose && is_one(*peer));
            let first = silent.next().map(|(number, _)| *number);
            first.filter(|_| silent.count() + 1 >= most)
        };
        let owner = getuid().as_raw();
        let in_the_way = match purpose {
            Purpose::Control => oldest(MOST_ASKERS, &|_| true),
            Purpose::Join => oldest(OF_A_PROCESS, &|peer| peer.pid == new.pid)
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
