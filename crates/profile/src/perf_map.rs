//! Perf maps: `/tmp/perf-PID.map`, in which Java, Node.js, Python and others write the names of functions
//! that they have compiled at run time. A line has begin and size in hexadecimal, and the name.
//!
//! The content is the program's, and so any bytes: what is read and kept is bounded, of a map and of all maps
//! that are read together.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

/// Bytes of a file that are read.
const MOST_BYTES: u64 = 256 << 20;
/// Bytes of a line that are read.
const MOST_LINE: u64 = 4096;
/// Bytes of a name that are kept.
const MOST_NAME: usize = 512;

/// A function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) name: Vec<u8>,
}

/// What may still be read and kept of all maps.
#[derive(Debug)]
pub(crate) struct Allowance {
    bytes: u64,
    names: usize,
    /// Of the names.
    length: usize,
    /// Something was left out for lack of it.
    pub(crate) is_exceeded: bool,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { bytes: 1 << 30, names: 1 << 20, length: 64 << 20, is_exceeded: false }
    }
}

impl Allowance {
    /// Takes a name's share, if there is one.
    fn take(&mut self, name: &[u8]) -> bool {
        let has_room = self.names > 0 && self.length >= name.len();
        if has_room {
            self.names -= 1;
            self.length -= name.len();
        }
        self.is_exceeded |= !has_room;
        has_room
    }

    fn give_back(&mut self, name: &[u8]) {
        self.names += 1;
        self.length += name.len();
    }
}

/// The functions around addresses, which are sorted. Where lines overlap, the later one replaces the earlier
/// one: its code was put into memory that had become free.
pub(crate) fn functions(map: impl Read, addresses: &[u64], allowance: &mut Allowance) -> Vec<Function> {
    let mut functions: BTreeMap<u64, (u64, Vec<u8>)> = BTreeMap::new();
    let most = MOST_BYTES.min(allowance.bytes);
    let mut map = BufReader::new(map.take(most));
    let mut line = Vec::new();
    // What was read before a failure is used.
    while let Ok(1..) = {
        line.clear();
        map.by_ref().take(MOST_LINE).read_until(b'\n', &mut line)
    } {
        if line.last() != Some(&b'\n') {
            let _ = map.skip_until(b'\n');
        }
        let Some((begin, end, name)) = parsed(&line) else { continue };
        let next = addresses.partition_point(|address| *address < begin);
        if addresses.get(next).is_none_or(|address| *address >= end) {
            continue;
        }
        let before = functions.range(..begin).next_back().filter(|(_, (ends, _))| *ends > begin);
        let replaced: Vec<u64> =
            before.into_iter().chain(functions.range(begin..end)).map(|(begin, _)| *begin).collect();
        for begin in replaced {
            if let Some((_, name)) = functions.remove(&begin) {
                allowance.give_back(&name);
            }
        }
        let name = &name[..name.len().min(MOST_NAME)];
        if !allowance.take(name) {
            break;
        }
        functions.insert(begin, (end, name.to_vec()));
    }
    let left = map.get_ref().limit();
    allowance.is_exceeded |= left == 0 && most < MOST_BYTES;
    allowance.bytes -= most - left;
    functions.into_iter().map(|(begin, (end, name))| Function { begin, end, name }).collect()
}

/// Begin, end and name of a line's function.
fn parsed(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut words = line.trim_ascii().splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let digits = str::from_utf8(words.next()?).ok()?;
        u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
    };
    let (begin, size) = (number()?, number()?);
    let name = words.next()?.trim_ascii();
    (size > 0 && !name.is_empty()).then_some((begin, begin.checked_add(size)?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(map: &[u8], addresses: &[u64]) -> Vec<(u64, u64, String)> {
        let functions = functions(map, addresses, &mut Allowance::default()).into_iter();
        functions.map(|of| (of.begin, of.end, String::from_utf8_lossy(&of.name).into_owned())).collect()
    }

    #[test]
    fn functions_with_samples_have_names() {
        let map = b"1000 20 first one\nnonsense\n1020 10 no sample\n0x2000 0x10 second\n3000 0 empty\n4000\n";
        let expected = [(0x1000, 0x1020, "first one".to_owned()), (0x2000, 0x2010, "second".to_owned())];
        assert_eq!(names(map, &[0x101f, 0x2000, 0x2010, 0x3000, 0x4000]), expected);
    }

    #[test]
    fn later_code_replaces_earlier_code_in_the_same_place() {
        let map = b"1000 100 old\n1100 10 beside\n1080 20 new\n";
        let expected = [(0x1080, 0x10a0, "new".to_owned()), (0x1100, 0x1110, "beside".to_owned())];
        assert_eq!(names(map, &[0x1001, 0x1081, 0x1101]), expected);
    }

    #[test]
    fn hostile_maps_give_no_more_than_bounded_names() {
        let long = [b"10 10 ".to_vec(), vec![b'x'; 1 << 20], b"\n20 10 next\n".to_vec()].concat();
        let found = names(&long, &[0x10, 0x20]);
        assert_eq!((found[0].2.len(), found[1].2.as_str(), found.len()), (MOST_NAME, "next", 2));
        let everything = "0 ffffffffffffffff all\n".repeat(1000);
        let addresses: Vec<u64> = (0..1000).collect();
        assert_eq!(names(everything.as_bytes(), &addresses).len(), 1);
        for map in [&b"ffffffffffffffff 2 over\n"[..], b"\0\xff\n \n  \n", b"10 10", b"10 10 \n", b""] {
            assert!(names(map, &[0, 0x10, u64::MAX]).is_empty());
        }
    }

    #[test]
    fn what_is_kept_of_all_maps_is_bounded() {
        let map = b"10 10 a\n10 10 b\n20 10 c\n30 10 dddddddd\n";
        let kept = |mut allowance: Allowance| {
            let of_each: Vec<usize> =
                (0..3).map(|_| functions(&map[..], &[0x10, 0x20, 0x30], &mut allowance).len()).collect();
            (of_each, allowance.is_exceeded)
        };
        assert_eq!(kept(Allowance::default()), (vec![3, 3, 3], false));
        assert_eq!(kept(Allowance { names: 4, ..Allowance::default() }), (vec![3, 1, 0], true));
        assert_eq!(kept(Allowance { length: 12, ..Allowance::default() }), (vec![3, 2, 0], true));
        let bytes = map.len() as u64 + 16;
        assert_eq!(kept(Allowance { bytes, ..Allowance::default() }), (vec![3, 1, 0], true));
    }
}
