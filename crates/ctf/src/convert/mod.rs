//! Converts a trace class to the other CTF version, so that the same values can be written.
//!
//! A [`StreamWriter`](crate::encode::StreamWriter) made with the converted class accepts the values of the
//! original one as they are decoded.
//!
//! CTF 2 can express everything that CTF 1.8 can, except that a clock cannot be mapped to fields of contexts
//! or payloads. In the other direction:
//!
//! | CTF 2 | CTF 1.8 |
//! |---|---|
//! | bit array, bit map | unsigned integer, hexadecimal; names of bits are lost |
//! | boolean | enumeration: `false` for 0, `true` for the others |
//! | integer of variable length | integer of 64 bits |
//! | bit order that differs from byte order | the byte order's |
//! | floating point number of 16 bits | one of 32 bits |
//! | floating point number of 128 bits | refused |
//! | string in UTF-16 or UTF-32 | string in UTF-8 |
//! | string of dynamic length in UTF-16 or UTF-32 | null-terminated string in UTF-8; the length field stays |
//! | string of static or dynamic length | array or sequence of UTF-8 bytes |
//! | BLOB | array or sequence of bytes, hexadecimal; its media type is lost |
//! | least alignment of an array | that of its elements |
//! | optional | variant of an empty structure `none` and the field as `some` |
//! | selector of an optional or a variant | enumeration with labels for the options |
//! | option without name, or whose name is not an identifier | `option_N`; `_` for characters that
//! identifiers cannot have |
//! | role | the name that has it in CTF 1.8; `_` is appended to a field that has such a name by chance |
//! | member whose name is not an identifier | `_` for characters that identifiers cannot have; refused if two
//! names become the same |
//! | event record class without name | one with an empty name |
//! | namespaces, names and unique ids of traces and data streams, attributes | lost; UUIDs and log levels stay |
//! | accuracy, origin other than the Unix epoch of a clock | lost |

mod map;
mod places;
mod ranges;
mod tags;
mod to_ctf1;
mod to_ctf2;
mod whole_stamps;

pub use to_ctf1::to_ctf1;
pub use to_ctf2::to_ctf2;
pub use whole_stamps::{with_independent_packets, with_whole_stamps};

use crate::model::{FieldLocation, Place, Uuid};
use crate::{Error, TraceClassFault};
use places::Places;

fn no_field(location: &FieldLocation, places: &Places<'_>) -> Error {
    let fault = Box::new(TraceClassFault::NoField(location.path.join(".")));
    Error::TraceClass { place: places.text(), fault, at: Place::default() }
}

/// The bytes of a UUID in its text form.
fn uuid(text: &str) -> Option<Uuid> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    let mut uuid = Uuid::default();
    if text.len() != 36 || digits.len() != 32 {
        return None;
    }
    for (byte, pair) in uuid.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(uuid)
}
