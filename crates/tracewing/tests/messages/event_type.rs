//! A value that cannot be a field of an ad-hoc event.

use tracewing::event;

fn main() {
    let thread = std::thread::current();
    event!("shop:job", id = 5, thread); //~ `Thread` cannot be a field of an event
}
