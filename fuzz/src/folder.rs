//! The target of crate `tracewing-trace`, which takes files: a whole trace, listed.

use super::inputs::split;
use std::io::sink;
use std::path::Path;
use tracewing_trace::{Format, Listing, Recording, Report, TimePoint};

/// Makes a trace of an input's parts (metadata, a stream, its index) in `folder`, and lists it in every way.
///
/// # Panics
/// The files cannot be written; or reading panics, which is what this is to find.
pub fn trace(input: &[u8], folder: &Path) {
    let (metadata, rest) = split(input);
    let (stream, index) = split(rest);
    let write =
        |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).expect("a file is written");
    std::fs::create_dir_all(folder.join("index")).expect("a folder is made");
    write("metadata", metadata);
    write("stream", stream);
    write("index/stream.idx", index);
    let Ok(recording) = Recording::open(&[folder]) else { return };
    for format in [Format::Text, Format::Pretty, Format::Json] {
        let _ = Listing { format, ..Listing::default() }.print(&recording, &mut (sink(), sink()));
    }
    let _ = Report::new(&recording);
    let from = Some(TimePoint::FromBegin(1000));
    let _ = Listing { from, ..Listing::default() }.print(&recording, &mut (sink(), sink()));
}
