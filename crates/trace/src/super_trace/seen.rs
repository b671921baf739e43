//! The super-trace as readers of a recording use it: each event with its place, then the state advances.

use super::activity::{Activity, Kind, Scope, UserThreadKind};
use super::adapter::Adapter;
use super::coverage::Coverage;
use super::fold::Fold;
use super::lwp::Lwp;
use super::place::Place;
use super::state::SuperTrace;
use super::unseen::AllUnseen;
use super::user_thread::UserThread;
use crate::merge::event::EventRef;
use crate::open::recording::Recording;
use crate::stream::cursor::Lost;
use tracewing_units::{Cpu, Task, Tid, Timestamp};

/// An event with its place in the super-trace.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The event as it was decoded.
    pub event: &'a EventRef<'a>,
    /// Its meaning for the super-trace; `None` if it has no time, or lacks the fields that its name implies.
    pub activity: Option<&'a Activity<'a>>,
    /// Its place: the state before it, so a switch belongs to the thread that it leaves.
    pub place: Place<'a>,
    /// The state before it.
    pub state: &'a SuperTrace,
    /// Provides names ([`Adapter::name`]).
    pub adapter: &'a Adapter,
}

/// The place of an event whose own bytes are not at hand: another thread has read them.
#[derive(Debug, Clone, Copy)]
pub struct Located<'a> {
    /// See [`Seen::activity`].
    pub activity: Option<&'a Activity<'a>>,
    /// See [`Seen::place`].
    pub place: Place<'a>,
    /// The state before the event.
    pub state: &'a SuperTrace,
}

impl<'a> Seen<'a> {
    /// Its place alone.
    #[inline]
    pub fn located(&self) -> Located<'a> {
        Located { activity: self.activity, place: self.place, state: self.state }
    }

    /// The LWP to which it belongs.
    pub fn lwp(&self) -> Option<&'a Lwp> {
        self.state.lwp(self.place.tid?)
    }

    /// The LWP that gets the CPU by it.
    pub(crate) fn next_lwp(&self) -> Option<&'a Lwp> {
        match self.activity?.kind {
            Kind::Switch { next, .. } => self.state.lwp(next),
            _ => None,
        }
    }

    /// The same event in the place that a switch leads to, at either level; unchanged if it is not a switch,
    /// or the target is unknown.
    pub fn at_next(&self) -> Seen<'a> {
        let next = self.activity.and_then(|activity| self.state.next_place(activity, &self.place));
        Seen { place: next.unwrap_or(self.place), ..*self }
    }

    /// The LWP that it creates. Of a new process, that is its number, too.
    pub fn child(&self) -> Option<Tid> {
        match self.activity?.kind {
            Kind::Fork { child, .. } | Kind::NewTask { child, .. } | Kind::Made { child, .. } => Some(child),
            _ => None,
        }
    }

    /// The user thread that it creates, and what that is called.
    pub(crate) fn created_thread(&self) -> Option<(Task, &'a str)> {
        match self.activity?.kind {
            Kind::UserThread(UserThreadKind::Create { thread, origin }) => {
                Some((thread, self.state.origin_name(origin).unwrap_or_default()))
            }
            _ => None,
        }
    }

    /// The user thread that runs from now on: a switch at either level leads to it.
    pub fn next_thread(&self) -> Option<&'a UserThread> {
        match self.activity?.kind {
            Kind::UserThread(UserThreadKind::Switch { next, .. }) => {
                self.state.user_thread(self.place.process, self.place.tid?, next)
            }
            _ => self.state.carried(self.next_lwp()?),
        }
    }
}

/// Follows the messages of a recording in the order of time.
#[derive(Debug)]
pub struct Follower {
    pub(super) adapter: Adapter,
    pub(super) state: SuperTrace,
    pub(super) unseen: AllUnseen,
}

impl Follower {
    /// One that has seen nothing yet of a recording.
    pub fn of(recording: &Recording) -> Self {
        Self {
            adapter: Adapter::default(),
            state: SuperTrace::new(Coverage::of(recording)),
            unseen: AllUnseen::of(recording),
        }
    }

