//! User threads that emit numbered events on request, and report themselves where a recording does not know
//! them.
//!
//! Standard input gives the orders, a line each; standard output answers each with a line:
//!
//! | order | does | answer |
//! |---|---|---|
//! | `run` | every user thread runs | how many of them have reported themselves |
//! | `emit N` | every user thread runs and emits N events | how many events all have emitted by now |
//!
//! The argument is the number of user threads. The process ends with its standard input.

use std::cell::Cell;
use std::io::{BufRead, Write};
use std::panic::Location;

use tracewing::user_thread::{self, Reported, UserThread};
use tracewing::{Event, emit};

#[derive(Event)]
#[event(provider = "crew")]
struct Count {
    number: u64,
}

struct Member {
    thread: UserThread,
    reported: Reported,
    name: String,
    place: &'static Location<'static>,
}

impl Member {
    fn new(number: usize) -> Self {
        let (name, place) = (format!("member {number}"), Location::caller());
        let reported = Reported::at_creation();
        Self { thread: user_thread::create(&name, "crew", place), reported, name, place }
    }

    /// Whether it has reported itself.
    fn run(&mut self) -> bool {
        let is_reported = Cell::new(false);
        user_thread::existed(self.thread, &mut self.reported, || {
            is_reported.set(true);
            user_thread::describe(&self.name, "crew", self.place)
        });
        is_reported.get()
    }
}

fn main() {
    let members = std::env::args().nth(1).and_then(|number| number.parse().ok()).expect("a number");
    let mut crew: Vec<Member> = (0..members).map(Member::new).collect();
    let mut emitted = 0;
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let answer = match line.split_once(' ').unwrap_or((&line, "")) {
            ("run", _) => crew.iter_mut().filter_map(|member| member.run().then_some(())).count() as u64,
            ("emit", count) => {
                for member in &mut crew {
                    member.run();
                    for _ in 0..count.parse::<u64>().unwrap() {
                        emitted += 1;
                        emit!(Count { number: emitted });
                    }
                }
                emitted
            }
            other => panic!("no order: {other:?}"),
        };
        println!("{answer}");
        std::io::stdout().flush().unwrap();
    }
}
