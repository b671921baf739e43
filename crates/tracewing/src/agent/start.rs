//! What the agent does when the program starts, or the library is loaded: joins the recorders that the
//! environment names, that want all programs, or that other copies of the crate in the process have.

use std::ffi::CStr;
use std::time::Duration;

use tracewing_abi::{FILTERS_VARIABLE, LATE, LATE_VARIABLE, LEFT_OUT, SOCKET_VARIABLE};
use tracewing_ring::thread::RECORDINGS;

use super::access::Access;
use super::join::{Candidate, Progress, Wait, variable};
use super::listed::Listed;
use super::{filtered, fork, neighbours, reach, system, threads};

/// How long the threads that complete late handshakes may take to start.
const SETTLE: Duration = Duration::from_millis(100);

/// Runs when the program starts, or the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
pub(super) static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    system::keeping_errno(|| {
        let has_raised_rights = has_raised_rights();
        let named = variable(SOCKET_VARIABLE).filter(|_| !has_raised_rights);
        let listed = Listed::look(has_raised_rights);
        let others = neighbours::Found::look();
        if named.is_none() && listed.paths().is_empty() && others.is_empty() {
            return;
        }
        // Of a running program, the recorder looks at the filters, and attaches to what is left out here.
        if is_filtered() {
            if named.is_some() {
                mark_environment(LEFT_OUT);
            }
            return;
        }
        let wait = Wait::begin();
        let (mut connections, mut late) = (Vec::new(), Vec::new());
        fork::notice(reach::begin_in_child);
        // One after the other: a recording that was joined by the first way is left out of the second.
        let named_or_listed =
            paths(named.map(CStr::to_bytes).unwrap_or_default()).chain(paths(listed.paths()));
        for access in named_or_listed.chain(others.recorders()).take(RECORDINGS) {
            match Candidate::of(access).join(wait.until()) {
                Progress::Joined(connection) => connections.push(connection),
                Progress::Late(candidate) => late.push(candidate),
                Progress::Gone => drop(reach::keeps(access)),
            }
        }
        connections.into_iter().for_each(reach::begin);
        if !late.is_empty() {
            if named.is_some() && !mark_environment(LATE) {
                // SAFETY: two strings, before `main`.
                unsafe { libc::setenv(c"TRACEWING_LATE".as_ptr(), c"1".as_ptr(), 1) };
            }
            late.into_iter().for_each(reach::join_later);
            threads::settle(SETTLE);
        }
    });
}

/// The recorders that listen at paths with colons between them.
fn paths(paths: &[u8]) -> impl Iterator<Item = Access> {
    paths.split(|byte| *byte == b':').filter(|path| !path.is_empty()).filter_map(Access::path)
}

/// Marks in the environment why the process does not take part in recordings, or not yet: for programs that
/// this one executes, and for recorders. Changed in place, where both find it. `false` if there is no room
/// for it.
fn mark_environment(mark: u8) -> bool {
    let Some(text) = variable(LATE_VARIABLE).filter(|text| text.count_bytes() == 1) else { return false };
    // SAFETY: a character in the process's own environment, before `main`.
    unsafe { text.as_ptr().cast_mut().write(mark as _) };
    true
}

/// Whether the program runs with raised privileges: then the user that started it must not choose where it
/// connects.
fn has_raised_rights() -> bool {
    // SAFETY: a number; 0 where the kernel does not say.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether a filter for system calls watches the program that does not watch its recorder, too.
fn is_filtered() -> bool {
    let mut status = [0; 4096];
    let Some(len) = system::read_file(c"/proc/self/status", &mut status) else { return false };
    let of_recorder =
        variable(FILTERS_VARIABLE).and_then(|text| text.to_str().ok()?.parse().ok()).unwrap_or(0);
    filtered::count(&status[..len]).is_some_and(|filters| filters > of_recorder)
}
