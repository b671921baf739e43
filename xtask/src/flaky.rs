//! Runs the tests. If only a few test programs fail, and all are integration tests, each of them is run once
//! more, alone and one test at a time.
//!
//! An integration test depends on a kernel and on other processes that share the processors with it. If its
//! program passes the second time, it is listed at the end as flaky, and the cause is still to be found.
//! Tests of the lock-free code get no second run: what fails there once in a thousand runs is a fault of the
//! code.

use crate::steps::{self, cargo};
use anyhow::{Result, bail};
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::num::NonZero;
use std::process::Stdio;
use std::thread;

/// Packages in which every failure counts.
const LOCK_FREE: [&str; 2] = ["tracewing-ring", "tracewing-trigger"];

/// Set for tests, since the programs that they record have been built ([`crate::test`]).
const ALL_BUILT: &str = "TRACEWING_ALL_BUILT";

/// How many tests of a program run at once.
const THREADS: &str = "RUST_TEST_THREADS";

/// If more programs than this fail, it is not by chance.
const MOST: usize = 4;

/// Runs `cargo test` with these arguments, and a second time what may be run again. Returns the programs that
/// failed once and then passed, as cargo names them.
///
/// # Errors
///
/// If a test fails that gets no second run, if one fails twice, or if nothing could be built.
pub fn test(arguments: &[&str]) -> Result<Vec<String>> {
    let mut command = steps::cargo_command(arguments)?;
    command.env(ALL_BUILT, "1").stderr(Stdio::piped());
    if env::var_os(THREADS).is_none() {
        // Most tests wait for other processes most of the time.
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        command.env(THREADS, (2 * cpus).to_string());
    }
    let mut child = command.spawn()?;
    let mut lines = Vec::new();
    for line in BufReader::new(child.stderr.take().expect("it is piped")).split(b'\n') {
        let line = line?;
        let mut stderr = std::io::stderr().lock();
        stderr.write_all(&line)?;
        stderr.write_all(b"\n")?;
        lines.push(String::from_utf8_lossy(&line).into_owned());
    }
    if child.wait()?.success() {
        return Ok(Vec::new());
    }
    let failed = failed(&lines);
    if failed.is_empty() || failed.len() > MOST || !failed.iter().all(|target| has_second_run(target)) {
        bail!("tests failed");
    }
    for target in &failed {
        println!("== run again, alone: {target}");
        let mut again = vec!["test"];
        again.extend(target.split(' '));
        again.extend(["--", "--test-threads=1"]);
        cargo(&again)?;
    }
    Ok(failed.into_iter().map(str::to_owned).collect())
}

/// The arguments by which cargo runs each program again that failed.
fn failed(lines: &[String]) -> Vec<&str> {
    let list = lines.iter().skip_while(|line| {
        !(line.starts_with("error: ")
            && (line.ends_with(" target failed:") || line.ends_with(" targets failed:")))
    });
    list.skip(1).map_while(|line| line.trim().strip_prefix('`')?.strip_suffix('`')).collect()
}

/// Whether it is an integration test, and not of the lock-free code.
fn has_second_run(target: &str) -> bool {
    matches!(*target.split(' ').collect::<Vec<_>>(), ["-p", package, "--test", _] if !LOCK_FREE.contains(&package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_prints_names_the_programs() {
        let printed = "test result: FAILED\nerror: test failed, to rerun pass `-p a --test b`\n\
            error: 2 targets failed:\n    `-p tracewing-cli --test top`\n    `-p tracewing-ring --test stress`\n";
        let lines: Vec<String> = printed.lines().map(str::to_owned).collect();
        assert_eq!(failed(&lines), ["-p tracewing-cli --test top", "-p tracewing-ring --test stress"]);
        assert!(failed(&lines[..2]).is_empty());
        assert!(failed(&["error: could not compile `a` (lib)".to_owned()]).is_empty());
    }

    #[test]
    fn only_integration_tests_outside_the_lock_free_code_run_again() {
        assert!(has_second_run("-p tracewing-cli --test top"));
        for target in
            ["-p tracewing-ring --test stress", "-p tracewing-cli --lib", "-p tracewing-cli --bin x"]
        {
            assert!(!has_second_run(target), "{target}");
        }
    }
}
