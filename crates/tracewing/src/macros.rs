//! `emit!`, `event!`, `span!`, the implementation of `#[traced]`, and the items that expansions of all macros
//! of this crate use. The macros only arrange tokens; the logic is in [`event`](crate::event).

/// Emits an event if a recording enables its class.
///
/// The argument is any expression whose type implements [`Event`](trait@crate::Event). It is borrowed, and
/// evaluated only when the class is enabled; until then the statement costs one instruction, which the agent
/// changes while the program runs.
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
/// It may be used in threads, signal handlers, forked children and exit handlers. It never blocks, allocates,
/// calls the system or panics (beyond what evaluating the argument does); an event that finds no room is
/// lost, and counted.
#[macro_export]
macro_rules! emit {
    ($event:expr $(,)?) => {{
        struct __TracewingLocation;
        impl $crate::__private::Location for __TracewingLocation {
            const FILE: &'static str = ::core::file!();
            const LINE: u32 = ::core::line!();
        }
        let site = $crate::__private::EventSite::<__TracewingLocation, _>::new();
        if site.is_on() {
            site.record(&$event);
        }
    }};
}

/// Emits an event without a declared struct if a recording enables its class.
///
/// First the name, `"provider:event"`, then the fields: a variable, or `name = value`. The types are those of
/// the values ([`Field`](crate::Field) lists what is possible); an integer literal is an `i32` unless its
/// type is specified. The values are borrowed, and evaluated only when the class is enabled.
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
/// The level is a variant of [`Level`](crate::Level); the default is `Info`.
///
/// Description, print form, display hints and `ordered` are only available for declared events
/// ([`derive(Event)`](macro@crate::Event)), which are also a little faster if all their fields have a
/// constant size. In a generic function, an event whose fields are of generic types has a class for each
/// choice of types, all of the same name.
#[macro_export]
macro_rules! event {
    (level: $level:ident, $name:literal $(, $field:ident $(= $value:expr)?)* $(,)?) => {
        $crate::__event!(
            $level,
            $name,
            [$($crate::__private::FieldDeclaration::plain(::core::stringify!($field))),*],
            $crate::__event_fields!($($field $(= $value)?,)*)
        )
    };
    ($name:literal $($fields:tt)*) => {
        $crate::event!(level: Info, $name $($fields)*)
    };
}

/// The site of an event: level, name, declarations of the fields and, while it is enabled, their values.
#[doc(hidden)]
#[macro_export]
macro_rules! __event {
    ($level:ident, $name:expr, $fields:expr, $values:expr) => {{
        struct __TracewingDeclaration;
        impl $crate::__private::Declaration for __TracewingDeclaration {
            const NAME: &'static str = $name;
            const LEVEL: $crate::Level = $crate::Level::$level;
            const MAJOR: u8 = 0;
            const DESCRIPTION: &'static str = "";
            const PRINT: &'static str = "";
            const FILE: &'static str = ::core::file!();
            const LINE: u32 = ::core::line!();
            const FIELDS: &'static [$crate::__private::FieldDeclaration] = &$fields;
        }
        const _: () = if let ::core::option::Option::Some(mistake) =
            $crate::__private::mistake::<__TracewingDeclaration>()
        {
            ::core::panic!("{}", mistake)
        };
        let site = $crate::__private::AdHocSite::<
            __TracewingDeclaration,
            _,
            { <__TracewingDeclaration as $crate::__private::Declaration>::FIELDS.len() },
        >::new();
        if site.is_on() {
            site.record($values);
        }
    }};
}

/// The values of `event!` as nested pairs of references.
#[doc(hidden)]
#[macro_export]
macro_rules! __event_fields {
    () => { () };
    ($field:ident, $($rest:tt)*) => { (&$field, $crate::__event_fields!($($rest)*)) };
    ($field:ident = $value:expr, $($rest:tt)*) => { (&$value, $crate::__event_fields!($($rest)*)) };
}

