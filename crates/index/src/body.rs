//! What is written while the recording is read: blocks one after the other, each with a sum of its bytes.

use crate::bytes::checksum;
use crate::checkpoints::Place;
use std::io::{Error, Write};
use tracewing_units::Timestamp;

/// Bytes of the sum after each block.
pub(crate) const SUM: usize = 4;

/// The file that is being written.
pub(crate) struct Body<'w> {
    out: &'w mut (dyn Write + Send),
    /// Bytes written so far.
    pub(crate) offset: u64,
    /// Why it cannot be written further; nothing is written then.
    failure: Option<Error>,
    /// What was written of checkpoints.
    pub(crate) checkpoints: Vec<Place>,
}

impl<'w> Body<'w> {
    pub(crate) fn new(out: &'w mut (dyn Write + Send)) -> Self {
        Body::after(out, 0)
    }

    /// One that continues after so many bytes.
    pub(crate) fn after(out: &'w mut (dyn Write + Send), offset: u64) -> Self {
        Body { out, offset, failure: None, checkpoints: Vec::new() }
    }

    /// Writes a block; returns where it begins and how long it is, without the sum.
    pub(crate) fn block(&mut self, bytes: &[u8]) -> (u64, u32) {
        let place = (self.offset, bytes.len() as u32);
        self.write(bytes);
        self.write(&(checksum(bytes) as u32).to_le_bytes());
        place
    }

    /// Writes a checkpoint.
    pub(crate) fn checkpoint(&mut self, until: Timestamp, bytes: &[u8]) {
        let (offset, length, sum) = (self.offset, bytes.len() as u64, checksum(bytes));
        self.write(bytes);
        self.checkpoints.push(Place { until, offset, length, sum });
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            match self.out.write_all(bytes) {
                Ok(()) => self.offset += bytes.len() as u64,
                Err(failure) => self.failure = Some(failure),
            }
        }
    }

    /// Hands on what was written.
    pub(crate) fn flush(&mut self) {
        if self.failure.is_none() {
            self.failure = self.out.flush().err();
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Whether all could be written.
    ///
    /// # Errors
    /// It could not.
    pub(crate) fn finish(self) -> Result<u64, Error> {
        match self.failure {
            Some(failure) => Err(failure),
            None => self.out.flush().map(|()| self.offset),
        }
    }
}
