//! What user threads have in common that are created at one place, put together once as the recording has it.

use super::events::Create;
use crate::class::EventClass;
use crate::event::Event;
use crate::payload::{Sink, to_bytes};
use core::panic::Location;
use tracewing_abi::schema;
use tracewing_ring::Segment;

/// Name, runtime and place of user threads, for [`create_from`](super::create_from).
#[derive(Debug, Clone)]
pub struct Origin {
    /// The fields of a [`Create`] behind its numbers.
    texts: Box<[u8]>,
}

impl Origin {
    /// What [`create`](super::create) would be told.
    pub fn new(name: &str, runtime: &str, location: &Location<'_>) -> Self {
        let (file, line) = (location.file(), location.line());
        let whole = to_bytes(&Create { thread: 0, parent: 0, name, runtime, file, line });
        Self { texts: whole[size_of::<Numbers>()..].into() }
    }

    pub(super) fn created(&self, thread: u64, parent: u64) -> impl Event {
        Created { numbers: [thread.to_le(), parent.to_le()], texts: &self.texts }
    }
}

/// `thread` and `parent` of a [`Create`], as bytes in memory.
type Numbers = [u64; 2];

/// A [`Create`].
struct Created<'a> {
    numbers: Numbers,
    texts: &'a [u8],
}

impl Event for Created<'_> {
    #[inline(always)]
    fn class() -> &'static EventClass {
        Create::class()
    }

    const DESCRIPTION: &'static schema::Class<'static> = Create::DESCRIPTION;

    #[inline(always)]
    fn send<S: Sink>(&self, sink: S) {
        let numbers = Segment { start: self.numbers.as_ptr().cast(), len: size_of::<Numbers>() };
        // SAFETY: both are borrowed by `self` during the call.
        unsafe { sink.gather::<false>(&[numbers, Segment::of(self.texts)]) };
    }
}
