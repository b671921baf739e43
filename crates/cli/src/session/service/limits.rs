//! How much each user may ask of a service, and all users together: connections at a time, requests at a
//! time, and requests in the long run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Connections at a time, of all users and of each.
const CONNECTIONS: usize = 64;
const CONNECTIONS_OF_USER: usize = 8;
/// Requests that are carried out at a time, of all users and of each.
const REQUESTS: usize = 8;
const REQUESTS_OF_USER: usize = 2;
/// Requests of a user in a row, and the time that each takes in the long run.
const ROW: u32 = 20;
const EACH: Duration = Duration::from_millis(500);
/// Connections that are accepted within a second, whatever becomes of them.
const ACCEPTED: u32 = 200;
const SECOND: Duration = Duration::from_secs(1);

/// What users do at present, and have done recently.
#[derive(Debug, Default)]
pub struct Limits {
    users: BTreeMap<u32, User>,
}

#[derive(Debug)]
struct User {
    connections: usize,
    requests: usize,
    /// When as many requests as it has had are paid for: none in the past.
    paid: Instant,
}

impl Limits {
    /// A user connects. Whether it may.
    pub fn connect(&mut self, user: u32, now: Instant) -> bool {
        self.users.retain(|_, user| user.connections > 0 || user.paid > now);
        let all: usize = self.users.values().map(|user| user.connections).sum();
        let user = self.users.entry(user).or_insert(User { connections: 0, requests: 0, paid: now });
        let may = all < CONNECTIONS && user.connections < CONNECTIONS_OF_USER;
        user.connections += usize::from(may);
        may
    }

    /// A connection of a user is closed.
    pub fn disconnect(&mut self, user: u32) {
        if let Some(user) = self.users.get_mut(&user) {
            user.connections = user.connections.saturating_sub(1);
        }
    }

    /// A connected user asks for something.
    ///
    /// # Errors
    /// It may not, at present; why.
    pub fn begin(&mut self, user: u32, now: Instant) -> Result<(), &'static str> {
        let all: usize = self.users.values().map(|user| user.requests).sum();
        let Some(user) = self.users.get_mut(&user) else { return Err("this user is not connected") };
        let paid = user.paid.max(now) + EACH;
        if paid > now + EACH * ROW {
            return Err("this user has sent too many requests: try again in a second");
        }
        user.paid = paid;
        if user.requests >= REQUESTS_OF_USER || all >= REQUESTS {
            return Err("the service is carrying out other requests: try again when these are done");
        }
        user.requests += 1;
        Ok(())
    }

    /// A request of a user was carried out.
    pub fn end(&mut self, user: u32) {
        if let Some(user) = self.users.get_mut(&user) {
            user.requests = user.requests.saturating_sub(1);
        }
    }
}

/// How fast connections are accepted.
#[derive(Debug)]
pub struct Pace {
    since: Instant,
    accepted: u32,
}

impl Pace {
    pub fn new(now: Instant) -> Self {
        Self { since: now, accepted: 0 }
    }

    /// Whether a further one may be accepted now.
    pub fn allows(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) >= SECOND {
            *self = Self::new(now);
        }
        self.accepted < ACCEPTED
    }

    pub fn accept(&mut self) {
        self.accepted += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_so_many_connections_and_others_have_theirs() {
        let (mut limits, now) = (Limits::default(), Instant::now());
        let connected = (0..100).filter(|_| limits.connect(1, now)).count();
        assert_eq!(connected, CONNECTIONS_OF_USER);
        assert!(limits.connect(2, now));
        limits.disconnect(1);
        assert!(limits.connect(1, now) && !limits.connect(1, now));
        let others = (3..100).flat_map(|user| [user; 10]).filter(|user| limits.connect(*user, now)).count();
        assert_eq!(others, CONNECTIONS - CONNECTIONS_OF_USER - 1);
    }

    #[test]
    fn requests_are_limited_at_a_time_and_in_the_long_run() {
        let (mut limits, start) = (Limits::default(), Instant::now());
        assert!(limits.begin(1, start).is_err());
        (1..10).for_each(|user| assert!(limits.connect(user, start)));
        let begun = (0..5).filter(|_| limits.begin(1, start).is_ok()).count();
        assert_eq!(begun, REQUESTS_OF_USER);
        let others = (2..10).flat_map(|user| [user; 2]).filter(|user| limits.begin(*user, start).is_ok());
        assert_eq!(others.count(), REQUESTS - REQUESTS_OF_USER);
        (1..10).flat_map(|user| [user; 2]).for_each(|user| limits.end(user));

        let mut in_a_row =
            |now| (0..100).filter(|_| limits.begin(1, now).map(|()| limits.end(1)).is_ok()).count();
        // Those that were refused have been paid for, too.
        assert_eq!(in_a_row(start), ROW as usize - 5);
        assert_eq!(in_a_row(start + EACH), 1);
        assert_eq!(in_a_row(start + EACH * ROW * 5), ROW as usize);
    }

    #[test]
    fn a_user_that_is_gone_is_forgotten_once_it_has_paid() {
        let (mut limits, start) = (Limits::default(), Instant::now());
        assert!(limits.connect(1, start) && limits.begin(1, start).is_ok());
        limits.end(1);
        limits.disconnect(1);
        assert!(limits.connect(2, start) && limits.users.len() == 2);
        assert!(limits.connect(2, start + EACH) && limits.users.len() == 1);
    }

    #[test]
    fn connections_are_accepted_at_a_bounded_pace() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mut taken = |now| (0..1000).filter(|_| pace.allows(now)).count();
        assert_eq!(taken(start), 1000, "nothing was accepted");
        (0..ACCEPTED).for_each(|_| pace.accept());
        assert!(!pace.allows(start) && pace.allows(start + SECOND));
    }
}
