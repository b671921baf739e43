//! The doors of processes that the recorder has attached to, and the connections that come through them.
//!
//! The process at the other end of a door, or of a connection, may have copies of the recorder's own ends:
//! it has created both ends of a door, and has sent a connection's end. So the recorder never waits on them,
//! whatever their flags are now, and removes them from the loop before it closes them. It accepts only
//! connections that, according to the kernel, were made by the process that sent them.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use tracewing_abi::message::door::Knock;
use tracewing_units::Pid;

use crate::attached::{Entered, dispose, is_connection};
use crate::credentials::peer;
use crate::poll::{Poll, Token};

/// `SCM_PIDFD` of the kernel's `linux/socket.h`, which a process can have the recorder's end give.
const PIDFD: libc::c_int = 4;

/// Connections that are taken of one door in one turn of the loop.
pub(crate) const BATCH: usize = 64;

/// A socket that a running process has opened, by which its agent can join.
pub(crate) struct Door {
    file: OwnedFd,
    /// The process that has opened it.
    pub(crate) pid: Pid,
    /// Filters for system calls that its process has and that let through what the agent does.
    pub(crate) filters: u32,
}

/// What has arrived at a door.
#[derive(Debug)]
pub(crate) enum Knocked {
    Nothing,
    Connection(OwnedFd, Knock),
    /// No process has its other end any more, or what came is invalid.
    End,
}

/// All of them, by their numbers in the loop.
#[derive(Default)]
pub(crate) struct Doors {
    doors: BTreeMap<u64, Door>,
    next: u64,
    are_closed: bool,
}

impl Doors {
    /// Takes a door of a process. `false` where it cannot be listened to.
    pub(crate) fn add(&mut self, pid: Pid, entered: Entered, poll: &Poll) -> bool {
        let Entered { door: file, filters, .. } = entered;
        let number = self.next;
        let is_added = self.are_closed || poll.add(&file, Token::Door(number), EventFlags::IN).is_ok();
        if is_added {
            self.next += 1;
            self.doors.insert(number, Door { file, pid, filters });
        }
        is_added
    }

    pub(crate) fn get(&mut self, number: u64) -> Option<&mut Door> {
        self.doors.get_mut(&number)
    }

    /// Removes a door that is of no use any more.
    pub(crate) fn remove(&mut self, number: u64, poll: &Poll) -> Option<Door> {
        let door = self.doors.remove(&number)?;
        poll.remove(&door.file);
        Some(door)
    }

    /// Closes all of them at the end of the recording, and gives their processes.
    pub(crate) fn clear(&mut self, poll: &Poll) -> BTreeSet<Pid> {
        self.doors.values().for_each(|door| poll.remove(&door.file));
        std::mem::take(&mut self.doors).into_values().map(|door| door.pid).collect()
    }

    /// Connections to join that have come and were not taken: as many of each as are taken in a turn.
    pub(crate) fn take_waiting(&self) -> Vec<OwnedFd> {
        let next = |door: &Door| match door.knocked() {
            Knocked::Connection(socket, Knock::Join) => Some(socket),
            Knocked::Connection(_, Knock::Ask) | Knocked::Nothing | Knocked::End => None,
        };
        self.doors.values().flat_map(|door| (0..BATCH).map_while(move |_| next(door))).collect()
    }

    /// New connections wait until a later look.
    pub(crate) fn close(&mut self, poll: &Poll) {
        self.doors.values().for_each(|door| poll.remove(&door.file));
        self.are_closed = true;
    }

    /// Listens to them again.
    pub(crate) fn open(&mut self, poll: &Poll) {
        if std::mem::take(&mut self.are_closed) {
            // One that cannot be polled is treated as one that no process has.
            self.doors
                .retain(|number, door| poll.add(&door.file, Token::Door(*number), EventFlags::IN).is_ok());
        }
    }

    pub(crate) fn are_closed(&self) -> bool {
        self.are_closed
    }
}

impl Door {
    /// Takes what has come first.
    pub(crate) fn knocked(&self) -> Knocked {
        let mut message = [0; Knock::SIZE + 1];
        let Some((len, Come { files, sender })) = receive(self.file.as_fd(), &mut message) else {
            return Knocked::Nothing;
        };
        let mut files = files.into_iter();
        let (first, more) = (files.next(), files.next().is_some());
        let is_sent_by_its_maker = |file: &OwnedFd| {
            let maker = peer(file.as_fd()).map(|peer| peer.pid);
            maker.is_some() && maker == sender
        };
        match (first, Knock::decode(&message[..len])) {
            (Some(file), Some(knock))
                if !more && is_connection(file.as_fd()) && is_sent_by_its_maker(&file) =>
            {
                Knocked::Connection(file, knock)
            }
            (first, _) => {
                first.into_iter().for_each(dispose);
                Knocked::End
            }
        }
    }
}

/// What comes along with a message.
#[derive(Default)]
struct Come {
    files: Vec<OwnedFd>,
    sender: Option<Pid>,
}

/// Room for credentials and a descriptor, aligned as control data wants.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; 64]);

/// Receives a message, of 0 bytes where there is no other end. `None` where there is none yet.
fn receive(file: BorrowedFd<'_>, message: &mut [u8]) -> Option<(usize, Come)> {
    let mut control = Control([MaybeUninit::uninit(); 64]);
    let mut part = libc::iovec { iov_base: message.as_mut_ptr().cast(), iov_len: message.len() };
    // SAFETY: all-zero is a valid msghdr.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = size_of::<Control>() as _; // the field's type is the C library's own
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: the header describes buffers of ours.
    let len = unsafe { libc::recvmsg(file.as_raw_fd(), &raw mut header, flags) };
    let Ok(len) = usize::try_from(len) else {
        let error = std::io::Error::last_os_error().raw_os_error();
        let is_later = matches!(error, Some(libc::EAGAIN | libc::EINTR));
        return (!is_later).then(|| (0, Come::default()));
    };
    Some((len, come(&header)))
}

