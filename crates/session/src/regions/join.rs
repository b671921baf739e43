//! A region for each process that joins, or one that it shares with others of its user; and a spare one for
//! the next child that it forks.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use tracewing_abi::message::{Hello, Joining};
use tracewing_abi::region::{Clock, Protocol};
use tracewing_consumer::outside::{Insider, is_of_other_namespace};
use tracewing_consumer::pace::Pace;
use tracewing_units::Pid;

use super::{Key, Living, MANY, Regions};
use crate::credentials::Peer;
use crate::domain::Domain;
use crate::not_joined::NotJoined;
use crate::options::Sharing;

/// Time until a new region is looked at first.
const FIRST_LOOK: Duration = Duration::from_millis(8);

/// Memory that is taken for a program before it writes: its first million events are to cost no page fault.
const PREPARED: usize = 16 << 20;
/// How many programs have that at one time, and how often a further one gets it: not each of thousands that
/// come and go.
const MOST_PREPARED: usize = 4;
const BETWEEN_PREPARED: Duration = Duration::from_millis(250);

/// Regions for children that are not forked yet, or have ended before anybody looked, of one process.
const MOST_SPARES: usize = 128;

/// A region that a program may use.
pub(crate) struct Joined {
    /// As [`Answer::Welcome`](tracewing_abi::message::Answer::Welcome) has them.
    pub files: Vec<OwnedFd>,
    pub size: u64,
    /// Whether a forked child may write to it as well.
    pub shared: bool,
    /// The number of the region that comes last, where that is for the next child; else 0.
    pub spare: u64,
}

/// The program that a new region is for.
struct Wanted {
    peer: Peer,
    /// Many programs; this is the first of them.
    for_many: bool,
    /// Children that are forked use it, too.
    shared: bool,
    /// The next child that is forked.
    for_child: bool,
    protocol: Protocol,
    /// Whether its numbers are those of another PID namespace.
    is_insider: bool,
}

/// Whether a process is of another PID namespace. One that has ended has said which number it knew: a child
/// can end before its region is made. One that lies spoils the numbers of its own events only.
fn is_insider(pid: Pid, hello: &Hello) -> bool {
    is_of_other_namespace(pid).unwrap_or(hello.pid != pid.as_unsigned())
}

impl Regions {
    /// The region for a process that said hello.
    ///
    /// # Errors
    /// There are no buffers for it.
    pub(crate) fn join(&mut self, peer: Peer, hello: &Hello) -> Result<Joined, NotJoined> {
        let publishes = hello.can_publish && self.clock.kind() == Clock::Tsc;
        let protocol = if publishes { Protocol::Publish } else { Protocol::Smp };
        let is_insider = is_insider(peer.pid, hello);
        if hello.joining == Joining::Parent {
            // Those that it had may have gone to children that were too short to say so.
            self.ask_for_writers(peer.pid, |living| living.is_spare);
            let (spare, files) = self.spare(peer, protocol, is_insider).ok_or(NotJoined::Spares)?;
            return Ok(Joined { files, size: self.size(), shared: false, spare });
        }
        let shares = publishes && self.sharing != Sharing::Process;
        // The numbers of threads in one region mean those of one process.
        let domain = shares.then(|| Domain::of(peer)).flatten().filter(|_| !is_insider);
        // A program that can become another user shares with none, children included.
        let shared = domain.is_some();
        let domain = domain.filter(|_| self.sharing == Sharing::User);
        let existing = domain.as_ref().and_then(|domain| self.shared.get(domain)).copied();
        let key = match existing {
            Some(key) => key,
            None => {
                let for_many = domain.is_some();
                let wanted = Wanted { peer, for_many, shared, for_child: false, protocol, is_insider };
                let key = self.make(wanted)?;
                self.shared.extend(domain.map(|domain| (domain, key)));
                key
            }
        };
        let mut files = self.files_of(key)?;
        let has_spare = !shared && hello.joining == Joining::Program;
        let spare = has_spare.then(|| self.spare(peer, protocol, is_insider)).flatten();
        let spare = spare.map_or(0, |(number, more)| {
            files.extend(more);
            number
        });
        Ok(Joined { files, size: self.size(), shared, spare })
    }

    fn size(&self) -> u64 {
        self.maker.geometry.size() as u64
    }

    fn files_of(&self, key: Key) -> Result<Vec<OwnedFd>, NotJoined> {
        let living = self.living.get(&key).ok_or(NotJoined::Gone)?;
        living.drain.for_writers().map_err(NotJoined::Descriptors)
    }

