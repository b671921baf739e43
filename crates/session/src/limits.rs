//! What a process, a user, and all users but the recorder's own may take of a recording's resources.
//!
//! Members are limited, not trusted. A process of the recorder's user gets its share per process; other
//! users, in the recordings of root, also get a share per user, and together at most half, so that the
//! owner's programs always find room.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use tracewing_units::Pid;

use crate::credentials::Peer;

/// Time that a join takes mostly, and most times as much that it is counted for: its process is not to blame
/// for a slow disk.
const JOIN_TIME: Duration = Duration::from_micros(250);
const MOST_JOINS: f64 = 20.0;

/// Entries of a table of processes from which on it is looked which of them are dead.
const MANY_PROCESSES: usize = 4096;

/// Regions of one process: one for each agent, and for each file that it has executed while children still
/// have the last one.
const MOST_REGIONS: usize = 64;
/// Regions that a user gets however large they are.
const FEW_REGIONS: usize = 16;

/// Most of a resource that one process, one other user, and all other users together may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub process: usize,
    pub user: usize,
    pub others: usize,
}

impl Limit {
    /// For a resource with this `total`.
    pub(crate) const fn of(total: usize, process: usize) -> Self {
        Self { process, user: total / 8, others: total / 2 }
    }

    /// For at most `total` regions of `size` bytes, on a machine with `memory` bytes: full regions of all
    /// other users together take at most half of the memory, and those of one user a quarter, unless that is
    /// not enough for a few regions.
    pub(crate) fn of_regions(total: usize, size: usize, memory: u64) -> Self {
        let fit = usize::try_from(memory / (size.max(1) as u64)).unwrap_or(usize::MAX);
        let Self { process, user, others } = Self::of(total, MOST_REGIONS);
        Self {
            process,
            user: user.min((fit / 4).max(FEW_REGIONS)),
            others: others.min((fit / 2).max(2 * FEW_REGIONS)),
        }
    }
}

/// A resource, and how much of it is in use.
pub(crate) struct Quota {
    owner: u32,
    limit: Limit,
    users: BTreeMap<u32, usize>,
    processes: BTreeMap<Pid, usize>,
    look: usize,
}

impl Quota {
    /// Nothing taken yet, in a recording of the user `owner`.
    pub(crate) fn new(owner: u32, limit: Limit) -> Self {
        Self { owner, limit, users: BTreeMap::new(), processes: BTreeMap::new(), look: MANY_PROCESSES }
    }

    /// Takes `amount` for a process, if it and its user may have that.
    pub(crate) fn take(&mut self, peer: Peer, amount: usize) -> bool {
        let fits = self.left(peer) >= amount;
        if fits {
            *self.users.entry(peer.uid).or_default() += amount;
            *self.processes.entry(peer.pid).or_default() += amount;
            self.forget_dead();
        }
        fits
    }

    /// What a process may still take.
    fn left(&self, peer: Peer) -> usize {
        let taken = self.processes.get(&peer.pid).copied().unwrap_or(0);
        let process = self.limit.process.saturating_sub(taken);
        if peer.uid == self.owner { process } else { process.min(self.left_to_user(peer.uid)) }
    }

    /// What another user may still take.
    fn left_to_user(&self, uid: u32) -> usize {
        let user = self.limit.user.saturating_sub(self.users.get(&uid).copied().unwrap_or(0));
        let others = self.users.iter().filter(|(uid, _)| **uid != self.owner).map(|(_, taken)| taken).sum();
        user.min(self.limit.others.saturating_sub(others))
    }

    /// Takes one for the next child of a process, which counts for its user alone, and only where that leaves
    /// the user half.
    pub(crate) fn take_for_child(&mut self, peer: Peer) -> bool {
        let has_plenty = peer.uid == self.owner || 2 * self.left_to_user(peer.uid) > self.limit.user;
        if has_plenty {
            *self.users.entry(peer.uid).or_default() += 1;
        }
        has_plenty
    }

    /// Gives back what [`Quota::take_for_child`] has given.
    pub(crate) fn give_back_for_child(&mut self, peer: Peer) {
        lower(&mut self.users, peer.uid, 1);
    }

    /// Gives back what [`Quota::take`] has given.
    pub(crate) fn give_back(&mut self, peer: Peer, amount: usize) {
        lower(&mut self.users, peer.uid, amount);
        lower(&mut self.processes, peer.pid, amount);
    }

