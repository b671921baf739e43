//! The functions that a thread is in.

use super::{Call, Certain, FunctionId};
use std::collections::HashMap;
use tracewing_units::{Duration, Timestamp};

/// Functions within each other that are followed, at most.
pub(super) const DEPTH: usize = 1 << 20;

/// A function that has begun.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) function: FunctionId,
    pub(super) begin: Timestamp,
    pub(super) inner_ns: Duration,
    pub(super) certain: Option<Certain>,
    /// Whether a jump left it, or others that it had called.
    pub(super) is_left: bool,
}

#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) frames: Vec<Frame>,
    /// How often a function is among them.
    pub(super) active: HashMap<FunctionId, u32>,
    /// The time of its last event.
    pub(super) last: Timestamp,
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
    /// Events are missing from here on. Up to here, all that has begun is known.
    pub(super) fn doubt(&mut self, at: Timestamp) {
        self.doubtful = self.frames.len();
        self.doubtful_at = at.max(self.last);
        let mut called_ns = Duration::ZERO;
        for frame in self.frames.iter_mut().rev() {
            let total_ns = at - frame.begin;
            let own_ns = total_ns - frame.inner_ns - called_ns;
            frame.certain.get_or_insert(Certain { total_ns, own_ns });
            called_ns = total_ns;
        }
    }

    /// A function ends around others, which a jump left some time after `from`, the event before: until then,
    /// all is known, and since then, that the function went on.
    pub(super) fn leave(&mut self, function: FunctionId, from: Timestamp, end: Timestamp) {
        let Some(place) = self.frames.iter().rposition(|frame| frame.function == function) else { return };
        let mut called_ns = Duration::ZERO;
        for (depth, frame) in self.frames.iter_mut().enumerate().skip(place).rev() {
            let known_ns = from - frame.begin;
            let own_ns = known_ns - frame.inner_ns - called_ns;
            if frame.is_known() {
                let total_ns = if depth == place { end - frame.begin } else { known_ns };
                (frame.certain, frame.is_left) = (Some(Certain { total_ns, own_ns }), true);
            }
            called_ns = known_ns;
        }
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
    pub(super) fn end_last(&mut self, time: Timestamp, report: &mut impl FnMut(Call)) -> Option<Frame> {
        let frame = self.frames.pop()?;
        let Frame { function, begin, inner_ns, certain, .. } = frame;
        self.doubtful = self.doubtful.min(self.frames.len());
        let active = self.active.get_mut(&function)?;
        *active -= 1;
        let is_nested = *active > 0;
        if !is_nested {
            self.active.remove(&function);
        }
        if let Some(around) = self.frames.last_mut() {
            around.inner_ns += time - begin;
        }
        report(Call::Ends { function, depth: self.frames.len(), begin, inner_ns, is_nested, certain });
        Some(frame)
    }

    /// Ends all of them, and returns their number.
    pub(super) fn end_all(&mut self, time: Timestamp, report: &mut impl FnMut(Call)) -> Ended {
        let mut ended = Ended::default();
        while let Some(frame) = self.end_last(time, report) {
            match frame.is_known() {
                true => ended.known += 1,
                false => ended.lost += 1,
            }
        }
        ended
    }
}
