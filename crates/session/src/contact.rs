//! Connections to recorders, by the folders of their sockets; and why there is none: no recorder has the
//! folder, or one does not answer, or this cannot be found out now.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, major, minor, openat, statat};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{connect, recv, send, socket_with};
use tracewing_abi::CONTROL_SOCKET;
use tracewing_units::Pid;

use crate::credentials::{Peer, is_alive, peer, try_pin, users};
use crate::socket;

/// Why a folder gives no recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It has none that runs, or none of this user.
    NoRecorder,
    /// It has one that does not answer.
    Silent(Pid),
    /// It may have one.
    Unknown(Errno),
}

impl From<Errno> for Absent {
    fn from(error: Errno) -> Self {
        let is_none = [
            Errno::NOENT,
            Errno::NOTDIR,
            Errno::LOOP,
            Errno::ACCESS,
            Errno::PERM,
            Errno::CONNREFUSED,
            Errno::CONNRESET,
            Errno::PROTOTYPE,
        ];
        if is_none.contains(&error) { Self::NoRecorder } else { Self::Unknown(error) }
    }
}

/// A connection to a recorder, its process id, and its process.
pub(crate) type Connection = (OwnedFd, Pid, OwnedFd);

/// A connection to the recorder of a user with this folder, on which nothing takes longer than `patience`, or
/// without it nothing waits at all.
pub(crate) fn connection(folder: &Path, user: u32, patience: Option<Duration>) -> Result<Connection, Absent> {
    const NOFOLLOW: AtFlags = AtFlags::SYMLINK_NOFOLLOW;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, flags, Mode::empty())?;
    let of_folder = fstat(&folder)?;
    if of_folder.st_uid != user || of_folder.st_mode & 0o022 != 0 {
        return Err(Absent::NoRecorder);
    }
    let of_socket = statat(&folder, CONTROL_SOCKET, NOFOLLOW)?;
    if of_socket.st_uid != of_folder.st_uid || FileType::from_raw_mode(of_socket.st_mode) != FileType::Socket
    {
        return Err(Absent::NoRecorder);
    }
    let waits = if patience.is_some() { SocketFlags::empty() } else { SocketFlags::NONBLOCK };
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | waits, None)?;
    if patience.is_some() {
        // Also of the time that a full backlog may take.
        set_socket_timeout(&socket, Timeout::Send, patience)?;
        set_socket_timeout(&socket, Timeout::Recv, patience)?;
    }
    connect(&socket, &socket::within(&folder, CONTROL_SOCKET)?).map_err(|error| match error {
        // Those that have asked before still wait.
        Errno::AGAIN => match holder(&of_folder) {
            Ok(Some(pid)) => Absent::Silent(pid),
            // One of another PID namespace, which is asked nothing, either.
            Ok(None) => Absent::NoRecorder,
            Err(_) => Absent::Unknown(error),
        },
        error => error.into(),
    })?;
    // Its user can have put another one's socket in that place meanwhile, by a link.
    let listener = peer(socket.as_fd()).filter(|listener: &Peer| listener.uid == user);
    let listener = listener.ok_or(Absent::NoRecorder)?;
    let process = match try_pin(socket.as_fd(), listener) {
        Ok(process) if is_alive(&process) => process,
        Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => return Err(Absent::Unknown(error)),
        _ => return Err(Absent::NoRecorder),
    };
    Ok((socket, listener.pid, process))
}

/// The process of the folder's user that holds the lock of a folder, as a recorder does while it lives.
///
/// # Errors
/// The locks cannot be read.
fn holder(folder: &Stat) -> io::Result<Option<Pid>> {
    let locks = fs::read_to_string("/proc/locks")?;
    let (major, minor) = (major(folder.st_dev), minor(folder.st_dev));
    let place = format!("{major:02x}:{minor:02x}:{}", folder.st_ino);
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, at, ..] = words[..] else { return None };
        (at == place).then(|| pid.parse().ok()).flatten()
    };
    let pid = locks.lines().find_map(of_line).map(Pid);
    Ok(pid.filter(|pid| users(*pid).is_some_and(|users| users.contains(&folder.st_uid))))
}

/// The answer to a question; `None` if none came in time.
pub(crate) fn asked<'a>(connection: &OwnedFd, question: &[u8], buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    retry_on_intr(|| send(connection, question, SendFlags::NOSIGNAL)).ok()?;
    let (len, _) = retry_on_intr(|| recv(connection, &mut *buffer, RecvFlags::empty())).ok()?;
    buffer.get(..len).filter(|answer| !answer.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FlockOperation, flock};
    use rustix::net::{bind, listen};
    use rustix::process::getuid;

    const BRIEFLY: Duration = Duration::from_millis(10);

    fn socket() -> OwnedFd {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
    }

    #[test]
    fn one_that_accepts_no_connection_is_there_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let user = getuid().as_raw();
        let connected = || connection(folder.path(), user, Some(BRIEFLY));
        assert_eq!(connected().unwrap_err(), Absent::NoRecorder, "no socket");
        let opened = openat(CWD, folder.path(), socket::FOLDER, Mode::empty()).unwrap();
        let (listener, address) = (socket(), socket::within(&opened, CONTROL_SOCKET).unwrap());
        bind(&listener, &address).unwrap();
        assert_eq!(connected().unwrap_err(), Absent::NoRecorder, "what a killed recorder leaves");
        listen(&listener, 0).unwrap();
        let own = Pid(std::process::id() as i32);
        assert_eq!(connected().unwrap().1, own);
        let mut waiting = Vec::new();
        while waiting.len() < 100 {
            let one = socket();
            if connect(&one, &address) == Err(Errno::AGAIN) {
                break;
            }
            waiting.push(one);
        }
        assert_eq!(connected().unwrap_err(), Absent::NoRecorder, "it holds no lock");
        flock(&opened, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(connected().unwrap_err(), Absent::Silent(own));
        drop(listener);
        assert_eq!(connected().unwrap_err(), Absent::NoRecorder);
    }
}
