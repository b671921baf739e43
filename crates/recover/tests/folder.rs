//! Buffers in files: committed events are recovered, and damaged files yield fewer events or an error,
//! whatever they contain.

use std::fs;
use std::mem::offset_of;
use std::path::Path;
use std::sync::OnceLock;

use proptest::prelude::*;
use tracewing_abi::message::{ClassesWriter, MAX_MESSAGE, decode_classes};
use tracewing_abi::region::{CpuControl, Geometry, PAGE, Protocol};
use tracewing_abi::schema::{Class, Field, Scalar, Shape};
use tracewing_consumer::classes::Classes;
use tracewing_consumer::clock::{ClockChoice, TraceClock};
use tracewing_consumer::drain::{Backing, Drain};
use tracewing_consumer::metadata::clock_class;
use tracewing_consumer::survival::{BufferFolder as Files, CLASSES};
use tracewing_recover::{BufferFolder, Error, Recovered, Selection};
use tracewing_ring::Segment;
use tracewing_ring::lttng::{self, Smp};
use tracewing_trace::{Recording, Report};
use tracewing_units::Tid;

const RECORDING: [u8; 16] = [5; 16];

fn description() -> Vec<u8> {
    let field = Field::plain;
    let fields = [field("number", Shape::One, Scalar::U64), field("text", Shape::Text, Scalar::U8)];
    let class = Class { fields: &fields, ..Class::named("test:event") };
    let mut buffer = vec![0; MAX_MESSAGE];
    let mut writer = ClassesWriter::new(&mut buffer).unwrap();
    writer.push(&class).unwrap();
    decode_classes(writer.finish()).unwrap().next().unwrap().unwrap().to_vec()
}

type Contents = Vec<(String, Vec<u8>)>;

/// The files of a recording of `events` events whose processes were all killed.
fn files(geometry: Geometry, events: u64) -> Contents {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::create(folder.path()).unwrap();
    let clock = TraceClock::new(ClockChoice::Monotonic).unwrap();
    let begin = clock.calibrate();
    let class = clock_class(&clock, &begin, [6; 16]);
    let mut classes = Classes::new(&[], RECORDING, class).unwrap();
    classes.keep_table(files.dir(), CLASSES).unwrap();
    assert_eq!(classes.register([description().as_slice()]).unwrap().ids, [1]);
    let drain =
        Drain::new(Backing::File(&files), "pid1".to_owned(), geometry, Protocol::Smp, &clock, RECORDING)
            .unwrap();
    drain.set_real_time(&clock, &begin);
    let region = drain.region();
    for number in 0..events {
        let payload = [&number.to_le_bytes()[..], b"some text\0"].concat();
        let segments = [Segment::of(&payload)];
        // SAFETY: the payload is a live array; the region is a mapped one of protocol `Smp`.
        let _ = unsafe { lttng::write::<Smp>(&region, (number % 2) as usize, Tid(9), 1, &segments) };
    }
    let mut files: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

fn recover(files: &[(String, Vec<u8>)], look: impl FnOnce(&Path)) -> Result<Recovered, Error> {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("b");
    fs::create_dir(&from).unwrap();
    for (name, bytes) in files {
        fs::write(from.join(name), bytes).unwrap();
    }
    let to = folder.path().join("r");
    let recovered = BufferFolder::open(&from)?.write_trace(&to, Selection::All)?;
    look(&to);
    Ok(recovered)
}

/// Reads a trace to its end; returns the number of events, and the errors.
fn read(trace: &Path) -> (u64, Vec<String>) {
    let recording = Recording::open(&[trace]).unwrap();
    let (report, _) = Report::new(&recording);
    let events = report.traces.iter().flat_map(|trace| &trace.streams).map(|stream| stream.events).sum();
    (events, report.errors)
}

#[test]
fn what_fits_is_all_there_and_of_more_the_newest() {
    let geometry = Geometry::new(2, 4, 4096).unwrap();
    for (geometry, events, least) in
        [(geometry, 100, 100), (geometry.overwriting(), 100, 100), (geometry.overwriting(), 10_000, 500)]
    {
        let recovered = recover(&files(geometry, events), |trace| {
            let (found, errors) = read(trace);
            assert_eq!(errors, [] as [String; 0]);
            assert!((least..=events).contains(&found), "{found}");
        });
        let recovered = recovered.unwrap();
        assert!(recovered.events >= least && recovered.unknown.is_empty(), "{recovered:?}");
        assert_eq!(recovered.damages, [] as [String; 0]);
    }
}

#[test]
fn an_impossible_write_position_is_reported() {
    let mut files = files(Geometry::new(2, 4, 4096).unwrap(), 50);
    let region = &mut files.iter_mut().find(|(name, _)| name.ends_with(".buffer")).unwrap().1;
    let head = PAGE + offset_of!(CpuControl, head);
    region[head..head + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let recovered = recover(&files, |trace| assert_eq!(read(trace), (25, vec![]))).unwrap();
    let [damage] = recovered.damages.as_slice() else { panic!("{:?}", recovered.damages) };
    assert!(damage.contains("CPU 0") && damage.contains("write position"), "{damage}");
}

#[test]
fn without_the_classes_events_are_there_without_their_fields() {
    let mut files = files(Geometry::new(2, 4, 4096).unwrap(), 50);
    files.retain(|(name, _)| name != "classes");
    let recovered = recover(&files, |trace| assert_eq!(read(trace), (50, vec![]))).unwrap();
    assert_eq!(recovered.unknown.into_iter().collect::<Vec<_>>(), [(1, 50)]);
}

#[test]
fn a_pipe_in_place_of_a_file_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["uid0.buffer", "tracewing.json"] {
        let status = std::process::Command::new("mkfifo").arg(folder.path().join(name)).status().unwrap();
        assert!(status.success());
    }
    let error = BufferFolder::open(folder.path()).err().unwrap();
    assert!(matches!(error, Error::NoBuffers(_)), "{error}");
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("uid1.buffer")).unwrap();
    let error = BufferFolder::open(folder.path()).err().unwrap().to_string();
    assert!(error.contains("uid1.buffer: a symbolic link leads out"), "{error}");
}

