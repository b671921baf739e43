//! A program with an event that does nothing else, for what it costs where nothing records it.

use tracewing::{Event, emit};

#[derive(Event)]
#[event(provider = "quiet")]
struct Begun {
    arguments: u64,
}

fn main() {
    let arguments = std::env::args().len();
    emit!(Begun { arguments: arguments as u64 });
    println!("{arguments}");
}
