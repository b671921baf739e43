//! What is decoded of a recording: its events' meanings, names, and losses.

use tracewing_trace::super_trace::{Adapter, Batch, Scope};
use tracewing_trace::{Error, Lost, LostKind, Merge, Message, Recording, Stream, TimeRange, Trace};
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
}

impl Missing {
    pub(super) fn of(lost: &Lost, trace: &Trace, stream: &Stream) -> Self {
        Self {
            lost: *lost,
            scope: Adapter::scope(trace, stream),
            cpu: Adapter::stream_cpu(stream),
            is_of_others: lost.kind == LostKind::Events && stream.loses_of_others(),
        }
    }
}

/// Some adjacent events, and what comes after them.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) events: Batch,
    /// Names that are new in them.
    pub(super) names: Vec<String>,
    /// Bytes of the packets that were begun so far.
    pub(super) bytes: u64,
    pub(super) then: Then,
}

/// What comes after the events of a part.
#[derive(Debug, Default)]
pub(super) enum Then {
    /// More events.
    #[default]
    More,
    Lost(Missing),
    /// The recording is over.
    End,
    Failed(Error),
}

/// Decodes a recording part by part.
pub(super) struct Decoding<'r> {
    merge: Merge<'r>,
    adapter: Adapter,
}

impl<'r> Decoding<'r> {
    pub(super) fn of(recording: &'r Recording) -> Self {
        // The first event after the range's end shows whether the recording continues there.
        Self { merge: Merge::new(recording, TimeRange::ALL), adapter: Adapter::new() }
    }

    /// Decodes the next events, `most` or less, into `part`.
    pub(super) fn next(&mut self, part: &mut Part, most: usize) {
        let known = self.adapter.names().len();
        part.events.clear();
        part.then = loop {
            if part.events.len() == most {
                break Then::More;
            }
            match self.merge.advance() {
                Ok(Some(Message::Event(event))) => {
                    part.events.push(self.adapter.activity(&event).as_ref());
                }
                Ok(Some(Message::Lost(lost, trace, stream))) => {
                    break Then::Lost(Missing::of(lost, trace, stream));
                }
                Ok(None) => break Then::End,
                Err(error) => break Then::Failed(error),
            }
        };
        part.names.clear();
        part.names.extend_from_slice(&self.adapter.names()[known..]);
        part.bytes = self.merge.bytes();
    }
}
