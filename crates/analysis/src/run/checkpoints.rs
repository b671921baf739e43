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
        let with_all =
            |this: &Self, time| Checkpoint::with(recording, time, |known| this.filtered.has_all(known));
        while !needs_events && let Some(checkpoint) = with_all(&*self, time) {
            if self.filtered.analysis().take(&checkpoint.known.parts) {
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
        let room = keeper.room(read);
        known.parts = self.filtered.analysis().parts(room);
        known.counted = pause.counted();
        while let Some((until, bytes)) = pause.checkpoint(recording, &self.follower, &known) {
            let excess = (bytes.len() as u64).saturating_sub(room);
            if excess == 0 {
                keeper.bytes += bytes.len() as u64;
                self.filtered.analysis().checkpoint(until, bytes);
                break;
            }
            if !leave_out(&mut known, excess) {
                break;
            }
        }
        true
    }
}

impl Keeper {
    /// How many bytes another checkpoint may have when so many of the recording have been read.
    fn room(&self, read: u64) -> u64 {
        read.checked_div(self.share).map_or(u64::MAX, |most| most.saturating_sub(self.bytes))
    }
}

/// Leaves out some of what takes so many bytes too much: some readers cannot continue from there then, first
/// those of the largest parts. False if nothing more can be left out.
fn leave_out(known: &mut Known, mut excess: u64) -> bool {
    if known.parts.is_empty() {
        return known.counted.take().is_some() || known.named.take().is_some();
    }
    while excess > 0 {
        let largest = known.parts.iter().enumerate().max_by_key(|(_, part)| part.bytes.len());
        let Some((at, _)) = largest else { break };
        excess = excess.saturating_sub(known.parts.remove(at).bytes.len() as u64);
    }
    true
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