/// Begins a span if a recording enables it; it ends when the returned guard is dropped.
///
/// First the name, `"provider:span"`, then fields, as in [`event!`](crate::event). The span consists of two
/// events: `provider:span_begin`, with the span's id, that of its parent, and the fields, and
/// `provider:span_end`, with the id. Everything that the thread does in between is inside the span.
///
/// ```
/// use tracewing::span;
///
/// let (id, customer) = (17_u64, "Ada");
/// let order = span!("shop:order", id, customer);
/// {
///     let _packing = span!(level: Debug, "shop:packing"); // its parent is the order
/// }
/// let parent = order.id();
/// std::thread::spawn(move || {
///     let _shipping = span!(parent: parent, "shop:shipping", id);
/// });
/// # ; drop(order);
/// ```
///
/// The parent is the thread's innermost recorded span. `parent:` names another one, with
/// [`Span::id`](crate::Span::id) or [`SpanId::innermost`](crate::SpanId::innermost), or none, with `None`. It
/// follows `level:` if both are given.
///
/// While it is not recorded, a span costs as much as an event, plus a test at its end. In async code, use
/// [`Span::instrument`](crate::Span::instrument).
#[macro_export]
macro_rules! span {
    (level: $level:ident, parent: $parent:expr, $name:literal $($fields:tt)*) => {
        $crate::__span!($level, (|_| $crate::__private::Opening::explicit($parent)), $name $($fields)*)
    };
    (level: $level:ident, $name:literal $($fields:tt)*) => {
        $crate::__span!($level, $crate::__private::Opening::parent, $name $($fields)*)
    };
    (parent: $parent:expr, $name:literal $($fields:tt)*) => {
        $crate::span!(level: Info, parent: $parent, $name $($fields)*)
    };
    ($name:literal $($fields:tt)*) => {
        $crate::span!(level: Info, $name $($fields)*)
    };
}

/// A span whose parent is what `$parent` makes of its opening.
#[doc(hidden)]
#[macro_export]
macro_rules! __span {
    ($level:ident, $parent:expr, $name:literal $(, $field:ident $(= $value:expr)?)* $(,)?) => {{
        struct __TracewingSpan;
        impl $crate::__private::SpanDeclaration for __TracewingSpan {
            const LEVEL: $crate::Level = $crate::Level::$level;
            const FILE: &'static str = ::core::file!();
            const LINE: u32 = ::core::line!();
            const NAMES: [&'static str; 4] = [
                ::core::concat!($name, $crate::__private::span_suffix!(End)),
                ::core::concat!($name, $crate::__private::span_suffix!(Enter)),
                ::core::concat!($name, $crate::__private::span_suffix!(Exit)),
                ::core::concat!($name, $crate::__private::span_suffix!(Close)),
            ];
        }
        let mut opening = $crate::__private::Opening::default();
        $crate::__event!(
            $level,
            ::core::concat!($name, $crate::__private::span_suffix!(Begin)),
            [
                $crate::__private::FieldDeclaration::SPAN,
                $crate::__private::FieldDeclaration::PARENT,
                $($crate::__private::FieldDeclaration::plain(::core::stringify!($field))),*
            ],
            (
                &opening.begin(),
                (&$parent(&opening), $crate::__event_fields!($($field $(= $value)?,)*)),
            )
        );
        opening.guard::<__TracewingSpan>()
    }};
}

/// The start of a function with `#[traced]`; the function's name follows its module's path.
#[doc(hidden)]
#[macro_export]
macro_rules! __function {
    ($name:literal) => {{
        struct __TracewingFunction;
        impl $crate::__private::FunctionDeclaration for __TracewingFunction {
            const NAMES: [&'static str; 2] = [
                ::core::concat!($crate::__private::function_name!(Entry), ":", ::core::module_path!(), $name),
                ::core::concat!($crate::__private::function_name!(Exit), ":", ::core::module_path!(), $name),
            ];
            const FILE: &'static str = ::core::file!();
            const LINE: u32 = ::core::line!();
            fn classes() -> &'static [$crate::__private::EventClass; 2] {
                static CLASSES: [$crate::__private::EventClass; 2] =
                    $crate::__private::function_classes::<__TracewingFunction>();
                &CLASSES
            }
        }
        $crate::__private::Function::<__TracewingFunction>::begins()
    }};
}

/// What the macros' expansions use. No part of the interface: it changes without notice.
pub mod private {
    pub use crate::agent::{classes, pretend};
    pub use crate::class::EventClass;
    pub use crate::declaration::{
        Declaration, Description, FieldDeclaration, crate_name, describe, joined, length_of_joined, mistake,
    };
    pub use crate::event::{AdHocSite, EventSite, Location, to_bytes};
    pub use crate::field::{Field, FieldType, field_type};
    pub use crate::function::{Function, FunctionDeclaration, function_classes};
    pub use crate::layout::{Layout, Writer};
    pub use crate::payload::{Fields, Sink, fixed, gather, layout};
    pub use crate::span::{Opening, SpanDeclaration};
    pub use tracewing_abi::schema::{Base, Class, Level, Scalar};
    pub use tracewing_vocabulary::{function_name, span_suffix};
}
