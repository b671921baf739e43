//! `tracewing view`: its server answers only the user, with what other commands say, and the page in a
//! browser shows that.

#[path = "../harness/mod.rs"]
mod harness;

mod attacks;
mod browser;
mod cdp;
mod client;
mod numbers;
