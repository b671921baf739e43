//! The derive macros and the attribute macro of tracewing. They read an item's shape and attributes and write
//! a declaration; all further work, at compile time or later, is ordinary code of the crate `tracewing`,
//! which also documents the macros for their users and re-exports them.

#![warn(unreachable_pub)]

mod attributes;
mod enumeration;
mod event;
mod name;
mod print;
mod traced;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct an event that `emit!` can emit.
///
/// ```
/// use tracewing::{Event, emit};
///
/// /// A region was attached to a file cache.
/// #[derive(Event)]
/// #[event(level = "debug", print = "region {region:#x} attached to {fcm:#x}, {size} bytes")]
/// struct RegionAttached {
///     #[event(hex)]
///     region: u64,
///     #[event(hex)]
///     fcm: u64,
///     #[event(unit = "bytes")]
///     size: usize,
/// }
///
/// emit!(RegionAttached { region: 0x10, fcm: 0x20, size: 4096 });
/// ```
///
/// The struct has named fields whose types implement
/// [`Field`](https://docs.rs/tracewing/latest/tracewing/trait.Field.html), or none (`struct Idle;`). It may
/// have lifetime parameters, but no others, since an event class has one layout. Its doc comment, all lines
/// joined, is the description of the class; the file and line of its name are recorded too.
///
/// # Attributes of the struct: `#[event(…)]`
///
/// | attribute | meaning | default |
/// |---|---|---|
/// | `name = "enqueued"` | the event's name within its provider | the struct's name in `snake_case` |
/// | `provider = "shop"` | the first part of the full name `shop:enqueued` | the crate's name |
/// | `level = "debug"` | how severe: `error`, `warn`, `info`, `debug`, `trace` | `info` |
/// | `major = 3` | the event's major class, a number from 0 to 63 that a recording can switch as a whole | 0 |
/// | `print = "…"` | how a reader shows the event, see below | fields as `name = value` |
/// | `ordered` | the event means "has been received" (a lock acquired, a message received, a thread woken): its time stamp cannot precede that of the cause on another CPU. Costs a fence, a few nanoseconds | off |
/// | `crate = some::path` | where the crate `tracewing` is found | `::tracewing` |
///
/// Names consist of ASCII letters, digits, `_`, `-` and `.`, and the event's name also of `:`; a full name
/// has at most 255 bytes.
///
/// # Attributes of a field: `#[event(…)]`
///
/// | attribute | meaning |
/// |---|---|
/// | `hex`, `octal`, `binary` | shown in that base; for integers |
/// | `unit = "ns"` | the unit, in words of your choice other than `bool` and `char` |
/// | `name = "type"` | the field's name in the trace, if it differs from the Rust name |
/// | `skip` | the field is not recorded |
///
/// The name of a field consists of ASCII letters, digits and `_`, and does not begin with a digit. Words with
/// a meaning in a trace's metadata (`event`, `string`, `struct`, …) are fine. `r#type` is recorded as `type`.
///
/// # Print form
///
/// Text in which `{field}` or `{field:spec}` is replaced by a field's value, `{{` and `}}` by braces. A
/// `spec` is a subset of that of [`std::fmt`]: `[<|^|>][#][0][width][.precision][x|X|o|b]`, all optional. The
/// letters are for integers, the precision is for floating-point numbers and texts. Fields and specs are
/// checked at compile time.
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    event::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Turns an enum without fields into a field type: an enumeration whose labels are the variants' names.
///
/// ```
/// use tracewing::{Event, EventField, emit};
///
/// #[derive(Clone, Copy, EventField)]
/// #[repr(u8)]
/// enum Outcome {
///     Sold = 1,
///     #[event(name = "out of stock")]
///     OutOfStock,
/// }
///
/// #[derive(Event)]
/// struct Served {
///     outcome: Outcome,
/// }
///
/// emit!(Served { outcome: Outcome::Sold });
/// ```
///
/// The value is recorded with the size of `#[repr(…)]` (`u8` to `u64`, `i8` to `i64`, `usize`, `isize`), or
/// as an `i32` without it; `#[event(name = "…")]` on a variant changes its label. `#[event(crate =
/// some::path)]` on the enum says where the crate `tracewing` is found.
#[proc_macro_derive(EventField, attributes(event))]
pub fn derive_event_field(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    enumeration::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Records the beginning and end of a function, by two sites of its own.
///
/// ```
/// #[tracewing::traced]
/// fn gcd(a: u64, b: u64) -> u64 {
///     if b == 0 { a } else { gcd(b, a % b) }
/// }
///
/// assert_eq!(gcd(12, 18), 6);
/// ```
///
/// The events have no fields; their names hold the function's path: `function:entry:my_crate::math::gcd`,
/// `function:exit:…`. A panic also ends the function. The time between the events is that of the body,
/// including the drop of its variables; arguments are dropped after it. A function that the compiler has
/// inlined is recorded as well.
///
/// On an `impl` block it applies to all of its functions, named `Type::function`. It skips an `async fn` or
/// `const fn` there; directly on one it is an error.
#[proc_macro_attribute]
pub fn traced(arguments: TokenStream, item: TokenStream) -> TokenStream {
    traced::expand(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
