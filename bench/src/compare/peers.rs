//! Other Rust tracers, each as a program of the package `bench/peers/rust`, which `cargo xtask bench` builds.

use crate::compare::process::Worker;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// A peer and what is asked of it.
pub struct Peer {
    pub key: &'static str,
    program: &'static str,
    package: &'static str,
    /// What its row says, after the package's version.
    pub what: &'static str,
    pub variant: &'static str,
    /// Events in a burst.
    pub burst: u64,
}

/// All that there are. Their bursts are short: they hand events to threads of their own, which would still be
/// at work while the next side is measured.
pub const PEERS: &[Peer] = &[
    Peer {
        key: "perfetto",
        program: "peer-perfetto",
        package: "perfetto-sdk",
        what: "in process, instant event with two arguments",
        variant: "two_u64",
        burst: 5000,
    },
    Peer {
        key: "fastrace",
        program: "peer-fastrace",
        package: "fastrace",
        what: "local span, no arguments",
        variant: "span",
        burst: 5000,
    },
    Peer {
        key: "tracing-chrome",
        program: "peer-tracing-chrome",
        package: "tracing-chrome",
        what: "event with two fields, to nowhere",
        variant: "two_u64",
        burst: 1000,
    },
];

impl Peer {
    /// Starts it, if it was built into `folder`. Its own threads may use any CPU, the one that is measured
    /// stays on `cpu`.
    pub fn start(&self, folder: &Path, cpu: usize) -> Result<Option<Worker>> {
        let program = folder.join(self.program);
        if !program.is_file() {
            return Ok(None);
        }
        Worker::start(self.key, Command::new(program).arg(cpu.to_string())).map(Some)
    }

    /// Its name and version.
    pub fn title(&self) -> String {
        format!("{} {}, {}", self.package, version(self.package), self.what)
    }
}

/// The version of a package that the peers were built with.
pub fn version(package: &str) -> &'static str {
    let lock = include_str!("../../peers/rust/Cargo.lock");
    lock.split("[[package]]")
        .find(|entry| entry.contains(&format!("name = \"{package}\"\n")))
        .and_then(|entry| entry.split("version = \"").nth(1))
        .and_then(|rest| rest.split('"').next())
        .unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_a_version() {
        for peer in PEERS {
            assert!(peer.title().contains(" 0.") || peer.title().contains(" 1."), "{}", peer.title());
        }
    }
}
