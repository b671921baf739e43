//! A refusal as bytes, for a recorder that has another process attach. Which process was refused is known to
//! both, and not among them. Whatever the bytes are, names of system calls are those of the reader's lists.

use std::io;

use tracewing_helper::{Fields, Text};
use tracewing_units::Pid;

use crate::{Refusal, Unsupported};

/// Calls that are named if they fail.
const CALLS: [&str; 12] = [
    "clone",
    "pidfd_getfd",
    "process_vm_readv",
    "timer_create",
    "PTRACE_CONT",
    "PTRACE_DETACH",
    "PTRACE_GETREGS",
    "PTRACE_GETSIGMASK",
    "PTRACE_INTERRUPT",
    "PTRACE_SETREGS",
    "PTRACE_SETSIGMASK",
    "ptrace",
];

/// Maximum length of the name of a process, bytes.
const MOST_NAME: u16 = 64;

impl Refusal {
    /// Appends it to bytes. `calls`: the system calls that a filter may refuse.
    pub fn encode(&self, calls: &[&str], bytes: &mut Vec<u8>) {
        let (kind, number) = match self {
            Self::Gone(_) => (0, 0),
            Self::Zombie(_) => (1, 0),
            Self::FirstThread(_) => (2, 0),
            Self::Kernel(_) => (3, 0),
            Self::OtherUser { uid, .. } => (4, u64::from(*uid)),
            Self::NotDumpable(_) => (5, 0),
            Self::LimitedRoot(_) => (6, 0),
            Self::Yama { scope, .. } => (7, u64::from(*scope)),
            Self::Traced { by, .. } => (8, u64::from(by.as_unsigned())),
            Self::Stopped(_) => (9, 0),
            Self::Bits(_) => (10, 0),
            Self::SharedMemory(_) => (11, 0),
            Self::Filtered { call, .. } => (12, index(calls, call)),
            Self::UnknownFilter { source, .. } => (13, number(source)),
            Self::Unsupported { why: Unsupported::VectorRegisters, .. } => (14, 0),
            Self::Unsupported { why: Unsupported::ShadowStack, .. } => (14, 1),
            Self::Busy { seconds, .. } => (15, seconds.to_bits()),
            Self::Late(_) => (16, 0),
            Self::NotReady(_) => (17, 0),
            Self::Fault(_) => (18, 0),
            Self::Taken(_) => (19, 0),
            Self::System { source, .. } => (20, number(source)),
        };
        bytes.push(kind);
        bytes.extend(u64::to_ne_bytes(number));
        match self {
            Self::Traced { name, .. } => bytes.put_bytes(name.as_bytes(), MOST_NAME),
            Self::Busy { threads, .. } => bytes.extend((*threads as u64).to_ne_bytes()),
            Self::System { call, .. } => bytes.extend(index(&CALLS, call).to_ne_bytes()),
            _ => {}
        }
    }

    /// What [`Self::encode`] has appended, for a process. `None` if these are other bytes.
    pub fn decode(fields: &mut Fields<'_>, pid: Pid, calls: &[&'static str]) -> Option<Self> {
        let (kind, number) = (fields.u8()?, fields.u64()?);
        let refusal = match kind {
            0 => Self::Gone(pid),
            1 => Self::Zombie(pid),
            2 => Self::FirstThread(pid),
            3 => Self::Kernel(pid),
            4 => Self::OtherUser { pid, uid: number.try_into().ok()? },
            5 => Self::NotDumpable(pid),
            6 => Self::LimitedRoot(pid),
            7 => Self::Yama { pid, scope: number.try_into().ok()? },
            8 => {
                let name = String::from_utf8_lossy(fields.bytes(MOST_NAME)?).into_owned();
                Self::Traced { pid, by: Pid(number.try_into().ok()?), name }
            }
            9 => Self::Stopped(pid),
            10 => Self::Bits(pid),
            11 => Self::SharedMemory(pid),
            12 => Self::Filtered { pid, call: name(calls, number)? },
            13 => Self::UnknownFilter { pid, source: error(number)? },
            14 => {
                let all = [Unsupported::VectorRegisters, Unsupported::ShadowStack];
                Self::Unsupported { pid, why: *all.get(usize::try_from(number).ok()?)? }
            }
            15 => {
                let (threads, seconds) = (fields.u64()?.try_into().ok()?, f64::from_bits(number));
                Self::Busy { pid, threads, seconds }
            }
            16 => Self::Late(pid),
            17 => Self::NotReady(pid),
            18 => Self::Fault(pid),
            19 => Self::Taken(pid),
            20 => Self::System { pid, call: name(&CALLS, fields.u64()?)?, source: error(number)? },
            _ => return None,
        };
        Some(refusal)
    }
}

