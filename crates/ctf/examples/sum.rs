//! Adds up a field of a data stream's event records. Bytes come a packet at a time from an asynchronous
//! source, of which this knows nothing but `fill`: put a socket or a file of an async runtime in its place.
//!
//! Usage: sum METADATA STREAM EVENT FIELD, for example
//! `… -- trace/metadata trace/channel_0 sched_switch next_tid`

use std::error::Error;
use std::io::{self, Read};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tracewing_ctf::decode::{Decoder, MemberHandle, Step, StreamReader, Value};
use tracewing_ctf::model::Scope;

/// The first bytes of a packet, which suffice to determine its size.
const FIRST_LOOK: usize = 4096;

/// Where bytes come from. This one is always ready.
struct Source(std::fs::File);

impl Source {
    /// Makes `buffer` hold `length` bytes, or those that there are.
    async fn fill(&mut self, buffer: &mut Vec<u8>, length: usize) -> io::Result<()> {
        let missing = length.saturating_sub(buffer.len());
        (&mut self.0).take(missing as u64).read_to_end(buffer).map(drop)
    }
}

async fn sum(
    decoder: Arc<Decoder>,
    mut source: Source,
    event: &str,
    field: &str,
) -> Result<i128, Box<dyn Error>> {
    // Looked up once for each class of that name; a record's value is then a load away.
    let streams = decoder.trace_class().data_stream_classes.iter().enumerate();
    let classes = streams.flat_map(|(stream, class)| {
        class.event_record_classes.iter().enumerate().map(move |(index, class)| (stream, index, class))
    });
    let members: Vec<MemberHandle> = classes
        .filter(|(.., class)| class.name.as_deref() == Some(event))
        .filter_map(|(stream, index, _)| decoder.member(stream, index, Scope::Payload, field))
        .collect();
    let mut reader = StreamReader::new(decoder, Vec::new());
    let (mut total, mut offset, mut index) = (0, 0, 0);
    let mut held = Vec::new();
    loop {
        source.fill(&mut held, FIRST_LOOK).await?;
        held = {
            reader.replace(held, offset, index);
            if reader.advance()? == Step::End {
                return Ok(total);
            }
            reader.replace(Vec::new(), offset, index)
        };
        // Now the size is known: the rest of the packet, and what was read of the next one.
        let size = usize::try_from(reader.packet().packet_bits / 8)?;
        source.fill(&mut held, size).await?;
        let next = held.split_off(size.min(held.len()));
        reader.replace(held, offset, index);
        reader.advance()?;
        reader.for_each_in_packet(|event| {
            total += match members.iter().find_map(|member| event.member(*member)) {
                Some(Value::Unsigned(value, _)) => i128::from(value),
                Some(Value::Signed(value, _)) => i128::from(value),
                _ => 0,
            };
        })?;
        (offset, index) = (offset + size as u64, index + 1);
        held = next;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [metadata, stream, event, field] = arguments.as_slice() else {
        return Err("expected METADATA STREAM EVENT FIELD".into());
    };
    let class = tracewing_ctf::metadata::parse(&std::fs::read(metadata)?)?;
    let source = Source(std::fs::File::open(stream)?);
    // A runtime's `block_on`, for a source that is always ready.
    let mut summing = pin!(sum(Decoder::new(Arc::new(class))?, source, event, field));
    loop {
        if let Poll::Ready(total) = summing.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            println!("{}", total?);
            return Ok(());
        }
    }
}
