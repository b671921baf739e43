//! tokio-console's subscriber, with its server on a free port and no client connected, if the second argument
//! is `told`; otherwise the same trees without it, since a subscriber applies to the whole process.

use std::process::ExitCode;
use tokio::runtime::Builder;

#[path = "../../../../src/tasks/tree.rs"]
mod tree;

tree::tree!(plain, tokio::spawn);

fn main() -> ExitCode {
    let runtime = match Builder::new_current_thread().build() {
        Ok(runtime) => runtime,
        Err(error) => return fails(&error),
    };
    if std::env::args().nth(2).is_some_and(|how| how == "told") {
        console_subscriber::ConsoleLayer::builder().server_addr(([127, 0, 0, 1], 0)).init();
    }
    match orders::obey(|variant, count| {
        plain::grow(&runtime, count);
        variant == "tree"
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fails(&error),
    }
}

fn fails(error: &std::io::Error) -> ExitCode {
    eprintln!("peer-console: {error}");
    ExitCode::FAILURE
}
