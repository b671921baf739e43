//! The fuzz target of this crate over its seeds and over what has been found: no panic, whatever the files.

#[path = "../../../fuzz/src/folder.rs"]
mod folder;
#[path = "../../../fuzz/src/inputs.rs"]
#[allow(dead_code, reason = "some of it is for the fuzzer alone")]
mod inputs;

use std::path::Path;

#[test]
fn whole_traces() {
    let scratch = tempfile::tempdir().unwrap();
    let seeds = inputs::of("trace", &Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    for seed in &seeds {
        folder::trace(seed, scratch.path());
        folder::trace(&seed[..seed.len() / 2], scratch.path());
    }
}
