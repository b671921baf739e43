//! A disk that fills up while packets wait in the queue: they are counted as lost, event by event, and what
//! was written before stays readable.
//!
//! The file size limit simulates a full disk: it also lets part of a write through and then fails. It applies
//! to the whole process, so this test has its own binary.

mod common;

use std::path::Path;
use std::time::Duration;

use common::Writer;
use tracewing_abi::region::{Geometry, Protocol};
use tracewing_consumer::clock::{ClockChoice, TraceClock};
use tracewing_consumer::drain::{Backing, Drain};
use tracewing_consumer::trace::UserTrace;
use tracewing_ctf::index;
use tracewing_files::Dir;

const LIMIT: u64 = 50_000;
const RECORDING: [u8; 16] = [7; 16];
const SUB_BUFFERS: usize = 4;
const SUB_BUFFER: usize = 4096;

struct Recording {
    clock: TraceClock,
    trace: UserTrace,
    drain: Drain,
    writer: Writer,
    emitted: u64,
}

impl Recording {
    fn new(folder: &Path) -> Self {
        let clock = TraceClock::new(ClockChoice::Auto).unwrap();
        let geometry = Geometry::new(1, SUB_BUFFERS, SUB_BUFFER).unwrap();
        let drain =
            Drain::new(Backing::Memory, "uid0".into(), geometry, Protocol::Publish, &clock, RECORDING)
                .unwrap();
        let writer = Writer { region: drain.region(), cpu: 0, stamp: clock.now().0 };
        let trace =
            UserTrace::new(&Dir::create(folder).unwrap().0, RECORDING).unwrap().write_in_background(|| ());
        Self { clock, trace, drain, writer, emitted: 0 }
    }

    /// Emits more than the buffer holds.
    fn fill(&mut self) {
        for _ in 0..SUB_BUFFERS * SUB_BUFFER / 20 {
            self.writer.emit(1, &[0; 8]);
            self.emitted += 1;
        }
    }

    fn poll(&mut self) -> Result<(), tracewing_consumer::Error> {
        self.drain.poll(&mut self.trace, &self.clock, Duration::ZERO, Duration::ZERO).map(drop)
    }

    #[track_caller]
    fn check(&self, folder: &Path) {
        let [stream] = &self.drain.summary()[..] else { panic!("one stream") };
        assert!(stream.events > 0 && stream.lost > 0, "{stream:?}");
        assert_eq!(stream.events + stream.lost, self.emitted, "{stream:?}");
        let ranges: u64 = self.drain.losses().map(|range| range.events).sum();
        assert_eq!(ranges, stream.lost);
        assert!(self.drain.losses().any(|range| range.reason == "trace could not be written"));
        assert_eq!(std::fs::metadata(folder.join("uid0_0")).unwrap().len(), stream.bytes);
        let index = std::fs::read(folder.join("index/uid0_0.idx")).unwrap();
        assert_eq!(index::decode(&index).unwrap().count() as u64, stream.packets);
    }
}

#[test]
fn packets_queued_after_an_unwritable_one_are_lost_and_counted() {
    // SAFETY: the signal would end the process; ignored, the write fails instead.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let limit = libc::rlimit { rlim_cur: LIMIT, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the limit is a live struct.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);

    // Noticed during the recording, which ends then.
    let folder = tempfile::tempdir().unwrap();
    let mut recording = Recording::new(folder.path());
    let error = loop {
        recording.fill();
        if let Err(error) = recording.poll() {
            break error;
        }
        assert!(recording.emitted < 10_000_000, "the full disk is not reported");
    };
    assert!(error.is_disk_full() && error.to_string().contains("uid0_0"), "{error}");
    recording.fill();
    assert!(recording.poll().is_err(), "it stays so");
    recording.drain.close();
    recording.drain.abandon(&recording.clock);
    recording.check(folder.path());

    // Noticed only at the end.
    let folder = tempfile::tempdir().unwrap();
    let mut recording = Recording::new(folder.path());
    for _ in 0..LIMIT as usize / (SUB_BUFFERS * SUB_BUFFER) {
        recording.fill();
        recording.poll().unwrap();
    }
    recording.fill();
    recording.drain.close();
    let error = recording.drain.finish(&mut recording.trace, &recording.clock).unwrap_err();
    assert!(error.is_disk_full(), "{error}");

    // What this test prints may go to a file as well.
    let none = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, ..limit };
    // SAFETY: the limit is a live struct.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &none) }, 0);
    recording.check(folder.path());
}
