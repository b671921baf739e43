//! Targets of crate `tracewing-trace`, whose inputs are files: a whole trace, listed or converted.

use super::inputs::split;
use std::fs;
use std::io::sink;
use std::ops::ControlFlow;
use std::path::Path;
use tracewing_ctf::model::Version;
use tracewing_trace::{
    Conversion, Filter, Format, Listing, Recording, Report, Statistics, TimePoint, print_details,
};
use tracewing_units::{Cpu, Duration};

/// Lists a trace in every form.
///
/// # Panics
/// The files cannot be written; or reading panics, which this target looks for.
pub fn trace(input: &[u8], folder: &Path) {
    let Some(recording) = open(input, folder) else { return };
    for format in [Format::Text, Format::Pretty, Format::Json, Format::Csv] {
        let _ = Listing { format, ..Listing::default() }.print(&recording, &mut (sink(), sink()));
    }
    let _ = print_details(&recording, &mut sink(), false);
    let _ = Report::new(&recording);
    let from = Some(TimePoint::FromBegin(Duration::from_ns(1000)));
    let place = "$tid > 0 || $state == 'blocked'".parse().ok();
    for filter in [
        Filter { from: from.clone(), ..Filter::default() },
        Filter { from, predicate: place, cpus: vec![Cpu(0)..=Cpu(1)], ..Filter::default() },
    ] {
        let _ = Statistics::collect(&recording, &filter);
        let _ = Listing { filter, ..Listing::default() }.print(&recording, &mut (sink(), sink()));
    }
}

/// Converts a trace to both versions, and reads the results.
///
/// # Panics
/// As [`trace`]; or the result cannot be read, or has another number of events.
pub fn convert(input: &[u8], folder: &Path) {
    let Some(recording) = open(input, folder) else { return };
    let out = folder.join("out");
    for version in [Version::V1_8, Version::V2] {
        let conversion = Conversion { version: Some(version), ..Conversion::default() };
        let written = conversion.run(&recording, &out, &mut |_| ControlFlow::Continue(()));
        let Ok(written) = written else { continue };
        let mut lines = (Vec::new(), sink());
        let read = Recording::open(&[&out]).and_then(|copy| Listing::default().print(&copy, &mut lines));
        let count = lines.0.iter().filter(|byte| **byte == b'\n').count() as u64;
        // Without events there may be no trace of the other version.
        if written.events > 0 {
            read.unwrap_or_else(|error| panic!("{version:?} cannot be read: {error}"));
            assert!(count >= written.events, "{version:?}: {count} events of {}", written.events);
        }
        fs::remove_dir_all(&out).expect("the copy is removed");
    }
}

/// Writes an input's parts (metadata, a stream, its index) to a trace in `folder`.
fn open(input: &[u8], folder: &Path) -> Option<Recording> {
    let (metadata, rest) = split(input);
    let (stream, index) = split(rest);
    let trace = folder.join("trace");
    let write = |name: &str, bytes: &[u8]| fs::write(trace.join(name), bytes).expect("a file is written");
    fs::create_dir_all(trace.join("index")).expect("a folder is made");
    write("metadata", metadata);
    write("stream", stream);
    write("index/stream.idx", index);
    Recording::open(&[trace]).ok()
}
