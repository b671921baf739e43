//! Checkpoints in an index: states of the super-trace at a few times, from which readers of the recording
//! continue instead of reading what is before.

use crate::bytes::{Bytes, checksum, put};
use crate::error::{Damage, Damaged};
use std::fs::File;
use std::os::unix::fs::FileExt;
use tracewing_trace::Checkpoints;
use tracewing_units::Timestamp;

/// Where a checkpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Up to then, all has come.
    pub(crate) until: Timestamp,
    pub(crate) offset: u64,
    /// In bytes.
    pub(crate) length: u64,
    pub(crate) sum: u64,
}

/// The checkpoints of an index. They are as right as its check sums: a reader looks whether they are of the
/// recording, and does without one that is not.
#[derive(Debug)]
pub struct Kept {
    pub(crate) file: File,
    pub(crate) places: Vec<Place>,
}

impl Checkpoints for Kept {
    fn before(&self, time: Timestamp) -> Option<Vec<u8>> {
        let place = self.places.iter().rfind(|place| place.until < time)?;
        // It lies in the file.
        let mut bytes = vec![0; usize::try_from(place.length).ok()?];
        self.file.read_exact_at(&mut bytes, place.offset).ok()?;
        (checksum(&bytes) == place.sum).then_some(bytes)
    }

    fn times(&self) -> Vec<Timestamp> {
        self.places.iter().map(|place| place.until).collect()
    }
}

/// Writes where checkpoints are.
pub(crate) fn write(places: &[Place], out: &mut Vec<u8>) {
    put(out, places.len() as u64);
    for Place { until, offset, length, sum } in places {
        put(out, until.as_ns().cast_unsigned());
        put(out, *offset);
        put(out, *length);
        put(out, *sum);
    }
}

/// Where they are: all before `body`.
pub(crate) fn read(bytes: &mut Bytes<'_>, body: u64) -> Result<Vec<Place>, Damaged> {
    let mut places = Vec::new();
    for _ in 0..bytes.number()? {
        let until = Timestamp::from_ns(bytes.number()?.cast_signed());
        let place = Place { until, offset: bytes.number()?, length: bytes.number()?, sum: bytes.number()? };
        if place.offset.checked_add(place.length).is_none_or(|end| end > body) {
            return Err(Damaged(Damage::BlockOutside));
        }
        places.push(place);
    }
    Ok(places)
}
