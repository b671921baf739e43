//! A panic leaves a trace of what happened before it:
//! `tracewing record --flight-recorder -- target/release/examples/panic`, then `tracewing list` of the
//! snapshot.
//!
//! Nothing is written while all goes well. Without a recorder around it, with an argument that names a
//! folder, the program is its own flight recorder.

use std::path::PathBuf;
use std::sync::Arc;

use tracewing::{Event, Session, emit};

/// A step of a calculation.
#[derive(Event)]
#[event(provider = "panic", print = "{dividend} / {divisor}")]
struct Divide {
    dividend: u64,
    divisor: u64,
}

fn main() {
    match std::env::args_os().nth(1) {
        None => {
            tracewing::snapshot_on_panic();
            divide();
        }
        Some(folder) => match Session::builder().flight_recorder().start() {
            Ok(session) => record_myself(Arc::new(session), folder.into()),
            Err(error) => eprintln!("not recorded: {error}"),
        },
    }
}

/// The same with a flight recorder in the program: its panic hook takes the snapshot.
fn record_myself(session: Arc<Session>, folder: PathBuf) {
    let hook = std::panic::take_hook();
    let recorder = session.clone();
    std::panic::set_hook(Box::new(move |panic| {
        match recorder.snapshot(&folder) {
            Ok(snapshot) => eprintln!("{} events in {}", snapshot.events, snapshot.folder.display()),
            Err(error) => eprintln!("no snapshot: {error}"),
        }
        hook(panic);
    }));
    divide();
}

fn divide() {
    for divisor in (0..10).rev() {
        emit!(Divide { dividend: 100, divisor });
        assert!(divisor > 0, "cannot divide by {divisor}");
    }
}