    /// Amounts that are never given back stay counted for the user, but not for a process that is dead.
    fn forget_dead(&mut self) {
        if self.processes.len() >= self.look {
            self.processes.retain(|pid, _| exists(*pid));
            self.look = MANY_PROCESSES.max(2 * self.processes.len());
        }
    }
}

/// Whether a process has this id.
pub(crate) fn exists(pid: Pid) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn lower<K: Ord>(taken: &mut BTreeMap<K, usize>, key: K, amount: usize) {
    if let Some(left) = taken.get_mut(&key) {
        *left = left.saturating_sub(amount);
        if *left == 0 {
            taken.remove(&key);
        }
    }
}

/// A rate: `burst` at once, then `per_second`.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    burst: f64,
    per_second: f64,
    left: f64,
    at: Instant,
}

impl Budget {
    pub(crate) fn new(burst: u32, per_second: f64, now: Instant) -> Self {
        Self { burst: burst.into(), per_second, left: burst.into(), at: now }
    }

    /// Whether one more may be now; takes it.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let may = self.refill(now);
        if may {
            self.left -= 1.0;
        }
        may
    }

    /// Takes more, also what there is not.
    pub(crate) fn charge(&mut self, amount: f64) {
        self.left -= amount;
    }

    /// Adds what has accrued until `now`; whether that allows one more.
    pub(crate) fn refill(&mut self, now: Instant) -> bool {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * self.per_second;
        (self.left, self.at) = ((self.left + gained).min(self.burst), now.max(self.at));
        self.left >= 1.0
    }
}

/// A rate of each process, and of each other user.
pub(crate) struct Rates {
    owner: u32,
    process: (u32, f64),
    user: (u32, f64),
    processes: BTreeMap<Pid, Budget>,
    users: BTreeMap<u32, Budget>,
    look: usize,
}

impl Rates {
    /// `process` and `user`: how many at once, and a second.
    pub(crate) fn new(owner: u32, process: (u32, f64), user: (u32, f64)) -> Self {
        let (processes, users) = (BTreeMap::new(), BTreeMap::new());
        Self { owner, process, user, processes, users, look: MANY_PROCESSES }
    }

    /// Whether a process may do one more now; takes it.
    pub(crate) fn take(&mut self, peer: Peer, now: Instant) -> bool {
        if self.processes.len() >= self.look {
            self.processes.retain(|pid, _| exists(*pid));
            self.look = MANY_PROCESSES.max(2 * self.processes.len());
        }
        let new = |(burst, per_second)| Budget::new(burst, per_second, now);
        let process = self.processes.entry(peer.pid).or_insert_with(|| new(self.process));
        if !process.take(now) {
            return false;
        }
        peer.uid == self.owner || self.users.entry(peer.uid).or_insert_with(|| new(self.user)).take(now)
    }
}

impl Rates {
    /// Charges `amount` to the budget of the process, for a request that is charged like several.
    fn charge(&mut self, peer: Peer, amount: f64) {
        self.processes.get_mut(&peer.pid).into_iter().for_each(|budget| budget.charge(amount));
        // The owner has none.
        self.users.get_mut(&peer.uid).into_iter().for_each(|budget| budget.charge(amount));
    }
}

/// What members of a recording may have and do, but for connections.
pub(crate) struct Limits {
    /// For class descriptions, in units of one id and a number of bytes.
    pub(crate) classes: Quota,
    pub(crate) notes: Quota,
    /// Programs that are described one by one.
    pub(crate) programs: Quota,
    joins: Rates,
    messages: Rates,
}

impl Limits {
    /// Of a recording of the user `owner`.
    pub(crate) fn new(owner: u32) -> Self {
        let quota = |process, user, others| Quota::new(owner, Limit { process, user, others });
        Self {
            classes: quota(16_384, 8_192, 32_768),
            notes: quota(16, 20, 40),
            programs: quota(4096, 25_000, 50_000),
            joins: Rates::new(owner, (4096, 200.0), (8192, 1000.0)),
            messages: Rates::new(owner, (4096, 1000.0), (8192, 2000.0)),
        }
    }

