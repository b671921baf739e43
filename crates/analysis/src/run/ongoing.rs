//! Reads a recording while it is made, for one analysis that takes its input only once, as of a complete
//! recording.

use super::missing::Missing;
use super::{Ran, Run};
use crate::analysis::Analysis;
use crate::names::Names;
use std::ops::ControlFlow;
use tracewing_trace::super_trace::{Fold, Pauses};
use tracewing_trace::{Error, Filter, Merge, Message, Recording, Selection};
use tracewing_units::Timestamp;

/// Messages between two looks at whether it is to continue.
const PERIOD: u64 = 1 << 14;

/// A run that continues while its recording grows. The analysis gets what [`run`](super::run) would give it
/// of the recording that is complete, piece by piece.
#[derive(Debug)]
pub struct Ongoing<'a, A> {
    run: Run<'a, A>,
    filter: &'a Filter,
    /// Up to when all has been read.
    reached: Timestamp,
    is_in_order: bool,
    pauses: Pauses,
}

impl<'a, A: Analysis> Ongoing<'a, A> {
    /// One that has read nothing yet.
    ///
    /// # Errors
    /// As [`run`](super::run).
    pub fn new(recording: &Recording, filter: &'a Filter, analysis: &'a mut A) -> Result<Self, Error> {
        let run = Run::new(recording, filter, analysis)?;
        Ok(Self { run, filter, reached: Timestamp::MIN, is_in_order: true, pauses: Pauses::none() })
    }

    /// The merge of a complete recording. The analysis gets a checkpoint at each of `pauses` where another
    /// run can continue.
    pub fn pausing<'r>(&mut self, recording: &'r Recording, pauses: Pauses) -> Merge<'r> {
        self.run.keeps(&pauses);
        self.pauses = pauses;
        self.pauses.merge(recording)
    }

    /// The recording was opened anew. False if all has to be read again, by another run: it can now show more
    /// than before.
    ///
    /// # Errors
    /// As [`run`](super::run).
    pub fn reopen(&mut self, recording: &Recording) -> Result<bool, Error> {
        self.run.selection = Selection::new(self.filter, recording)?;
        Ok(self.run.follower.reopen(recording))
    }

    /// Takes the messages of `merge`, of which none is later than `until`. `watch` is called from time to
    /// time with the number of bytes that were read; false if it has stopped this, which can be continued
    /// with the same `merge`.
    ///
    /// # Errors
    /// A stream cannot be read.
    pub fn read(
        &mut self,
        recording: &Recording,
        merge: &mut Merge<'_>,
        until: Timestamp,
        watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<bool, Error> {
        for count in 1_u64.. {
            if count % PERIOD == 0 && (self.run.filtered.is_done() || watch(merge.bytes()).is_break()) {
                return Ok(false);
            }
            match merge.advance()? {
                Some(Message::Event(event)) => {
                    self.comes(event.stamp().map(|stamp| stamp.time));
                    self.pauses.event(&event);
                    self.run.event(&event);
                }
                Some(Message::Lost(lost, trace, stream)) => {
                    self.comes(lost.range.map(|(from, _)| from));
                    self.run.keeps_loss(recording, lost, stream);
                    self.run.lost(&Missing::of(lost, trace, stream, &self.run.selection));
                }
                None => match self.pauses.pass(recording, merge, self.run.follower.adapter()) {
                    Some(pause) => _ = self.run.pauses(recording, &pause),
                    None => break,
                },
            }
        }
        self.reached = self.reached.max(until);
        Ok(true)
    }

    /// Something of this time comes.
    #[inline]
    fn comes(&mut self, time: Option<Timestamp>) {
        self.is_in_order &= time.is_none_or(|time| time > self.reached);
    }

    /// Whether all has come in the order in which a complete recording gives it.
    pub fn is_in_order(&self) -> bool {
        self.is_in_order
    }

    /// Beginning and end of what was read; `None` before the first event.
    pub fn times(&self) -> Option<(Timestamp, Timestamp)> {
        self.run.begun.then(|| {
            let reached = Some(self.reached).filter(|reached| *reached < Timestamp::MAX);
            (self.run.ran.begin_ns, self.run.ran.end_ns.max(reached.unwrap_or(Timestamp::MIN)))
        })
    }

    /// Events that were read.
    pub fn events(&self) -> u64 {
        self.run.ran.events
    }

    /// Whether the recording is known to follow only some threads.
    pub fn is_partial(&self) -> bool {
        self.run.follower.has_strangers()
    }

    /// The names that were reported.
    pub fn names(&self) -> &Names {
        self.run.filtered.names()
    }

    /// What takes the input.
    pub fn analysis(&mut self) -> &mut A {
        self.run.filtered.analysis()
    }

    /// Reports to `fold` what lasts at `end` as if the recording ended there. This run stays as it is.
    pub fn report(&self, end: Timestamp, fold: &mut impl Fold) {
        self.run.follower.report(end, fold);
    }

    /// The recording is complete, and all of it was read; with a failure, all before that.
    pub fn finish(mut self, recording: &Recording, failure: Option<Error>) -> Ran {
        self.run.ended(recording, failure.map_or(Ok(()), Err));
        self.run.finish()
    }
}
