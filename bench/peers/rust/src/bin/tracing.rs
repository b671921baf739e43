//! `tracing` with one of several subscribers, which the second argument names:
//!
//! | | |
//! |---|---|
//! | `nobody` | none |
//! | `uninterested` | one that enables events of all levels, but not these |
//! | `registry` | tracing-subscriber's registry alone |
//! | `chrome` | tracing-chrome on it, which formats every event as JSON: into nothing, as if to /dev/null |
//! | `tracewing` | tracewing's layer on it |
//!
//! Orders: `two_u64`, events in a loop; `site`, sixteen of them in each iteration; `empty`, as many empty
//! iterations; `span`, spans with a field that are entered and left; `first`, the first events of 64 call
//! sites, once in a process.

use std::error::Error;
use std::hint::black_box;
use std::io;
use std::process::ExitCode;
use tracing::span::{Attributes, Record};
use tracing::subscriber::{Interest, set_global_default};
use tracing::{Event, Id, Metadata, Subscriber};
use tracing_chrome::{ChromeLayerBuilder, FlushGuard};
use tracing_subscriber::layer::SubscriberExt;

/// A subscriber that enables nothing and gives no level hint.
struct Uninterested;

impl Subscriber for Uninterested {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::never()
    }
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peer-tracing: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mode = std::env::args().nth(2).unwrap_or_default();
    let _guard = subscribe(&mode)?;
    orders::obey(|variant, count| {
        match variant {
            "two_u64" => two_u64(count),
            "site" => sites(count),
            "empty" => empty(count),
            "span" => spans(count),
            "first" => first_events(),
            _ => return false,
        }
        true
    })?;
    Ok(())
}

/// Returns what must stay alive, if anything.
fn subscribe(mode: &str) -> Result<Option<FlushGuard>, Box<dyn Error>> {
    let registry = tracing_subscriber::registry();
    match mode {
        "nobody" => {}
        "uninterested" => set_global_default(Uninterested)?,
        "registry" => set_global_default(registry)?,
        "chrome" => {
            let (layer, guard) = ChromeLayerBuilder::new().writer(io::sink()).include_args(true).build();
            set_global_default(registry.with(layer))?;
            return Ok(Some(guard));
        }
        "tracewing" => set_global_default(registry.with(tracewing_tracing::layer()))?,
        other => return Err(format!("unknown subscriber `{other}`").into()),
    }
    Ok(None)
}

fn two_u64(count: u64) {
    for i in 0..count {
        tracing::info!(first = i, second = i ^ count);
    }
}

/// Expands a step four times.
macro_rules! four {
    ($step:expr) => {
        $step;
        $step;
        $step;
        $step;
    };
}

fn spans(count: u64) {
    for number in 0..count {
        drop(tracing::info_span!("request", number).entered());
    }
}

fn first_events() {
    four!({
        four!({
            four!(tracing::info!(first = black_box(1_u64), second = 2_u64));
        });
    });
}

fn sites(count: u64) {
    for i in 0..count / 16 {
        let i = black_box(i);
        four!({
            four!(tracing::info!(first = i, second = i ^ count));
        });
    }
}

fn empty(count: u64) {
    for i in 0..count / 16 {
        black_box(i);
    }
}
