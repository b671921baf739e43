//! The worker of `bench tasks`: grows trees of tasks ([`tree`]) on request, plain or instrumented (`told`).
//! It obeys orders on standard input (`compare/process.rs`): `VARIANT COUNT` grows COUNT trees, and is
//! answered with ns of CPU time.
//!
//! | variant | tasks are spawned by | on | CPU time of |
//! |---|---|---|---|
//! | `plain`, `told` | tokio, tracewing-tokio | one thread | that thread |
//! | `traced` | tracewing-tokio, and each function is traced | one thread | that thread |
//! | `plain-two`, `told-two`, `traced-two` | the same | two workers | the process |
//!
//! `polls COUNT` and `told-polls COUNT` poll one task that often, `spans COUNT` emits as many pairs of spans
//! (`again.rs`). `serve 0` starts a server under load (`server.rs`) and answers its process id; `served 0`
//! ends it and answers how many requests were answered, and how many failed.
//!
//! There is no worker under loom, which runs only one of the baselines.

#[cfg(not(loom))]
mod again;
#[cfg(not(loom))]
mod orders;
#[cfg(not(loom))]
mod server;
#[cfg(not(loom))]
mod tree;

#[cfg(not(loom))]
fn main() -> std::process::ExitCode {
    orders::main()
}

#[cfg(loom)]
fn main() {}

#[cfg(not(loom))]
tree::tree!(plain, tokio::spawn);
#[cfg(not(loom))]
tree::tree!(told, |sum| tracewing_tokio::Builder::new().name("sum").spawn(sum));
#[cfg(not(loom))]
tree::tree!(traced, |sum| tracewing_tokio::Builder::new().name("sum").spawn(sum), tracewing::traced);
