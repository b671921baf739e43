//! The process that reads a trace and reports its content: tracewing's side of `bench read`.

use super::checksum::Checksum;
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::ops::ControlFlow;
use std::path::PathBuf;
use tracewing_trace::{Merge, Message, Recording, TimeRange};

/// What `bench reader` accepts.
#[derive(clap::Args)]
pub struct Options {
    /// What is read of it
    what: What,
    trace: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Every field of every event, stream by stream
    Fields,
    /// The same in the order of all streams
    Merged,
    /// The bytes of the streams' files, mapped, as eight-byte words
    Bytes,
}

/// Reads, and prints the number of events (or bytes) and a checksum.
pub fn run(options: &Options) -> Result<()> {
    let recording = Recording::open(&[&options.trace])?;
    let (count, sum) = match options.what {
        What::Fields => fields(&recording)?,
        What::Merged => merged(&recording)?,
        What::Bytes => bytes(&recording)?,
    };
    println!("{count} {sum:016x}");
    Ok(())
}

/// One stream after the other.
fn fields(recording: &Recording) -> Result<(u64, u64)> {
    let (mut count, mut total) = (0, 0_u64);
    for stream in 0..recording.streams().len() {
        let mut sum = Checksum::default();
        recording.events_of(stream).for_each(|event| {
            count += 1;
            sum.add(event.clock_value().unwrap_or_default().0);
            event.visit_all(&mut sum);
        })?;
        total = total.wrapping_add(sum.0);
    }
    Ok((count, total))
}

fn merged(recording: &Recording) -> Result<(u64, u64)> {
    let mut merge = Merge::new(recording, TimeRange::ALL);
    let mut count = 0;
    let mut sums = vec![Checksum::default(); recording.streams().len()];
    let _ = merge.for_each(|message| {
        if let Message::Event(event) = message {
            count += 1;
            let sum = &mut sums[event.stream_index()];
            sum.add(event.stamp().map_or(0, |stamp| stamp.cycles.0));
            event.visit_all(sum);
        }
        ControlFlow::Continue(())
    })?;
    Ok((count, sums.iter().fold(0, |total, sum| total.wrapping_add(sum.0))))
}

fn bytes(recording: &Recording) -> Result<(u64, u64)> {
    let (mut length, mut sum) = (0, 0_u64);
    for path in recording.streams().iter().flat_map(|stream| stream.files()) {
        let file = std::fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let size = file.metadata()?.len() as usize;
        // SAFETY: a new mapping, which is used only here and unmapped below, of a file that no process
        // changes.
        let mapped = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                size,
                rustix::mm::ProtFlags::READ,
                rustix::mm::MapFlags::PRIVATE,
                &file,
                0,
            )
        }?;
        // SAFETY: the mapping has that many bytes, and lives until the end of this block.
        let words = unsafe { std::slice::from_raw_parts(mapped.cast::<u64>(), size / 8) };
        sum = words.iter().fold(sum, |sum, word| sum.wrapping_add(*word));
        length += size as u64;
        // SAFETY: nothing refers to the mapping any more.
        unsafe { rustix::mm::munmap(mapped, size) }?;
    }
    Ok((length, sum))
}
