//! Metadata and packets: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tracewing_fuzz::bytes::packets(input));
