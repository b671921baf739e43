//! A user thread's name and place, kept for recordings that begin after it was created.
//!
//! A name that programs give to many tasks is kept once, permanently, so that no spawn copies it; where a
//! name finds no room there, each task has its own copy.

use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::*};
use tokio::runtime::Handle;
use tracewing::user_thread;

/// How many names are kept permanently.
const SHARED: usize = 256;

type Shared = [AtomicPtr<Text>; SHARED];

/// Never changed or freed once they are there.
static NAMES: Shared = [const { AtomicPtr::new(ptr::null_mut()) }; SHARED];

pub(crate) struct Known {
    location: &'static Location<'static>,
    name: Name,
}

/// A name that a pointer of one word leads to.
struct Text(Box<str>);

enum Name {
    OfType(fn() -> &'static str),
    Shared(&'static Text),
    Own(Box<Text>),
}

impl Known {
    /// `of_type` gives the name where there is none.
    #[inline]
    pub(crate) fn new(
        name: Option<&str>,
        of_type: fn() -> &'static str,
        location: &'static Location<'static>,
    ) -> Self {
        let name = name.map_or(Name::OfType(of_type), |name| match shared(&NAMES, name) {
            Some(shared) => Name::Shared(shared),
            None => Name::Own(Box::new(Text(name.into()))),
        });
        Self { location, name }
    }

    /// Reports the origin, unless that is done, and gives its number. The runtime is the caller's.
    pub(crate) fn describe(&self) -> u64 {
        let name = match &self.name {
            Name::OfType(name) => name(),
            Name::Shared(name) => &name.0,
            Name::Own(name) => &name.0,
        };
        let runtime = Handle::try_current().ok();
        let runtime = runtime.as_ref().and_then(Handle::name).unwrap_or_default();
        user_thread::describe(name, runtime, self.location)
    }
}

/// The name as it is kept permanently; the first one at its place is.
fn shared(names: &'static Shared, name: &str) -> Option<&'static Text> {
    // By the address: where a program has its names, they are few.
    let key = name.as_ptr().addr() ^ name.len().rotate_left(16);
    let place = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56; // 2^64 by the golden ratio
    let place = &names[place as usize % SHARED];
    // Acquire, with `keep`: the name is there.
    let mut there = place.load(Acquire);
    if there.is_null() {
        there = keep(place, name);
    }
    // SAFETY: `keep` made it, and it is never changed or freed.
    let there: &'static Text = unsafe { &*there };
    (*there.0 == *name).then_some(there)
}

/// Keeps the name, unless another thread was faster; gives what is kept.
#[cold]
fn keep(place: &AtomicPtr<Text>, name: &str) -> *mut Text {
    let new = Box::into_raw(Box::new(Text(name.into())));
    // Release, with the load in `shared` and that of the failure: it is whole.
    match place.compare_exchange(ptr::null_mut(), new, Release, Acquire) {
        Ok(_) => new,
        Err(there) => {
            // SAFETY: made above, and no one else has it.
            drop(unsafe { Box::from_raw(new) });
            there
        }
    }
}

// Tasks are larger by it.
const _: () = assert!(size_of::<Known>() == 24);

#[cfg(test)]
mod tests {
    use super::*;

    static FIRST: Shared = [const { AtomicPtr::new(ptr::null_mut()) }; SHARED];
    static SECOND: Shared = [const { AtomicPtr::new(ptr::null_mut()) }; SHARED];

    #[test]
    fn a_name_is_kept_once() {
        let name = String::from("a name");
        let [a, b] = [shared(&FIRST, &name).unwrap(), shared(&FIRST, &name).unwrap()];
        assert!(ptr::eq(a, b) && *a.0 == *"a name");
    }

    #[test]
    fn a_buffer_that_changes_is_no_name() {
        let mut buffer = String::from("one");
        let one = shared(&SECOND, &buffer).unwrap();
        buffer.replace_range(.., "two");
        assert!(shared(&SECOND, &buffer).is_none(), "a stale name");
        assert_eq!(*one.0, *"one");
    }
}
