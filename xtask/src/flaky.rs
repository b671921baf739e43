//! Runs the tests. If only a few test programs fail, and all are integration tests, those of their tests that
//! failed are run once more, alone and one at a time.
//!
//! An integration test depends on a kernel and on other processes that share the processors with it. If it
//! passes the second time, it is listed at the end as flaky, and the cause is still to be found.
//! Tests of the lock-free code get no second run: what fails there once in a thousand runs is a fault of the
//! code.

use crate::steps;
use anyhow::{Result, bail};
use std::env;
use std::io::{BufRead, BufReader, PipeReader, Write, pipe};
use std::num::NonZero;
use std::thread;

/// Packages in which every failure counts.
const LOCK_FREE: [&str; 2] = ["tracewing-ring", "tracewing-trigger"];

/// Set for tests, since the programs that they record have been built ([`crate::test`]).
const ALL_BUILT: &str = "TRACEWING_ALL_BUILT";

/// How many tests of a program run at once.
const THREADS: &str = "RUST_TEST_THREADS";

/// If more programs than this fail, it is not by chance.
const MOST: usize = 4;

/// A test program that failed.
#[derive(Debug)]
struct Failed {
    /// As cargo names it: `-p PACKAGE --test NAME`.
    target: String,
    /// Which of its tests; none if it ended before it could list them.
    tests: Vec<String>,
    /// What these printed.
    said: Vec<String>,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.target, self.tests.join(", "))
    }
}

/// Runs `cargo test` with these arguments, and a second time what may be run again. Returns what failed once
/// and then passed.
///
/// # Errors
///
/// If a test fails that gets no second run, if one fails twice, or if nothing could be built.
pub fn test(arguments: &[&str]) -> Result<Vec<String>> {
    let (is_good, lines) = run(arguments)?;
    if is_good {
        return Ok(Vec::new());
    }
    let failed = failed(&lines);
    if failed.is_empty() || failed.len() > MOST || !failed.iter().all(|one| has_second_run(&one.target)) {
        bail!("tests failed\n{}", report(&failed));
    }
    for one in &failed {
        println!("== run again, alone: {one}");
        let again = again(one);
        let (is_good, lines) = run(&again.iter().map(String::as_str).collect::<Vec<_>>())?;
        if !is_good {
            bail!("tests failed twice\n{}", report(&self::failed(&lines)));
        }
    }
    Ok(failed.iter().map(Failed::to_string).collect())
}

/// What failed, for the end of a long output.
fn report(failed: &[Failed]) -> String {
    let lines =
        failed.iter().flat_map(|one| std::iter::once(one.to_string()).chain(one.said.iter().cloned()));
    lines.collect::<Vec<_>>().join("\n")
}

/// Runs cargo and prints what it prints; whether it succeeded, and the lines. What it and the tests say is in
/// one order, by which [`failed`] knows the program that a list belongs to.
fn run(arguments: &[&str]) -> Result<(bool, Vec<String>)> {
    let (from, to) = pipe()?;
    let mut command = steps::cargo_command(arguments)?;
    command.env(ALL_BUILT, "1").stdout(to.try_clone()?).stderr(to);
    if env::var_os(THREADS).is_none() {
        // Most tests wait for other processes most of the time.
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        command.env(THREADS, (2 * cpus).to_string());
    }
    let mut child = command.spawn()?;
    drop(command); // with its ends of the pipe
    let lines = passed_on(from)?;
    Ok((child.wait()?.success(), lines))
}

/// Prints what comes, and returns its lines.
fn passed_on(from: PipeReader) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for line in BufReader::new(from).split(b'\n') {
        let line = line?;
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&line)?;
        stdout.write_all(b"\n")?;
        lines.push(String::from_utf8_lossy(&line).into_owned());
    }
    Ok(lines)
}

/// The arguments of the second run. The packages are the same as in the first one: with others, cargo would
/// choose other features, and build everything anew.
fn again(failed: &Failed) -> Vec<String> {
    let name = failed.target.rsplit(' ').next().unwrap_or_default();
    let mut again =
        ["test", "--workspace", "--no-fail-fast", "--test", name, "--"].map(str::to_owned).to_vec();
    again.extend(["--test-threads=1".to_owned(), "--exact".to_owned()]);
    again.extend_from_slice(&failed.tests);
    again
}

/// The programs that failed. Each prints two lists: what its failed tests printed, and their names.
fn failed(lines: &[String]) -> Vec<Failed> {
    let (mut all, mut said, mut list, mut is_list) = (Vec::new(), Vec::new(), Vec::new(), false);
    for line in lines {
        if line.trim_start().starts_with("Running ") {
            (said, list, is_list) = (Vec::new(), Vec::new(), false);
        } else if line == "failures:" {
            (said, is_list) = (std::mem::take(&mut list), true);
        } else if line.starts_with("test result: ") {
            is_list = false;
        } else if let Some(rest) = line.strip_prefix("error: test failed, to rerun pass `") {
            let names = std::mem::take(&mut list).into_iter();
            let tests =
                names.filter_map(|line: String| Some(line.strip_prefix("    ")?.to_owned())).collect();
            let target = rest.trim_end_matches('`').to_owned();
            all.push(Failed { target, tests, said: std::mem::take(&mut said) });
        } else if is_list && !line.is_empty() {
            list.push(line.clone());
        }
    }
    all
}

/// Whether it is an integration test, and not of the lock-free code.
fn has_second_run(target: &str) -> bool {
    matches!(*target.split(' ').collect::<Vec<_>>(), ["-p", package, "--test", _] if !LOCK_FREE.contains(&package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_names_the_programs_and_their_tests() {
        let printed = "     Running tests/b.rs (target/debug/deps/b-1)\ntest one ... FAILED\n\nfailures:\n\n\
            ---- one stdout ----\n    not a name\n\nfailures:\n    one\n    inner::two\n\n\
            test result: FAILED. 1 passed; 2 failed\n\nerror: test failed, to rerun pass `-p a --test b`\n     \
            Running tests/top.rs (target/debug/deps/top-1)\n    printed by the program\n\
            error: test failed, to rerun pass `-p tracewing-cli --test top`\n\nCaused by:\n  \
            process didn't exit successfully (signal: 6, SIGABRT: process abort signal)\n\
            error: 2 targets failed:\n    `-p a --test b`\n    `-p tracewing-cli --test top`\n";
        let lines: Vec<String> = printed.lines().map(str::to_owned).collect();
        let [b, top] = <[Failed; 2]>::try_from(failed(&lines)).unwrap();
        assert_eq!((b.target.as_str(), &*b.tests.join(" ")), ("-p a --test b", "one inner::two"));
        assert_eq!(top.to_string(), "-p tracewing-cli --test top: ");
        let said = ["---- one stdout ----", "    not a name"].map(str::to_owned).to_vec();
        assert_eq!((b.said.clone(), top.said.clone()), (said, Vec::new()));
        assert!(again(&b).ends_with(&["--exact".into(), "one".into(), "inner::two".into()]));
        assert_eq!(again(&top)[3..5], ["--test", "top"]);
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
