//! A loss as a run takes it.

use tracewing_trace::super_trace::{Adapter, Scope};
use tracewing_trace::{Lost, LostKind, Selection, Stream, Trace};
use tracewing_units::Cpu;

/// A loss, and what is missing by it.
#[derive(Debug)]
pub(super) struct Missing {
    pub(super) lost: Lost,
    pub(super) scope: Scope,
    /// The CPU of its stream.
    pub(super) cpu: Option<Cpu>,
    /// See [`Loss::is_of_others`](crate::Loss::is_of_others).
    pub(super) is_of_others: bool,
    /// See [`Loss::is_elsewhere`](crate::Loss::is_elsewhere).
    pub(super) is_elsewhere: bool,
}

impl Missing {
    pub(super) fn of(lost: &Lost, trace: &Trace, stream: &Stream, selection: &Selection) -> Self {
        Self {
            lost: *lost,
            scope: Adapter::scope(trace, stream),
            cpu: stream.cpu(),
            is_of_others: lost.kind == LostKind::Events && stream.loses_of_others(),
            is_elsewhere: !selection.may_miss(stream),
        }
    }
}
