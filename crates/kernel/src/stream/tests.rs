//! Pages in, packets out: the packets are taken apart again by their documented layout.

use super::*;
use crate::class::compile;
use crate::format::Format;
use crate::page::PageLayout;
use proptest::prelude::*;
use tracewing_ctf::write::EXTENDED_ID;
use tracewing_streams::Packets;
use tracewing_units::Cpu;

const FORMAT: &str = "name: tick\nID: 5\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\tfield:u32 n;\toffset:8;\tsize:4;\tsigned:0;\n";

fn layout() -> PageLayout {
    PageLayout::parse(
        "field: u64 timestamp; offset:0; size:8; signed:0;\nfield: local_t commit; offset:8; size:8; signed:1;\n\
         field: char data; offset:16; size:4080; signed:0;\n",
    )
    .unwrap()
}

fn programs() -> Programs {
    Programs::new(&[compile(0, "demo", &Format::parse(FORMAT, 8).unwrap(), 8).unwrap()])
}

/// A page of ticks, each after its time extend.
fn page(stamp: u64, ticks: &[(u64, u16, u32)]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut last = stamp;
    for &(at, kind, n) in ticks {
        let delta = at - last;
        for word in [((delta & 0x7ff_ffff) << 5 | 30) as u32, (delta >> 27) as u32, 3, u32::from(kind), 42, n]
        {
            body.extend(word.to_ne_bytes());
        }
        last = at;
    }
    let mut page = [stamp.to_ne_bytes(), (body.len() as u64).to_ne_bytes()].concat();
    page.extend(body);
    page.resize(4096, 0);
    page
}

#[derive(Default)]
struct Collect {
    written: Option<Packets>,
    packets: Vec<Decoded>,
    full: bool,
    /// Random bytes may be events of any thread.
    any_thread: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Decoded {
    begin: u64,
    end: u64,
    seq: u64,
    discarded: u64,
    events: Vec<(u64, u32)>,
}

impl Sink for Collect {
    type Error = &'static str;

    fn packet(&mut self, cpu: Cpu, events: &[u8], times: PacketTimes) -> Result<(), Self::Error> {
        if self.full {
            return Err("full");
        }
        let written = self.written.get_or_insert_with(|| Packets::new([7; 16], cpu.0.into(), cpu));
        let (header, entry) = written.next(events.len(), times);
        written.add(&header);
        let bytes = [&header.encode()[..], events].concat();
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let u16_at = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap());
        assert_eq!((u32_at(0), u32_at(80)), (tracewing_ctf::write::PACKET_MAGIC, cpu.0));
        assert_eq!(u64_at(48), bytes.len() as u64 * 8);
        assert_eq!(entry.content_bits, u64_at(48));
        let (mut at, mut now, mut events) = (84, u64_at(32), Vec::new());
        while at < bytes.len() {
            if u16_at(at) == EXTENDED_ID {
                now = u64_at(at + 6);
                assert_eq!((u16_at(at + 14), u32_at(at + 2)), (0, now as u32));
                at += 16;
            } else {
                assert_eq!(u16_at(at), 0);
                now += u64::from(u32_at(at + 2).wrapping_sub(now as u32));
                at += 6;
            }
            assert!(self.any_thread || u32_at(at + 1) == 42, "tid {}", u32_at(at + 1));
            events.push((now, u32_at(at + 5)));
            at += 9;
        }
        self.packets.push(Decoded {
            begin: u64_at(32),
            end: u64_at(40),
            seq: u64_at(64),
            discarded: u64_at(72),
            events,
        });
        Ok(())
    }
}

fn lost(begin: u64, end: u64, events: u64) -> LossRange {
    LossRange { begin: Cycles(begin), end: Cycles(end), events }
}

fn feed(stream: &mut Stream, sink: &mut Collect, page: &[u8]) {
    stream.page(&Page::parse(&layout(), page).unwrap(), &programs(), sink).unwrap();
}

#[test]
fn stamps_far_apart_take_the_extended_header() {
    let (mut stream, mut sink) = (Stream::new(Cpu(3)), Collect::default());
    let far = 100 + (1 << 32);
    let ticks = [(100, 5, 1), (far - 1, 5, 2), (far - 1 + (1 << 32), 5, 3), (far + (1 << 40), 5, 4)];
    feed(&mut stream, &mut sink, &page(100, &ticks));
    stream.end_packet(&mut sink).unwrap();
    stream.end_packet(&mut sink).unwrap();
    let expected = ticks.map(|(at, _, n)| (at, n)).to_vec();
    assert_eq!(
        sink.packets,
        [Decoded { begin: 100, end: far + (1 << 40), seq: 0, discarded: 0, events: expected }]
    );
    assert_eq!((stream.summary().events, stream.summary().packets), (4, 1));
}

#[test]
fn dropped_events_are_counted_in_the_packet_after_the_gap() {
    let (mut stream, mut sink) = (Stream::new(Cpu(0)), Collect::default());
    // The drain begins at 1000 and finds seven dropped; the buffer holds what came before and, later, after.
    stream.expect_gap(None, Cycles(1000), 7);
    feed(&mut stream, &mut sink, &page(100, &[(100, 5, 1), (900, 5, 2)]));
    assert_eq!(stream.lost(), 7);
    feed(&mut stream, &mut sink, &page(1100, &[(1100, 5, 3)]));
    stream.finish(Cycles(2000), &mut sink).unwrap();
    let [before, after] = &sink.packets[..] else { panic!("{:?}", sink.packets) };
    assert_eq!((before.end, before.discarded, before.events.len()), (900, 0, 2));
    assert_eq!((after.begin, after.discarded, after.seq), (1100, 7, 1));
    assert_eq!(stream.summary().losses.ranges, [lost(900, 1100, 7)]);
}

