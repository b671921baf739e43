//! Whether a thread's seccomp filters let the calls through that attaching makes.

use std::io;

use crate::bpf::{self, DATA};
use crate::tracee::Tracee;

/// `AUDIT_ARCH_X86_64` of `linux/audit.h`.
const ARCHITECTURE: u32 = 0xc000_003e;
const ACTION: u32 = libc::SECCOMP_RET_ACTION_FULL;

/// A system call that is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCall {
    /// Name, as messages show it.
    pub name: &'static str,
    /// Number on x86-64.
    pub number: i64,
    /// The arguments that are known; filters take the others for 0.
    pub arguments: [u64; 6],
    /// The call that the C library makes where this one fails with `ENOSYS`: it is then needed, too.
    pub without: Option<&'static SystemCall>,
}

/// What filters do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allowed,
    /// It fails with `ENOSYS`.
    Missing,
    Refused,
}

/// The thread's filters, the newest first.
///
/// # Errors
/// Its filters cannot be read: only a recorder with `CAP_SYS_ADMIN` and without filters of its own can.
pub(crate) fn filters(tracee: &Tracee) -> io::Result<Vec<Vec<libc::sock_filter>>> {
    let mut filters = Vec::new();
    while let Some(filter) = tracee.filter(filters.len())? {
        filters.push(filter);
    }
    Ok(filters)
}

/// The first of these calls that filters do not let through.
pub(crate) fn refused(filters: &[Vec<libc::sock_filter>], calls: &[SystemCall]) -> Option<&'static str> {
    calls.iter().find_map(|call| refusal(filters, call))
}

fn refusal(filters: &[Vec<libc::sock_filter>], call: &SystemCall) -> Option<&'static str> {
    match verdict(filters, call) {
        Verdict::Allowed => None,
        Verdict::Missing => call.without.map_or(Some(call.name), |other| refusal(filters, other)),
        Verdict::Refused => Some(call.name),
    }
}

/// Runs all filters. The strictest result applies: actions are ordered as signed numbers
/// (`seccomp(2)`).
fn verdict(filters: &[Vec<libc::sock_filter>], call: &SystemCall) -> Verdict {
    let mut data = [0; DATA];
    data[..4].copy_from_slice(&(call.number as u32).to_le_bytes());
    data[4..8].copy_from_slice(&ARCHITECTURE.to_le_bytes());
    for (place, argument) in data[16..].as_chunks_mut().0.iter_mut().zip(call.arguments) {
        *place = argument.to_le_bytes();
    }
    let answers =
        filters.iter().map(|filter| bpf::evaluate(filter, &data).unwrap_or(libc::SECCOMP_RET_KILL_PROCESS));
    let strictest = answers.min_by_key(|answer| (answer & ACTION).cast_signed());
    let strictest = strictest.unwrap_or(libc::SECCOMP_RET_ALLOW);
    match strictest & ACTION {
        libc::SECCOMP_RET_ALLOW | libc::SECCOMP_RET_LOG => Verdict::Allowed,
        libc::SECCOMP_RET_ERRNO if strictest & libc::SECCOMP_RET_DATA == libc::ENOSYS as u32 => {
            Verdict::Missing
        }
        _ => Verdict::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter that answers so for one call, and allows all others.
    fn filter(number: i64, answer: u32) -> Vec<libc::sock_filter> {
        let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        vec![
            step(0x20, 0, 0, 0),
            step(0x15, 0, 1, number as u32),
            step(0x06, 0, 0, answer),
            step(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
        ]
    }

    const CLONE: SystemCall =
        SystemCall { name: "clone", number: libc::SYS_clone, arguments: [0; 6], without: None };
    const CLONE3: SystemCall =
        SystemCall { name: "clone3", number: libc::SYS_clone3, arguments: [0; 6], without: Some(&CLONE) };

    #[test]
    fn the_strictest_filter_decides() {
        let (allow, kill) = (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_KILL_PROCESS);
        for (answers, expected) in
            [([allow, allow], None), ([allow, kill], Some("clone")), ([kill, allow], Some("clone"))]
        {
            let filters = answers.map(|answer| filter(libc::SYS_clone, answer));
            assert_eq!(refusal(&filters, &CLONE), expected);
        }
        let trap = [filter(libc::SYS_clone, libc::SECCOMP_RET_TRAP)];
        assert_eq!(refusal(&trap, &CLONE), Some("clone"));
        let log = [filter(libc::SYS_clone, libc::SECCOMP_RET_LOG)];
        assert_eq!(refusal(&log, &CLONE), None);
    }

    #[test]
    fn a_call_that_the_library_can_replace() {
        let missing = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
        let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        assert_eq!(refusal(&[filter(libc::SYS_clone3, missing)], &CLONE3), None);
        assert_eq!(refusal(&[filter(libc::SYS_clone3, refused)], &CLONE3), Some("clone3"));
        let both = [filter(libc::SYS_clone3, missing), filter(libc::SYS_clone, refused)];
        assert_eq!(refusal(&both, &CLONE3), Some("clone"));
    }
}
