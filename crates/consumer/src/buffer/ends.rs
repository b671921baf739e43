//! The end of a buffer's recording: the rest is written, or counted as lost.

use std::time::{Duration, Instant};

use tracewing_abi::region::Protocol;
use tracewing_ring::{Chunk, Contradiction, Damaged, Left, Region, UpTo};
use tracewing_streams::PacketTimes;
use tracewing_units::Cycles;

use super::{Buffer, Target};
use crate::Error;
use crate::clock::TraceClock;
use crate::output::Output;
use crate::whole_events::whole_events;

const UNFINISHED: &str = "process died while emitting";

/// Number of attempts, and pause between them, for which the end of a recording waits for live writers to
/// finish their events.
const COMMIT_ATTEMPTS: u32 = 20;

const COMMIT_WAIT: Duration = Duration::from_millis(1);

impl Buffer {
    pub(crate) fn finish(
        &mut self,
        target: &mut Target<'_>,
        clock: &TraceClock,
        since: Cycles,
    ) -> Result<(), Error> {
        self.write_rest(target, clock, since)?;
        self.settle(target.label, since, clock.now());
        self.check()
    }

    /// Writes all remaining events, and a last packet if events were lost since the one before.
    pub(crate) fn write_rest(
        &mut self,
        target: &mut Target<'_>,
        clock: &TraceClock,
        since: Cycles,
    ) -> Result<(), Error> {
        let Target { label, region, .. } = *target;
        self.is_ending = true;
        self.write_all(target)?;
        if !self.is_dead && self.reader.is_passed_back() {
            self.damaged(label, Damaged { bytes: 0, cause: Contradiction::HeadBefore });
        }
        if region.protocol() == Protocol::Smp {
            for _ in 0..COMMIT_ATTEMPTS {
                if self.reader.waiting() == 0 || self.is_dead {
                    break;
                }
                std::thread::sleep(COMMIT_WAIT);
                self.write_all(target)?;
            }
            self.finalise(target, clock)?;
        }
        let now = clock.now();
        self.note_losses(label, region, clock, since, now);
        self.note_overwritten(label, self.reader.overwritten(), now);
        let (lost, skipped) = (self.lost_total(), self.overwritten.sub_buffers);
        if lost > self.stream.as_ref().map_or(0, Output::lost)
            || skipped > self.stream.as_ref().map_or(0, Output::skipped)
        {
            let is_first = self.is_first();
            let stream = self.stream(target, since)?;
            if is_first {
                stream.write_empty(PacketTimes::empty(since, 0, 0))?;
            }
            stream.write_empty(PacketTimes::empty(now, lost, skipped))?;
        }
        Ok(())
    }

    /// Waits until everything is written, and counts events that could not be written as lost.
    fn settle(&mut self, label: &str, since: Cycles, now: Cycles) {
        let Some(stream) = &self.stream else { return };
        let (unwritten, end) = (stream.settle(), stream.end());
        self.lose_unwritten(label, unwritten, since.min(end), now);
    }

    /// Reads the complete events between and after those that were never committed.
    fn finalise(&mut self, target: &mut Target<'_>, clock: &TraceClock) -> Result<(), Error> {
        let Target { label, region, .. } = *target;
        // A sub-buffer yields at most one chunk and one skipped stretch.
        for _ in 0..=2 * region.geometry().sub_buffers() {
            target.trace.wait_for_room(region.geometry().sub_buffer_bytes());
            match self.reader.finalise() {
                _ if self.is_dead => break,
                Ok(Left::Nothing) => break,
                Ok(Left::Chunk(chunk)) => {
                    self.write_chunk(target, chunk, Instant::now())?;
                }
                Ok(Left::Unfinished(unfinished)) => {
                    self.found_lost += 1;
                    self.extend_range(label, UNFINISHED, 1, unfinished.after, clock.now());
                }
                Err(damaged) => self.damaged(label, damaged),
            }
        }
        Ok(())
    }

    /// What writers that still live have added is lost: the last packet ends later.
    pub(super) fn leave_out(&mut self, target: &Target<'_>, chunk: Chunk) {
        // SAFETY: the chunk lies in the region's mapping, which outlives the reader, and is not released yet.
        let events = unsafe { whole_events(chunk.bytes(), |_| {}) }.0;
        let begin = chunk.begin;
        self.reader.release(chunk);
        self.lose_unwritten(target.label, events, begin, target.clock.now());
    }

    pub(crate) fn abandon(&mut self, label: &str, region: Region, clock: &TraceClock, since: Cycles) {
        self.settle(label, since, clock.now());
        let mut unwritten = 0;
        if let Some((chunk, _)) = self.held.take() {
            // SAFETY: as below.
            unwritten += unsafe { whole_events(chunk.bytes(), |_| {}) }.0;
            self.reader.release(chunk);
        }
        for _ in 0..=region.geometry().sub_buffers() {
            match self.reader.next(UpTo::LastWritten) {
                Ok(Some(chunk)) => {
                    // SAFETY: the chunk lies in the region's mapping, which outlives the reader, and is not
                    // released yet.
                    unwritten += unsafe { whole_events(chunk.bytes(), |_| {}) }.0;
                    self.reader.release(chunk);
                }
                Ok(None) => break,
                Err(damaged) => self.damaged(label, damaged),
            }
        }
        let now = clock.now();
        self.note_losses(label, region, clock, since, now);
        let end = self.stream.as_ref().map_or(since, Output::end);
        self.lose_unwritten(label, unwritten, end, now);
    }
}
