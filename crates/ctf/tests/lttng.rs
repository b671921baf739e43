//! Traces that lttng-ust 2.13 wrote (every field kind; packetised metadata, large event header): decoded as
//! babeltrace2 does. `TRACEWING_CTF_TRACES` may name a folder with more traces to compare.

mod common;

use std::path::Path;

#[test]
fn all_field_kinds() {
    common::same_as_babeltrace(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lttng-ust-kinds"));
}

#[test]
fn more_traces() {
    fn visit(folder: &Path) {
        if folder.join("metadata").is_file() {
            common::same_as_babeltrace(folder);
        }
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                visit(&entry);
            }
        }
    }
    match std::env::var_os("TRACEWING_CTF_TRACES") {
        Some(folder) => visit(Path::new(&folder)),
        None => tracewing_testing::skip(
            tracewing_testing::Cause::Variable("TRACEWING_CTF_TRACES"),
            "TRACEWING_CTF_TRACES names no folder with traces",
        ),
    }
}
