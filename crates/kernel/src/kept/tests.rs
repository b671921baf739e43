//! Pages in, the newest ones out; what went is counted event by event.

use super::*;
use crate::class::compile;
use crate::format::Format;
use tracewing_streams::PacketTimes;
use tracewing_units::Cpu;

const FORMAT: &str = "name: tick\nID: 5\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\tfield:u32 n;\toffset:8;\tsize:4;\tsigned:0;\n";
const RECORD: usize = 16;

fn layout() -> PageLayout {
    PageLayout::parse(
        "field: u64 timestamp; offset:0; size:8; signed:0;\nfield: local_t commit; offset:8; size:8; signed:1;\n\
         field: char data; offset:16; size:4080; signed:0;\n",
    )
    .unwrap()
}

/// A page of `events` ticks, all at `stamp`.
fn page(stamp: u64, events: usize) -> Vec<u8> {
    let mut page = [stamp.to_ne_bytes(), ((events * RECORD) as u64).to_ne_bytes()].concat();
    for n in 0..events {
        for word in [3, 5, 42, n as u32] {
            page.extend(u32::to_ne_bytes(word));
        }
    }
    page.resize(4096, 0);
    page
}

fn give(kept: &mut Kept, bytes: &[u8]) {
    let page = Page::parse(&layout(), bytes).unwrap();
    assert_eq!(kept.page(&page, bytes).unwrap(), page.stamp);
}

#[derive(Default)]
struct Count {
    packets: u64,
    discarded: u64,
}

impl Sink for Count {
    type Error = Error;

    fn packet(&mut self, _cpu: Cpu, _: &[u8], times: PacketTimes) -> Result<(), Error> {
        self.packets += 1;
        self.discarded = times.lost;
        Ok(())
    }
}

/// Events written, events lost, first and last stamp.
fn convert(kept: &Kept) -> (u64, u64, u64) {
    let programs = Programs::new(&[compile(0, "demo", &Format::parse(FORMAT, 8).unwrap(), 8).unwrap()]);
    let (mut stream, mut sink) = (Stream::new(Cpu(0)), Count::default());
    kept.convert(&mut stream, &programs, &mut sink).unwrap();
    stream.finish(stream.last(), &mut sink).unwrap();
    assert_eq!(sink.discarded, stream.summary().losses.events);
    (stream.summary().events, stream.summary().losses.events, stream.last().0)
}

#[test]
fn the_newest_pages_stay_and_what_goes_is_counted() {
    let mut kept = Kept::new(layout(), 10 * (16 + 10 * RECORD));
    for nth in 0..10 {
        give(&mut kept, &page(100 + nth, 10));
    }
    assert_eq!((convert(&kept), kept.gone_since(Cycles(1))), ((100, 0, 109), None));
    // Partly filled pages take the room that their records need.
    give(&mut kept, &page(200, 5));
    assert_eq!(convert(&kept), (95, 0, 200));
    assert_eq!(
        kept.gone_since(Cycles(1)),
        Some(LossRange { begin: Cycles(1), end: Cycles(101), events: 10 })
    );
    assert_eq!(convert(&kept), (95, 0, 200), "a conversion takes nothing away");
    give(&mut kept, &page(300, 200));
    assert_eq!(convert(&kept), (200, 0, 300), "a page that is larger than all is kept");
    assert_eq!(
        kept.gone_since(Cycles(1)),
        Some(LossRange { begin: Cycles(1), end: Cycles(300), events: 105 })
    );
}

#[test]
fn what_lies_before_overwritten_events_goes() {
    let mut kept = Kept::new(layout(), 1 << 20);
    give(&mut kept, &page(100, 3));
    kept.damaged();
    kept.dropped(None, Cycles(150), 7);
    kept.overwritten(Cycles(200), 1000);
    give(&mut kept, &page(200, 4));
    assert_eq!(convert(&kept), (4, 0, 200));
    assert_eq!(
        kept.gone_since(Cycles(9)),
        Some(LossRange { begin: Cycles(9), end: Cycles(200), events: 3 + 1 + 7 + 1000 })
    );
}

#[test]
fn drops_between_kept_events_are_reported_in_their_place_until_these_go() {
    let mut kept = Kept::new(layout(), 3 * (16 + 10 * RECORD));
    give(&mut kept, &page(100, 10));
    // Reported before the pages that precede it.
    kept.dropped(None, Cycles(250), 9);
    give(&mut kept, &page(200, 10));
    give(&mut kept, &page(300, 10));
    assert_eq!(convert(&kept), (30, 9, 300));
    give(&mut kept, &page(400, 10));
    assert_eq!((convert(&kept), kept.gone_since(Cycles(0)).unwrap().events), ((30, 9, 400), 10));
    give(&mut kept, &page(500, 10));
    assert_eq!((convert(&kept), kept.gone_since(Cycles(0)).unwrap().events), ((30, 0, 500), 29));
}

#[test]
fn a_damaged_page_is_a_loss() {
    let mut kept = Kept::new(layout(), 1 << 20);
    give(&mut kept, &page(100, 2));
    kept.damaged();
    give(&mut kept, &page(200, 2));
    assert_eq!(convert(&kept), (4, 1, 200));
}
