//! Creates user threads by what each thread remembers of the first places that it has spawned tasks at: a
//! program has few.

use std::cell::RefCell;
use std::panic::Location;
use std::ptr;
use tokio::runtime::Handle;
use tracewing::user_thread::{self, Origin, UserThread};

/// Places that a thread remembers at most.
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

/// A new user thread, told. `runtime` is who schedules it, by default the caller's.
pub(crate) fn create(
    name: &str,
    runtime: Option<&Handle>,
    location: &'static Location<'static>,
) -> UserThread {
    let current = runtime.is_none().then(Handle::try_current).and_then(Result::ok);
    let runtime = runtime.or(current.as_ref()).and_then(Handle::name);
    // A name that changes, in a buffer or with the type, is in another place: it does not take the room of
    // one that stays.
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
    // Otherwise told in full; at a thread's end, too, when it has forgotten all.
    remembered
        .ok()
        .flatten()
        .unwrap_or_else(|| user_thread::create(name, runtime.unwrap_or_default(), location))
}
