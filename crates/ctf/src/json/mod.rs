//! The metadata of CTF 2: a sequence of JSON fragments (RFC 7464; CTF2-SPEC-2.0, metadata stream).

#[cfg(feature = "read")]
mod field;
#[cfg(feature = "read")]
mod fragment;
#[cfg(feature = "read")]
mod number;
#[cfg(feature = "read")]
mod parse;
#[cfg(feature = "read")]
mod parser;
mod print;
#[cfg(feature = "read")]
mod refer;
#[cfg(feature = "read")]
mod roles;
mod text;
#[cfg(feature = "read")]
mod value;

#[cfg(feature = "read")]
pub use parse::parse;
#[cfg(feature = "read")]
pub(crate) use parse::{fragment_at, parse_text};
pub use print::print;
