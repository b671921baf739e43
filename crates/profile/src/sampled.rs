//! A CPU that is sampled: the kernel's buffer, and the stream that its records become.

use std::os::fd::OwnedFd;

use tracewing_units::Cpu;

use crate::counters::{Counters, SinceBegin};
use crate::followed::Followed;
use crate::record::{Record, read};
use crate::ring::Ring;
use crate::stream::EventStream;
use crate::writer::{Writer, whose};

/// The ring comes before the event that it is mapped from, so it is dropped first.
pub(crate) struct Sampled {
    pub(crate) number: Cpu,
    pub(crate) ring: Ring,
    /// Records nothing if processes that were already running are followed: their events write into its
    /// buffer.
    pub(crate) sampler: OwnedFd,
    /// A tree's counters are all kept with the first CPU.
    pub(crate) counters: Option<Counters>,
    pub(crate) counted: SinceBegin,
    pub(crate) stream: EventStream,
}

impl Sampled {
    /// Moves a CPU's records into its stream; with `sums`, also the counters of all followed processes.
    ///
    /// # Errors
    /// The trace cannot be written; the buffer is empty nevertheless.
    pub(crate) fn drain(
        &mut self,
        writer: &mut Writer,
        flush: bool,
        mut followed: Option<&mut Followed>,
        sums: bool,
    ) -> Result<(), tracewing_streams::Error> {
        let Self { ring, counters, counted, stream, .. } = self;
        let mut written = Ok(());
        ring.drain(|raw| {
            let Some((time, record)) = read(raw) else { return };
            if let (Record::Fork { child, .. }, Some(followed)) = (&record, &mut followed) {
                followed.created(*child);
            }
            let stamp = writer.conversion.cycles(time);
            let result = writer.record(stamp, &record, whose(&record), stream);
            // The ring is drained even after a record could not be written.
            if written.is_ok() {
                written = result;
            }
        });
        if flush {
            if let Some(counters) = counters {
                let result = writer.counters(counted.of(counters.read()), stream);
                written = written.and(result);
            }
            if let Some(followed) = followed.filter(|_| sums) {
                let result = writer.counters(followed.counters(), stream);
                written = written.and(result);
            }
            written = written.and(stream.end_packet());
        }
        written
    }
}
