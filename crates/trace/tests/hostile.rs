//! The fuzz targets of this crate over their seeds and over what has been found: no panic, whatever the
//! files.

#[path = "../../../fuzz/src/folder.rs"]
mod folder;
#[path = "../../../fuzz/src/inputs.rs"]
#[allow(dead_code, reason = "some of it is for the fuzzer alone")]
mod inputs;

use std::path::Path;

/// Runs a target over each seed and over its first half.
fn run(target: &str, function: fn(&[u8], &Path)) {
    let scratch = tempfile::tempdir().unwrap();
    for seed in inputs::of(target, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")) {
        function(&seed, scratch.path());
        function(&seed[..seed.len() / 2], scratch.path());
    }
}

#[test]
fn whole_traces() {
    run("trace", folder::trace);
}

#[test]
fn converted_traces() {
    run("convert", folder::convert);
}
