//! Looks into `/proc` that a process takes for this recorder ([`crate::helpers`]). A look can take as long as
//! the process that it is about likes: that may have mapped files of a file system that its user serves. So
//! there is a limit for each user on looks that are not answered, and on the time for which the recorder
//! waits for them. Beyond it, looks at programs of that user are refused, and those at others' are taken.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope, scope};
use std::time::{Duration, Instant};

use tracewing_helper::{Helper, Number, Reply, Request, Server};
use tracewing_proc::{Status, guarded};

use crate::limits::{Budget, Limit};
use crate::priority::Priority;

/// How long a look may take.
const LOOKING: Duration = Duration::from_millis(500);
/// Most looks at the programs of the owner, of another user, and of all others that may be late.
const LATE: Limit = Limit { process: 8, user: 2, others: 40 };
/// Threads that take looks: more than can be late, with those that are waited for.
const MOST_THREADS: usize = 64;
/// A look that takes no longer costs its user nothing: a busy machine takes as long.
const QUICK: Duration = Duration::from_millis(20);
/// Milliseconds of waiting that the programs of another user may cause at once, and in a second.
const WAITING: (u32, f64) = (4000, 10.0);
/// Users whose refused looks are reported.
const MOST_REPORTED: usize = 16;

/// Has looks taken, from any thread.
pub(crate) struct Looks {
    helper: Arc<Helper>,
    owner: u32,
    users: Mutex<Users>,
}

#[derive(Default)]
struct Users {
    /// Those with looks that have taken long.
    slow: BTreeMap<u32, Slow>,
    /// Those that were refused a look.
    refused: BTreeSet<u32>,
    /// How many of these were not reported yet.
    news: Vec<u32>,
}

struct Slow {
    late: Vec<Number>,
    waiting: Budget,
}

impl Looks {
    /// Has them taken by a helper that carries out [`serve`], for a recorder of the user `owner`.
    pub(crate) fn new(helper: Arc<Helper>, owner: u32) -> Self {
        Self { helper, owner, users: Mutex::default() }
    }

    /// Has a look taken at a process.
    ///
    /// # Errors
    /// There is no such process. It is not answered in time, or others at programs of this user were not
    /// (`TimedOut`). The helper is lost.
    pub(crate) fn take(&self, request: &[u8]) -> io::Result<Reply> {
        let pid = guarded::subject(request).ok_or(io::ErrorKind::InvalidInput)?;
        // Its own choice of an effective user must not be at the expense of that one.
        let real = Status::of(pid).and_then(|status| Some(status.users()?[0]));
        self.take_of(real.ok_or(io::ErrorKind::NotFound)?, request, LOOKING)
    }

    fn take_of(&self, user: u32, request: &[u8], patience: Duration) -> io::Result<Reply> {
        if !self.may(user) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let begin = Instant::now();
        let number = self.helper.begin(request, &[])?;
        let reply = self.helper.wait(number, patience);
        let waited = begin.elapsed();
        let is_late = reply.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
        if is_late || waited > QUICK {
            let new = || Slow { late: Vec::new(), waiting: Budget::new(WAITING.0, WAITING.1, begin) };
            self.with(|users| {
                let slow = users.slow.entry(user).or_insert_with(new);
                slow.late.extend(is_late.then_some(number));
                slow.waiting.charge(waited.as_secs_f64() * 1000.0);
            });
        }
        reply
    }

    /// Whether another look at programs of a user may be taken now.
    fn may(&self, user: u32) -> bool {
        let now = Instant::now();
        self.with(|users| {
            for slow in users.slow.values_mut() {
                slow.late.retain(|number| self.helper.is_late(*number));
            }
            let of_others = users.slow.iter().filter(|(uid, _)| **uid != self.owner);
            let others: usize = of_others.map(|(_, slow)| slow.late.len()).sum();
            let slow = users.slow.get_mut(&user);
            let late = slow.as_ref().map_or(0, |slow| slow.late.len());
            let may = if user == self.owner {
                late < LATE.process
            } else {
                late < LATE.user && others < LATE.others && slow.is_none_or(|slow| slow.waiting.refill(now))
            };
            if !may && users.refused.len() < MOST_REPORTED && users.refused.insert(user) {
                users.news.push(user);
            }
            may
        })
    }

    /// Users at whose programs a look was refused for the first time since the last call.
    pub(crate) fn newly_refused(&self) -> Vec<u32> {
        self.with(|users| std::mem::take(&mut users.news))
    }

