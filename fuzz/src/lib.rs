//! The bodies of the fuzz targets, without the fuzzer: tests of the crates run them over seeds and findings.

pub mod bytes;
pub mod folder;
pub mod inputs;