    /// Whether a message of a connection may be taken now; counts it.
    pub(crate) fn may_speak(&mut self, peer: Peer, is_silent: bool, now: Instant) -> bool {
        let rates = if is_silent { &mut self.joins } else { &mut self.messages };
        rates.take(peer, now)
    }

    /// A process has joined, or tried to, which has taken so long.
    pub(crate) fn charge_join(&mut self, peer: Peer, took: Duration) {
        let joins = (took.as_secs_f64() / JOIN_TIME.as_secs_f64()).min(MOST_JOINS);
        self.joins.charge(peer, (joins - 1.0).max(0.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn peer(pid: i32, uid: u32) -> Peer {
        Peer { pid: Pid(pid), uid }
    }

    #[test]
    fn other_users_leave_half_to_the_owner() {
        let mut quota = Quota::new(0, Limit::of(1000, 100));
        let taken = (1..10_000).filter(|pid| quota.take(peer(*pid, 1), 1)).count();
        assert_eq!(taken, 125, "a user's share");
        let taken = (1..10_000).filter(|pid| quota.take(peer(*pid, 2 + *pid as u32), 1)).count();
        assert_eq!(taken, 375, "all other users' share");
        assert_eq!((0..1000).filter(|_| quota.take(peer(7, 0), 1)).count(), 100 - 1 - 1, "a process's share");
        assert!(
            (10_000..10_009).all(|pid| quota.take(peer(pid, 0), 100)),
            "the owner is limited per process"
        );
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let mut quota = Quota::new(0, Limit { process: 2, user: 2, others: 2 });
        assert!(quota.take(peer(1, 1), 2) && !quota.take(peer(1, 1), 1) && !quota.take(peer(2, 2), 1));
        quota.give_back(peer(1, 1), 1);
        assert!(quota.take(peer(2, 2), 1) && !quota.take(peer(3, 3), 1));
    }

    #[test]
    fn regions_of_other_users_leave_memory_and_descriptors() {
        let limits = |total, size, memory| {
            let Limit { process, user, others } = Limit::of_regions(total, size, memory);
            (process, user, others)
        };
        assert_eq!(limits(8000, 8 << 20, 24 << 30), (64, 768, 1536), "memory");
        assert_eq!(limits(800, 8 << 20, 24 << 30), (64, 100, 400), "descriptors");
        assert_eq!(limits(8000, 1 << 30, 4 << 30), (64, 16, 32), "a few however large");
        assert_eq!(limits(8000, 0, u64::MAX), (64, 1000, 4000));
    }

    #[test]
    fn joins_that_take_long_count_for_several() {
        let now = Instant::now();
        let (process, user, others) = (peer(1, 1), peer(2, 1), peer(3, 0));
        let mut limits = Limits::new(0);
        let mut count = |peer| (0..10_000).filter(|_| limits.joins.take(peer, now)).count();
        assert_eq!((count(process), count(user), count(others)), (4096, 4096, 4096));
        let mut limits = Limits::new(0);
        let mut busy = |peer, took| {
            let mut all = Duration::ZERO;
            while all < Duration::from_secs(100) && limits.joins.take(peer, now) {
                limits.charge_join(peer, took);
                all += took;
            }
            all.as_secs_f64()
        };
        let slow = Duration::from_millis(2);
        assert!((1.0..1.1).contains(&busy(process, slow)) && (1.0..1.1).contains(&busy(user, slow)));
        assert!(busy(peer(4, 1), slow) < 0.1, "the user has had its time");
        assert!((1.0..1.1).contains(&busy(others, slow)));
    }

    #[test]
    fn a_rate_allows_a_burst_and_then_its_share_of_time() {
        let now = Instant::now();
        let mut rates = Rates::new(0, (5, 10.0), (8, 1.0));
        let count = |rates: &mut Rates, peer, now| (0..100).filter(|_| rates.take(peer, now)).count();
        assert_eq!(count(&mut rates, peer(1, 0), now), 5);
        assert_eq!(count(&mut rates, peer(1, 0), now + Duration::from_millis(250)), 2);
        assert_eq!(count(&mut rates, peer(2, 1), now), 5);
        assert_eq!(count(&mut rates, peer(3, 1), now), 3, "the user's rate");
        assert_eq!(count(&mut rates, peer(2, 0), now + Duration::from_secs(100)), 5);
    }
}
