//! Which positions are kept, and that reading from each of them returns the same as reading from the
//! beginning.

use super::*;
use std::path::Path;
use std::sync::Arc;
use tracewing_ctf::decode::{Decoder, StreamReader, Value};
use tracewing_ctf::model::Scope;
use tracewing_units::Timestamp;

/// Stamps have eight bits, so that they hang on all that came before.
const METADATA: &str = "/* CTF 1.8 */
    trace { major = 1; minor = 8; byte_order = le; };
    clock { name = c; };
    stream { event.header := struct { integer { size = 8; map = clock.c.value; } t; }; };
    event { name = e; fields := struct { integer { size = 32; } n; string s; }; };";

/// The time and the number of each event.
type Events = Vec<(u64, u64)>;

/// A stream without packets, in a file; its events, some of them large.
fn stream(folder: &Path) -> (Arc<Decoder>, PacketFile, Vec<u8>, Events) {
    let decoder = Decoder::new(Arc::new(tracewing_ctf::tsdl::parse(METADATA.as_bytes()).unwrap())).unwrap();
    let (mut bytes, mut events, mut time) = (Vec::new(), Vec::new(), 0_u64);
    for number in 0..3000_u32 {
        time += u64::from(number * 7 % 90);
        bytes.push(time as u8);
        bytes.extend(number.to_le_bytes());
        bytes.extend(vec![b'x'; if number % 500 == 499 { 3000 } else { (number % 13) as usize }]);
        bytes.push(0);
        events.push((time, u64::from(number)));
    }
    let path = folder.join("stream");
    std::fs::write(&path, &bytes).unwrap();
    (decoder.clone(), PacketFile::new(path, folder.into(), decoder), bytes, events)
}

/// What `file` gives from the packet at hand on.
fn rest(file: &mut PacketFile) -> Result<Events, crate::Error> {
    file.enter_packet()?;
    let mut events = Vec::new();
    while file.step_fast().is_some() || file.step()? == Step::Event {
        let Some(Value::Unsigned(number, _)) = file.event().field(Scope::Payload, "n") else { panic!() };
        events.push((file.clock_value().unwrap().0, number));
    }
    Ok(events)
}

#[test]
fn a_stream_is_read_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let (decoder, mut file, bytes, events) = stream(folder.path());
    for part in [1, 7, 64, 5000, 1 << 20] {
        file.read_in_parts_of(part);
        file.seek(0, 0, 0);
        assert_eq!(rest(&mut file).unwrap(), events, "{part}");
        file.seek(0, 0, 0);
        file.enter_packet().unwrap();
        let mut count = 0;
        file.for_each(|_| count += 1).unwrap();
        assert_eq!(count, events.len(), "{part}");
    }
    // A file that ends inside an event is reported after all others.
    std::fs::write(file.path(), &bytes[..bytes.len() - 1]).unwrap();
    file.read_in_parts_of(64);
    file.seek(0, 0, 0);
    file.enter_packet().unwrap();
    let mut count = 0;
    let error = file.for_each(|_| count += 1).unwrap_err().to_string();
    let whole = StreamReader::new(decoder, &bytes[..bytes.len() - 1]).for_each_in_packet(|_| {});
    assert_eq!((count, whole), (events.len() - 1, Ok(())));
    assert!(error.contains("a string without end"), "{error}");
}

#[test]
fn a_file_that_becomes_shorter_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut file, bytes, _) = stream(folder.path());
    file.read_in_parts_of(4096);
    file.enter_packet().unwrap();
    std::fs::OpenOptions::new()
        .write(true)
        .open(file.path())
        .unwrap()
        .set_len(bytes.len() as u64 / 2)
        .unwrap();
    let error = rest(&mut file).unwrap_err().to_string();
    assert!(error.contains("became shorter"), "{error}");
}

#[test]
fn reading_begins_at_any_time() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut file, bytes, events) = stream(folder.path());
    file.read_in_parts_of(256);
    let distance = 3000;
    let mut positions = Positions { places: Vec::new(), kept: 0, whole: false, distance };
    let last = events.last().unwrap().0;
    for time in (0..=20).map(|step| last * step / 20).chain([last / 3, 0, last + 1]) {
        file.seek(0, 0, 0);
        let found = positions.find(&mut file, Timestamp::from_ns(time as i64));
        file.seek(0, 0, 0);
        found.into_iter().for_each(|position| file.begin_at(0, position));
        let seen: Events = rest(&mut file).unwrap();
        let late =
            |events: &Events| events.iter().copied().filter(|event| event.0 >= time).collect::<Events>();
        assert_eq!(late(&seen), late(&events), "{time}");
        // There is hardly more than the distance between a position and the requested time.
        assert!((seen.len() - late(&seen).len()) * 5 < distance as usize + 3100, "{time}");
    }
    assert!(positions.places.len() > 5 && positions.whole);
    assert_eq!(decode(&encode(&positions.places)), Some(positions.places.clone()));
    assert!(bytes.len() as u64 > 8 * distance);
    positions.places.reverse();
    assert_eq!(decode(&encode(&positions.places)), None);
    assert_eq!(decode(&[0; 23]), None);
}