    /// A region for the next child of a process: its number, and the descriptors. `None` where there is no
    /// plenty of regions, or where each takes room on a disk: then children ask for theirs.
    fn spare(&mut self, peer: Peer, protocol: Protocol, is_insider: bool) -> Option<(u64, Vec<OwnedFd>)> {
        let pid = peer.pid;
        let others = self.living.range((pid, 0)..=(pid, u64::MAX)).filter(|(_, living)| living.is_spare);
        let has_plenty = self.living.len() < self.most / 2 && others.count() < MOST_SPARES;
        if !has_plenty || self.maker.files.is_some() || !self.quota.take_for_child(peer) {
            return None;
        }
        let wanted = Wanted { peer, for_many: false, shared: false, for_child: true, protocol, is_insider };
        let Ok(key) = self.add(wanted) else {
            self.quota.give_back_for_child(peer);
            return None;
        };
        Some((key.1, self.files_of(key).ok()?))
    }

    /// A child has taken over the region with this number.
    pub(crate) fn take_over(&mut self, child: Peer, number: u64) {
        let is_it = |(key, living): &(&Key, &Living)| {
            key.1 == number && living.is_spare && living.peer.uid == child.uid
        };
        let Some(key) = self.living.iter().find(is_it).map(|(key, _)| *key) else { return };
        let Some(mut living) = self.living.remove(&key) else { return };
        self.agenda.remove(&(living.due, key));
        // A parent of many children does not use up its quota by their regions.
        if self.quota.take(child, 1) {
            self.quota.give_back_for_child(living.peer);
            living.holder = Some(child);
        }
        living.is_spare = false;
        living.drain.insider().into_iter().for_each(|insider| insider.is(child.pid));
        let key = (child.pid, number);
        self.agenda.insert((living.due, key));
        self.living.insert(key, living);
    }

    /// Makes a region for a program; fails if its user or the recorder has too many.
    fn make(&mut self, wanted: Wanted) -> Result<Key, NotJoined> {
        if self.living.len() >= self.most {
            return Err(NotJoined::OpenFiles { most: self.most });
        }
        let peer = wanted.peer;
        if !self.quota.take(peer, 1) {
            return Err(NotJoined::Quota);
        }
        let key = self.add(wanted);
        if key.is_err() {
            self.quota.give_back(peer, 1);
        }
        key
    }

    fn add(&mut self, wanted: Wanted) -> Result<Key, NotJoined> {
        let Wanted { peer, for_many, shared, for_child, protocol, is_insider } = wanted;
        let pid = if for_many { MANY } else { peer.pid };
        let label = match protocol {
            Protocol::Publish => format!("uid{}", peer.uid),
            Protocol::Smp | Protocol::Local => format!("pid{pid}"),
        };
        let name = if pid == MANY { label.clone() } else { format!("pid{pid}") };
        let mut drain = self.maker.drain(&name, label, protocol, for_child)?;
        if !shared {
            drain = drain.with_children()?;
        }
        let insider = is_insider.then(|| match for_child {
            true => Insider::child(self.outside.clone()),
            false => Insider::of(self.outside.clone(), peer.pid),
        });
        let drain = drain.of_insider(insider);
        let now = Instant::now();
        let is_prepared = !for_child && self.is_to_be_prepared(now);
        if is_prepared {
            drain.memory().allocate(self.maker.geometry, PREPARED);
            self.prepared = Some(now);
        }
        self.next += 1;
        let key = (pid, self.next);
        let pace = Pace::new(self.flush);
        let due = now + FIRST_LOOK.min(pace.longest());
        self.agenda.insert((due, key));
        let (question, asked, news, is_spare) = (None, now, 0, for_child);
        let holder = (!for_child).then_some(peer);
        let fullest = 0.0;
        let living =
            Living { drain, peer, holder, pace, due, question, asked, is_prepared, is_spare, news, fullest };
        self.living.insert(key, living);
        self.past.see(self.living.len());
        Ok(key)
    }

    fn is_to_be_prepared(&self, now: Instant) -> bool {
        self.prepared.is_none_or(|last| now.duration_since(last) >= BETWEEN_PREPARED)
            && self.living.values().filter(|living| living.is_prepared).count() < MOST_PREPARED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_is_of_the_namespace_whose_number_it_has_said() {
        let hello = |pid: i32| {
            let joining = Joining::Child;
            Hello { version: 0, pid: pid.cast_unsigned(), can_publish: true, joining, copy: 0, waits: [0; 2] }
        };
        let (own, ended) = (std::process::id().cast_signed(), i32::MAX);
        let of = |pid, said| is_insider(Pid(pid), &hello(said));
        assert_eq!([of(ended, 7), of(ended, ended), of(own, 7), of(own, own)], [true, false, false, false]);
    }
}
