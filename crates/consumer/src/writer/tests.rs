//! The queue: order, bounds, and a disk that stalls, simulated by holding the stream's lock.

use tracewing_files::Dir;

use super::*;
use tracewing_streams::TraceDir;
use tracewing_units::Cpu;

const EVENTS: usize = 1 << 20;

fn stream() -> (tempfile::TempDir, Arc<QueuedStream>) {
    let folder = tempfile::tempdir().unwrap();
    let trace = TraceDir::new(&Dir::create(folder.path()).unwrap().0).unwrap();
    let stream = Stream::create(&trace, "uid0_0", [1; 16], 0, Cpu(0)).unwrap();
    (folder, QueuedStream::new(stream))
}

fn push(writer: &Writer, stream: &Arc<QueuedStream>, number: u64, len: usize) {
    let mut block = writer.block();
    assert!(block.is_empty());
    block.resize(len, number as u8);
    let times = PacketTimes { begin: Cycles(number), end: Cycles(number), lost: 0, skipped: 0 };
    writer.push(stream, block, Counted { events: 1, state: 2 }, times);
}

#[test]
fn packets_are_written_in_order_and_all_of_them_before_the_thread_ends() {
    let (folder, stream) = stream();
    let writer = Writer::start(|| ()).unwrap();
    for number in 0..100 {
        push(&writer, &stream, number, 1000);
    }
    writer.sync();
    assert_eq!((stream.tally().count.events, stream.tally().packets), (100, 100));
    for number in 100..200 {
        push(&writer, &stream, number, 1000);
    }
    drop(writer);
    assert_eq!(stream.tally().count, Counted { events: 200, state: 400 });
    assert_eq!(stream.take_unwritten(), 0);
    stream.check().unwrap();
    let bytes = std::fs::read(folder.path().join("uid0_0")).unwrap();
    let packet = bytes.len() / 200;
    assert_eq!(bytes.len() as u64, stream.tally().bytes);
    for (number, packet) in bytes.chunks(packet).enumerate() {
        assert!(packet[packet.len() - 1000..].iter().all(|byte| *byte == number as u8));
    }
}

#[test]
fn a_stalled_disk_stops_no_program_before_the_queue_is_full() {
    let (_folder, stream) = stream();
    let writer = Writer::start(|| ()).unwrap();
    let stall = lock(&stream.file);
    let mut pushed = 0;
    while writer.has_room(EVENTS) {
        push(&writer, &stream, pushed, EVENTS);
        pushed += 1;
    }
    assert_eq!(pushed, (MOST_BYTES / EVENTS) as u64);
    assert!(!writer.has_room(1));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| writer.wait_for_room(EVENTS));
        assert!(!waiting.is_finished());
        drop(stall);
    });
    assert!(writer.has_room(EVENTS));
    writer.sync();
    assert_eq!(stream.tally().count.events, pushed);
    assert!(lock(&writer.queue.state).blocks.len() <= SPARE_BLOCKS, "memory is given back");
}

#[test]
fn a_packet_larger_than_the_queue_passes_when_nothing_waits() {
    let (_folder, stream) = stream();
    let writer = Writer::start(|| ()).unwrap();
    assert!(writer.has_room(2 * MOST_BYTES));
    let stall = lock(&stream.file);
    push(&writer, &stream, 0, 10);
    assert!(!writer.has_room(2 * MOST_BYTES));
    drop(stall);
    writer.wait_for_room(2 * MOST_BYTES);
    assert_eq!(stream.tally().count.events, 1);
}

#[test]
fn what_was_prepared_lasts_as_long_as_the_thread() {
    struct Flag(Arc<Mutex<Vec<&'static str>>>);
    impl Drop for Flag {
        fn drop(&mut self) {
            lock(&self.0).push("dropped");
        }
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let of_thread = seen.clone();
    let (_folder, stream) = stream();
    let writer = Writer::start(move || {
        lock(&of_thread).push("prepared");
        Flag(of_thread)
    })
    .unwrap();
    push(&writer, &stream, 0, 10);
    writer.sync();
    assert_eq!(*lock(&seen), ["prepared"]);
    drop(writer);
    assert_eq!(*lock(&seen), ["prepared", "dropped"]);
}
