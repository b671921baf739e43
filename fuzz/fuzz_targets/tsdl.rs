//! Metadata in TSDL: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tracewing_fuzz::bytes::tsdl(input));
