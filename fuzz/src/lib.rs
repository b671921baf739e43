//! What the fuzz targets run, apart from the fuzzer: the tests of the crates run the same over seeds and
//! findings.

pub mod bytes;
pub mod folder;
pub mod inputs;
