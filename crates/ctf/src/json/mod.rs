//! The metadata of CTF 2: a sequence of JSON fragments (RFC 7464; CTF2-SPEC-2.0, metadata stream).

mod print;
mod text;

pub use print::print;
