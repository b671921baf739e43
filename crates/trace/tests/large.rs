//! A stream without packets that is larger than what is ever held of it: little memory, and once it has been
//! read, little reading to begin in the middle.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use tracewing_trace::{Merge, Message, Recording, TimeRange};
use tracewing_units::Timestamp;

/// Each event has a megabyte, of which the file has a hole but for the stamp.
const EVENT: u64 = 1 << 20;
const EVENTS: u64 = 2100;

const METADATA: &str = "/* CTF 1.8 */
    trace { major = 1; minor = 8; byte_order = le; };
    clock { name = c; };
    stream { event.header := struct { integer { size = 64; map = clock.c.value; } t; }; };
    event { name = e; fields := struct { integer { size = 8; } data[1048568]; }; };";

/// A number in bytes or kibibytes from a file of /proc/self.
fn own(file: &str, what: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/self/{file}")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "takes seconds and 2 GiB of page cache: cargo test -p tracewing-trace --test large -- --ignored"]
fn a_stream_of_more_than_two_gibibytes() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("metadata"), METADATA).unwrap();
    let file = File::create(folder.path().join("stream")).unwrap();
    for event in 0..EVENTS {
        file.write_all_at(&(event * 10).to_le_bytes(), event * EVENT).unwrap();
    }
    file.set_len(EVENTS * EVENT).unwrap();
    let memory = own("status", "VmHWM");
    let from = EVENTS * 10 - 50;
    let range = TimeRange { begin: Timestamp::from_ns(from as i64), end: Timestamp::MAX };
    let recording = Recording::open(&[folder.path()]).unwrap();
    for pass in 0..2 {
        let read = own("io", "rchar");
        let mut merge = Merge::new(&recording, range);
        let mut stamps = Vec::new();
        while let Some(message) = merge.advance().unwrap() {
            let Message::Event(event) = message else { panic!("nothing is lost") };
            stamps.push(event.stamp().unwrap().time.as_ns() as u64);
        }
        assert_eq!(stamps, (from..EVENTS * 10).step_by(10).collect::<Vec<_>>());
        if pass == 1 {
            assert!(own("io", "rchar") - read < 64 << 20);
        }
    }
    let memory = own("status", "VmHWM") - memory;
    assert!(memory < 64 << 10, "{memory} KiB");
}
