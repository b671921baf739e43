//! Reads a recording that grows window by window: each is analysed like a range of a complete recording, and
//! the next one continues with the state at its end.

use super::missing::Missing;
use super::{Ran, Run};
use crate::analysis::Analysis;
use std::collections::HashMap;
use std::ops::ControlFlow;
use tracewing_trace::super_trace::Follower;
use tracewing_trace::{Error, EventRef, Filter, Lost, LostKind, Merge, Message, Recording, TimeRange};
use tracewing_units::Timestamp;

/// Events between two looks at whether it is to continue.
const PERIOD: u64 = 1 << 14;

/// The state between two windows.
#[derive(Debug)]
pub(crate) struct Between {
    pub(crate) follower: Follower,
    /// Until then, events of programs are missing.
    blind_until: Option<Timestamp>,
    /// When the next window begins; before, nothing was analysed.
    begin: Timestamp,
    /// Whether it continues another one.
    continues: bool,
}

/// Events that arrived after the window that they belong to: by stream, how many, and the time of the first.
type Late = HashMap<usize, (u64, Timestamp)>;

impl Between {
    /// Before the first window, which begins at `begin`. What is before it is read for the state.
    pub(crate) fn before(recording: &Recording, begin: Timestamp) -> Self {
        Self { follower: Follower::of(recording), blind_until: None, begin, continues: false }
    }

    /// When the next window begins.
    pub(crate) fn begin(&self) -> Timestamp {
        self.begin
    }

    /// Whether a window had an event.
    pub(crate) fn has_begun(&self) -> bool {
        self.continues
    }

    /// Feeds `analysis` the messages of `merge`, of which none is later than `end`. `closes` is called before
    /// what lasts at the end is reported. `watch` is called from time to time, and may stop it.
    ///
    /// # Errors
    /// A stream cannot be read.
    pub(crate) fn window<A: Analysis>(
        self,
        recording: &Recording,
        merge: &mut Merge<'_>,
        end: Timestamp,
        analysis: &mut A,
        closes: impl FnOnce(&mut A),
        watch: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<(Ran, Self), Error> {
        let (filter, begin) = (Filter::default(), self.begin);
        let mut run = Run::with(self.follower, recording, &filter, analysis)?;
        (run.blind_until, run.range) = (self.blind_until, TimeRange { begin, ..TimeRange::ALL });
        run.is_one_of_many = true;
        if self.continues {
            while run.unseen.by(begin).is_some() {}
            run.before = true;
            run.learn_names();
            run.begin(begin);
        }
        let mut late = Late::new();
        for count in 1_u64.. {
            if count % PERIOD == 0 && watch().is_break() {
                run.ran.stopped = true;
                break;
            }
            match merge.advance()? {
                Some(Message::Event(event)) if self.continues && is_before(&event, begin) => {
                    note(&mut late, &event);
                }
                Some(Message::Event(event)) => {
                    // They are earlier, so they have come first.
                    run.misses_late(recording, std::mem::take(&mut late));
                    run.event(&event);
                }
                Some(Message::Lost(lost, trace, stream)) => {
                    run.lost(&Missing::of(lost, trace, stream, &run.selection))
                }
                None => break,
            }
        }
        run.misses_late(recording, late);
        Ok(run.close(recording, end, closes))
    }
}

fn is_before(event: &EventRef<'_>, begin: Timestamp) -> bool {
    event.stamp().is_some_and(|stamp| stamp.time < begin)
}

fn note(late: &mut Late, event: &EventRef<'_>) {
    let time = event.stamp().map_or(Timestamp::MIN, |stamp| stamp.time);
    let (count, first) = late.entry(event.stream_index()).or_insert((0, time));
    (*count, *first) = (*count + 1, time.min(*first));
}

impl<A: Analysis> Run<'_, A> {
    /// What came too late has changed states unseen, as lost events do.
    fn misses_late(&mut self, recording: &Recording, late: Late) {
        for (stream, (count, first)) in late {
            let stream = &recording.streams()[stream];
            let range = Some((first, self.range.begin));
            let lost = Lost { kind: LostKind::Events, count: Some(count), range };
            let trace = &recording.traces()[stream.trace_index()];
            self.lost(&Missing::of(&lost, trace, stream, &self.selection));
        }
    }

    /// Ends the window: what lasts then is reported, and continues in the next one.
    fn close(mut self, recording: &Recording, end: Timestamp, closes: impl FnOnce(&mut A)) -> (Ran, Between) {
        match end == Timestamp::MAX {
            true => self.ends(recording),
            false => self.ran.end_ns = self.ran.end_ns.max(end),
        }
        self.sum_up();
        let next = if self.begun { self.ran.end_ns } else { self.range.begin };
        closes(self.filtered.analysis());
        if self.begun {
            self.follower.report(self.ran.end_ns, &mut self.filtered);
        }
        let between = Between {
            follower: self.follower,
            blind_until: self.blind_until,
            begin: next,
            continues: self.begun,
        };
        self.ran.names = self.filtered.into_names();
        (self.ran, between)
    }
}
