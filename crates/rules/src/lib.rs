//! Selects the events that a recording takes and that commands show: shell patterns ([`Glob`]), rules on
//! event classes ([`Rule`], [`Rules`]) and conditions on fields ([`Predicate`]). One grammar for all of them,
//! wherever they are given.
//!
//! Before a program writes an event, it evaluates the predicate compiled for the event's class
//! ([`Predicate::compile`], [`filter`](crate::filter)); a reader of traces evaluates the same predicate
//! resolved for a class of the trace ([`Predicate::resolve`]). Sending filters to programs is the task of
//! other crates.
//!
//! ```
//! use tracewing_rules::Predicate;
//!
//! let predicate = Predicate::parse(r#"depth > 3 && customer == "x""#)?;
//! let error = Predicate::parse("depth > && x").unwrap_err();
//! assert_eq!(error.to_string(), "expected a field or a value\n  depth > && x\n          ^");
//! # Ok::<(), tracewing_rules::PredicateError>(())
//! ```
//!
//! # Predicates
//!
//! ```text
//! predicate  = all { "||" all }
//! all        = unit { "&&" unit }
//! unit       = "!" unit | operand [ relation operand ]
//! relation   = "==" | "!=" | "<" | "<=" | ">" | ">=" | "=~" | "!~"
//! operand    = ( variable | literal | "(" predicate ")" ) [ "&" integer ]
//! variable   = path | "len(" path ")"
//! path       = [ "$" ] name { "." name | "[" integer "]" }
//! literal    = [ "-" ] integer | [ "-" ] real | [ "-" ] quantity | text | "true" | "false"
//! quantity   = digits [ "." digits ] measure, without a space before the measure
//! measure    = "ns" | "us" | "ms" | "s" | "min" | "h" | "B" | "K" | "M" | "G" | "KiB" | "MiB" | "GiB"
//! integer    = decimal | "0x" hexadecimal | "0o" octal | "0b" binary, with "_" between digits
//! text       = "…" or '…' with \n \r \t \\ \" \' \xNN \u{N}
//! ```
//!
//! - `&&` binds tighter than `||`, `!` and `&` tighter than a relation. A parenthesised predicate can be a
//!   side of a relation only if it is an operand, as in `(flags & 6) == 2`. Relations do not chain, and `!`
//!   before one needs parentheses.
//! - A name is a field of the event, `$name` other data about it: `$tid`, `$pid`, `$cpu`, `$event` (the
//!   class's name) and `$level` (the number that LTTng gives its level, or the level's word: the smaller, the
//!   more severe).
//! - Integers are compared as numbers, whatever their size and signedness; so are an integer and a
//!   floating-point number if one of them is a literal. NaN is in no relation to anything, not even `!=`.
//!   `true` is 1, `false` 0.
//! - A quantity is compared in the unit of the variable on the other side, exactly: `wait > 1.5ms`. A
//!   variable without a declared unit is taken to count nanoseconds, or bytes (K is 1024 of them). One with a
//!   unit of something else, such as cycles, has an incompatible type.
//! - An operand alone is true if it is an integer other than 0. `&` gives the common bits; negative numbers
//!   are in two's complement.
//! - Texts are equal or not, and match a pattern ([`Glob`]) with `=~` or do not match with `!~`. A `char` is
//!   a text. An enumeration is compared with a label like a text, and with a number like an integer.
//! - `len` is the length of a text in bytes, the number of values of an array or slice, and whether an
//!   optional field has a value (1 or 0).
//! - A relation with something that the event does not have is unknown, `!=` and `!~` included: an optional
//!   field without a value, an element after the end of a slice, a field that only events of other classes
//!   have, or that has an incompatible type in this one. So is one with a label that the enumeration does not
//!   have. The opposite of unknown is unknown, too; `unknown && false` is false, `unknown || true` is true
//!   (Kleene's logic). An event matches if the predicate is true.
//! - A predicate holds for no event of a class that lacks fields without which it cannot be true, or has them
//!   with an incompatible type; a [`CompileError`] says why. [`Fit`] says what no class has.

#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod filter;
#[cfg(feature = "std")]
mod language;
pub mod pattern;

#[cfg(feature = "std")]
pub use language::*;
