//! The project's chores: `cargo xtask demo`, `test`, `models`, `mutants`, `soak`, `fuzz`, `conformance`,
//! `capi`, `package`, `recipes`, `bench`, `tidy`, `events` and `book`.
//!
//! This file parses the command line. Each chore has a file of its own; the packages that a chore needs are
//! listed in `packages.rs`.

mod bench;
mod book;
mod capi;
mod conformance;
mod demo;
mod flaky;
mod fuzz;
mod models;
mod mutants;
mod package;
mod packages;
mod recipes;
mod soak;
mod steps;
mod test;
mod tidy;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Everything there is to do around the code. Needs Debian 12 (or similar) and rustup's stable toolchain.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    disable_help_subcommand = true,
    after_help = "Examples:\n  \
        cargo xtask demo                     record the example server and look at the recording\n  \
        cargo xtask test                     what continuous integration runs; installs what it needs\n  \
        cargo xtask test --filter decode     only the tests whose names contain `decode`\n  \
        cargo xtask models                   search the ring's interleavings with Spin and loom\n  \
        cargo xtask mutants                  put known faults into the ring, and see that tests find them\n  \
        cargo xtask soak --minutes 30        everything at once for half an hour, with kill -9\n  \
        cargo xtask fuzz --minutes 20        hostile metadata, packets, indexes and traces\n  \
        cargo xtask tidy                     the house rules alone, in a second\n  \
        cargo xtask tidy --count-idioms crates/  idioms in pages, comments, names and strings\n  \
        cargo xtask events                   write docs/reference/events.md anew\n  \
        cargo xtask messages                 write docs/reference/messages.md anew\n  \
        cargo xtask book                     build the book of docs/\n  \
        cargo xtask conformance DIR          read every CTF trace of a folder of cases\n  \
        cargo xtask capi --prefix DIR        libtracewing and tracewing.h for C and C++\n  \
        cargo xtask package --try            a Debian package, installed and used in a bare Debian\n  \
        cargo xtask recipes axum go          the commands of docs/how-to/recipes.md, as the page has them\n  \
        cargo xtask bench record             the cost of an event, with LTTng-UST and rdtsc\n  \
        cargo xtask bench trigger            the cost of a disabled site, with and without\n  \
        cargo xtask bench read               reading traces, with babeltrace2\n  \
        cargo xtask bench analyse            analysing recordings: events a second, memory"
)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Record a multi-threaded server under load, with the kernel's view of it, and show what came out
    Demo(demo::Options),
    /// Install what the tests need, then check format, lints and house rules and run all tests
    Test(test::Options),
    /// Search every interleaving of the ring's protocols, and find the seeded faults
    Models(models::Options),
    /// Put known faults into the ring one by one, and see that tests find them
    Mutants(mutants::Options),
    /// Put the ring and whole recordings under random loads, kill what can be killed, and check the accounts
    Soak(soak::Options),
    /// Feed unexpected bytes to the readers of traces
    Fuzz(fuzz::Options),
    /// Check the house rules: file heads, lengths, licences, references, comments on unsafe code and
    /// orderings
    Tidy(tidy::Options),
    /// Write docs/reference/events.md, the page of all events that tracewing records or interprets
    Events,
    /// Write docs/reference/messages.md, the page of all messages with cause and remedy
    Messages,
    /// Build the book of docs/ with mdBook
    Book(book::Options),
    /// Run the cases of a folder of CTF traces, and print each that disagrees with its reference
    Conformance(conformance::Options),
    /// Build the library for C and C++ and install it
    Capi(capi::Options),
    /// Make a Debian package, or check the crates for crates.io
    Package(package::Options),
    /// Run the commands of docs/how-to/recipes.md on a program for each framework and language
    Recipes(recipes::Options),
    /// Compare with other tracers on this machine
    #[command(subcommand)]
    Bench(bench::Comparison),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().chore {
        Chore::Demo(options) => demo::run(&options),
        Chore::Test(options) => test::run(&options),
        Chore::Models(options) => models::run(&options),
        Chore::Mutants(options) => mutants::run(&options),
        Chore::Soak(options) => soak::run(&options),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::Tidy(options) => tidy::run_with(&options),
        Chore::Events => tidy::write_events(),
        Chore::Messages => tidy::write_messages(),
        Chore::Book(options) => book::run(&options),
        Chore::Conformance(options) => conformance::run(&options),
        Chore::Capi(options) => capi::run(&options),
        Chore::Package(options) => package::run(&options),
        Chore::Recipes(options) => recipes::run(&options),
        Chore::Bench(comparison) => bench::run(&comparison),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The project's root: the folder above this package.
fn root() -> Result<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(package.parent().context("the package xtask has no parent folder")?.to_path_buf())
}
