//! Finds the events that give the names of the LWPs and user threads in an extract: the creations and last
//! names of those that live when it begins; and if it contains only certain ones, also those of user threads
//! that are created in it.

use crate::Error;
use crate::merge::messages::{Merge, Message};
use crate::open::recording::Recording;
use crate::rewrite::names::{names_lwp, names_task};
use crate::select::filter::Filter;
use crate::select::selection::Selection;
use crate::super_trace::{Activity, Change, Fold, Follower, Kind, Lwp, Seen, TaskSerial, UserThread};
use crate::time::range::TimeRange;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use tracewing_units::{Tid, Timestamp};

/// Number of events between two checks for cancellation.
const PERIOD: u64 = 1 << 16;

/// Where an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Spot {
    /// Its stream's place in [`Recording::streams`].
    pub stream: usize,
    /// Whether it lies before the part.
    pub early: bool,
    /// How many events the stream has before it, there.
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
        let mut tellers = Tellers::default();
        let mut counts = vec![[0; 2]; recording.streams().len()];
        let mut merge = Merge::new(recording, TimeRange { begin: Timestamp::MIN, end });
        let mut count = 0;
        while let Ok(Some(message)) = merge.advance() {
            match message {
                Message::Event(event) => {
                    let early = event.stamp().is_some_and(|stamp| stamp.time < range.begin);
                    let stream = event.stream_index();
                    let index = &mut counts[stream][usize::from(early)];
                    tellers.at = Spot { stream, early, index: *index };
                    *index += 1;
                    let Some(activity) = follower.activity(&event) else { continue };
                    if chooses && !early {
                        let seen = follower.seen(&event, Some(&activity));
                        if selection.wants_seen(&seen) {
                            tellers.mentions(&seen);
                        }
                    }
                    follower.event(&activity, &mut tellers);
                    if early || chooses {
                        tellers.follows(&activity);
                    }
                    if early {
                        tellers.calls(&activity);
                    }
                }
                Message::Lost(lost, trace, stream) => follower.lost(lost, trace, stream, &mut tellers),
            }
            count += 1;
            if count % PERIOD == 0 && watch().is_break() {
                return Err(Error::Stopped);
            }
        }
        let living = std::mem::take(&mut tellers.living);
        living.into_values().filter(|told| told.mentioned || !chooses).for_each(|told| tellers.keep(&told));
        Ok(Self { spots: tellers.spots })
    }

    /// Whether the event there gives a name that is needed.
    pub(crate) fn has(&self, spot: &Spot) -> bool {
        !self.spots.is_empty() && self.spots.contains(spot)
    }

    /// Whether there is any in a stream before the part.
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
enum Who {
    Lwp(Tid),
    /// The number that it has among all.
    Thread(TaskSerial),
}

/// Positions of the events that name a live one.
#[derive(Debug, Default)]
struct Told {
    created: Option<Spot>,
    /// The kernel's event about an LWP's creation, which has its first name.
    forked: Option<Spot>,
    /// The last time that it was called otherwise.
    named: Option<Spot>,
    /// When it was first seen to run by its name.
    called: Option<Spot>,
    /// The last name, if an event gives it.
    name: Vec<u8>,
    /// Whether an event of the part is about it.
    mentioned: bool,
}

/// What is found so far.
#[derive(Debug, Default)]
struct Tellers {
    /// Where the event stands that comes next.
    at: Spot,
    living: HashMap<Who, Told>,
    /// Of those that have ended.
    spots: HashSet<Spot>,
}

impl Tellers {
    fn mentions(&mut self, seen: &Seen<'_>) {
        let next = (seen.next_lwp().map(|lwp| lwp.tid), seen.next_thread().map(|thread| thread.serial));
        let lwps = [seen.place.tid, next.0].into_iter().flatten().map(Who::Lwp);
        let threads = [seen.place.thread_serial, next.1].into_iter().flatten().map(Who::Thread);
        for who in lwps.chain(threads) {
            self.living.entry(who).or_default().mentioned = true;
        }
    }

    /// Handles an event that gives names of LWPs, while the state knows which numbers are reused.
    fn follows(&mut self, event: &Activity<'_>) {
        let at = Some(self.at);
        match (event.kind, event.tid) {
            (Kind::NewTask { child, .. }, _) => {
                self.ends(Who::Lwp(child));
                self.of(child).created = at;
            }
            (Kind::Fork { child, name }, _) => {
                let told = self.of(child);
                told.forked = at;
                name.clone_into(&mut told.name);
            }
            (Kind::Exec { .. }, Some(tid)) => {
                let told = self.of(tid);
                told.named = at;
                told.name.clear();
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
            let told = self.of(tid);
            if told.name != name {
                name.clone_into(&mut told.name);
                told.called = Some(at);
            }
        }
    }

    fn of(&mut self, tid: Tid) -> &mut Told {
        self.living.entry(Who::Lwp(tid)).or_default()
    }

    fn ends(&mut self, who: Who) {
        if let Some(told) = self.living.remove(&who).filter(|told| told.mentioned) {
            self.keep(&told);
        }
    }

    fn keep(&mut self, told: &Told) {
        self.spots.extend([told.created, told.forked, told.named, told.called].into_iter().flatten());
    }
}

impl Fold for Tellers {
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

impl Tellers {
    fn user_thread_created(&mut self, thread: &UserThread) {
        self.living.entry(Who::Thread(TaskSerial(thread.serial.0))).or_default().created = Some(self.at);
    }

    fn user_thread_named(&mut self, thread: &UserThread) {
        self.living.entry(Who::Thread(TaskSerial(thread.serial.0))).or_default().named = Some(self.at);
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        self.ends(Who::Thread(TaskSerial(thread.serial.0)));
    }

    fn lwp_ends(&mut self, lwp: &Lwp) {
        self.ends(Who::Lwp(lwp.tid));
    }
}
