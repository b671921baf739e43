//! What readers are sent and reply, and what they make of hostile programs.

use super::*;
use proptest::prelude::*;
use std::io::Write;
use std::time::Duration;
use tracewing_helper::{Limits, MOST_BYTES};
use tracewing_programs::Entry;
use tracewing_testing::{Cause, NOBODY, am_root, skip};

fn own() -> Pid {
    Pid::from_unsigned(std::process::id())
}

fn found(address: u64) -> Found {
    let (object, word) = ("x".repeat(5000), Some((1, 2)));
    let entry = Entry { address, loaded: None, word, number: 3, object, range: 4..5 };
    Found { entry, has_started: address.is_multiple_of(2) }
}

/// The same files, as the other process has them.
fn copies(files: &[BorrowedFd<'_>]) -> Vec<OwnedFd> {
    files.iter().map(|file| file.try_clone_to_owned().unwrap()).collect()
}

#[test]
fn sources_are_read_as_they_were_written() {
    let file = || File::open("/proc/self/exe").unwrap();
    let memory = Source::open(own(), Some(Timestamp::from_ns(-5))).unwrap();
    let executable = Source::Executable { path: "/bin/\u{e9}".into(), file: file() };
    for source in [memory, executable] {
        let (bytes, files) = encode(&source);
        let read = decode(&bytes, copies(&files)).unwrap();
        match (&source, &read) {
            (
                Source::Memory { settled, executable, .. },
                Source::Memory { settled: other, executable: path, .. },
            ) => {
                assert_eq!((settled, executable), (other, path));
            }
            (Source::Executable { path, .. }, Source::Executable { path: other, .. }) => {
                assert_eq!(path, other)
            }
            _ => panic!("{read:?}"),
        }
        assert!((0..bytes.len()).all(|len| decode(&bytes[..len], copies(&files)).is_none()));
        assert!(decode(&bytes, copies(&files[1..])).is_none());
        assert!(decode(&bytes, copies(&[&files[..], &files[..1]].concat())).is_none());
    }
}

#[test]
fn replies_are_read_as_they_were_written() {
    let all: Vec<_> = (0..MOST_COPIES as u64).map(found).collect();
    for found in [None, Some(&all[..]), Some(&[])] {
        let bytes = encode_found(found);
        assert!(bytes.len() <= MOST_BYTES, "{}", bytes.len());
        let read = decode_found(&bytes).unwrap();
        let shown =
            |all: &[Found]| all.iter().map(|one| (one.entry.address, one.has_started)).collect::<Vec<_>>();
        assert_eq!(read.as_deref().map(shown), found.map(shown));
        assert!(bytes.len() > 200 || (0..bytes.len()).all(|len| decode_found(&bytes[..len]).is_none()));
    }
    let more: Vec<_> = (0..=MOST_COPIES as u64).map(found).collect();
    let mut bytes = encode_found(Some(&more));
    assert_eq!(decode_found(&bytes).unwrap().map(|found| found.len()), Some(MOST_COPIES));
    bytes[1..3].copy_from_slice(&(MOST_COPIES as u16 + 1).to_ne_bytes());
    bytes.extend(&bytes.clone()[3..]);
    assert_eq!(decode_found(&bytes), None);
    assert_eq!(decode_found(&[0, 1]), None);
}

#[test]
fn what_is_no_request_has_no_reply() {
    assert!(read(b"nonsense", Vec::new()).is_empty() && read(&[], Vec::new()).is_empty());
    let (bytes, files) = (encode(&Source::open(own(), None).unwrap()).0, Vec::new());
    assert!(read(&bytes, files).is_empty());
    // Files that are not a process's.
    let zero = || File::open("/dev/zero").unwrap().into();
    let null = || File::open("/dev/null").unwrap().into();
    assert_eq!(decode_found(&read(&bytes, vec![zero(), null()])), Some(None));
}

#[test]
fn the_user_with_the_fewest_rights_is_the_owner() {
    let owner = |uid: &str, gid: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("Name:\tx\nUid:\t{uid}\nGid:\t{gid}\n")).unwrap();
        owner(&Status::read(file.path()).unwrap()).map(|User { uid, gid }| (uid, gid))
    };
    assert_eq!(owner("0\t0\t0\t0", "0\t0\t0\t0"), Some((0, 0)));
    assert_eq!(owner("5\t6\t7\t6", "0\t0\t9\t0"), Some((6, 9)));
    assert_eq!(owner("5\t0\t0\t0", "8\t0\t0\t0"), Some((5, 8)));
    assert_eq!(owner("5\t0", "8\t0\t0\t0"), None);
}

