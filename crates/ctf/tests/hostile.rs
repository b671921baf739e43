//! The fuzz targets of this crate over their seeds and over what has been found: no panic, whatever the bytes.

#[path = "../../../fuzz/src/bytes.rs"]
mod bytes;
#[path = "../../../fuzz/src/inputs.rs"]
#[allow(dead_code, reason = "some of it is for the fuzzer alone")]
mod inputs;

use std::path::Path;

/// Runs a target over each seed, over its beginnings, and with single bits turned over.
fn run(target: &str, function: fn(&[u8])) {
    let seeds = inputs::of(target, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    for (number, seed) in seeds.iter().enumerate() {
        function(seed);
        for place in (number * 7 % 97..seed.len()).step_by(97 + seed.len() / 8) {
            let mut damaged = seed.clone();
            damaged[place] ^= 1 << (place % 8);
            function(&damaged);
            function(&seed[..place]);
        }
    }
}

#[test]
fn metadata_in_tsdl() {
    run("tsdl", bytes::tsdl);
}

#[test]
fn metadata_of_ctf_2() {
    run("ctf2", bytes::ctf2);
}

#[test]
fn packets() {
    run("packets", bytes::packets);
}

#[test]
fn index_files() {
    run("index", bytes::index);
}
