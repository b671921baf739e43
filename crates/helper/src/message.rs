//! One packet of the channel between a recorder and its helper (`AF_UNIX`, `SOCK_SEQPACKET`):
//!
//! | offset | type | field |
//! |---|---|---|
//! | 0 | u32 | `MAGIC` |
//! | 4 | u32 | number of bytes after this header, at most [`MOST_BYTES`] |
//! | 8 | u64 | number of the request; a reply has that of its request. 0: the helper is ready |
//! | 16 | | the bytes |
//!
//! Numbers are in the machine's byte order: both ends are one executable. Descriptors, at most
//! [`MOST_FILES`], come along as `SCM_RIGHTS`; those that a refused packet has brought are closed.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Maximum number of bytes of a request, and of a reply.
pub const MOST_BYTES: usize = 48 << 10;

/// Maximum number of descriptors of a request, and of a reply.
pub const MOST_FILES: usize = 64;

/// First bytes of each packet.
const MAGIC: u32 = u32::from_ne_bytes(*b"twH1");

const HEADER: usize = 16;

/// A request, as the helper gets it.
#[derive(Debug)]
pub struct Request {
    /// Number by which the recorder knows the reply.
    pub number: u64,
    /// What is requested.
    pub bytes: Vec<u8>,
    /// Descriptors that came along.
    pub files: Vec<OwnedFd>,
}

/// The answer to a request.
#[derive(Debug, Default)]
pub struct Reply {
    /// What is answered, at most [`MOST_BYTES`].
    pub bytes: Vec<u8>,
    /// Descriptors that come along, at most [`MOST_FILES`].
    pub files: Vec<OwnedFd>,
}

impl Reply {
    /// A reply without descriptors.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), files: Vec::new() }
    }

    /// The same with a descriptor more.
    #[must_use]
    pub fn with(mut self, file: OwnedFd) -> Self {
        self.files.push(file);
        self
    }
}

/// What a receiver gets.
#[derive(Debug)]
pub(crate) enum Received {
    Packet(Request),
    /// No packet has arrived yet.
    Nothing,
    /// The other end is closed.
    End,
    /// A packet of another layout.
    Wrong,
}

/// Sends a packet. Waits until there is room for it, unless the flags say otherwise.
pub(crate) fn send(
    channel: BorrowedFd<'_>,
    number: u64,
    bytes: &[u8],
    files: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<()> {
    if bytes.len() > MOST_BYTES || files.len() > MOST_FILES {
        return Err(Errno::MSGSIZE.into());
    }
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&MAGIC.to_ne_bytes());
    header[4..8].copy_from_slice(&(bytes.len() as u32).to_ne_bytes());
    header[8..].copy_from_slice(&number.to_ne_bytes());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    let parts = [IoSlice::new(&header), IoSlice::new(bytes)];
    let flags = flags | SendFlags::NOSIGNAL;
    rustix::io::retry_on_intr(|| sendmsg(channel, &parts, &mut control, flags))?;
    Ok(())
}

/// Receives a packet. Waits for it, unless the flags say otherwise.
pub(crate) fn receive(channel: BorrowedFd<'_>, flags: RecvFlags) -> Received {
    let (mut header, mut bytes) = ([0; HEADER], vec![0; MOST_BYTES]);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = rustix::io::retry_on_intr(|| {
        let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(&mut bytes)];
        recvmsg(channel, &mut parts, &mut control, flags)
    });
    let received = match received {
        Ok(received) => received,
        Err(Errno::AGAIN) => return Received::Nothing,
        Err(_) => return Received::End,
    };
    let mut files = Vec::new();
    let mut is_other = false;
    for message in control.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(some) => files.extend(some),
            _ => is_other = true,
        }
    }
    // A packet of no bytes, which is the same to the kernel, is not valid either.
    if received.bytes == 0 {
        return Received::End;
    }
    let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let is_cut = received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    let len = received.bytes.checked_sub(HEADER);
    if is_cut || is_other || word(0) != MAGIC || len != Some(word(4) as usize) {
        return Received::Wrong;
    }
    bytes.truncate(word(4) as usize);
    bytes.shrink_to_fit();
    let number = u64::from_ne_bytes(header[8..].try_into().expect("eight bytes"));
    Received::Packet(Request { number, bytes, files })
}

/// The descriptors of a reply, as they are sent.
pub(crate) fn borrowed(files: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    files.iter().map(AsFd::as_fd).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    fn next(channel: &OwnedFd) -> Received {
        receive(channel.as_fd(), RecvFlags::DONTWAIT)
    }

    #[test]
    fn a_packet_arrives_with_its_descriptors() {
        let (here, there) = pair();
        assert!(matches!(next(&there), Received::Nothing));
        let files = vec![here.as_fd(); MOST_FILES];
        let bytes = vec![7; MOST_BYTES];
        send(here.as_fd(), 5, &bytes, &files, SendFlags::empty()).unwrap();
        let Received::Packet(request) = next(&there) else { panic!("a packet") };
        assert_eq!((request.number, request.bytes, request.files.len()), (5, bytes, MOST_FILES));
        drop(request.files);
        drop(here);
        assert!(matches!(next(&there), Received::End));
    }

    #[test]
    fn what_is_too_much_is_not_sent() {
        let (here, _there) = pair();
        let send = |bytes: &[u8], files: &[_]| send(here.as_fd(), 1, bytes, files, SendFlags::empty());
        assert!(send(&vec![0; MOST_BYTES + 1], &[]).is_err());
        assert!(send(&[], &vec![here.as_fd(); MOST_FILES + 1]).is_err());
    }

    #[test]
    fn other_packets_are_wrong() {
        let good = |len: u32| {
            let mut packet = MAGIC.to_ne_bytes().to_vec();
            packet.extend(len.to_ne_bytes());
            packet.extend(1_u64.to_ne_bytes());
            packet
        };
        let mut other_magic = good(0);
        other_magic[0] ^= 1;
        let mut longer = good(3);
        longer.extend([0; 4]);
        let mut too_long = good(MOST_BYTES as u32);
        too_long.extend(vec![0; MOST_BYTES + 1]);
        let cases = [good(1), good(u32::MAX), good(0)[..15].to_vec(), vec![0], other_magic, longer, too_long];
        for packet in cases {
            let (here, there) = pair();
            rustix::net::send(&here, &packet, SendFlags::empty()).unwrap();
            assert!(matches!(next(&there), Received::Wrong), "{} bytes", packet.len());
        }
        let (here, there) = pair();
        rustix::net::send(&here, &good(0), SendFlags::empty()).unwrap();
        assert!(matches!(next(&there), Received::Packet(_)));
    }
}
