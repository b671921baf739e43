//! Names and levels that an ad-hoc event cannot have.

use tracewing::event;

fn main() {
    event!("job", id = 5); //~ has the form "provider:event"
    event!("shop:my job", id = 5); //~ is made of ASCII letters
    event!("shop:", id = 5); //~ has the form "provider:event"
    event!("shop:job", id = 5, id = 6); //~ two fields have the same name
    event!(level: Warning, "shop:job", id = 5); //~ no variant
}
