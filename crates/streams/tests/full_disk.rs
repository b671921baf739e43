//! A stream that cannot grow any more: the packet that did not fit leaves no bytes, and all earlier ones stay
//! readable.
//!
//! The file size limit imitates a full disk: it also permits part of a write and then fails. It applies to
//! the whole process, hence a test binary of its own.

use std::path::Path;

use tracewing_ctf::index;
use tracewing_ctf::write::PACKET_HEADER_SIZE;
use tracewing_files::Dir;
use tracewing_streams::{PacketTimes, Stream, TraceDir};
use tracewing_units::{Cpu, Cycles};

const LIMIT: u64 = 10_000;

#[test]
fn a_torn_packet_is_cut_off() {
    // SAFETY: the signal would end the process; ignored, the write fails instead.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let limit = libc::rlimit { rlim_cur: LIMIT, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the limit is a live struct.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);

    let folder = tempfile::tempdir().unwrap();
    let trace = TraceDir::new(&Dir::create(folder.path()).unwrap().0).unwrap();
    let mut stream = Stream::create(&trace, "uid0_0", [1; 16], 0, Cpu(0)).unwrap();
    let events = [0_u8; 900];
    let packet = (PACKET_HEADER_SIZE + events.len()) as u64;
    let mut stamp = 0;
    let error = loop {
        stamp += 1;
        let times = PacketTimes { begin: Cycles(stamp), end: Cycles(stamp), lost: 0, skipped: 0 };
        if let Err(error) = stream.write(&events, times) {
            break error;
        }
        assert!(stream.bytes() <= LIMIT);
    };
    // The output of this test may also go to a file.
    let none = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, ..limit };
    // SAFETY: the limit is a live struct.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &none) }, 0);
    assert_eq!(error.source.raw_os_error(), Some(libc::EFBIG), "{error}");
    assert_eq!(stream.packets(), LIMIT / packet);
    assert_ne!(LIMIT % packet, 0, "nothing was torn");
    let size = |path: &Path| std::fs::metadata(path).unwrap().len();
    assert_eq!(size(&folder.path().join("uid0_0")), stream.packets() * packet);
    let index = std::fs::read(folder.path().join("index/uid0_0.idx")).unwrap();
    assert_eq!(index::decode(&index).unwrap().count() as u64, stream.packets());
}
