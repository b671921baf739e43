//! What the figures were measured on.

use std::fs::read_to_string;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// What a reader of the figures has to know, as pairs of a word and a text.
pub fn describe(disk: &Path) -> Vec<(&'static str, String)> {
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(": ")).map_or("unknown", |(_, value)| value)
    };
    let cpus = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let virtual_machine =
        if field("flags").split(' ').any(|flag| flag == "hypervisor") { ", a virtual machine" } else { "" };
    vec![
        (
            "processor",
            format!(
                "{} (family {}, model {}), {} MHz, {cpus} CPUs{virtual_machine}",
                field("model name"),
                field("cpu family"),
                field("model\t"),
                field("cpu MHz")
            ),
        ),
        ("memory", first_words("/proc/meminfo", 3).replace("MemTotal: ", "")),
        ("kernel", format!("Linux {}", first_words("/proc/sys/kernel/osrelease", 1))),
        ("clock source", first_words("/sys/devices/system/clocksource/clocksource0/current_clocksource", 1)),
        ("C library", said(Command::new("getconf").arg("GNU_LIBC_VERSION"))),
        ("compiler", said(Command::new("rustc").arg("--version"))),
        ("file system", file_system(disk)),
        ("load at the start", first_words("/proc/loadavg", 3)),
    ]
}

/// Cycles of the time stamp counter in a nanosecond, measured against the system's clock.
pub fn cycles_per_nanosecond() -> f64 {
    let (begin, from) = (Instant::now(), baseline::event::now());
    std::thread::sleep(Duration::from_millis(100));
    let (length, to) = (begin.elapsed(), baseline::event::now());
    (to - from) as f64 / length.as_nanos() as f64
}

/// The type and device of the file system on which a folder lies.
fn file_system(folder: &Path) -> String {
    let output = Command::new("findmnt")
        .args(["--noheadings", "--output", "FSTYPE,SOURCE", "--target"])
        .arg(folder)
        .output();
    output.ok().filter(|output| output.status.success()).map_or_else(
        || "unknown".to_owned(),
        |output| words(&String::from_utf8_lossy(&output.stdout), usize::MAX),
    )
}

fn said(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}

fn first_words(path: &str, count: usize) -> String {
    words(&read_to_string(path).unwrap_or_default(), count)
}

fn words(text: &str, count: usize) -> String {
    text.split_whitespace().take(count).collect::<Vec<_>>().join(" ")
}
