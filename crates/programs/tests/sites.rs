//! The sites of this program: from its file, also stripped and damaged, and from this process while they are
//! switched.

use std::fs::{self, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use object::LittleEndian;
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _};
use proptest::prelude::*;
use tracewing_abi::schema::{Base, Class, Field, Level, Scalar, Shape};
use tracewing_abi::site::{INSTRUCTION, Kind, Record};
use tracewing_programs::image::{Error, Files, Image, Process};
use tracewing_programs::sites::{Listing, State};
use tracewing_trigger::{Place, Site, is_on, objects, switch};
use tracewing_units::Pid;

const fn field(name: &'static str, shape: Shape, scalar: Scalar) -> Field<'static> {
    Field::plain(name, shape, scalar)
}

const FIELDS: &[Field<'static>] = &[
    Field { unit: "ns", base: Base::Hexadecimal, ..field("time", Shape::One, Scalar::U64) },
    field("customer", Shape::Text, Scalar::U8),
    Field { length: 6, ..field("address", Shape::Array, Scalar::I16) },
    field("depths", Shape::Slice, Scalar::F32),
    field("parent", Shape::Optional, Scalar::U32),
    Field { labels: &[(0, "idle"), (u64::MAX, "busy")], ..field("state", Shape::Enumeration, Scalar::I8) },
];

struct Full;
impl Place for Full {
    const SITE: &'static Site = &Site {
        class: &Class {
            name: "sites:full",
            level: Level::Warn,
            major: 7,
            description: "has every kind of field",
            print: "{time}",
            file: "declared.rs",
            line: 70_000,
            fields: FIELDS,
        },
        owner: Site::no_owner,
        file: file!(),
        line: 17,
        kind: Kind::Callback,
    };
}

/// The copies have different lines: an optimising compiler would merge equal functions, and with them the
/// sites.
struct Bare<T>(T);
impl<T> Place for Bare<T> {
    const SITE: &'static Site = &Site {
        class: &Class { level: Level::Trace, ..Class::named("sites:bare") },
        owner: Site::no_owner,
        file: file!(),
        line: 18 + size_of::<T>() as u32,
        kind: Kind::Event,
    };
}

#[inline(never)]
fn full() -> bool {
    is_on::<Full>()
}

#[inline(never)]
fn bare<T>() -> bool {
    is_on::<Bare<T>>()
}

/// The four copies of the site in this program.
fn four() -> [bool; 4] {
    [full(), bare::<u8>(), bare::<u16>(), bare::<String>()]
}

fn me() -> PathBuf {
    std::env::current_exe().unwrap()
}

fn listing_of(path: &Path) -> Listing {
    Listing::of(&Files::open(&[path]).unwrap())
}

#[track_caller]
fn check_file(path: &Path) {
    let files = Files::open(&[path]).unwrap();
    let listing = Listing::of(&files);
    assert_eq!(listing.remarks, [""; 0]);
    let names: Vec<_> = listing.sites.iter().map(|site| site.class.name.as_str()).collect();
    assert_eq!(names, ["sites:bare", "sites:bare", "sites:bare", "sites:full"]);
    let full = &listing.sites[3];
    assert_eq!((full.line, full.kind, full.state, full.object), (17, Kind::Callback, State::Off, 0));
    assert_eq!(full.file, file!());
    let class = &full.class;
    assert_eq!((class.level, class.major, class.line), (Level::Warn, 7, 70_000));
    assert_eq!((class.description.as_str(), class.print.as_str()), ("has every kind of field", "{time}"));
    let types: Vec<_> = class.fields.iter().map(|field| format!("{} {field}", field.name)).collect();
    let expected = [
        "time u64",
        "customer str",
        "address [i16; 6]",
        "depths [f32]",
        "parent Option<u32>",
        "state enum i8",
    ];
    assert_eq!(types, expected);
    assert_eq!((class.fields[0].unit.as_str(), class.fields[0].base), ("ns", Base::Hexadecimal));
    assert_eq!(class.fields[5].labels, [(0, "idle".to_owned()), (u64::MAX, "busy".to_owned())]);
}

#[test]
fn a_programs_file_lists_its_sites() {
    // Not called: another test puts a breakpoint there.
    std::hint::black_box(four as fn() -> [bool; 4]);
    check_file(&me());
}

