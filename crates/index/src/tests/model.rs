//! The slow model: all states of a row, and what they show.

use crate::leaf::Span;
use crate::levels::{Content, Summary};
use crate::picture::{Bucket, Window};
use crate::row::RowId;
use crate::wakes::Waker;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tracewing_timeline::{Class, StateId, StateNames, WokenBy};
use tracewing_units::Duration;

#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) spans: Vec<Span>,
    /// User mode before is of unknown mode.
    pub(super) doubted: Duration,
}

/// What a row does in a phase: so often these states with these lengths.
type Phase = (usize, Vec<(u32, u64, u64)>);

/// Some rows: in some phases much happens, in others little. Lengths are from 1 ns to a second.
pub(super) fn rows() -> impl Strategy<Value = Vec<Model>> {
    let length = (0..30_u32, any::<u64>()).prop_map(|(bits, some)| 1 + some % (1 << bits));
    let gap = prop_oneof![4 => Just(0), 1 => (0..20_u32).prop_map(|bits| 1 << bits)];
    let phase = (1..600_usize, vec((0..9_u32, length, gap), 1..6));
    vec((vec(phase, 0..5), prop_oneof![Just(0), any::<u64>()]).prop_map(Model::new), 1..3)
}

/// Windows: beginning and length as shares of a row's life, and the most buckets.
pub(super) fn windows() -> impl Strategy<Value = Vec<(f64, f64, u32)>> {
    let length = (0..24_u32).prop_map(|bits| 1.1 / f64::from(1 << bits));
    vec((0.0..1.1, length, 2..1000_u32), 1..8)
}

/// Whether a wake lies at the beginning of this span.
pub(super) fn wakes(span: &Span) -> bool {
    matches!(span.state, StateId::READY | StateId::PREEMPTED | StateId::NESTED)
}

/// What woke a thread at the beginning of this span: itself, or nothing that is known.
pub(super) fn waker(span: &Span) -> WokenBy {
    match span.state {
        StateId::READY => WokenBy::Track(0),
        StateId::PREEMPTED => WokenBy::Interrupt(None),
        _ => WokenBy::Unknown,
    }
}

/// The same in an index.
pub(super) fn named(waker: WokenBy) -> Waker {
    match waker {
        WokenBy::Unknown => Waker::Unknown,
        WokenBy::Interrupt(_) => Waker::Interrupt(String::new()),
        WokenBy::Track(track) => Waker::Row(RowId(track)),
    }
}

impl Model {
    fn new((phases, doubted): (Vec<Phase>, u64)) -> Self {
        let mut model = Model::default();
        for (times, states) in phases {
            for _ in 0..times {
                for (state, length, gap) in &states {
                    model.add(StateId(*state), *length, *gap);
                }
            }
        }
        model.doubted = Duration::from_ns(doubted % model.end().as_ns().max(1));
        model
    }

    pub(super) fn push(&mut self, class: Class, length: u64) {
        let names = StateNames::default();
        let state = (0..names.count() as u32).map(StateId).find(|state| names.class(*state) == class);
        // No system call has been seen: any other state of a running thread does.
        self.add(state.unwrap_or(StateId::RUNNING), length, 0);
    }

    /// A state of this length, after a gap; one that continues the last is merged with it.
    fn add(&mut self, state: StateId, length: u64, gap: u64) {
        let [length, gap] = [length, gap].map(Duration::from_ns);
        let from = self.end() + gap;
        match self.spans.last_mut() {
            Some(last) if last.state == state && gap.is_zero() => last.to += length,
            _ => self.spans.push(Span { state, from, to: from + length }),
        }
    }

    fn end(&self) -> Duration {
        self.spans.last().map_or(Duration::ZERO, |last| last.to)
    }

    /// A moment as a share of the row's life.
    pub(super) fn scaled(&self, share: f64) -> Duration {
        Duration::from_ns((self.end().as_ns() as f64 * share) as u64)
    }

    /// What the CPU does that runs it.
    pub(super) fn of_cpu(&self) -> Model {
        let names = StateNames::default();
        let running = self.spans.iter().filter(|span| names.class(span.state).is_running());
        Model { spans: running.copied().collect(), ..*self }
    }

    /// All states, as they are known at the end.
    pub(super) fn certain(&self) -> impl Iterator<Item = Span> {
        self.spans.iter().flat_map(|span| {
            let is_user = span.state == StateId::USER;
            let doubted = if is_user { self.doubted.clamp(span.from, span.to) } else { span.from };
            let before = Span { state: StateId::RUNNING, to: doubted, ..*span };
            [before, Span { from: doubted, ..*span }].into_iter().filter(|span| span.from < span.to)
        })
    }

    pub(super) fn picture(&self, window: Window) -> Vec<Bucket> {
        let names = StateNames::default();
        let mut buckets: BTreeMap<u64, Content> = BTreeMap::new();
        let (from, to) = window.times();
        for span in self.certain() {
            let (mut at, end) = (span.from.max(from), span.to.min(to));
            while at < end {
                let number = at.as_ns() >> window.shift;
                let next = end.min(Duration::from_ns((number + 1) << window.shift));
                buckets.entry(number).or_default().add((names.class(span.state), span), at, next);
                at = next;
            }
        }
        buckets.into_iter().map(|(number, content)| Bucket { number, content }).collect()
    }

    pub(super) fn statistics(&self, from: Duration, to: Duration) -> BTreeMap<StateId, Duration> {
        let mut sums = BTreeMap::new();
        for span in self.certain() {
            let ns = span.to.min(to) - span.from.max(from);
            if !ns.is_zero() {
                *sums.entry(span.state).or_default() += ns;
            }
        }
        sums
    }
}
