//! The functions that a thread is in.

use super::{Call, Certain, FunctionId};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use tracewing_units::{Duration, Timestamp};

/// Functions within each other that are followed, at most.
pub(super) const DEPTH: usize = 1 << 20;

/// A function that has begun.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) function: FunctionId,
    pub(super) begin: Timestamp,
    /// When the event before its beginning happened in its thread.
    pub(super) after: Timestamp,
    pub(super) inner_ns: Duration,
    pub(super) certain: Option<Certain>,
    /// Whether events were lost in it.
    pub(super) is_lossy: bool,
    /// Up to when it is known, if it has no end of its own.
    pub(super) left_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Thread {
    pub(super) frames: Vec<Frame>,
    /// How often a function is among them.
    pub(super) active: HashMap<FunctionId, u32>,
    /// The time of its last event.
    pub(super) last: Timestamp,
    /// The time of its last event of a function.
    pub(super) last_function: Timestamp,
    /// The outermost ones that began before events were lost.
    pub(super) doubtful: usize,
    /// Up to when they lasted at least.
    pub(super) doubtful_at: Timestamp,
}

impl Frame {
    pub(super) fn is_known(&self) -> bool {
        self.certain.is_none()
    }
}

/// Number of calls that ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Calls of which no events were lost.
    pub(super) known: u64,
    pub(super) lost: u64,
}

impl Thread {
    /// A function begins or ends; gives the time of the event before.
    pub(super) fn reports(&mut self, time: Timestamp) -> Timestamp {
        self.last_function = time;
        std::mem::replace(&mut self.last, time)
    }

    /// Events are missing from here on. Up to here, all that has begun is known.
    pub(super) fn doubt(&mut self, at: Timestamp) {
        self.doubtful = self.frames.len();
        self.doubtful_at = at.max(self.last);
        let mut called_ns = Duration::ZERO;
        for frame in self.frames.iter_mut().rev() {
            let total_ns = at - frame.begin;
            let own_ns = total_ns - frame.inner_ns - called_ns;
            frame.certain.get_or_insert(Certain { total_ns, own_ns });
            frame.is_lossy = true;
            called_ns = total_ns;
        }
    }

    /// Those from the `first` on have no end of their own, and nothing is known of them after `until`. What
    /// is certain of each lasts until then, or until the event before its function, or one around it, begins
    /// again: they may have called it, or a jump may have left them before.
    pub(super) fn leave(&mut self, first: usize, until: Timestamp) {
        let left = self.frames.split_at_mut(first).1;
        let mut open = Vec::new();
        let mut places = HashMap::new();
        for at in 0..left.len() {
            let Frame { function, after, .. } = left[at];
            if let Some(outer) = places.get(&function) {
                for frame in open.drain(*outer..) {
                    let frame: &mut Frame = &mut left[frame];
                    frame.left_at = Some(after);
                    places.remove(&frame.function);
                }
            }
            places.insert(function, open.len());
            open.push(at);
        }
        let mut called_at = until;
        for frame in left.iter_mut().rev() {
            let end = *frame.left_at.get_or_insert(until);
            let (total_ns, busy_ns) = (end - frame.begin, called_at.min(end) - frame.begin);
            frame.certain.get_or_insert(Certain { total_ns, own_ns: busy_ns - frame.inner_ns });
            called_at = frame.begin;
            is_over(&mut self.active, frame.function);
        }
    }

    /// A function ends around others that have no end. Until `before`, all that happened is known, and since
    /// then, that the function went on.
    pub(super) fn end_around(&mut self, function: FunctionId, before: Timestamp, end: Timestamp) {
        let Some(place) = self.frames.iter().rposition(|frame| frame.function == function) else { return };
        self.leave(place + 1, before);
        let called_at = self.frames.get(place + 1).map_or(end, |called| called.begin);
        let frame = &mut self.frames[place];
        let own_ns = called_at - frame.begin - frame.inner_ns;
        frame.certain.get_or_insert(Certain { total_ns: end - frame.begin, own_ns });
    }

    /// Whether the innermost function began before events were lost.
    pub(super) fn is_doubtful(&self) -> bool {
        self.doubtful > 0 && self.doubtful == self.frames.len()
    }

    /// Where the function is among those that began before events were lost, if no other one did since.
    pub(super) fn doubtful_place(&self, function: FunctionId) -> Option<usize> {
        let is_there = self.is_doubtful() && self.active.contains_key(&function);
        self.frames.iter().rposition(|frame| is_there && frame.function == function)
    }

    /// Ends the innermost function, and gives that.
    pub(super) fn end_last(
        &mut self,
        time: Timestamp,
        report: &mut impl FnMut(Timestamp, Call),
    ) -> Option<Frame> {
        let frame = self.frames.pop()?;
        let Frame { function, begin, inner_ns, certain, left_at, .. } = frame;
        let time = left_at.unwrap_or(time);
        self.doubtful = self.doubtful.min(self.frames.len());
        if left_at.is_none() {
            is_over(&mut self.active, function);
        }
        if let Some(around) = self.frames.last_mut() {
            around.inner_ns += time - begin;
        }
        let is_nested = self.active.contains_key(&function);
        report(time, Call::Ends { function, depth: self.frames.len(), begin, inner_ns, is_nested, certain });
        Some(frame)
    }

    /// Ends all of them, of which nothing is known after `time`, and returns their number.
    pub(super) fn end_all(&mut self, time: Timestamp, report: &mut impl FnMut(Timestamp, Call)) -> Ended {
        self.leave(0, time);
        let mut ended = Ended::default();
        while let Some(frame) = self.end_last(time, report) {
            match frame.is_lossy {
                true => ended.lost += 1,
                false => ended.known += 1,
            }
        }
        ended
    }
}

/// One call of a function less is active.
fn is_over(active: &mut HashMap<FunctionId, u32>, function: FunctionId) {
    if let Entry::Occupied(mut calls) = active.entry(function) {
        *calls.get_mut() -= 1;
        if *calls.get() == 0 {
            calls.remove();
        }
    }
}
