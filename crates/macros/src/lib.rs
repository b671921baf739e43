//! The derive macros of tracewing, and an attribute. They read an item's shape and attributes and write down
//! a declaration; everything that happens with it, at compile time or later, is ordinary code of the crate
//! `tracewing`, which also documents the macros for their users and re-exports them.

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
/// | `print = "…"` | how a reader is to show the event, see below | fields as `name = value` |
/// | `ordered` | the event means "has been received" (a lock acquired, a message received, a thread woken): its time stamp cannot precede that of the cause on another processor. Costs a fence, some nanoseconds | off |
/// | `crate = some::path` | where the crate `tracewing` is found | `::tracewing` |
///
/// Names are made of ASCII letters, digits, `_`, `-` and `.`, the event's also of `:`; a full name has at
/// most 255 bytes.
///
/// # Attributes of a field: `#[event(…)]`
///
/// | attribute | meaning |
/// |---|---|
/// | `hex`, `octal`, `binary` | shown in that base; for integers |
/// | `unit = "ns"` | the unit, in words of your choice other than `bool` and `char` |
/// | `name = "type"` | the field's name in the trace, where it is not the Rust one |
/// | `skip` | the field is not recorded |
///
/// The name of a field is made of ASCII letters, digits and `_`, and does not begin with a digit. Words that
/// mean something in a trace's metadata (`event`, `string`, `struct`, …) are fine. `r#type` is recorded as
/// `type`.
///
/// # Print form
///
/// Text in which `{field}` or `{field:spec}` stands for a field's value, `{{` and `}}` for braces. A `spec`
/// is a part of that of [`std::fmt`]: `[<|^|>][#][0][width][.precision][x|X|o|b]`, all optional. The letters
/// are for integers, the precision is for floating-point numbers and texts. Fields and specs are checked at
/// compile time.
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    event::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes an enum without fields a field type: an enumeration, whose labels are the variants' names.
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
/// The value is recorded with the size that `#[repr(…)]` gives (`u8` to `u64`, `i8` to `i64`, `usize`,
/// `isize`), else as an `i32`; `#[event(name = "…")]` on a variant changes its label.
/// `#[event(crate = some::path)]` on the enum says where the crate `tracewing` is found.
#[proc_macro_derive(EventField, attributes(event))]
pub fn derive_event_field(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    enumeration::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Has a function tell when it begins and when it ends, by two sites of its own.
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
/// `function:exit:…`. What a panic leaves has ended, too. The time between is that of the body, whose
/// variables are dropped in it; arguments are dropped behind it. A function that the compiler has put into
/// another one is told as well.
///
/// On an `impl` block it is for all of its functions, called `Type::function`. An `async fn` or `const fn` is
/// left out there, and is an error where the attribute stands on it.
#[proc_macro_attribute]
pub fn traced(arguments: TokenStream, item: TokenStream) -> TokenStream {
    traced::expand(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