    fn with<T>(&self, change: impl FnOnce(&mut Users) -> T) -> T {
        change(&mut self.users.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A helper whose looks may be late.
pub(crate) fn independent(helper: Helper) -> Helper {
    helper.with_most_late(MOST_THREADS)
}

/// In the process that takes looks: answers each request by `answer`, on as many threads as it needs.
pub(crate) fn serve(server: &Server, answer: &(dyn Fn(Request) -> Reply + Sync)) {
    let threads = Threads { server, answer, free: AtomicUsize::new(1), all: AtomicUsize::new(1) };
    scope(|scope| threads.work(scope));
}

struct Threads<'a> {
    server: &'a Server,
    answer: &'a (dyn Fn(Request) -> Reply + Sync),
    /// Threads that wait for a request, or are about to.
    free: AtomicUsize,
    all: AtomicUsize,
}

impl Threads<'_> {
    fn work<'s>(&'s self, scope: &'s Scope<'s, '_>) {
        // The recorder waits for it: it is as urgent.
        let _raised = Priority::raise();
        self.server.answer_each(|request| {
            let was_last = self.free.fetch_sub(1, Ordering::Relaxed) == 1;
            if was_last && self.all.load(Ordering::Relaxed) < MOST_THREADS {
                self.start(scope);
            }
            let reply = (self.answer)(request);
            self.free.fetch_add(1, Ordering::Relaxed);
            Some(reply)
        });
    }

    /// Starts one more. Without it, the next request waits for this one.
    fn start<'s>(&'s self, scope: &'s Scope<'s, '_>) {
        self.free.fetch_add(1, Ordering::Relaxed);
        if Builder::new().spawn_scoped(scope, || self.work(scope)).is_ok() {
            self.all.fetch_add(1, Ordering::Relaxed);
        } else {
            self.free.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_helper::CapabilitySet;
    use tracewing_testing::wait_until;

    const OWNER: u32 = 0;
    const PATIENCE: Duration = Duration::from_secs(30);

    /// Looks that hang while the named file is there; others are answered with what was asked.
    fn looks(gate: &std::path::Path) -> Looks {
        let answer = |request: Request| {
            while request.bytes == b"hang" && gate.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Reply::new(request.bytes)
        };
        let helper = Helper::start(c"looks", CapabilitySet::empty(), |server| serve(&server, &answer));
        Looks::new(Arc::new(independent(helper.unwrap())), OWNER)
    }

    fn asks(looks: &Looks, user: u32, request: &[u8]) -> Result<Vec<u8>, io::ErrorKind> {
        let patience = if request == b"hang" { Duration::from_millis(1) } else { PATIENCE };
        let reply = looks.take_of(user, request, patience);
        reply.map(|reply| reply.bytes).map_err(|error| error.kind())
    }

    #[test]
    fn a_user_whose_programs_hang_looks_is_refused_further_ones_and_no_other_is() {
        let gate = tempfile::NamedTempFile::new().unwrap();
        let looks = looks(gate.path());
        let good = Ok(b"good".to_vec());
        let late = Err(io::ErrorKind::TimedOut);
        for user in 1..=30 {
            assert_eq!(asks(&looks, user, b"good"), if user <= 20 { good.clone() } else { late.clone() });
            for _ in 0..10 {
                assert_eq!(asks(&looks, user, b"hang"), late);
            }
            // It is refused at once.
            assert_eq!(looks.take_of(user, b"good", PATIENCE).unwrap_err().kind(), io::ErrorKind::TimedOut);
            assert_eq!(asks(&looks, OWNER, b"good"), good, "after user {user}");
        }
        for _ in 0..20 {
            assert_eq!(asks(&looks, OWNER, b"hang"), late);
        }
        assert_eq!(asks(&looks, OWNER, b"good"), late);
        assert!(!looks.helper.is_lost());
        assert_eq!(looks.newly_refused(), (1..=MOST_REPORTED as u32).collect::<Vec<_>>());
        assert!(looks.newly_refused().is_empty());
        // Once they are answered, it is as before.
        gate.close().unwrap();
        wait_until("late looks are answered", || asks(&looks, OWNER, b"good") == good);
        wait_until("those of another user, too", || asks(&looks, 1, b"good") == good);
    }

    #[test]
    fn the_time_that_programs_of_another_user_may_take_is_limited() {
        let gate = tempfile::NamedTempFile::new().unwrap();
        let looks = looks(gate.path());
        let charge = |user: u32, milliseconds: f64| {
            let waiting = Budget::new(WAITING.0, 0.0, Instant::now());
            looks.with(|users| {
                let slow = users.slow.entry(user).or_insert(Slow { late: Vec::new(), waiting });
                slow.waiting.charge(milliseconds);
            });
        };
        for user in [OWNER, 1] {
            charge(user, f64::from(WAITING.0) / 2.0);
            assert!(asks(&looks, user, b"good").is_ok());
            charge(user, f64::from(WAITING.0) / 2.0);
            assert_eq!(asks(&looks, user, b"good").is_ok(), user == OWNER);
        }
        assert!(asks(&looks, 2, b"good").is_ok());
        assert_eq!(looks.newly_refused(), [1]);
    }
}
