//! The fuzz targets of this crate over their seeds and over what has been found: no panic, whatever the
//! bytes.

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

/// A long name that two to the 15 fields share: a gigabyte, if each of them had its own copy.
#[test]
fn what_field_classes_share_does_not_multiply_in_memory() {
    let name = "n".repeat(30_000);
    let mut metadata = format!(
        "/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = le; }};
        typealias struct {{ integer {{ size = 8; }} {name}; }} := t0;"
    );
    for level in 1..16 {
        let below = level - 1;
        metadata += &format!("typealias struct {{ t{below} a; t{below} b; }} := t{level};\n");
    }
    metadata += "event { name = e; fields := struct { t15 x; }; };";
    let class = tracewing_ctf::metadata::parse(metadata.as_bytes()).unwrap();
    let error = tracewing_ctf::decode::Decoder::new(class.into()).unwrap_err().to_string();
    assert!(error.contains("names and ranges of field classes take more than"), "{}", &error[..200]);
}
