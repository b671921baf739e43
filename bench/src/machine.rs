//! What the figures were measured on.

use std::fs::read_to_string;

/// One line: processor, number of CPUs, kernel, clock source, load.
pub fn describe() -> String {
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let megahertz = cpuinfo
        .lines()
        .find(|line| line.starts_with("cpu MHz"))
        .and_then(|line| line.split_once(": "))
        .map_or("?", |(_, megahertz)| megahertz.split('.').next().unwrap_or("?"));
    let cpus = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    format!(
        "{model}, {megahertz} MHz, {cpus} CPUs; Linux {}; clock source {}; load {}",
        first_word("/proc/sys/kernel/osrelease"),
        first_word("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        first_word("/proc/loadavg"),
    )
}

fn first_word(path: &str) -> String {
    let text = read_to_string(path).unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}
