//! Which process is attached to next.
//!
//! One after the other: threads that are stopped at the same time wait for each other's turns on a CPU. But
//! an attempt that takes longer than usual, since its process does not answer, no longer keeps the next one
//! waiting; the processes of the user with the fewest attempts in flight come first; and one user's processes
//! never take all places.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use tracewing_units::Pid;

use crate::attached::Wanted;

/// How long an attempt has the machine to itself.
const ALONE: Duration = Duration::from_millis(20);
/// Attempts in flight, and those of them for processes of one user.
pub(super) const MOST: usize = 64;
pub(super) const MOST_OF_USER: usize = MOST / 2;
/// Time between two attempts for one process.
const PAUSE: Duration = Duration::from_millis(20);

/// A process that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) pid: Pid,
    pub(super) wanted: Wanted,
    pub(super) user: u32,
    /// When it was asked for.
    pub(super) since: Instant,
}

struct Waiting {
    asked: Asked,
    /// When its next attempt may begin; `None` before its first one.
    again: Option<Instant>,
}

struct InFlight {
    asked: Asked,
    began: Instant,
}

/// The processes that were asked for and not reported yet.
#[derive(Default)]
pub(super) struct Turns {
    waiting: VecDeque<Waiting>,
    in_flight: BTreeMap<Pid, InFlight>,
}

impl Turns {
    pub(super) fn ask(&mut self, asked: Asked) {
        self.waiting.push_back(Waiting { asked, again: None });
    }

    /// The process whose turn it is, which is in flight from now on.
    pub(super) fn next(&mut self, now: Instant) -> Option<Asked> {
        if self.idle(now) != Some(Duration::ZERO) {
            return None;
        }
        let ready = self.able().filter(|(_, one)| one.again.is_none_or(|again| again <= now));
        let (at, _) =
            ready.min_by_key(|(at, one)| (self.of_user(one.asked.user), one.again.is_some(), *at))?;
        let Waiting { asked, .. } = self.waiting.remove(at)?;
        self.in_flight.insert(asked.pid, InFlight { asked: asked.clone(), began: now });
        Some(asked)
    }

    /// How long until an attempt may begin; `None`: not before one that is in flight ends, or a process is
    /// asked for.
    pub(super) fn idle(&self, now: Instant) -> Option<Duration> {
        let first = self.able().map(|(_, one)| one.again.unwrap_or(now)).min()?;
        let alone = self.in_flight.values().map(|one| one.began + ALONE).max().unwrap_or(now);
        (self.in_flight.len() < MOST).then(|| first.max(alone).saturating_duration_since(now))
    }

    /// Those that wait and need no attempt to end, with their places.
    fn able(&self) -> impl Iterator<Item = (usize, &Waiting)> {
        self.waiting.iter().enumerate().filter(|(_, one)| {
            // The number may have been another process's, for which an attempt is in flight.
            !self.in_flight.contains_key(&one.asked.pid) && self.of_user(one.asked.user) < MOST_OF_USER
        })
    }

    /// Forgets those that wait, and gives them.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = Asked> + use<> {
        std::mem::take(&mut self.waiting).into_iter().map(|one| one.asked)
    }

    pub(super) fn are_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    fn of_user(&self, user: u32) -> usize {
        self.in_flight.values().filter(|one| one.asked.user == user).count()
    }

    /// The attempt for a process has ended.
    pub(super) fn ended(&mut self, pid: Pid) -> Option<Asked> {
        self.in_flight.remove(&pid).map(|one| one.asked)
    }

    /// The process gets a further attempt.
    pub(super) fn try_again(&mut self, asked: Asked, now: Instant) {
        self.waiting.push_back(Waiting { asked, again: Some(now + PAUSE) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRANGER: u32 = 1000;

    fn asked(pid: i32, user: u32, since: Instant) -> Asked {
        Asked { pid: Pid(pid), wanted: Wanted::Present, user, since }
    }

    /// Begins what may begin, as time passes without any attempt that ends, until nothing more may.
    fn begun(turns: &mut Turns, now: &mut Instant) -> Vec<i32> {
        let mut begun = Vec::new();
        while let Some(wait) = turns.idle(*now) {
            *now += wait;
            begun.extend(turns.next(*now).map(|asked| asked.pid.0));
        }
        begun
    }

    #[test]
    fn those_that_answer_have_the_machine_to_themselves() {
        let (mut turns, now) = (Turns::default(), Instant::now());
        (1..=3).for_each(|pid| turns.ask(asked(pid, 0, now)));
        for pid in 1..=3 {
            assert_eq!(turns.next(now).map(|asked| asked.pid), Some(Pid(pid)));
            assert_eq!((turns.next(now), turns.idle(now)), (None, (pid < 3).then_some(ALONE)));
            assert!(turns.ended(Pid(pid)).is_some());
        }
        assert_eq!((turns.next(now), turns.idle(now)), (None, None));
    }

    #[test]
    fn those_that_do_not_answer_keep_no_other_waiting() {
        let (mut turns, mut now) = (Turns::default(), Instant::now());
        (1..=5).for_each(|pid| turns.ask(asked(pid, 0, now)));
        let begin = now;
        assert_eq!(begun(&mut turns, &mut now), [1, 2, 3, 4, 5]);
        assert_eq!(now - begin, 4 * ALONE);
    }

    #[test]
    fn a_users_processes_delay_no_other_users() {
        let (mut turns, mut now) = (Turns::default(), Instant::now());
        (1..=100).for_each(|pid| turns.ask(asked(pid, STRANGER, now)));
        turns.ask(asked(101, 0, now));
        let all = begun(&mut turns, &mut now);
        assert_eq!(all[..2], [1, 101]);
        assert_eq!(all.len(), MOST_OF_USER + 1);
        // Also where it comes later, and the other user has all places of a user.
        turns.ask(asked(102, 0, now));
        assert_eq!(begun(&mut turns, &mut now), [102]);
        assert_eq!(turns.ended(Pid(1)).map(|asked| asked.pid), Some(Pid(1)));
        assert_eq!(begun(&mut turns, &mut now).len(), 1);
    }

    #[test]
    fn attempts_are_bounded() {
        let (mut turns, mut now) = (Turns::default(), Instant::now());
        (1..=1000).for_each(|pid| turns.ask(asked(pid, pid as u32, now)));
        assert_eq!(begun(&mut turns, &mut now).len(), MOST);
        turns.ended(Pid(7));
        assert_eq!(begun(&mut turns, &mut now).len(), 1);
    }

    #[test]
    fn new_ones_come_before_those_that_were_tried() {
        let (mut turns, now) = (Turns::default(), Instant::now());
        turns.ask(asked(1, 0, now));
        let first = turns.next(now).unwrap();
        turns.ended(first.pid);
        turns.try_again(first.clone(), now);
        assert_eq!((turns.next(now), turns.idle(now)), (None, Some(PAUSE)));
        let later = now + PAUSE;
        turns.ask(asked(2, 0, later));
        assert_eq!(turns.next(later).map(|asked| asked.pid), Some(Pid(2)));
        turns.ended(Pid(2));
        assert_eq!(turns.next(later), Some(first));
    }
}
