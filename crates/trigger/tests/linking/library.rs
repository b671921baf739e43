//! Sites in a library: the macro that defines them, a plain function, an inlined one, a generic one, and one
//! that nothing calls.

pub use tracewing_abi;
pub use tracewing_trigger;

/// Whether the site defined here is on.
#[macro_export]
macro_rules! site {
    ($name:expr $(, $generic:ident)?) => {{
        struct Here$(<$generic>(std::marker::PhantomData<$generic>))?;
        impl$(<$generic: $crate::Named>)? $crate::tracewing_trigger::Place for Here$(<$generic>)? {
            const SITE: &'static $crate::tracewing_trigger::Site = &$crate::tracewing_trigger::Site {
                class: &$crate::tracewing_abi::schema::Class {
                    name: $name,
                    level: $crate::tracewing_abi::schema::Level::Info,
                    major: 0,
                    description: "",
                    print: "",
                    file: file!(),
                    line: line!(),
                    fields: &[],
                },
                owner: $crate::tracewing_trigger::Site::no_owner,
                file: file!(),
                line: line!(),
                kind: $crate::tracewing_trigger::Kind::Event,
            };
        }
        $crate::tracewing_trigger::is_on::<Here$(<$generic>)?>()
    }};
}

/// A type with a site of its own.
pub trait Named {
    const NAME: &'static str;
}

#[inline(never)]
pub fn from_library() -> bool {
    site!("library")
}

#[inline(always)]
pub fn inlined() -> bool {
    site!("inlined")
}

#[inline(never)]
pub fn generic<T: Named>() -> bool {
    site!(T::NAME, T)
}

#[inline(never)]
pub fn never_called() -> bool {
    site!("never called")
}
