//! crossbeam: an event before each message is sent, and one after it is received.

use tracewing::{Event, emit};

#[derive(Event)]
struct Sent {
    n: u64,
}

#[derive(Event)]
#[event(ordered)]
struct Received {
    n: u64,
}

fn main() {
    let (sender, receiver) = crossbeam_channel::bounded(16);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..1000u64 {
                emit!(Sent { n });
                sender.send(n).unwrap();
            }
        });
        for n in receiver {
            emit!(Received { n });
        }
    });
}