/// The place of a name in a list; the last one for a name that is not there.
fn index(names: &[&str], name: &str) -> u64 {
    let place = names.iter().position(|one| *one == name);
    place.unwrap_or(names.len().saturating_sub(1)) as u64
}

fn name(names: &[&'static str], index: u64) -> Option<&'static str> {
    names.get(usize::try_from(index).ok()?).copied()
}

/// Its number, or 0 for less than was expected.
fn number(error: &io::Error) -> u64 {
    error.raw_os_error().unwrap_or(0).unsigned_abs().into()
}

fn error(number: u64) -> Option<io::Error> {
    match i32::try_from(number).ok()? {
        0 => Some(io::ErrorKind::UnexpectedEof.into()),
        number => Some(io::Error::from_raw_os_error(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID: Pid = Pid(7);
    const FILTERED: [&str; 2] = ["clone", "mmap"];

    fn all() -> Vec<Refusal> {
        let source = || io::Error::from_raw_os_error(libc::EPERM);
        vec![
            Refusal::Gone(PID),
            Refusal::Zombie(PID),
            Refusal::FirstThread(PID),
            Refusal::Kernel(PID),
            Refusal::OtherUser { pid: PID, uid: 65534 },
            Refusal::NotDumpable(PID),
            Refusal::LimitedRoot(PID),
            Refusal::Yama { pid: PID, scope: 3 },
            Refusal::Traced { pid: PID, by: Pid(9), name: "gdb".to_owned() },
            Refusal::Stopped(PID),
            Refusal::Bits(PID),
            Refusal::SharedMemory(PID),
            Refusal::Filtered { pid: PID, call: "mmap" },
            Refusal::UnknownFilter { pid: PID, source: source() },
            Refusal::Unsupported { pid: PID, why: Unsupported::VectorRegisters },
            Refusal::Unsupported { pid: PID, why: Unsupported::ShadowStack },
            Refusal::Busy { pid: PID, threads: 3, seconds: 0.25 },
            Refusal::Late(PID),
            Refusal::NotReady(PID),
            Refusal::Fault(PID),
            Refusal::Taken(PID),
            Refusal::System { pid: PID, call: "pidfd_getfd", source: source() },
            Refusal::System { pid: PID, call: "clone", source: io::ErrorKind::UnexpectedEof.into() },
        ]
    }

    fn encoded(refusal: &Refusal) -> Vec<u8> {
        let mut bytes = Vec::new();
        refusal.encode(&FILTERED, &mut bytes);
        bytes
    }

    #[test]
    fn refusals_are_read_as_they_were_written() {
        for refusal in all() {
            let bytes = encoded(&refusal);
            let mut fields = Fields::of(&bytes);
            let read = Refusal::decode(&mut fields, PID, &FILTERED);
            assert_eq!(read.map(|read| format!("{read:?}")), Some(format!("{refusal:?}")));
            assert!(fields.is_end());
            for len in 0..bytes.len() {
                assert!(Refusal::decode(&mut Fields::of(&bytes[..len]), PID, &FILTERED).is_none());
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let filtered = encoded(&Refusal::Filtered { pid: PID, call: "mmap" });
        assert!(Refusal::decode(&mut Fields::of(&filtered), PID, &FILTERED[..1]).is_none());
        for kind in [4, 7, 8, 12, 13, 14, 20, 21, 255] {
            let bytes = [&[kind][..], &[0xff; 40]].concat();
            assert!(Refusal::decode(&mut Fields::of(&bytes), PID, &FILTERED).is_none(), "{kind}");
        }
    }

    /// All that this crate and its users name.
    #[test]
    fn failed_calls_keep_their_names() {
        let sources = [include_str!("call.rs"), include_str!("stopped.rs"), include_str!("target.rs")];
        let mut found = 0;
        for begin in ["failed(\"", "call: \""] {
            for text in sources.iter().flat_map(|source| source.split(begin).skip(1)) {
                let call = text.split('"').next().unwrap();
                assert!(CALLS.contains(&call), "{call}");
                found += 1;
            }
        }
        assert!(found > 15, "{found}");
    }
}
