//! Core files made by hand, whole and damaged.

use std::io::Write;

use proptest::prelude::*;
use tracewing_programs::image::{AddressSpace, CoreDump, Error, Mapping, Memory};

const BASE: u64 = 0x7f00_0000_0000;

/// A core file with one mapping per part: its name, its size, and the bytes that the file holds.
fn core(parts: &[(&str, u64, &[u8])]) -> Vec<u8> {
    let note = note(parts);
    let headers = 64 + 56 * (1 + parts.len());
    let mut out = Vec::new();
    out.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    out.extend([4u16, 62].iter().flat_map(|half| half.to_le_bytes())); // ET_CORE, x86-64
    out.extend(1u32.to_le_bytes());
    out.extend([0u64, 64, 0].iter().flat_map(|word| word.to_le_bytes()));
    out.extend(0u32.to_le_bytes());
    let sizes = [64, 56, 1 + parts.len() as u16, 64, 0, 0];
    out.extend(sizes.iter().flat_map(|half| half.to_le_bytes()));
    let mut segment = |kind: u32, address: u64, offset: usize, held: usize, size: u64| {
        out.extend([kind, 6].iter().flat_map(|word| word.to_le_bytes()));
        let words = [offset as u64, address, 0, held as u64, size, 4];
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    };
    segment(4, 0, headers, note.len(), 0);
    let mut offset = headers + note.len();
    for (number, (_, size, bytes)) in parts.iter().enumerate() {
        segment(1, address(number), offset, bytes.len(), *size);
        offset += bytes.len();
    }
    out.extend(&note);
    parts.iter().for_each(|(_, _, bytes)| out.extend(*bytes));
    out
}

fn address(part: usize) -> u64 {
    BASE + part as u64 * 0x10_0000
}

/// NT_FILE.
fn note(parts: &[(&str, u64, &[u8])]) -> Vec<u8> {
    let mut words = vec![parts.len() as u64, 4096];
    for (number, (_, size, _)) in parts.iter().enumerate() {
        words.extend([address(number), address(number) + size, 0]);
    }
    let mut content: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    parts.iter().for_each(|(name, _, _)| content.extend(name.bytes().chain([0])));
    let head = [5u32, content.len() as u32, 0x4649_4c45];
    let mut out: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
    out.extend(b"CORE\0\0\0\0");
    out.extend(content);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn open(bytes: &[u8]) -> Result<CoreDump, Error> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    CoreDump::open(file.path())
}

fn sample() -> Vec<u8> {
    core(&[("/memfd:a (deleted)", 8192, &[1; 8192]), ("/b", 4096, b""), ("/c", 8192, &[3; 4096])])
}

#[test]
fn what_was_mapped_and_what_is_there() {
    let core = open(&sample()).unwrap();
    let mapping = |part, size, name: &str| {
        let name = Some(name.to_owned());
        Mapping { start: address(part), size, name, ..Mapping::default() }
    };
    let expected = [mapping(0, 8192, "/memfd:a (deleted)"), mapping(1, 4096, "/b"), mapping(2, 8192, "/c")];
    assert_eq!(core.mappings(), expected);
    assert_eq!(core.read(address(0) + 8190, 2).unwrap(), [1, 1]);
    assert_eq!(core.read(address(2), 4096).unwrap(), [3; 4096]);
    for (address, len) in [
        (address(0) + 8190, 3),
        (address(1), 1),
        (address(2) + 4096, 1),
        (address(2), 4097),
        (BASE - 1, 1),
        (u64::MAX, 1),
        (address(0), usize::MAX),
    ] {
        assert!(core.read(address, len).is_none(), "{len} bytes at {address:x}");
    }
}

#[test]
fn cut_short() {
    let whole = sample();
    for len in (0..600).chain((600..=whole.len()).step_by(512)).chain([whole.len()]) {
        // With incomplete headers it is not a core; otherwise some of the rest is missing.
        if let Ok(core) = open(&whole[..len]) {
            assert_eq!(core.read(address(2), 4096).is_some(), len == whole.len());
        }
    }
}

#[test]
fn no_core() {
    let mut program = sample();
    program[16] = 2; // ET_EXEC
    let mut big_endian = sample();
    big_endian[5] = 2;
    for (bytes, reason) in
        [(&program[..], "not a core dump"), (&big_endian, ""), (b"PK\x03\x04 something else", ""), (b"", "")]
    {
        let error = open(bytes).unwrap_err();
        assert!(matches!(&error, Error::NotACore { .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [&*pipe, folder.path()] {
        let error = CoreDump::open(path).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }
    let missing = CoreDump::open("/nonexistent/core".as_ref()).unwrap_err();
    assert!(missing.to_string().starts_with("cannot open /nonexistent/core: "), "{missing}");
}

proptest! {
    #[test]
    fn damaged(changes in prop::collection::vec((0..500usize, any::<u8>()), 1..10)) {
        let mut bytes = sample();
        changes.into_iter().for_each(|(at, value)| bytes[at] = value);
        if let Ok(core) = open(&bytes) {
            for mapping in core.mappings() {
                let _ = core.read(mapping.start, 4096);
            }
        }
    }
}
