//! Creates user threads from a per-thread cache of the first places where the thread spawned tasks: a program
//! has few.

use std::cell::RefCell;
use std::panic::Location;
use std::ptr;
use tokio::runtime::Handle;
use tracewing::user_thread::{self, Origin, UserThread};

/// Most places that a thread remembers.
const PLACES: usize = 64;

struct Place {
    name: Box<str>,
    runtime: Option<Box<str>>,
    location: &'static Location<'static>,
    origin: Origin,
}

thread_local! {
    static KNOWN: RefCell<[Option<Place>; PLACES]> = const { RefCell::new([const { None }; PLACES]) };
}

/// Creates and records a user thread. `runtime` is its scheduler, by default the caller's.
pub(crate) fn create(
    name: &str,
    runtime: Option<&Handle>,
    location: &'static Location<'static>,
) -> UserThread {
    let current = runtime.is_none().then(Handle::try_current).and_then(Result::ok);
    let runtime = runtime.or(current.as_ref()).and_then(Handle::name);
    // A name that changes, in a buffer or with the type, gets another place: it does not displace one that
    // stays.
    let address = ptr::from_ref(location).addr() ^ name.as_ptr().addr().rotate_left(16);
    let place = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32; // 2^64 by the golden ratio
    let remembered = KNOWN.try_with(|known| {
        let mut known = known.borrow_mut();
        let place = known[place as usize % PLACES].get_or_insert_with(|| Place {
            name: name.into(),
            runtime: runtime.map(Box::from),
            location,
            origin: Origin::new(name, runtime.unwrap_or_default(), location),
        });
        let fits =
            ptr::eq(place.location, location) && *place.name == *name && place.runtime.as_deref() == runtime;
        fits.then(|| user_thread::create_from(&place.origin))
    });
    // Otherwise recorded in full; also at a thread's end, when its cache is gone.
    remembered
        .ok()
        .flatten()
        .unwrap_or_else(|| user_thread::create(name, runtime.unwrap_or_default(), location))
}
