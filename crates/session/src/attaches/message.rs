//! What a recorder and its process `tracewing-ptrace` send each other. Lists have limits, so that everything
//! fits into a packet.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tracewing_attach::Refusal;
use tracewing_helper::{Fields, Text};
use tracewing_programs::Entry;
use tracewing_units::{Pid, Timestamp};

use crate::attached::{
    Answers, Declined, Entered, Loaded, NotAttached, Outcome, Unread, Wanted, names_of_calls,
};

/// Maximum number of copies that take part, and of those that were tried before.
const MOST_MEMBERS: usize = 1024;
const MOST_TRIED: usize = 2000;
/// Maximum number of copies in a process, as `tracewing_programs` has it.
pub(super) const MOST_COPIES: usize = 64;
/// Maximum number of bytes of the path of an object: its end, of a longer one.
const MOST_PATH: u16 = 512;

/// A recorder's request.
#[derive(Debug, PartialEq)]
pub(super) enum Request {
    /// The first one: is everything there?
    Begin,
    Attach {
        pid: Pid,
        wanted: Wanted,
        recording: [u8; 16],
        patience: Duration,
    },
}

impl Request {
    pub(super) fn encode(&self) -> Vec<u8> {
        let Self::Attach { pid, wanted, recording, patience } = self else { return vec![0] };
        let mut bytes = vec![1];
        bytes.extend(pid.0.to_ne_bytes());
        bytes.extend((patience.as_millis() as u32).to_ne_bytes());
        bytes.extend(recording);
        match wanted {
            Wanted::Present => bytes.push(0),
            Wanted::New { members, tried } => {
                bytes.push(1);
                let members = &members[..members.len().min(MOST_MEMBERS)];
                put_count(&mut bytes, members.len());
                members.iter().for_each(|member| bytes.extend(member.to_ne_bytes()));
                // Those that were loaded first may not be there any more.
                let mut tried: Vec<&Loaded> = tried.iter().collect();
                tried.sort_by_key(|one| std::cmp::Reverse(one.at));
                tried.truncate(MOST_TRIED);
                put_count(&mut bytes, tried.len());
                tried.into_iter().for_each(|one| put_loaded(&mut bytes, one));
            }
        }
        bytes
    }

    /// `None` for bytes that are no request.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::of(bytes);
        let request = match fields.u8()? {
            0 => Self::Begin,
            1 => {
                let pid = Pid(fields.i32().filter(|pid| *pid > 0)?);
                let patience = Duration::from_millis(fields.u32()?.into());
                let recording = fields.array()?;
                let wanted = match fields.u8()? {
                    0 => Wanted::Present,
                    1 => {
                        let members = list(&mut fields, MOST_MEMBERS, |fields| fields.u64())?;
                        let tried = list(&mut fields, MOST_TRIED, loaded)?;
                        Wanted::New { members, tried: BTreeSet::from_iter(tried) }
                    }
                    _ => return None,
                };
                Self::Attach { pid, wanted, recording, patience }
            }
            _ => return None,
        };
        fields.is_end().then_some(request)
    }
}

/// The bytes of an outcome, and its doors.
pub(super) fn encode_outcome(Outcome { result, longest_stop, tried }: Outcome) -> (Vec<u8>, Vec<OwnedFd>) {
    let (mut bytes, mut doors) = (Vec::new(), Vec::new());
    put_option(&mut bytes, longest_stop.map(|stop| stop.as_nanos() as u64));
    put_count(&mut bytes, tried.len().min(MOST_COPIES));
    tried.iter().take(MOST_COPIES).for_each(|one| put_loaded(&mut bytes, one));
    match result {
        Ok(Answers { entered, declined }) => {
            bytes.push(0);
            put_declined(&mut bytes, declined.as_ref());
            put_count(&mut bytes, entered.len().min(MOST_COPIES));
            for Entered { door, filters, entry, age } in entered.into_iter().take(MOST_COPIES) {
                bytes.extend(filters.to_ne_bytes());
                put_option(&mut bytes, age.map(|age| age.as_nanos() as u64));
                put_entry(&mut bytes, &entry);
                doors.push(door);
            }
        }
        Err(NotAttached::Refused(refusal)) => {
            bytes.push(1);
            refusal.encode(&names_of_calls(), &mut bytes);
        }
        Err(NotAttached::Unread(unread)) => {
            let (kind, error) = match unread {
                Unread::Nothing => (2, 0),
                Unread::NoProcess(error) => (3, error.raw_os_error().unwrap_or(libc::EIO)),
                Unread::Failed => (4, 0),
                Unread::Late => (5, 0),
            };
            bytes.push(kind);
            bytes.extend(i32::to_ne_bytes(error));
        }
        Err(NotAttached::NoHelper) => bytes.push(6),
    }
    (bytes, doors)
}

