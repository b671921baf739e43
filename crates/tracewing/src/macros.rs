//! `emit!` and `event!`, and what the expansions of all macros of this crate need to reach. The macros only arrange
//! tokens; what happens is in [`event`](crate::event).

/// Emits an event, if some recording wants events of its class.
///
/// The argument is any expression whose type implements [`Event`](trait@crate::Event). It is borrowed, and evaluated
/// only when the event is wanted; until then the whole costs one relaxed load and a branch.
///
/// ```
/// use tracewing::{Event, emit};
///
/// /// A job entered the queue.
/// #[derive(Event)]
/// struct Enqueued<'a> {
///     id: u64,
///     depth: u32,
///     customer: &'a str,
/// }
///
/// let (id, depth, name) = (17, 3, String::from("Ada"));
/// emit!(Enqueued { id, depth, customer: &name });
/// ```
///
/// It may be used in threads, signal handlers, forked children and exit handlers. It never blocks, allocates, calls the
/// system or panics (beyond what evaluating the argument does); an event that finds no room is lost, and counted.
#[macro_export]
macro_rules! emit {
    ($event:expr $(,)?) => {{
        let site = $crate::__private::Site::new();
        if site.is_on() {
            site.record(&$event);
        }
    }};
}

/// Emits an event without a declared struct, if some recording wants it.
///
/// First the name, `"provider:event"`, then the fields: a variable, or `name = value`. The types are those of the
/// values ([`Field`](crate::Field) lists what is possible); an integer literal is an `i32` where nothing says
/// otherwise. The values are borrowed, and evaluated only when the event is wanted.
///
/// ```
/// use tracewing::event;
///
/// let queue = vec!["first", "second"];
/// let (id, name) = (17_u64, String::from("Ada"));
/// event!("shop:enqueued", id, depth = queue.len(), name);
/// event!(level: Warn, "shop:rejected", id, reason = "queue full");
/// event!("shop:idle");
/// ```
///
/// The level, `Info` if it is not told, is a variant of [`Level`](crate::Level).
///
/// Description, print form, display hints and `ordered` are there for declared events only
/// ([`derive(Event)`](macro@crate::Event)), which also are a little faster where all their fields have a constant size.
/// In a generic function, an event whose fields are of generic types has a class for each choice of types, all of the
/// same name.
#[macro_export]
macro_rules! event {
    (level: $level:ident, $name:literal $(, $field:ident $(= $value:expr)?)* $(,)?) => {{
        struct __TracewingDeclaration;
        impl $crate::__private::Declaration for __TracewingDeclaration {
            const NAME: &'static str = $name;
            const LEVEL: $crate::Level = $crate::Level::$level;
            const DESCRIPTION: &'static str = "";
            const PRINT: &'static str = "";
            const FILE: &'static str = ::core::file!();
            const LINE: u32 = ::core::line!();
            const FIELDS: &'static [$crate::__private::FieldDeclaration] =
                &[$($crate::__private::FieldDeclaration::plain(::core::stringify!($field))),*];
        }
        const _: () = if let ::core::option::Option::Some(mistake) =
            $crate::__private::mistake::<__TracewingDeclaration>()
        {
            ::core::panic!("{}", mistake)
        };
        let site = $crate::__private::AdHocSite::<__TracewingDeclaration, _, {
            <__TracewingDeclaration as $crate::__private::Declaration>::FIELDS.len()
        }>::new();
        if let ::core::option::Option::Some(class) = site.class_if_on() {
            site.record(class, $crate::__event_fields!($($field $(= $value)?,)*));
        }
    }};
    ($name:literal $($fields:tt)*) => {
        $crate::event!(level: Info, $name $($fields)*)
    };
}

/// The values of `event!` as nested pairs of references.
#[doc(hidden)]
#[macro_export]
macro_rules! __event_fields {
    () => { () };
    ($field:ident, $($rest:tt)*) => { (&$field, $crate::__event_fields!($($rest)*)) };
    ($field:ident = $value:expr, $($rest:tt)*) => { (&$value, $crate::__event_fields!($($rest)*)) };
}

/// What the macros' expansions use. No part of the interface: it changes without notice.
pub mod private {
    pub use crate::class::{EventClass, all};
    pub use crate::declaration::{
        Declaration, FieldDeclaration, crate_name, describe, joined, length_of_joined, mistake,
    };
    pub use crate::event::{AdHocSite, Site};
    pub use crate::field::{Field, FieldType, field_type};
    pub use crate::payload::{Fields, Layout, Sink, Writer, fixed, gather, layout, to_bytes};
    pub use tracewing_abi::schema::{Base, Level, Scalar};
}
