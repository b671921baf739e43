//! Checkpoints: a run continues from the last one before its range instead of reading what is before, or
//! makes them.
//!
//! A run that continues is in the state of one that has read everything up to there, and no event of its
//! range. What that has learned from earlier events is in the checkpoint (the state, names, what state dumps
//! said, losses that last into the range, what a filter has to know of processes and user threads), or the
//! run does without one (see [`Analysis::CONTINUES`]).

use super::Run;
use super::missing::Missing;
use super::order::Order;
use crate::analysis::{Analysis, Loss};
use tracewing_trace::super_trace::{Ahead, Checkpoint, Known, Pause, Pauses};
use tracewing_trace::{Lost, LostKind, Recording, Stream};
use tracewing_units::Timestamp;

/// What checkpoints need besides the state.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    /// Those that last up to the last checkpoint or longer, each with its stream.
    losses: Vec<(Lost, usize)>,
    /// Bytes of all checkpoints so far.
    bytes: u64,
    /// See [`Pauses::share`].
    share: u64,
}

impl<A: Analysis> Run<'_, A> {
    /// Where reading begins: the last checkpoint before the range that has what the analysis needs, or the
    /// recording's beginning.
    pub(super) fn begins<'r>(&mut self, recording: &'r Recording) -> Ahead<'r> {
        // Those that need earlier events know them if nothing but a time is chosen.
        let needs_events = !A::CONTINUES || (A::BEFORE && !self.selection.is_everything());
        let mut time = self.range.begin.min(self.range.end);
        while !needs_events && let Some(checkpoint) = Checkpoint::before(recording, time) {
            let has_all = self.filtered.has_all(&checkpoint.known);
            if has_all && self.filtered.analysis().take(&checkpoint.known.parts) {
                return self.continues(recording, checkpoint);
            }
            time = checkpoint.until;
        }
        Ahead::all(recording, Pauses::none())
    }

    /// Takes what was known at a checkpoint before the range.
    fn continues<'r>(&mut self, recording: &'r Recording, checkpoint: Checkpoint<'r>) -> Ahead<'r> {
        let Checkpoint { merge, follower, known, bytes, .. } = checkpoint;
        let Known { events, latest, blind_until, unseen_until, ref losses, .. } = known;
        self.order = Order::after(latest);
        (self.follower, self.left_out, self.ran.events) = (follower, bytes, events);
        // An event was before, or there would be no checkpoint.
        self.before = true;
        (self.blind_until, self.lost_until) = (blind_until, blind_until);
        if A::BEFORE {
            while let Some(unseen) = self.unseen.by(latest) {
                self.counts_unseen(&unseen);
            }
            self.blind_until = blind_until.max(unseen_until.map(|until| until.min(self.range.end)));
        }
        self.learn_names();
        self.filtered.take(&known);
        for (lost, stream) in losses {
            let stream = &recording.streams()[*stream];
            let trace = &recording.traces()[stream.trace_index()];
            let loss = loss_of(&Missing::of(lost, trace, stream, &self.selection));
            if loss.to >= self.range.begin {
                self.lost_before.push(loss);
            }
        }
        Ahead::rest(recording, merge, self.follower.take_adapter())
    }

    /// Makes a checkpoint at each of the pauses.
    pub(super) fn keeps(&mut self, pauses: &Pauses) {
        if !pauses.are_over() {
            self.keeper = Some(Keeper { share: pauses.share, ..Keeper::default() });
            self.filtered.keep(self.filter);
        }
    }

    /// Notes a loss that a later checkpoint may need.
    pub(super) fn keeps_loss(&mut self, recording: &Recording, lost: &Lost, stream: &Stream) {
        if let Some(keeper) = &mut self.keeper {
            let place = recording.streams().iter().position(|other| std::ptr::eq(other, stream));
            keeper.losses.extend(place.map(|place| (*lost, place)));
        }
    }

    /// Makes a checkpoint of the state after all that has come; true.
    #[cold]
    pub(super) fn pauses(&mut self, recording: &Recording, pause: &Pause) -> bool {
        let Some((keeper, read)) = self.keeper.as_mut().zip(pause.bytes()).filter(|_| self.begun) else {
            return true;
        };
        keeper.losses.retain(|(lost, _)| lost.range.is_none_or(|(_, to)| to > pause.until()));
        let mut known = Known {
            events: self.ran.events,
            latest: self.order.latest,
            went_back: self.order.went_back,
            blind_until: self.lost_until,
            unseen_until: self.blind_until,
            losses: keeper.losses.clone(),
            ..Known::default()
        };
        self.filtered.put(&mut known);
        known.parts = self.filtered.analysis().parts();
        known.counted = pause.counted();
        loop {
            if let Some((until, bytes)) = pause.checkpoint(recording, &self.follower, &known)
                && (keeper.bytes + bytes.len() as u64).saturating_mul(keeper.share) <= read
            {
                keeper.bytes += bytes.len() as u64;
                self.filtered.analysis().checkpoint(until, bytes);
                break;
            }
            // Where all of it is too much, some readers cannot continue from there: those of the largest
            // part.
            let largest = known.parts.iter().enumerate().max_by_key(|(_, part)| part.bytes.len());
            if let Some((at, _)) = largest {
                known.parts.remove(at);
            } else if known.counted.take().is_none() && known.named.take().is_none() {
                break;
            }
        }
        true
    }
}

/// What is missing.
pub(super) fn loss_of(&Missing { ref lost, scope, cpu, is_of_others, is_elsewhere }: &Missing) -> Loss {
    let (from, to) = lost.range.unwrap_or((Timestamp::MIN, Timestamp::MAX));
    // How many events a lost packet had is not known.
    let events = lost.count.filter(|_| lost.kind == LostKind::Events);
    Loss { scope, cpu, from, to, events, is_of_others, is_elsewhere, is_of_order: false }
}

#[cfg(test)]
mod tests;