#[test]
fn events_between_two_gaps_lie_in_neither() {
    let (mut stream, mut sink) = (Stream::new(Cpu(0)), Collect::default());
    feed(&mut stream, &mut sink, &page(100, &[(100, 5, 1)]));
    stream.expect_gap(None, Cycles(1000), 7);
    // Nothing comes before the next drain, which finds a full buffer again.
    stream.expect_gap(None, Cycles(2000), 3);
    feed(&mut stream, &mut sink, &page(1100, &[(1100, 5, 2), (1200, 5, 3), (2100, 5, 4)]));
    stream.finish(Cycles(3000), &mut sink).unwrap();
    assert_eq!(stream.summary().losses.ranges, [lost(100, 1100, 7), lost(1200, 2100, 3)]);
    assert_eq!(sink.packets.iter().map(|p| p.discarded).collect::<Vec<_>>(), [0, 7, 10]);
}

#[test]
fn losses_at_the_end_are_reported_by_a_packet_without_events() {
    let (mut stream, mut sink) = (Stream::new(Cpu(0)), Collect::default());
    feed(&mut stream, &mut sink, &page(100, &[(100, 5, 1)]));
    stream.expect_gap(None, Cycles(1000), 7);
    stream.expect_gap(Some(Cycles(1500)), Cycles(1600), 2);
    stream.finish(Cycles(2000), &mut sink).unwrap();
    assert_eq!(sink.packets[1], Decoded { begin: 2000, end: 2000, seq: 1, discarded: 9, events: vec![] });
    assert_eq!(stream.summary().losses.ranges, [lost(100, 2000, 9)]);
}

#[test]
fn overwritten_and_damaged_pages_and_foreign_records_are_counted() {
    let (mut stream, mut sink) = (Stream::new(Cpu(0)), Collect::default());
    feed(&mut stream, &mut sink, &page(100, &[(100, 5, 1), (150, 6, 2)]));
    stream.expect_gap(None, Cycles(300), 11);
    feed(&mut stream, &mut sink, &page(300, &[(300, 5, 3)]));
    stream.damage();
    feed(&mut stream, &mut sink, &page(400, &[(400, 5, 4)]));
    stream.finish(Cycles(500), &mut sink).unwrap();
    let summary = stream.summary();
    assert_eq!((summary.events, summary.foreign, summary.damaged), (3, 1, 1));
    assert_eq!(summary.losses.ranges, [lost(100, 300, 11), lost(300, 400, 1)]);
    assert_eq!(sink.packets.iter().map(|p| p.discarded).collect::<Vec<_>>(), [0, 11, 12]);
}

#[test]
fn what_could_not_be_written_is_lost() {
    let (mut stream, mut sink) = (Stream::new(Cpu(0)), Collect { full: true, ..Collect::default() });
    feed(&mut stream, &mut sink, &page(100, &[(100, 5, 1), (150, 5, 2)]));
    assert_eq!(stream.end_packet(&mut sink), Err("full"));
    assert_eq!(stream.summary().losses.ranges, [lost(100, 150, 2)]);
    sink.full = false;
    feed(&mut stream, &mut sink, &page(200, &[(200, 5, 3)]));
    stream.finish(Cycles(300), &mut sink).unwrap();
    assert_eq!(
        sink.packets,
        [Decoded { begin: 200, end: 200, seq: 0, discarded: 2, events: vec![(200, 3)] }]
    );
}

#[test]
fn a_full_disk_does_not_hide_what_is_lost_elsewhere() {
    let (mut stream, mut sink) = (Stream::new(Cpu(0)), Collect { full: true, ..Collect::default() });
    stream.expect_gap(None, Cycles(120), 7);
    let bytes = page(100, &[(100, 5, 1), (150, 5, 2)]);
    let result = stream.page(&Page::parse(&layout(), &bytes).unwrap(), &programs(), &mut sink);
    assert_eq!(result, Err("full"));
    stream.expect_gap(None, Cycles(200), 9);
    assert_eq!(stream.finish(Cycles(300), &mut sink), Err("full"));
    assert_eq!(stream.summary().losses.events, 1 + 7 + 1 + 9);
}

proptest! {
    #[test]
    fn any_pages_give_a_stream_whose_stamps_never_go_back(
        pages in proptest::collection::vec((any::<u64>(), 0u32..300, proptest::collection::vec(any::<u8>(), 0..300)), 0..5)
    ) {
        let (mut stream, mut sink) =
            (Stream::new(Cpu(0)), Collect { any_thread: true, ..Collect::default() });
        for (stamp, len, body) in pages {
            let mut bytes = [stamp.to_ne_bytes(), u64::from(len).to_ne_bytes()].concat();
            bytes.extend(body);
            if let Ok(page) = Page::parse(&layout(), &bytes) {
                stream.page(&page, &programs(), &mut sink).unwrap();
            }
        }
        stream.finish(Cycles(0), &mut sink).unwrap();
        let mut last = 0;
        for packet in &sink.packets {
            prop_assert!(last <= packet.begin && packet.begin <= packet.end);
            for &(stamp, _) in &packet.events {
                prop_assert!(last <= stamp);
                last = stamp;
            }
            last = packet.end;
        }
    }
}
