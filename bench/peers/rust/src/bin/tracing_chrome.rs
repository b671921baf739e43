//! `tracing` with tracing-chrome, which formats every event as JSON: into nothing, as if to /dev/null.

use std::io;
use std::process::ExitCode;
use tracing_chrome::ChromeLayerBuilder;
use tracing_subscriber::layer::SubscriberExt;

fn main() -> ExitCode {
    let (layer, guard) = ChromeLayerBuilder::new().writer(io::sink()).include_args(true).build();
    let subscriber = tracing_subscriber::registry().with(layer);
    if let Err(error) = tracing::subscriber::set_global_default(subscriber) {
        eprintln!("peer-tracing-chrome: {error}");
        return ExitCode::FAILURE;
    }
    let outcome = orders::obey(|variant, count| {
        for i in 0..count {
            tracing::info!(first = i, second = i ^ count);
        }
        variant == "two_u64"
    });
    drop(guard);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peer-tracing-chrome: {error}");
            ExitCode::FAILURE
        }
    }
}
