//! Turns a declaration of events into a struct per event, with its fields as a reader gets them, and an
//! enumeration of classes per provider.
//!
//! The declarations are macros that pass their text to another macro. This crate turns it into readers; the
//! crate that emits the events turns the same text into event classes.

/// Turns a declaration into readers. Its grammar:
///
/// ```text
/// provider "lock" named "lock:";
/// enumerations {
///     /// What it says.
///     Kind: u8 { /// What it says.
///                Mutex = 0 "mutex", }
/// }
/// events {
///     /// When it is emitted.
///     Acquired "acquired" [print = "…"] {
///         /// What it says. The field may be absent in older recordings.
///         @optional ticket: u64 [hex],
///     }
/// }
/// ```
///
/// The hints in brackets are for the writer, as in `#[event(…)]` of `tracewing::Event`; `also = "name"` on a
/// field is an alternative name in recordings. An event can have several names: `"sched_wakeup" |
/// "sched_wakeup_new"`.
macro_rules! readers {
    (
        provider $provider:literal named $start:literal;
        enumerations { $(
            $(#[doc = $enumeration_doc:literal])*
            $enumeration:ident: $repr:ident {
                $( $(#[doc = $label_doc:literal])* $variant:ident = $number:literal $label:literal, )*
            }
        )* }
        events { $(
            $(#[doc = $doc:literal])*
            $event:ident $(<$life:lifetime>)? $name:literal $(| $other:literal)* $([$($hint:tt)*])? {
                $( $(#[doc = $field_doc:literal])* $(@$optional:ident)? $field:ident: $type:ty $([$($field_hint:tt)*])?, )*
            }
        )* }
    ) => {
        /// Name of the provider of these events.
        pub const PROVIDER: &str = $provider;

        /// Prefix of the names of all these events.
        pub const START: &str = $start;

        /// A pattern that matches the names of these events.
        pub const GLOB: &str = concat!($start, "*");

        $(
            $(#[doc = $enumeration_doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub enum $enumeration { $( $(#[doc = $label_doc])* $variant, )* }

            impl $enumeration {
                /// The value with this number, if there is one.
                pub const fn of_number(number: i64) -> Option<Self> {
                    match number {
                        $( $number => Some(Self::$variant), )*
                        _ => None,
                    }
                }

                /// The number in recordings.
                pub const fn number(self) -> i64 {
                    match self { $( Self::$variant => $number, )* }
                }

                /// The label in recordings.
                pub const fn label(self) -> &'static str {
                    match self { $( Self::$variant => $label, )* }
                }
            }

            impl<'e> $crate::Recorded<'e> for $enumeration {
                type Read = Option<Self>;
                const KIND: $crate::FieldKind = $crate::FieldKind::Enumeration(&[$(($number, $label)),*]);

                #[inline(always)]
                fn read(fields: &impl $crate::Fields<'e>, place: usize) -> Option<Option<Self>> {
                    Some(Self::of_number(fields.integer(place)?))
                }
            }
        )*

        $(
            $crate::declare::reader! {
                [$($life)?] $(#[doc = $doc])* $event = concat!($start, $name);
                $( $(#[doc = $field_doc])* $(@$optional)? $field: $type [$($($field_hint)*)?], )*
            }
        )*

        /// The classes of the provider.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Class { $( $(#[doc = $doc])* $event, )* }

        impl Class {
            /// All classes, in the order of their declaration.
            pub const ALL: &[Self] = &[$(Self::$event),*];

            /// The class of this name.
            pub fn of_name(name: &str) -> Option<Self> {
                match name {
                    $( concat!($start, $name) $(| concat!($start, $other))* => Some(Self::$event), )*
                    _ => None,
                }
            }

            /// The class's name in recordings.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$event => concat!($start, $name), )* }
            }

            /// The meaning of the class's events.
            pub const fn description(self) -> &'static str {
                match self { $( Self::$event => concat!($($doc, "\n"),*), )* }
            }

            /// The fields, indexed as in [`Fields`](crate::Fields).
            pub const fn fields(self) -> &'static [$crate::Field] {
                match self { $( Self::$event => $event::FIELDS, )* }
            }
        }
    };
}

/// Defines the struct of one event.
macro_rules! reader {
    ([] $($rest:tt)*) => { $crate::declare::reader! { ['static] [] $($rest)* } };
    ([$life:lifetime] $(#[doc = $doc:literal])* $event:ident $($rest:tt)*) => {
        $crate::declare::reader! { [$life] [<$life>] $(#[doc = $doc])* $event $($rest)* }
    };
    (
        [$life:lifetime] [$($generics:tt)*]
        $(#[doc = $doc:literal])* $event:ident = $name:expr;
        $( $(#[doc = $field_doc:literal])* $(@$optional:ident)? $field:ident: $type:ty [$($hint:tt)*], )*
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $event $($generics)* {
            $( $(#[doc = $field_doc])* pub $field: $crate::declare::read_type!([$life] $type $(, $optional)?), )*
        }

        impl $($generics)* $event $($generics)* {
            /// Name of the class.
            pub const NAME: &'static str = $name;

            /// The fields, indexed as in [`Fields`](crate::Fields).
            pub const FIELDS: &'static [$crate::Field] = &[ $( $crate::Field {
                name: $crate::declare::field_name(stringify!($field)),
                also: $crate::declare::also!($($hint)*),
                description: concat!($($field_doc, "\n"),*),
                unit: $crate::declare::unit!($($hint)*),
                is_address: $crate::declare::is_address!($($hint)*),
                kind: <$type as $crate::Recorded>::KIND,
                is_optional: $crate::declare::is_optional!($($optional)?),
            } ),* ];
        }

        /// The fields one by one.
        #[allow(non_upper_case_globals, reason = "named as the fields are")]
        impl $($generics)* $event $($generics)* {
            $( $(#[doc = $field_doc])* pub const $field: &'static $crate::Field =
                &Self::FIELDS[$crate::field::place_of(Self::FIELDS, $crate::declare::field_name(stringify!($field)))]; )*
        }

        impl<'e> $crate::Reader<'e> for $event $($generics)* {
            #[inline(always)]
            fn read(fields: &impl $crate::Fields<'e>) -> Option<Self> {
                #[allow(non_camel_case_types, dead_code, clippy::enum_variant_names, reason = "named as the fields are")]
                enum Place { $($field),* }
                let _ = fields;
                Some(Self { $( $field: $crate::declare::read_field!(fields, Place::$field as usize, $type $(, $optional)?), )* })
            }
        }
    };
}

/// Turns a declaration into a macro that gives the names of its classes as literals, for `concat!`.
macro_rules! names {
    (
        $macro:ident
        provider $provider:literal named $start:literal;
        enumerations {}
        events { $(
            $(#[doc = $doc:literal])*
            $event:ident $(<$life:lifetime>)? $name:literal $([$($hint:tt)*])? { $($fields:tt)* }
        )* }
    ) => {
        /// The name of a class as a literal.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! $macro {
            $( ($event) => { ::core::concat!($start, $name) }; )*
        }
    };
}

/// The name of a field, without the prefix that makes a keyword an identifier.
pub(crate) const fn field_name(identifier: &str) -> &str {
    match identifier.as_bytes() {
        [b'r', b'#', ..] => identifier.split_at(2).1,
        _ => identifier,
    }
}

/// The type that a field is read as.
macro_rules! read_type {
    ([$life:lifetime] $type:ty) => { <$type as $crate::Recorded<$life>>::Read };
    ([$life:lifetime] $type:ty, optional) => { Option<<$type as $crate::Recorded<$life>>::Read> };
}

/// The value of a field.
macro_rules! read_field {
    ($fields:ident, $place:expr, $type:ty) => {
        <$type as $crate::Recorded>::read($fields, $place)?
    };
    ($fields:ident, $place:expr, $type:ty, optional) => {
        <$type as $crate::Recorded>::read($fields, $place)
    };
}

macro_rules! is_optional {
    () => {
        false
    };
    (optional) => {
        true
    };
}

macro_rules! is_address {
    (hex) => {
        true
    };
    ($($other:tt)*) => {
        false
    };
}

/// The unit in a field's hints.
macro_rules! unit {
    (unit = $unit:literal) => {
        $unit
    };
    ($($other:tt)*) => {
        ""
    };
}

/// The alternative name in a field's hints.
macro_rules! also {
    (also = $name:literal) => {
        Some($name)
    };
    ($($other:tt)*) => {
        None
    };
}

pub(crate) use {also, is_address, is_optional, names, read_field, read_type, reader, readers, unit};
