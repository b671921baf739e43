//! `cargo xtask demo`: records the example server under load and shows what a user would examine first.
//!
//! It runs the commands that a user would type, prints each of them, and shortens long output.

use crate::packages;
use crate::steps::{cargo, run as run_command, target_folder};
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines of a long output that are shown.
const SHOWN_LINES: usize = 36;

/// The order whose way through the server is shown: by then, all threads are at work.
const SHOWN_ORDER: &str = "200";

/// What `cargo xtask demo` accepts.
#[derive(Args)]
pub struct Options {
    /// How long the server is put under load
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    seconds: u32,

    /// Take the pictures of `tracewing view` in the README and in the book from this recording
    #[arg(long)]
    pictures: bool,
}

/// Builds, records, shows.
pub fn run(options: &Options) -> Result<()> {
    packages::ensure(packages::FOR_DEMO)?;
    cargo(&["build", "--release", "--package", "tracewing-cli", "--package", "shop"])?;
    let target = target_folder()?;
    let trace = target.join("demo-trace");
    if trace.exists() {
        std::fs::remove_dir_all(&trace).with_context(|| format!("cannot remove {}", trace.display()))?;
    }
    let shop = target.join("release/shop");
    let (trace, shop) = (path(&trace)?, path(&shop)?);
    let tracewing = Tracewing(target.join("release/tracewing"));

    let seconds = options.seconds.to_string();
    let record = ["record", "-o", trace, "--", shop, "--seconds", &seconds];
    tracewing.announce("Record a server and its clients", &record);
    run_command(Command::new(&tracewing.0).args(record))?;
    tracewing.show("What was recorded, what was lost", &["info", trace])?;
    let enqueued = tracewing.output(&["list", "-e", "shop:enqueued", "-n", SHOWN_ORDER, trace])?;
    let from =
        enqueued.lines().last().and_then(time_of_day).context("the recording has no shop:enqueued event")?;
    tracewing.show(
        "One order from start to end: user and kernel events in one order",
        &["list", "--no-delta", "--from", from, "-n", "30", trace],
    )?;
    tracewing.show(
        "The same, as the program's author meant it",
        &["list", "--pretty", "--no-delta", "--from", from, "-n", "12", "-e", "shop:*", trace],
    )?;
    tracewing.show("Where the time went, per thread (ms)", &["threads", trace])?;
    println!("\nThe recording is in {trace}; `babeltrace2 {trace}` prints what `tracewing list` prints.");
    if options.pictures {
        return pictures(trace);
    }
    println!("To look at it in the browser: {} view {trace}", tracewing.0.display());
    if has_display() {
        return run_command(Command::new(&tracewing.0).args(["view", trace]));
    }
    Ok(())
}

/// Takes the pictures of the book; the test that does it checks that nothing overlaps in them.
fn pictures(trace: &str) -> Result<()> {
    packages::ensure(packages::FOR_BENCH_VIEW)?;
    let mut test = Command::new("cargo");
    test.args(["test", "--package", "tracewing-cli", "--test", "view", "pictures_of_the_page"]);
    run_command(test.env("UPDATE", "1").env("PICTURES_OF", trace))
}

/// Whether a browser can be opened: never as root.
fn has_display() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY"))
        && std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() != 0)
}

/// The program to show.
struct Tracewing(PathBuf);

impl Tracewing {
    fn announce(&self, what: &str, arguments: &[&str]) {
        println!("\n# {what}\n$ tracewing {}", arguments.join(" "));
    }

    /// Runs it and shows the beginning of what it prints.
    fn show(&self, what: &str, arguments: &[&str]) -> Result<()> {
        self.announce(what, arguments);
        let output = self.output(arguments)?;
        for line in output.lines().take(SHOWN_LINES) {
            println!("{}", line.trim_end());
        }
        let more = output.lines().count().saturating_sub(SHOWN_LINES);
        if more > 0 {
            println!("... and {more} lines more");
        }
        Ok(())
    }

    fn output(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(&self.0).args(arguments).output().context("cannot start tracewing")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tracewing {} failed: {complaint}", arguments.join(" "));
        eprint!("{complaint}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The stamp of a listed event: what stands in its first brackets.
fn time_of_day(line: &str) -> Option<&str> {
    line.strip_prefix('[')?.split(']').next()
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stamp_of_a_listed_event_is_found() {
        assert_eq!(time_of_day("[05:35:10.648461611] vm shop:enqueued: { }"), Some("05:35:10.648461611"));
        assert_eq!(time_of_day("no event"), None);
    }
}
