//! Reading a recording while it is written returns the same as at the end: every event once, in the same
//! order.

mod common;

use common::{Event, Packet, class, tick, write_trace};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};
use tracewing_ctf::model::{EventRecordClass, FieldClass, StructureClass, TraceClass};
use tracewing_ctf::tsdl;
use tracewing_trace::{Listing, Recording, Sink};

const MS: u64 = 1_000_000;

/// Notes the time with each batch of lines.
struct Noting(Sender<(Instant, String)>);

impl Sink for Noting {
    fn events(&mut self, lines: &[u8]) -> io::Result<()> {
        self.0.send((Instant::now(), String::from_utf8_lossy(lines).into_owned())).map_err(io::Error::other)
    }

    fn warning(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

fn describe(folder: &Path, state: &str) {
    fs::write(folder.parent().unwrap().join("tracewing.json"), format!(r#"{{"state":"{state}"}}"#)).unwrap();
}

/// A class that the metadata gets later.
fn with_late_class() -> TraceClass {
    let mut class = class(Some(1), 1_000_000_000);
    let payload = StructureClass::new().with("late", FieldClass::unsigned(32));
    class.data_stream_classes[0]
        .event_record_classes
        .push(EventRecordClass::new(1, "test:late").with_payload(payload));
    class
}

fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(bytes).unwrap();
}

/// Writes packets of four streams when their time has come: in pieces, one stream later than the others, one
/// with a pause longer than anybody waits for it, and in the second half with events of a class that is new.
fn write(folder: &Path) {
    let begin = Instant::now();
    let mut seqs = [0; 4];
    for round in 0..24_u64 {
        let from = round * 100 * MS;
        for (stream, seq) in seqs.iter_mut().enumerate() {
            if (stream == 3 && round < 6) || (stream == 2 && (4..20).contains(&round)) {
                continue;
            }
            let number = |index: u64| (round * 1000 + stream as u64 * 100 + index) as u32;
            let mut events: Vec<_> =
                (0..20).map(|index| tick(from + index * 4 * MS + stream as u64 / 2, number(index))).collect();
            if round >= 12 && stream != 1 {
                events[7] = Event { id: 1, ..tick(events[7].stamp, 7) };
            }
            let packet = Packet { seq: *seq, ..Packet::new(1, stream as u64, from, from + 90 * MS) };
            *seq += 1;
            let bytes = packet.bytes(&events);
            let cut = (round as usize * 37 + stream * 11) % bytes.len();
            let path = folder.join(format!("s{stream}"));
            append(&path, &bytes[..cut]);
            sleep(Duration::from_millis(3));
            append(&path, &bytes[cut..]);
        }
        // The packets of this round came before the metadata that explains them.
        if round == 12 {
            let text = tsdl::print(&with_late_class());
            fs::write(folder.join(".new"), text).unwrap();
            fs::rename(folder.join(".new"), folder.join("metadata")).unwrap();
        }
        sleep((Duration::from_nanos(from + 100 * MS)).saturating_sub(begin.elapsed()));
    }
    describe(folder, "complete");
}

fn follow(folder: &Path, listing: &Listing) -> Vec<(Instant, String)> {
    let (sender, receiver): (_, Receiver<_>) = channel();
    scope(|scope| {
        scope.spawn(|| write(folder));
        sleep(Duration::from_millis(50));
        listing.follow(&[folder], &mut Noting(sender)).unwrap();
    });
    receiver.into_iter().collect()
}

fn print(folder: &Path, listing: &Listing) -> Vec<String> {
    let mut lines = (Vec::new(), Vec::new());
    listing.print(&Recording::open(&[folder]).unwrap(), &mut lines).unwrap();
    String::from_utf8(lines.0).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn everything_once_and_in_order() {
    let mut in_order = false;
    // On a machine that is busy, packets may come too late to be in order, but never twice or not at all.
    for _ in 0..3 {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("user");
        write_trace(&folder, &class(Some(1), 1_000_000_000), &[]);
        describe(&folder, "recording");
        // As a recorder that works does it.
        let recorder = fs::File::open(parent.path()).unwrap();
        recorder.lock().unwrap();
        let mut listing = Listing::default();
        listing.style.delta = false;
        let batches = follow(&folder, &listing);
        let (first, last) = (batches[0].0, batches[batches.len() - 1].0);
        assert!(last - first > Duration::from_secs(1), "nothing was printed before the end");
        let mut seen: Vec<_> = batches.iter().flat_map(|(_, text)| text.lines()).collect();
        let mut all = print(&folder, &listing);
        assert!(all.len() > 1000 && all.iter().any(|line| line.contains("late")));
        in_order |= seen == all;
        seen.sort_unstable();
        all.sort_unstable();
        assert_eq!(seen, all);
        if in_order {
            return;
        }
    }
    panic!("not in order, three times");
}

#[test]
fn what_has_no_size_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let metadata = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };
        event { name = e; fields := struct { integer { size = 8; } n; }; };";
    fs::write(folder.path().join("metadata"), metadata).unwrap();
    fs::write(folder.path().join("s0"), [1, 2, 3]).unwrap();
    let error =
        Listing::default().follow(&[folder.path()], &mut (Vec::new(), Vec::new())).unwrap_err().to_string();
    assert!(error.contains("s0: packets that do not declare their size"), "{error}");
}
