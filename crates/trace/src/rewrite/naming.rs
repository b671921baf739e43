//! Finds the events that give the names of the LWPs and user threads in an extract: the creations and last
//! names of those that live when it begins; and if it contains only certain ones, also those of user threads
//! that are created in it.

use crate::Error;
use crate::merge::event::Message;
use crate::merge::messages::Merge;
use crate::open::recording::Recording;
use crate::rewrite::names::{names_lwp, names_task};
use crate::select::filter::Filter;
use crate::select::selection::Selection;
use crate::super_trace::{
    Activity, Adapter, Change, Fold, Follower, Kind, Lwp, Seen, TaskSerial, UserThread,
};
use crate::time::range::TimeRange;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use tracewing_units::{Tid, Timestamp};

/// Number of events between two checks for cancellation.
const PERIOD: u64 = 1 << 16;

/// The position of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Spot {
    /// Its stream's place in [`Recording::streams`].
    pub stream: usize,
    /// Whether it is before the extract.
    pub early: bool,
    /// Number of events of the stream before it, in or before the extract.
    pub index: usize,
}

/// Positions of the events that give names.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    spots: HashSet<Spot>,
}

impl Naming {
    /// Reads the recording for them. Events after damage are not found. `watch` is called from time to time
    /// and may stop the reading.
    ///
    /// # Errors
    /// [`Error::Usage`] if the filter does not fit the recording; [`Error::Stopped`].
    pub(crate) fn of(
        filter: &Filter,
        range: TimeRange,
        recording: &Recording,
        watch: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Self, Error> {
        // Without a choice of subjects, only what precedes the range can be missing; with one, names can also
        // be in events of other subjects within the range.
        let chooses = filter.chooses_subjects();
        let end = if chooses { range.end } else { range.begin.previous() };
        if end == Timestamp::MIN || !has_names(recording) {
            return Ok(Self::default());
        }
        let mut selection = Selection::new(filter, recording)?;
        let mut follower = Follower::of(recording);
        let mut search = Search::default();
        let mut counts = vec![[0; 2]; recording.streams().len()];
        let mut merge = Merge::new(recording, TimeRange { begin: Timestamp::MIN, end });
        let mut count = 0;
        while let Ok(Some(message)) = merge.advance() {
            match message {
                Message::Event(event) => {
                    let early = event.stamp().is_some_and(|stamp| stamp.time < range.begin);
                    let stream = event.stream_index();
                    let index = &mut counts[stream][usize::from(early)];
                    search.at = Spot { stream, early, index: *index };
                    *index += 1;
                    let Some(activity) = follower.activity(&event) else { continue };
                    if chooses && !early {
                        let seen = follower.seen(&event, Some(&activity));
                        if selection.selects_seen(&seen) {
                            search.mentions(&seen);
                        }
                    }
                    follower.event(&activity, &mut search);
                    if early || chooses {
                        search.follows(&activity);
                    }
                    if early {
                        search.calls(&activity);
                    }
                }
                Message::Lost(lost, trace, stream) => {
                    follower.lost(lost, Adapter::scope(trace, stream), &mut search);
                }
            }
            count += 1;
            if count % PERIOD == 0 && watch().is_break() {
                return Err(Error::Stopped);
            }
        }
        let living = std::mem::take(&mut search.live);
        living
            .into_values()
            .filter(|events| events.mentioned || !chooses)
            .for_each(|events| search.keep(&events));
        Ok(Self { spots: search.spots })
    }

    /// Whether the event there gives a name that is needed.
    pub(crate) fn has(&self, spot: &Spot) -> bool {
        !self.spots.is_empty() && self.spots.contains(spot)
    }

    /// Whether there are any in the extract.
    pub(crate) fn has_late(&self) -> bool {
        self.spots.iter().any(|spot| !spot.early)
    }

    /// Whether a stream has any before the extract.
    pub(crate) fn is_early_in(&self, stream: usize) -> bool {
        self.spots.iter().any(|spot| spot.early && spot.stream == stream)
    }
}

/// Whether events give names of LWPs or user threads.
fn has_names(recording: &Recording) -> bool {
    let streams = recording.traces().iter().flat_map(|trace| &trace.class().data_stream_classes);
    streams.flat_map(|stream| &stream.event_record_classes).any(|class| names_lwp(class) || names_task(class))
}

/// A live LWP or user thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Live {
    Lwp(Tid),
    /// By its serial number.
    UserThread(TaskSerial),
}

