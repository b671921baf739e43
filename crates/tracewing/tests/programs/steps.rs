//! Does a step for each line of its input, and answers it with the same line: for a number it emits
//! `steps:step` and `steps:other` with it; for `fork` it forks, and the child continues in place of its
//! parent, which waits for it.
//!
//! First of all it prints its process id.

use std::io::{BufRead, Write};

use tracewing::{Event, emit};

#[derive(Event)]
#[event(provider = "steps", level = "debug", major = 3)]
struct Step<'a> {
    number: u64,
    word: &'a str,
}

#[derive(Event)]
#[event(provider = "steps")]
struct Other {
    number: u64,
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}

fn main() {
    say(&std::process::id().to_string());
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if line == "fork" {
            // SAFETY: the program has no thread but this one, and the agent's, which expects that.
            let child = unsafe { libc::fork() };
            if child != 0 {
                let mut status = 0;
                // SAFETY: the child just made.
                while unsafe { libc::waitpid(child, &mut status, 0) } != child {}
                return;
            }
        }
        if let Ok(number) = line.parse() {
            emit!(Step { number, word: if number % 2 == 0 { "even" } else { "odd" } });
            emit!(Other { number });
        }
        say(&line);
    }
}