/// The outcome of an attempt for a process; `None` for bytes that are no outcome, or not of that many doors.
pub(super) fn decode_outcome(bytes: &[u8], doors: Vec<OwnedFd>, pid: Pid) -> Option<Outcome> {
    let mut fields = Fields::of(bytes);
    let longest_stop = option(&mut fields)?.map(Duration::from_nanos);
    let tried = list(&mut fields, MOST_COPIES, loaded)?;
    let kind = fields.u8()?;
    let mut doors = doors.into_iter();
    let result = match kind {
        0 => {
            let declined = declined(&mut fields)?;
            let entered = list(&mut fields, MOST_COPIES, |fields| {
                let (filters, age) = (fields.u32()?, option(fields)?.map(Duration::from_nanos));
                Some(Entered { filters, age, entry: entry(fields)?, door: doors.next()? })
            })?;
            Ok(Answers { entered, declined })
        }
        1 => Err(Refusal::decode(&mut fields, pid, &names_of_calls())?.into()),
        2..=5 => {
            let error = fields.i32()?;
            Err(NotAttached::Unread(match kind {
                2 => Unread::Nothing,
                3 => Unread::NoProcess(std::io::Error::from_raw_os_error(error)),
                4 => Unread::Failed,
                _ => Unread::Late,
            }))
        }
        6 => Err(NotAttached::NoHelper),
        _ => return None,
    };
    (fields.is_end() && doors.next().is_none()).then_some(Outcome { result, longest_stop, tried })
}

fn put_declined(bytes: &mut Vec<u8>, declined: Option<&Declined>) {
    let (kind, error) = match declined {
        None => (0, 0),
        Some(Declined::Alone) => (1, 0),
        Some(Declined::NoThread) => (2, 0),
        Some(Declined::System(error)) => (3, error.raw_os_error().unwrap_or(libc::EIO)),
        Some(Declined::NoDoor) => (4, 0),
    };
    bytes.push(kind);
    bytes.extend(i32::to_ne_bytes(error));
}

fn declined(fields: &mut Fields<'_>) -> Option<Option<Declined>> {
    let (kind, error) = (fields.u8()?, fields.i32()?);
    Some(match kind {
        0 => None,
        1 => Some(Declined::Alone),
        2 => Some(Declined::NoThread),
        3 => Some(Declined::System(std::io::Error::from_raw_os_error(error))),
        4 => Some(Declined::NoDoor),
        _ => return None,
    })
}

pub(super) fn put_entry(bytes: &mut Vec<u8>, entry: &Entry) {
    let Entry { address, loaded, word, number, object, range } = entry;
    bytes.extend(address.to_ne_bytes());
    put_option(bytes, loaded.map(|at| at.as_ns().cast_unsigned()));
    put_option(bytes, word.map(|(at, _)| at));
    bytes.extend(word.map_or(0, |(_, value)| value).to_ne_bytes());
    bytes.extend((*number as u64).to_ne_bytes());
    let end = object.as_bytes();
    bytes.put_bytes(&end[end.len().saturating_sub(MOST_PATH.into())..], MOST_PATH);
    bytes.extend(range.start.to_ne_bytes());
    bytes.extend(range.end.to_ne_bytes());
}

pub(super) fn entry(fields: &mut Fields<'_>) -> Option<Entry> {
    let address = fields.u64()?;
    let loaded = option(fields)?.map(|ns| Timestamp::from_ns(ns.cast_signed()));
    let (at, value) = (option(fields)?, fields.u64()?);
    let number = fields.u64()?.try_into().ok()?;
    let object = String::from_utf8_lossy(fields.bytes(MOST_PATH)?).into_owned();
    let range = fields.u64()?..fields.u64()?;
    Some(Entry { address, loaded, word: at.map(|at| (at, value)), number, object, range })
}

fn put_loaded(bytes: &mut Vec<u8>, Loaded { address, at }: &Loaded) {
    bytes.extend(address.to_ne_bytes());
    put_option(bytes, at.map(|at| at.as_ns().cast_unsigned()));
}

fn loaded(fields: &mut Fields<'_>) -> Option<Loaded> {
    let address = fields.u64()?;
    Some(Loaded { address, at: option(fields)?.map(|ns| Timestamp::from_ns(ns.cast_signed())) })
}

pub(super) fn put_option(bytes: &mut Vec<u8>, value: Option<u64>) {
    bytes.push(value.is_some().into());
    bytes.extend(value.unwrap_or(0).to_ne_bytes());
}

pub(super) fn option(fields: &mut Fields<'_>) -> Option<Option<u64>> {
    match (fields.u8()?, fields.u64()?) {
        (0, 0) => Some(None),
        (1, value) => Some(Some(value)),
        _ => None,
    }
}

/// The count of a list with a limit.
pub(super) fn put_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend((count as u16).to_ne_bytes());
}

/// A list after its count, with at most so many elements.
pub(super) fn list<T>(
    fields: &mut Fields<'_>,
    most: usize,
    mut one: impl FnMut(&mut Fields<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = usize::from(fields.u16()?);
    (count <= most).then_some(())?;
    (0..count).map(|_| one(fields)).collect()
}

#[cfg(test)]
mod tests;
