//! What the processes `tracewing-ptrace` and `tracewing-reads` send each other: what is to be read, and the
//! copies that it contains.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use tracewing_helper::{AsUsers, Fields, NoReply, Text, User};
use tracewing_proc::Status;
use tracewing_units::{Pid, Timestamp};

use super::message::{MOST_COPIES, entry, list, option, put_count, put_entry, put_option};
use crate::attached::{Found, Reader, Source, Unread, find};

/// Maximum number of bytes of a path.
const MOST_PATH: u16 = 4096;

/// Has processes read that are of the user of the process that is read.
pub(super) struct Readers(pub(super) AsUsers);

impl Reader for Readers {
    fn find(&self, pid: Pid, source: Source) -> Result<Vec<Found>, Unread> {
        // The memory was opened before, and is that of no other process.
        let user = Status::of(pid).and_then(|status| owner(&status)).ok_or(Unread::Nothing)?;
        let (bytes, files) = encode(&source);
        self.reply(user, &bytes, &files)
    }
}

impl Readers {
    pub(super) fn end(&self) {
        self.0.end();
    }

    fn reply(&self, user: User, bytes: &[u8], files: &[BorrowedFd<'_>]) -> Result<Vec<Found>, Unread> {
        let reply = self.0.ask(user, bytes, files).map_err(|error| match error {
            NoReply::Start(error) => Unread::NoProcess(error),
            NoReply::Failed => Unread::Failed,
            NoReply::Late => Unread::Late,
        })?;
        decode_found(&reply).ok_or(Unread::Failed)?.ok_or(Unread::Nothing)
    }
}

/// The user with the fewest rights of those as which a process runs, or ran, or can run again.
fn owner(status: &Status) -> Option<User> {
    let least = |ids: [u32; 4]| {
        let [real, effective, saved, _] = ids;
        [effective, real, saved].into_iter().find(|id| *id != 0).unwrap_or(0)
    };
    Some(User { uid: least(status.users()?), gid: least(status.groups()?) })
}

/// In the process that reads: the bytes of its reply. Empty ones are no reply.
pub(super) fn read(bytes: &[u8], files: Vec<OwnedFd>) -> Vec<u8> {
    decode(bytes, files).map(|source| encode_found(find(source).as_deref())).unwrap_or_default()
}

fn encode(source: &Source) -> (Vec<u8>, Vec<BorrowedFd<'_>>) {
    let mut bytes = Vec::new();
    let (settled, path, files) = match source {
        Source::Memory { memory, maps, executable, settled } => {
            bytes.push(0);
            (*settled, executable, vec![memory.as_fd(), maps.as_fd()])
        }
        Source::Executable { path, file } => {
            bytes.push(1);
            (None, path, vec![file.as_fd()])
        }
    };
    put_option(&mut bytes, settled.map(|at| at.as_ns().cast_unsigned()));
    bytes.put_bytes(path.as_os_str().as_bytes(), MOST_PATH);
    (bytes, files)
}

fn decode(bytes: &[u8], files: Vec<OwnedFd>) -> Option<Source> {
    let mut fields = Fields::of(bytes);
    let kind = fields.u8()?;
    let settled = option(&mut fields)?.map(|ns| Timestamp::from_ns(ns.cast_signed()));
    let path = PathBuf::from(OsStr::from_bytes(fields.bytes(MOST_PATH)?));
    let mut files = files.into_iter().map(File::from);
    let source = match kind {
        0 => Source::Memory { memory: files.next()?, maps: files.next()?, executable: path, settled },
        1 => Source::Executable { path, file: files.next()? },
        _ => return None,
    };
    (fields.is_end() && files.next().is_none()).then_some(source)
}

/// `None`: there is nothing to read.
fn encode_found(found: Option<&[Found]>) -> Vec<u8> {
    let mut bytes = vec![found.is_some().into()];
    let found = found.unwrap_or_default();
    put_count(&mut bytes, found.len().min(MOST_COPIES));
    for Found { entry, has_started } in found.iter().take(MOST_COPIES) {
        bytes.push((*has_started).into());
        put_entry(&mut bytes, entry);
    }
    bytes
}

/// `None` for bytes that are no reply.
fn decode_found(bytes: &[u8]) -> Option<Option<Vec<Found>>> {
    let mut fields = Fields::of(bytes);
    let is_there = fields.u8()?;
    let found = list(&mut fields, MOST_COPIES, |fields| {
        let has_started = fields.u8().filter(|flag| *flag <= 1)? == 1;
        Some(Found { has_started, entry: entry(fields)? })
    })?;
    match (is_there, fields.is_end()) {
        (0, true) if found.is_empty() => Some(None),
        (1, true) => Some(Some(found)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
