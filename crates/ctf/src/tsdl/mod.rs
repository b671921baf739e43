//! TSDL, the language of CTF 1.8 metadata (specification 1.8.3, section 7 and appendix C).
//!
//! [`print`](fn@print) and `parse` are each other's inverse for every class that TSDL can express.

#[cfg(feature = "read")]
mod blocks;
#[cfg(feature = "read")]
mod check;
#[cfg(feature = "read")]
mod clocks;
#[cfg(feature = "read")]
mod compounds;
#[cfg(feature = "read")]
mod leaves;
#[cfg(feature = "read")]
mod lex;
#[cfg(feature = "read")]
mod parse;
#[cfg(feature = "read")]
mod parser;
mod print;
#[cfg(feature = "read")]
mod types;
#[cfg(feature = "read")]
mod values;

#[cfg(feature = "read")]
pub use parse::parse;
#[cfg(feature = "read")]
pub(crate) use parse::parse_text;
pub use print::print;
pub(crate) use print::{identifier, option_identifier, uuid_text};

/// Words that cannot name a field without a protecting underscore (appendix C.1.2).
const KEYWORDS: [&str; 28] = [
    "align",
    "callsite",
    "char",
    "clock",
    "const",
    "double",
    "enum",
    "env",
    "event",
    "float",
    "floating_point",
    "int",
    "integer",
    "long",
    "short",
    "signed",
    "stream",
    "string",
    "struct",
    "trace",
    "typealias",
    "typedef",
    "unsigned",
    "variant",
    "void",
    "_Bool",
    "_Complex",
    "_Imaginary",
];
