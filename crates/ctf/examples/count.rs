//! Counts a data stream's event records by name.
//!
//! Usage: count METADATA STREAM…, for example
//! `cargo run --example count -- my-trace/metadata my-trace/channel_*`

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use tracewing_ctf::decode::{Decoder, Step, StreamReader};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let metadata = std::fs::read(arguments.next().ok_or("expected METADATA STREAM…")?)?;
    let decoder = Decoder::new(Arc::new(tracewing_ctf::metadata::parse(&metadata)?))?;
    let mut counts = BTreeMap::<String, u64>::new();
    for path in arguments {
        // Anything that holds bytes will do: a vector, a slice, a mapped file.
        let mut reader = StreamReader::new(decoder.clone(), std::fs::read(path)?);
        while reader.advance()? == Step::Packet {
            reader.for_each_in_packet(|event| {
                let name = event.class().name.as_deref().unwrap_or("(no name)");
                match counts.get_mut(name) {
                    Some(count) => *count += 1,
                    None => drop(counts.insert(name.to_owned(), 1)),
                }
            })?;
        }
    }
    for (name, count) in counts {
        println!("{count:12} {name}");
    }
    Ok(())
}