/// Positions of the events that name a live LWP or user thread.
#[derive(Debug, Default)]
struct NamingEvents {
    created: Option<Spot>,
    /// The kernel's event about an LWP's creation, which has its first name.
    forked: Option<Spot>,
    /// The last change of its name.
    named: Option<Spot>,
    /// The first switch that has its name.
    called: Option<Spot>,
    /// The last name, if an event gives it.
    name: Vec<u8>,
    /// Whether an event of the extract is about it.
    mentioned: bool,
}

/// What is found so far.
#[derive(Debug, Default)]
struct Search {
    /// The position of the current event.
    at: Spot,
    live: HashMap<Live, NamingEvents>,
    /// Those needed for threads that have ended.
    spots: HashSet<Spot>,
}

impl Search {
    fn mentions(&mut self, seen: &Seen<'_>) {
        let next = (seen.next_lwp().map(|lwp| lwp.tid), seen.next_thread().map(|thread| thread.serial));
        let lwps = [seen.place.tid, next.0].into_iter().flatten().map(Live::Lwp);
        let threads = [seen.place.thread_serial, next.1].into_iter().flatten().map(Live::UserThread);
        for live in lwps.chain(threads) {
            self.live.entry(live).or_default().mentioned = true;
        }
    }

    /// Handles an event that gives names of LWPs, while the state knows which numbers are reused.
    fn follows(&mut self, event: &Activity<'_>) {
        let at = Some(self.at);
        match (event.kind, event.tid) {
            (Kind::NewTask { child, .. }, _) => {
                self.ends(Live::Lwp(child));
                self.of(child).created = at;
            }
            (Kind::Fork { child, name }, _) => {
                let events = self.of(child);
                events.forked = at;
                name.clone_into(&mut events.name);
            }
            (Kind::Exec { .. }, Some(tid)) => {
                let events = self.of(tid);
                events.named = at;
                events.name.clear();
            }
            _ => {}
        }
    }

    /// Handles a switch from before the extract, which gives names: it may be the only event with the
    /// thread's name.
    fn calls(&mut self, event: &Activity<'_>) {
        let Kind::Switch { prev, prev_name, prev_state, next, next_name } = event.kind else { return };
        let at = self.at;
        let lives = !prev_state.is_dead();
        for (tid, name) in [(prev, prev_name), (next, next_name)] {
            if tid.is_idle() || (tid == prev && !lives) {
                continue;
            }
            let events = self.of(tid);
            if events.name != name {
                name.clone_into(&mut events.name);
                events.called = Some(at);
            }
        }
    }

    fn of(&mut self, tid: Tid) -> &mut NamingEvents {
        self.live.entry(Live::Lwp(tid)).or_default()
    }

    fn ends(&mut self, live: Live) {
        if let Some(events) = self.live.remove(&live).filter(|events| events.mentioned) {
            self.keep(&events);
        }
    }

    fn keep(&mut self, events: &NamingEvents) {
        self.spots.extend([events.created, events.forked, events.named, events.called].into_iter().flatten());
    }
}

impl Fold for Search {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::UserThreadCreated { thread, .. } => self.user_thread_created(thread),
            Change::UserThreadNamed { thread } => self.user_thread_named(thread),
            Change::UserThreadEnds { thread } => self.user_thread_ends(thread),
            Change::LwpEnds { lwp } => self.lwp_ends(lwp),
            _ => {}
        }
    }
}

impl Search {
    fn user_thread_created(&mut self, thread: &UserThread) {
        self.live.entry(Live::UserThread(TaskSerial(thread.serial.0))).or_default().created = Some(self.at);
    }

    fn user_thread_named(&mut self, thread: &UserThread) {
        self.live.entry(Live::UserThread(TaskSerial(thread.serial.0))).or_default().named = Some(self.at);
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        self.ends(Live::UserThread(TaskSerial(thread.serial.0)));
    }

    fn lwp_ends(&mut self, lwp: &Lwp) {
        self.ends(Live::Lwp(lwp.tid));
    }
}
