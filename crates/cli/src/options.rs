//! Options that several commands have, each declared once.

use tracewing_rules::{Glob, ProcessPattern};
use tracewing_trace::Zone;

/// Which events, by name.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
pub struct EventNames {
    /// Only events whose names match GLOB; may be given several times
    #[arg(short = 'e', long = "event", value_name = "GLOB")]
    pub events: Vec<String>,

    /// No events whose names match GLOB; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
}

impl EventNames {
    /// Whether events of this name are chosen.
    pub fn choose(&self, name: &str) -> bool {
        let matches = |globs: &[String]| globs.iter().any(|glob| Glob::new(glob.as_str()).matches(name));
        (self.events.is_empty() || matches(&self.events)) && !matches(&self.exclude)
    }

    /// Whether all events are chosen.
    pub fn choose_all(&self) -> bool {
        self.events.is_empty() && self.exclude.is_empty()
    }
}

/// The option `--process`.
#[derive(Debug, Clone, Default, PartialEq, clap::Args)]
pub struct Processes {
    /// Only processes with this number, or a name that matches GLOB; separate several with commas
    #[arg(long = "process", value_name = "PID|GLOB", value_delimiter = ',')]
    pub processes: Vec<String>,
}

impl Processes {
    pub fn patterns(&self) -> Vec<ProcessPattern> {
        self.processes.iter().map(|text| ProcessPattern::new(text)).collect()
    }
}

/// In which zone times are.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct TimeZone {
    /// Read and print times in UTC instead of the local time zone
    #[arg(long)]
    clock_gmt: bool,
}

impl TimeZone {
    pub fn zone(self) -> Zone {
        if self.clock_gmt { Zone::Utc } else { Zone::Local }
    }
}