/// Takes ownership of all descriptors that have come, so that they are closed.
fn come(header: &libc::msghdr) -> Come {
    let mut come = Come::default();
    // SAFETY: the kernel has filled the control data in; the macros give null or a whole cmsghdr inside it.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: as above.
    while let Some(one) = unsafe { next.as_ref() } {
        // SAFETY: as above; CMSG_LEN only computes.
        let (data, empty) = unsafe { (libc::CMSG_DATA(one), libc::CMSG_LEN(0) as usize) };
        let len: usize = one.cmsg_len as _; // the field's type is the C library's own
        let size = len.saturating_sub(empty);
        match (one.cmsg_level, one.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) if size >= size_of::<libc::ucred>() => {
                // SAFETY: the buffer has this many bytes.
                let sender = unsafe { data.cast::<libc::ucred>().read_unaligned() };
                come.sender = (sender.pid > 0).then_some(Pid(sender.pid));
            }
            (libc::SOL_SOCKET, libc::SCM_RIGHTS | PIDFD) => {
                for at in 0..size / size_of::<libc::c_int>() {
                    // SAFETY: the message has this many descriptors, which the kernel has just made for this
                    // process.
                    let file = unsafe { data.cast::<libc::c_int>().add(at).read_unaligned() };
                    // SAFETY: as above.
                    come.files.extend((file >= 0).then(|| unsafe { OwnedFd::from_raw_fd(file) }));
                }
            }
            _ => {}
        }
        // SAFETY: the header as the kernel has left it, and a part of it.
        next = unsafe { libc::CMSG_NXTHDR(header, next) };
    }
    come
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::set_socket_passcred;
    use rustix::net::{
        SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg, socketpair,
    };
    use std::fs::File;
    use std::io::IoSlice;

    fn pair(kind: SocketType) -> (OwnedFd, OwnedFd) {
        socketpair(rustix::net::AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap()
    }

    /// A door, and the other end, which a process has.
    fn door() -> (Door, OwnedFd) {
        let (file, other) = pair(SocketType::SEQPACKET);
        set_socket_passcred(&file, true).unwrap();
        (Door { file, pid: Pid(1), filters: 0 }, other)
    }

    fn send(to: &OwnedFd, message: &[u8], files: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(files)));
        }
        sendmsg(to, &[IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL).unwrap();
    }

    fn descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").unwrap().count()
    }

    #[test]
    fn connections_come_by_a_door() {
        let (door, other) = door();
        assert!(matches!(door.knocked(), Knocked::Nothing));
        for knock in [Knock::Join, Knock::Ask] {
            let (_kept, sent) = pair(SocketType::SEQPACKET);
            send(&other, &knock.encode(), &[sent.as_fd()]);
            assert!(matches!(door.knocked(), Knocked::Connection(_, come) if come == knock));
        }
        // Whatever the process has done to the recorder's end.
        rustix::io::ioctl_fionbio(&door.file, false).unwrap();
        assert!(matches!(door.knocked(), Knocked::Nothing));
        drop(other);
        assert!(matches!(door.knocked(), Knocked::End));
    }

    #[test]
    fn what_is_no_connection_ends_a_door() {
        let seqpacket = pair(SocketType::SEQPACKET);
        let (stream, datagram) = (pair(SocketType::STREAM), pair(SocketType::DGRAM));
        let listener = std::os::unix::net::UnixListener::bind_addr(
            &<std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(
                format!("tracewing-doors-{}", std::process::id()),
            )
            .unwrap(),
        )
        .unwrap();
        let null = File::open("/dev/null").unwrap();
        let (_, pipe) = rustix::pipe::pipe().unwrap();
        let good = seqpacket.0.as_fd();
        let join = Knock::Join.encode();
        let many = [good; 64];
        let cases: [(&[u8], &[BorrowedFd<'_>]); 10] = [
            (&join, &[]),
            (&join, &[null.as_fd()]),
            (&join, &[pipe.as_fd()]),
            (&join, &[stream.0.as_fd()]),
            (&join, &[datagram.0.as_fd()]),
            (&join, &[listener.as_fd()]),
            (&join, &[good, null.as_fd()]),
            (&join, &many),
            (b"nonsense", &[good]),
            (b"twD", &[good]),
        ];
        let before = descriptors();
        for (number, (message, files)) in cases.into_iter().enumerate() {
            let (door, other) = door();
            send(&other, message, files);
            assert!(matches!(door.knocked(), Knocked::End), "{number}");
        }
        // Threads close what has come.
        let begin = std::time::Instant::now();
        while descriptors() > before {
            assert!(begin.elapsed().as_secs() < 30, "{} descriptors are left", descriptors() - before);
            std::thread::yield_now();
        }
    }

    /// A process could pass on a connection that a process of root has made to it.
    #[test]
    fn a_process_brings_only_connections_of_its_own() {
        let (door, other) = door();
        let (_kept, made_here) = pair(SocketType::SEQPACKET);
        // SAFETY: the child makes only system calls.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_sent =
                std::panic::catch_unwind(|| send(&other, &Knock::Join.encode(), &[made_here.as_fd()]));
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(is_sent.is_err())) };
        }
        let mut status = -1;
        // SAFETY: the child just made.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
        assert!(matches!(door.knocked(), Knocked::End));
    }
}
