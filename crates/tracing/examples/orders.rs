//! A program instrumented with `tracing`. Its log goes to the terminal as before, and its events can be
//! recorded:
//!
//! ```text
//! cargo build -p tracewing-tracing --example orders
//! tracewing record -o trace -- target/debug/examples/orders
//! tracewing list trace -e 'orders*'
//! ```

use std::thread;
use std::time::Duration;
use tracing::{debug, info, instrument, warn};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;

#[instrument(ret)]
fn price(item: u64) -> u64 {
    debug!(item, "looking up");
    10 + item * 7 % 13
}

#[instrument(fields(total))]
fn place(order: u64, customer: &str) {
    let total = (0..3).map(|item| price(order + item)).sum::<u64>();
    tracing::Span::current().record("total", total);
    if total > 50 {
        warn!(total, "a large order");
    }
    // Spans of tracewing can be nested with those of `tracing`.
    let _packing = tracewing::span!("orders:packing", order);
    thread::sleep(Duration::from_millis(1));
    info!("order {order} is placed");
}

fn main() {
    let terminal = tracing_subscriber::fmt::layer().with_filter(LevelFilter::WARN);
    tracing_subscriber::registry().with(terminal).with(tracewing_tracing::layer()).init();

    let customers = ["Ada", "Grace", "Barbara"];
    thread::scope(|scope| {
        for (first, customer) in (1..).zip(customers) {
            scope.spawn(move || {
                (first..100).step_by(customers.len()).for_each(|order| place(order, customer))
            });
        }
    });
}
