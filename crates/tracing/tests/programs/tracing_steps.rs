//! Emits an event of `tracing`, in a span, for each number that it reads, and prints when it is done. First
//! it prints its process id.

use std::io;
use tracing::{info, info_span};
use tracing_subscriber::prelude::*;

fn main() {
    tracing_subscriber::registry().with(tracewing_tracing::layer()).init();
    println!("{}", std::process::id());
    for line in io::stdin().lines() {
        let line = line.unwrap();
        let number: u64 = line.parse().unwrap();
        {
            let _span = info_span!("step", number).entered();
            info!(target: "steps::inner", number, "a step");
        }
        println!("{line}");
    }
}
