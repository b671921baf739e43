//! Settings of a recording that a program makes of itself.

use std::path::PathBuf;
use std::time::Duration;

use tracewing_consumer::clock::ClockChoice;
use tracewing_consumer::memory::{SUB_BUFFER_BYTES, SUB_BUFFERS};
use tracewing_consumer::pace::FLUSH;
use tracewing_rules::{Rule, Rules};

/// How a [`Session`](super::Session) is to record.
#[derive(Debug, Clone)]
#[must_use = "nothing is recorded before `start`"]
pub struct SessionBuilder {
    pub(super) output: PathBuf,
    pub(super) rules: Rules,
    pub(super) sub_buffer_bytes: usize,
    pub(super) sub_buffers: usize,
    pub(super) flush: Duration,
    pub(super) clock: ClockChoice,
    pub(super) flight_recorder: bool,
}

impl SessionBuilder {
    pub(super) fn new() -> Self {
        Self {
            output: "tracewing".into(),
            rules: Rules::new(),
            sub_buffer_bytes: SUB_BUFFER_BYTES,
            sub_buffers: SUB_BUFFERS,
            flush: FLUSH,
            clock: ClockChoice::Auto,
            flight_recorder: false,
        }
    }

    /// The trace folder; must not exist, or be empty.
    pub fn output(mut self, folder: impl Into<PathBuf>) -> Self {
        self.output = folder.into();
        self
    }

    /// Records only events whose names (`provider:event`) match the shell pattern, or one of several. Short
    /// for a [`rule`](Self::rule) that enables them.
    pub fn event(self, pattern: impl Into<String>) -> Self {
        self.rule(Rule::enable([pattern.into()]))
    }

    /// Adds a rule: of several, the last one that matches a class decides. Without any, everything is
    /// recorded; where the first one enables something, nothing but what rules enable.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Bytes of a sub-buffer, a power of two.
    pub fn sub_buffer_size(mut self, bytes: usize) -> Self {
        self.sub_buffer_bytes = bytes;
        self
    }

    /// Sub-buffers per CPU, a power of two.
    pub fn sub_buffers(mut self, count: usize) -> Self {
        self.sub_buffers = count;
        self
    }

    /// Time after which an event is in the folder.
    pub fn flush(mut self, time: Duration) -> Self {
        self.flush = time;
        self
    }

    /// Stamps events with `CLOCK_MONOTONIC` even where the time stamp counter is reliable.
    pub fn monotonic_clock(mut self) -> Self {
        self.clock = ClockChoice::Monotonic;
        self
    }

    /// Keeps the newest events in memory: full buffers lose their oldest sub-buffer instead of new events,
    /// and nothing is written before [`snapshot`](super::Session::snapshot). Output folder and flush time
    /// mean nothing then.
    pub fn flight_recorder(mut self) -> Self {
        self.flight_recorder = true;
        self
    }
}
