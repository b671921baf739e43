//! Which processes a program accepts as recorders: those of its own user and of root. The address to connect
//! to is in its environment, which outlives recordings and changes of the user (`su`). A recorder of another
//! user could read its events, and end it by taking away the memory that it has provided.

use core::ffi::CStr;
use core::mem::size_of;

use super::system::{self, Fd};

/// What users are called that have no number in a user namespace (`/proc/sys/kernel/overflowuid`).
const NO_NUMBER: libc::uid_t = 65534;
/// All numbers of users, which the first namespace has.
const ALL: &[u8] = b"4294967295";

/// Whether the peer of a connection may be this process's recorder.
pub(super) fn is_trusted(socket: &Fd) -> bool {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `peer` is what the option gives, of that size.
    let result = unsafe {
        let peer = (&raw mut peer).cast();
        libc::getsockopt(socket.raw(), libc::SOL_SOCKET, libc::SO_PEERCRED, peer, &raw mut size)
    };
    // SAFETY: no arguments, cannot fail.
    let own = unsafe { libc::syscall(libc::SYS_geteuid) as libc::uid_t };
    result == 0 && may_record(peer.uid, own, is_in_user_namespace)
}

/// In a user namespace root may have no number, like other users: there they cannot be distinguished.
fn may_record(recorder: libc::uid_t, own: libc::uid_t, is_in_user_namespace: impl FnOnce() -> bool) -> bool {
    recorder == 0 || recorder == own || (recorder == NO_NUMBER && is_in_user_namespace())
}

fn is_in_user_namespace() -> bool {
    const MAP: &CStr = c"/proc/self/uid_map";
    let mut map = [0; 64];
    system::read_file(MAP, &mut map).is_some_and(|len| is_partial(&map[..len]))
}

/// Whether a map of users (`user_namespaces(7)`) leaves some out.
fn is_partial(map: &[u8]) -> bool {
    !map.trim_ascii_end().ends_with(ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorders_are_the_users_own_or_roots() {
        let may = |recorder, own, inside: bool| may_record(recorder, own, || inside);
        assert!(may(0, 0, false) && may(0, 7, false) && may(7, 7, false));
        assert!(!may(7, 0, false) && !may(7, 8, false) && !may(7, 8, true));
        assert!(!may(NO_NUMBER, 7, false), "another user, as far as the number shows");
        assert!(may(NO_NUMBER, 7, true), "root, perhaps");
    }

    #[test]
    fn the_first_namespace_has_all_users() {
        assert!(!is_partial(b"         0          0 4294967295\n"));
        assert!(is_partial(b"         0       1000          1\n"));
        assert!(is_partial(b"         0     100000      65536\n         1  1 1\n"));
    }
}