#[derive(Debug, Clone)]
enum Damage {
    Flip(usize, u8),
    Word(usize, u64),
    Zero(usize, usize),
    Copy(usize, usize, usize),
    Cut(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    // Half of them in the control words.
    let at = || prop_oneof![0..20_000_usize, 0..60_000_usize];
    prop_oneof![
        4 => (at(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        4 => (at(), prop_oneof![any::<u64>(), 0..100_000_u64]).prop_map(|(at, word)| Damage::Word(at, word)),
        1 => (at(), 0..5000_usize).prop_map(|(at, len)| Damage::Zero(at, len)),
        1 => (at(), at(), 0..5000_usize).prop_map(|(from, to, len)| Damage::Copy(from, to, len)),
        1 => at().prop_map(Damage::Cut),
    ]
}

impl Damage {
    fn to(&self, bytes: &mut Vec<u8>) {
        let size = bytes.len();
        let stretch = |at: usize, len: usize| {
            let start = at % size.max(1);
            start..(start + len).min(size)
        };
        match *self {
            Self::Flip(at, bit) => bytes[stretch(at, 1)].iter_mut().for_each(|byte| *byte ^= 1 << bit),
            Self::Word(at, word) => {
                let at = stretch(at & !7, 8);
                bytes[at].iter_mut().zip(word.to_le_bytes()).for_each(|(byte, new)| *byte = new);
            }
            Self::Zero(at, len) => bytes[stretch(at, len)].fill(0),
            Self::Copy(from, to, len) => {
                let (from, to) = (stretch(from, len), stretch(to, len).start);
                let len = from.len().min(bytes.len() - to);
                bytes.copy_within(from.start..from.start + len, to);
            }
            Self::Cut(at) => bytes.truncate(at),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_give_less_or_an_error(
        overwrite: bool,
        damages in proptest::collection::vec((0..2_usize, damage()), 1..12),
    ) {
        static WHOLE: OnceLock<[Contents; 2]> = OnceLock::new();
        let whole = WHOLE.get_or_init(|| {
            let geometry = Geometry::new(2, 4, 4096).unwrap();
            [files(geometry, 500), files(geometry.overwriting(), 2000)]
        });
        let mut files = whole[usize::from(overwrite)].clone();
        prop_assert_eq!(files.len(), 2);
        for (file, damage) in &damages {
            damage.to(&mut files[*file].1);
        }
        let mut read_back = None;
        let recovered = recover(&files, |trace| read_back = Some(read(trace)));
        match recovered {
            Ok(recovered) => {
                // The written trace is valid: every reader finds each event that was counted.
                let (events, errors) = read_back.unwrap();
                prop_assert!(errors.is_empty(), "{errors:?}");
                prop_assert_eq!(events, recovered.events);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
