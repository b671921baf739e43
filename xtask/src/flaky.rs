//! Runs the tests. If only a few test programs fail, those of their tests that failed are run once more,
//! alone and one at a time.
//!
//! A test depends on a kernel and on other processes that share the processors with it. If it passes the
//! second time, it is listed at the end as flaky, and the cause is still to be found.
//! Tests of the lock-free code get no second run: what fails there once in a thousand runs is a fault of the
//! code.

use crate::steps;
use anyhow::{Result, bail};
use std::env;
use std::io::{BufRead, BufReader, PipeReader, pipe};
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Packages in which every failure counts.
const LOCK_FREE: [&str; 2] = ["tracewing-ring", "tracewing-trigger"];

/// Set for tests, since the programs that they record have been built ([`crate::test`]).
const ALL_BUILT: &str = "TRACEWING_ALL_BUILT";

/// How many tests of a program run at once.
const THREADS: &str = "RUST_TEST_THREADS";

/// If more programs than this fail, it is not by chance.
const MOST: usize = 4;

/// How long output is awaited after the end of cargo.
const LEFT: Duration = Duration::from_secs(10);

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
        match self.tests.is_empty() {
            true => write!(f, "{}", self.target),
            false => write!(f, "{}: {}", self.target, self.tests.join(", ")),
        }
    }
}

/// Runs `cargo test` with these arguments, and a second time what may be run again. Returns what failed once
/// and then passed, with what it printed.
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
        let (is_good, lines) = run(&again(one))?;
        if !is_good || passed(&lines) < one.tests.len().max(1) {
            bail!("tests failed twice, or did not run again\n{}", report(&self::failed(&lines)));
        }
    }
    Ok(failed.iter().map(|one| report(std::slice::from_ref(one))).collect())
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
    let lines = Arc::new(Mutex::new(Vec::new()));
    let reader = thread::spawn({
        let lines = Arc::clone(&lines);
        move || pass_on(from, &lines)
    });
    let status = child.wait()?;
    // A process that a test has left may keep the pipe open.
    let end = Instant::now() + LEFT;
    while !reader.is_finished() && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
    }
    let lines = std::mem::take(&mut *lines.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((status.success(), lines))
}

/// Prints what comes, and keeps its lines.
fn pass_on(from: PipeReader, lines: &Mutex<Vec<String>>) {
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        println!("{line}");
        lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

/// The arguments of the second run. The packages are the same as in the first one: with others, cargo would
/// choose other features, and build everything anew.
fn again(failed: &Failed) -> Vec<&str> {
    let mut again = vec!["test", "--workspace", "--no-fail-fast"];
    again.extend(failed.target.split(' ').skip(2)); // without the package
    again.extend(["--", "--test-threads=1", "--exact"]);
    again.extend(failed.tests.iter().map(String::as_str));
    again
}

/// The programs that cargo lists as failed, each with what is known of its tests. If output of something else
/// has come into a line, nothing is: then the whole program runs again.
fn failed(lines: &[String]) -> Vec<Failed> {
    let mut known = tests_of(lines);
    let list = lines.iter().skip_while(|line| {
        !(line.starts_with("error: ")
            && (line.ends_with(" target failed:") || line.ends_with(" targets failed:")))
    });
    let targets = list.skip(1).map_while(|line| line.trim().strip_prefix('`')?.strip_suffix('`'));
    let of = |target: &str| match known.iter().position(|one| one.target == target) {
        Some(place) => known.swap_remove(place),
        None => Failed { target: target.to_owned(), tests: Vec::new(), said: Vec::new() },
    };
    targets.map(of).collect()
}

/// What failed of each program that failed. It prints two lists: what its failed tests printed, and their
/// names.
fn tests_of(lines: &[String]) -> Vec<Failed> {
    let (mut all, mut said, mut list, mut is_list, mut count) =
        (Vec::new(), Vec::new(), Vec::new(), false, 0);
    for line in lines {
        if line.trim_start().starts_with("Running ") {
            (said, list, is_list, count) = (Vec::new(), Vec::new(), false, 0);
        } else if line == "failures:" {
            (said, is_list) = (std::mem::take(&mut list), true);
        } else if line.starts_with("test result: ") {
            (is_list, count) = (false, number_before(line, " failed"));
        } else if let Some(rest) = line.strip_prefix("error: test failed, to rerun pass `") {
            let names = std::mem::take(&mut list).into_iter();
            let tests = names.filter_map(|line: String| Some(line.strip_prefix("    ")?.to_owned()));
            let tests = Some(tests.collect::<Vec<_>>()).filter(|tests| tests.len() == count);
            let target = rest.trim_end_matches('`').to_owned();
            all.push(Failed { target, tests: tests.unwrap_or_default(), said: std::mem::take(&mut said) });
        } else if is_list && !line.is_empty() {
            list.push(line.clone());
        }
    }
    all
}

/// How many tests passed.
fn passed(lines: &[String]) -> usize {
    let results = lines.iter().filter(|line| line.starts_with("test result: "));
    results.map(|line| number_before(line, " passed")).sum()
}

/// The number before a word; 0 if there is none.
fn number_before(line: &str, word: &str) -> usize {
    let before = line.split(word).next().filter(|before| before.len() < line.len());
    before.and_then(|before| before.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

/// Whether it is of a package, and not of the lock-free code.
fn has_second_run(target: &str) -> bool {
    matches!(*target.split(' ').collect::<Vec<_>>(), ["-p", package, _, ..] if !LOCK_FREE.contains(&package))
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
        assert_eq!(top.to_string(), "-p tracewing-cli --test top");
        assert_eq!(passed(&lines), 1);
        let said = ["---- one stdout ----", "    not a name"].map(str::to_owned).to_vec();
        assert_eq!((b.said.clone(), top.said.clone()), (said, Vec::new()));
        for (spoilt, with) in
            [("    inner::two", "?"), ("error: test failed, to rerun pass `-p a --test b`", "?")]
        {
            let lines: Vec<String> = lines
                .iter()
                .map(|line| if line == spoilt { with.to_owned() } else { line.clone() })
                .collect();
            assert_eq!(failed(&lines)[0].to_string(), "-p a --test b", "{spoilt}");
        }
        assert!(again(&b).ends_with(&["--exact", "one", "inner::two"]));
        assert_eq!(again(&top)[3..5], ["--test", "top"]);
        assert!(failed(&["error: could not compile `a` (lib)".to_owned()]).is_empty());
    }

    #[test]
    fn tests_of_the_lock_free_code_do_not_run_again() {
        for target in ["-p tracewing-cli --test top", "-p tracewing-cli --lib", "-p tracewing-cli --bin x"] {
            assert!(has_second_run(target), "{target}");
        }
        for target in ["-p tracewing-ring --test stress", "-p tracewing-trigger --lib", "--doc"] {
            assert!(!has_second_run(target), "{target}");
        }
    }
}
