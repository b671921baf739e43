//! Event classes that `tracewing-vocabulary` declares: the writing side of a declaration; the reading side is
//! there.

/// Makes the events of a declaration: `tracewing_vocabulary::lock_events!(declared_events)`.
#[doc(hidden)]
#[macro_export]
macro_rules! declared_events {
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
            $event:ident $(<$life:lifetime>)? $name:literal $([$($hint:tt)*])? {
                $( $(#[doc = $field_doc:literal])* $(@$optional:ident)? $field:ident: $type:ty $([$($field_hint:tt)*])?, )*
            }
        )* }
    ) => {
        $(
            $(#[doc = $enumeration_doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, $crate::EventField)]
            #[event(crate = $crate)]
            #[repr($repr)]
            pub enum $enumeration {
                $( $(#[doc = $label_doc])* #[event(name = $label)] $variant = $number, )*
            }
        )*

        $(
            $(#[doc = $doc])*
            // The module of some is private.
            #[allow(unreachable_pub)]
            #[derive($crate::Event)]
            #[event(crate = $crate, provider = $provider, name = $name $(, $($hint)*)?)]
            pub struct $event $(<$life>)? {
                $( $(#[doc = $field_doc])* $(#[event($($field_hint)*)])? pub $field: $type, )*
            }
        )*
    };
}