#[test]
fn a_stripped_file_lists_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let stripped = folder.path().join("stripped");
    match Command::new("strip").arg("-o").arg(&stripped).arg(me()).status() {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            return tracewing_testing::skip(
                tracewing_testing::Cause::Program("strip"),
                format_args!("strip cannot be started: {error}"),
            );
        }
    }
    check_file(&stripped);
    // Section headers are not needed either: e_shoff, e_shnum and e_shstrndx say that there are none.
    let mut bytes = fs::read(&stripped).unwrap();
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    fs::write(&stripped, bytes).unwrap();
    check_file(&stripped);
}

/// This process's records of the class `sites:full`.
fn full_records() -> Vec<&'static Record> {
    objects()
        .sites()
        .filter(|record| record.site().class.name == "sites:full")
        .map(|record| {
            // SAFETY: records are static data of their object, and this program is never unloaded.
            unsafe { &*std::ptr::from_ref(record) }
        })
        .collect()
}

#[test]
fn a_process_shows_which_are_on() {
    let state = || {
        let listing = Listing::of(&Process::open(Pid::from_unsigned(std::process::id())).unwrap());
        assert_eq!(listing.remarks, [""; 0]);
        assert_eq!(listing.sites.len(), 4);
        assert!(listing.sites[..3].iter().all(|site| site.state == State::Off));
        (listing.sites[3].state, listing.sites[3].address)
    };
    let records = full_records();
    let address = records[0].address().unwrap() as u64;
    assert_eq!(state(), (State::Off, Some(address)));
    let _ = switch(&[(records[0], true)]).unwrap();
    assert!(full());
    assert_eq!(state(), (State::On, Some(address)));
    let memory = OpenOptions::new().read(true).write(true).open("/proc/self/mem").unwrap();
    let mut whole = [0; INSTRUCTION];
    memory.read_exact_at(&mut whole, address).unwrap();
    for (at, byte, expected) in [
        (0, 0xcc, State::Breakpoint { is_on: true }),
        (3, 0xcc, State::On),
        (0, 0x90, State::Unknown(0x90)),
        (1, 0x0b, State::Unknown(0x0b)),
        (2, 0x44, State::Unknown(0x44)),
        (3, 0xe8, State::Unknown(0xe8)),
    ] {
        memory.write_all_at(&[byte], address + at).unwrap();
        assert_eq!(state(), (expected, Some(address)), "{byte:#x} at {at}");
        memory.write_all_at(&whole, address).unwrap();
    }
    let _ = switch(&[(records[0], false)]).unwrap();
    assert_eq!(state(), (State::Off, Some(address)));
}

#[test]
fn other_files_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for (bytes, expected) in [
        (&b""[..], "not an ELF file"),
        (b"#!/bin/sh\nexec shop --fast\n", "a script"),
        (b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0", "64-bit"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", "cut off"),
    ] {
        fs::write(&path, bytes).unwrap();
        let error = Files::open(&[&path]).err().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(matches!(Files::open(&[folder.path()]), Err(Error::NoObject { .. })));
    assert!(matches!(Files::open(&[folder.path().join("absent")]), Err(Error::File { .. })));
}

#[test]
fn a_program_without_sites_has_none() {
    let listing = listing_of(Path::new("/bin/sh"));
    assert!(listing.sites.is_empty() && !listing.is_instrumented, "{:?}", listing.remarks);
}

#[test]
fn the_libraries_of_a_program_are_found() {
    let files = Files::open(&[me(), me()]).unwrap();
    assert_eq!(files.missing(), [""; 0]);
    assert!(files.objects().iter().any(|object| object.name.ends_with("/libc.so.6")));
    let mut names: Vec<_> = files.objects().iter().map(|object| object.name.as_str()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

/// The parts of a program's file where damage matters.
fn targets(file: &[u8]) -> Vec<Range<usize>> {
    let elf = ElfFile64::<LittleEndian>::parse(file).unwrap();
    let names = [
        ".note.tracewing",
        "tracewing_sites_2",
        ".dynamic",
        ".rela.dyn",
        ".dynsym",
        ".gnu.hash",
        ".data.rel.ro",
        ".text",
    ];
    let sections = names.iter().filter_map(|name| {
        let (offset, size) = elf.section_by_name(name)?.file_range()?;
        (size > 0).then_some(offset as usize..(offset + size) as usize)
    });
    std::iter::once(0..0x40 + 16 * 56).chain(sections).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_give_less_or_an_error(
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..60),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| fs::read(me()).unwrap());
        let targets = targets(&WHOLE);
        let mut bytes = WHOLE.clone();
        for (target, at, byte) in damages {
            let range = target.get(&targets);
            bytes[range.start + at.index(range.len())] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(files) = Files::from_bytes("damaged", Box::new(bytes)) {
            prop_assert!(Listing::of(&files).sites.len() <= 4);
        }
    }
}
