//! The worker of `bench trigger`: a separate program, so that no other measured program contains its sites.
//! It obeys orders on standard input, one per line (`compare/process.rs`):
//!
//! | order | does | answer |
//! |---|---|---|
//! | `shape COUNT NAME POSITION` | calls a function without a site, with one that is off, and without once more, COUNT times each, copied to a position in a page (`shapes.rs`) | ns of CPU time of each |
//! | `flip COUNT` | switches COUNT sites on, then off (`many.rs`) | ns of each, and how many could be switched |
//! | `FORM COUNT` | passes COUNT sites of a form (`forms.rs`) | ns of CPU time |
//!
//! There is no worker under loom, which runs only one of the baselines.

#[cfg(not(loom))]
mod copies;
#[cfg(not(loom))]
mod forms;
#[cfg(not(loom))]
mod many;
#[cfg(not(loom))]
mod orders;
#[cfg(not(loom))]
mod shapes;

#[cfg(not(loom))]
fn main() -> std::process::ExitCode {
    orders::main()
}

#[cfg(loom)]
fn main() {}