    /// What the super-trace needs of the next event ([`Adapter::activity`]).
    #[inline]
    pub fn activity<'e>(&mut self, event: &EventRef<'e>) -> Option<Activity<'e>> {
        self.adapter.activity(event)
    }

    /// The next event in its place; the state is still the one before it.
    pub fn seen<'a>(&'a self, event: &'a EventRef<'a>, activity: Option<&'a Activity<'a>>) -> Seen<'a> {
        let place = match activity {
            Some(activity) => self.state.place(activity),
            None => Place::unknown(event.cpu().and_then(|cpu| u32::try_from(cpu).ok().map(Cpu))),
        };
        Seen { event, activity, place, state: &self.state, adapter: &self.adapter }
    }

    /// The place of the next event, of which another thread has made the activity; nothing of it is known if
    /// there is none. The state is still the one before it.
    #[inline]
    pub fn located<'a>(&'a self, activity: Option<&'a Activity<'a>>) -> Located<'a> {
        let place = activity.map_or(Place::unknown(None), |activity| self.state.place(activity));
        Located { activity, place, state: &self.state }
    }

    /// Advances by an event, and reports completed intervals to `fold`.
    #[inline]
    pub fn event(&mut self, activity: &Activity<'_>, fold: &mut impl Fold) {
        self.come_to(activity.time, fold);
        self.state.event(activity, fold);
    }

    /// Applies what is not seen from a time on that has come.
    #[inline]
    fn come_to(&mut self, time: Timestamp, fold: &mut impl Fold) {
        while let Some(unseen) = self.unseen.by(time) {
            self.state.lost(unseen.scope, unseen.from, unseen.to, fold);
        }
    }

    /// Applies a loss: states that lost events may have changed become unknown.
    pub fn lost(&mut self, lost: &Lost, scope: Scope, fold: &mut impl Fold) {
        let (from, to) = lost.range.unwrap_or((Timestamp::MIN, Timestamp::MAX));
        self.come_to(from, fold);
        self.state.lost(scope, from, to, fold);
    }

    /// Whether it has all threads' kernel events: it declares so, or comes from another tracer and nothing
    /// contradicts it.
    pub fn is_whole(&self) -> bool {
        let Coverage { system_wide, of_some, .. } = self.state.coverage();
        *system_wide || !(*of_some || self.state.is_partial())
    }

    /// Whether it follows only some LWPs ([`Lwp::followed`]). If none is known to be followed, none is a
    /// stranger.
    pub fn has_strangers(&self) -> bool {
        !self.is_whole() && (self.state.is_partial() || self.state.follows_any())
    }

    /// The state after the last event.
    pub fn state(&self) -> &SuperTrace {
        &self.state
    }

    /// Provides the text of names ([`Adapter::name`]).
    pub fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// Has this one make activities of events.
    pub fn take_over(&mut self, adapter: Adapter) {
        self.adapter = adapter;
    }

    /// Gives away what makes activities of events: another thread does that from now on.
    pub fn take_adapter(&mut self) -> Adapter {
        std::mem::take(&mut self.adapter)
    }

    /// See [`SuperTrace::restart`].
    pub fn restart(&mut self, time: Timestamp) {
        self.come_to(time, &mut ());
        self.state.restart(time);
    }

    /// Continues with a recording that was opened anew while it is being made. False if it now shows what it
    /// could not show before: then the state has to be followed from the beginning.
    pub fn reopen(&mut self, recording: &Recording) -> bool {
        self.adapter.reopen();
        *self.state.coverage() == Coverage::of(recording)
    }

    /// Reports to `fold` what lasts at `end` as if the recording ended there, and stays as it is; nothing
    /// happens until then.
    pub fn report(&self, end: Timestamp, fold: &mut impl Fold) {
        let mut state = self.state.clone();
        state.advance(end);
        state.finish(fold);
    }

    /// See [`SuperTrace::finish`]; nothing happens any more until `end`.
    pub fn finish(mut self, end: Timestamp, fold: &mut impl Fold) {
        self.come_to(end, fold);
        self.state.advance(end);
        self.state.finish(fold);
    }
}
