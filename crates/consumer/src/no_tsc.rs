//! Stands in for the time stamp counter on processors that have none: it is never usable.

use crate::error::NoTsc;

pub(super) fn usable() -> Result<(), NoTsc> {
    Err(NoTsc::NoCounter)
}

pub(super) fn read() -> u64 {
    0
}

pub(super) fn frequency() -> u64 {
    1
}
