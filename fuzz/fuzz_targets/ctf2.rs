//! Metadata of CTF 2: see the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tracewing_fuzz::bytes::ctf2(input));