proptest! {
    #[test]
    fn nonsense_is_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..100), at in 0_usize..100) {
        let entry = Entry { object: "/lib/a.so".to_owned(), ..found(3).entry };
        let valid = encode_found(Some(&[Found { entry, has_started: true }]));
        let mixed: Vec<u8> = valid.iter().take(at).chain(&bytes).copied().collect();
        if let Some(found) = decode_found(&mixed) {
            prop_assert_eq!(decode_found(&encode_found(found.as_deref())), Some(found));
        }
        decode(&mixed, vec![File::open("/dev/null").unwrap().into()]);
    }
}

/// Of a process that is not there, and whose memory and list of mappings can be anything.
fn find_by_reader(readers: &Readers, memory: File, maps: File) -> Result<Vec<Found>, Unread> {
    let source = Source::Memory { memory, maps, executable: "/bin/x".into(), settled: Some(Timestamp::MIN) };
    let (bytes, files) = encode(&source);
    readers.reply(User { uid: NOBODY, gid: NOBODY }, &bytes, &files)
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    file
}

/// Lines of `maps` for objects, one a page.
fn lines(count: usize) -> Vec<u8> {
    let line = |page: usize| format!("{:x}-{:x} r-xp 00000000 08:01 9 /x\n", page * 4096, (page + 1) * 4096);
    (1..=count).map(line).collect::<String>().into_bytes()
}

/// A header of an ELF file for x86-64 with so many program headers, which begin with itself, and are of one
/// kind: each of its bytes is what it is in the header, or what follows.
fn header(segments: u16) -> Vec<u8> {
    let mut header = vec![0xff; 4096];
    header[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    header[16..20].copy_from_slice(&[3, 0, 62, 0]);
    header[32..40].copy_from_slice(&64_u64.to_le_bytes());
    header[54..58].copy_from_slice(&[56_u16.to_le_bytes(), segments.to_le_bytes()].concat());
    for (number, segment) in header[64..].chunks_exact_mut(56).enumerate() {
        segment[..8].copy_from_slice(&[1 + (number as u8 % 4), 0, 0, 0, 7, 0, 0, 0]);
        segment[8..16].fill(0);
    }
    header
}

#[test]
fn hostile_programs_are_read_or_refused_and_harm_no_other() {
    if !am_root() {
        return skip(Cause::Root, "only root becomes another user");
    }
    let start = |limits| Readers(AsUsers::start([c"starts", c"tracewing-reads"], limits, read).unwrap());
    let limits = Limits { time: Duration::from_secs(60), memory: 256 << 20 };
    let readers = start(limits);
    // As many objects as are read, with as many headers as are read.
    let page = header(72);
    let memory = file(&page.repeat(8193));
    assert!(matches!(find_by_reader(&readers, memory, file(&lines(8192))), Ok(found) if found.is_empty()));
    for maps in [&b"nonsense"[..], b"0-ffffffffffffffff r-xp 00000000 08:01 9 /x", &[0xff; 1 << 20]] {
        assert!(find_by_reader(&readers, file(&page), file(maps)).is_ok());
    }
    // A list that never ends.
    let (pipe, _write) = rustix::pipe::pipe().unwrap();
    let short = start(Limits { time: Duration::from_millis(200), ..limits });
    let found = find_by_reader(&short, file(&page), File::from(pipe));
    assert!(matches!(found, Err(Unread::Late)), "{found:?}");
    assert!(find_by_reader(&readers, file(&page), File::open("/dev/zero").unwrap()).is_ok());
    // More than there is room for.
    let small = start(Limits { memory: 8 << 20, ..limits });
    let found = find_by_reader(&small, file(&page), file(&lines(1_500_000)));
    assert!(matches!(found, Err(Unread::Failed | Unread::Nothing)), "{found:?}");
    assert!(find_by_reader(&small, file(&page), file(&lines(10))).is_ok());
}
