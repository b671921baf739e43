//! Requests of user threads: for a lock, a permit, a message. A request takes a ticket with its first event
//! and keeps it until its resource is released.
//!
//! So a reader pairs the events of one request by the ticket alone. The thread would not suffice: a task that
//! holds a lock across an `.await` releases it on another thread, and in the meantime its thread runs tasks
//! that request the same lock. Nor would the task: if tasks are not instrumented, no event shows which one
//! runs.

use core::panic::Location;
use core::sync::atomic::AtomicU64;

use tracewing_units::Ticket;

use super::events::{Acquired, GivenUp, Kind, Released, Wait};
use super::numbers;
use super::origin::Parts;
use crate::{emit, words};

/// A request for something that user threads wait for or hold. Its owner passes it from the wait to the
/// guard.
///
/// ```
/// use tracewing::user_thread::{Kind, Request};
///
/// let mut request = Request::new(Kind::Mutex, 0x1000);
/// request.wait(); // not to be had at once
/// request.acquired();
/// request.released();
/// ```
#[derive(Debug)]
pub struct Request {
    object: u64,
    /// 0 until an event of it is recorded.
    ticket: Ticket,
    location: &'static Location<'static>,
    kind: Kind,
    has_waited: bool,
}

impl Request {
    /// A request for `object`, made by the caller. The object's number is unique among those of all kinds:
    /// its address, where it does not move.
    #[inline]
    #[track_caller]
    pub fn new(kind: Kind, object: u64) -> Self {
        Self::at(kind, object, Location::caller())
    }

    /// A request for `object`, made at `location`.
    #[inline]
    pub const fn at(kind: Kind, object: u64, location: &'static Location<'static>) -> Self {
        Self { object, ticket: Ticket(0), location, kind, has_waited: false }
    }

    /// What it is for.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it has had to wait.
    pub fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// It cannot have its object at once, and waits.
    #[inline]
    pub fn wait(&mut self) {
        self.has_waited = true;
        let (kind, object) = (self.kind, self.object);
        let mut origin = None;
        emit!(Wait { kind, object, ticket: self.ticket().0, origin: *origin.insert(self.origin()) });
        self.repeat(origin);
    }

    /// It has its object, after it waited or at once.
    #[inline]
    pub fn acquired(&mut self) {
        let (kind, object, waited) = (self.kind, self.object, self.has_waited);
        let mut origin = None;
        emit!(Acquired {
            kind,
            object,
            ticket: self.ticket().0,
            origin: *origin.insert(self.origin()),
            waited
        });
        self.repeat(origin);
    }

    /// It did not get its object, and waits no longer, or did not wait.
    #[inline]
    pub fn given_up(&mut self) {
        let (kind, object, waited) = (self.kind, self.object, self.has_waited);
        let mut origin = None;
        emit!(GivenUp {
            kind,
            object,
            ticket: self.ticket().0,
            origin: *origin.insert(self.origin()),
            waited
        });
        self.repeat(origin);
    }

    /// What it [`acquired`](Self::acquired) is about to be given back.
    #[inline]
    pub fn released(&self) {
        let &Self { kind, object, ticket: Ticket(ticket), .. } = self;
        emit!(Released { kind, object, ticket });
    }

    /// The ticket, taken when it is first needed.
    #[inline]
    fn ticket(&mut self) -> Ticket {
        static BLOCKS: AtomicU64 = AtomicU64::new(0);
        if self.ticket == Ticket(0) {
            self.ticket = Ticket(words::with(|words| numbers::next(&BLOCKS, words.next_ticket)).get());
        }
        self.ticket
    }

    /// The number of the place that made it, described before unless that is done.
    #[inline]
    fn origin(&self) -> u64 {
        let parts = self.parts();
        let number = parts.number();
        parts.record_if_due(number, false);
        number
    }

    /// The event may have been the first of a sub-buffer, which needs the description, too.
    #[inline(always)]
    fn repeat(&self, origin: Option<u64>) {
        if let Some(number) = origin {
            self.parts().record_if_due(number, false);
        }
    }

    fn parts(&self) -> Parts<'static> {
        Parts { name: "", runtime: "", file: self.location.file(), line: self.location.line() }
    }
}
