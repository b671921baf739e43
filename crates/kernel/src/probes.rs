//! Probes: events at instructions of programs that were never instrumented, through the kernel's uprobes (its
//! `Documentation/trace/uprobetracer.rst`).
//!
//! A probe is defined by a line written to `uprobe_events`, and has an event of its own from then on, which
//! is enabled in an instance as any other. The definition is the whole tracer's, not the instance's, and
//! stays until it is removed. So it has its recorder's name: the instance `tracewing-PID-START` defines
//! `tracewing_PID_START/p0`, `p1`, …, which go when the instance goes, whatever removes that. The kernel
//! refuses (`EBUSY`) to remove what an instance has enabled, which protects the probes of a living recorder
//! in another PID namespace.

use crate::change::Change;
use crate::error::{Action, Error, KernelText};
use crate::tracefs::{Tracefs, read, write};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Where probes are defined, in tracefs.
pub(crate) const FILE: &str = "uprobe_events";

/// An instruction of a file at which there shall be an event, in every process that executes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The event's name in the trace.
    pub name: String,
    /// A program or a library.
    pub file: PathBuf,
    /// Where in the file the instruction begins. The kernel believes this: anywhere else the program is
    /// damaged.
    pub offset: u64,
    /// Where in the file the counter is (`u16`) that is to be increased in a process while the probe is on:
    /// the semaphore of a USDT probe.
    pub semaphore: Option<u64>,
    /// Not at the instruction, with which a function begins, but when that function returns.
    pub at_return: bool,
    /// What is recorded in addition to the address.
    pub arguments: Vec<Argument>,
}

/// A value that is recorded at a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// The field's name in the trace: a C identifier.
    pub name: String,
    /// Where to get it, and its type, in the kernel's syntax: `%di:u64`, `+0(%si):string`.
    pub fetch: String,
}

impl Probe {
    fn definition(&self, group: &str, nth: usize, file: &File) -> String {
        let kind = if self.at_return { 'r' } else { 'p' };
        // By its descriptor, since the kernel takes a path to end at the first space.
        let mut line =
            format!("{kind}:{group}/{} /proc/self/fd/{}:{:#x}", event(nth), file.as_raw_fd(), self.offset);
        if let Some(semaphore) = self.semaphore {
            line.push_str(&format!("({semaphore:#x})"));
        }
        for Argument { name, fetch } in &self.arguments {
            line.push_str(&format!(" {name}={fetch}"));
        }
        line
    }
}

/// The kernel's name of the event of the nth probe.
pub(crate) fn event(nth: usize) -> String {
    format!("p{nth}")
}

/// The group of the probes that belong to an instance.
pub(crate) fn group(instance: &Path) -> String {
    instance.file_name().unwrap_or_default().to_string_lossy().replace('-', "_")
}

/// Defines the probes of a group.
pub(crate) fn define(tracefs: &Tracefs, group: &str, probes: &[Probe]) -> Result<(), Error> {
    let control = tracefs.root().join(FILE);
    if !probes.is_empty() && !control.exists() {
        return Err(Error::NoUprobes);
    }
    for (nth, probe) in probes.iter().enumerate() {
        let failed = |source| Error::Probe { name: probe.name.clone(), source, reason: None };
        let file = File::open(&probe.file).map_err(failed)?;
        write(&control, &probe.definition(group, nth, &file)).map_err(|error| match error {
            Error::Tracefs { source, .. } => {
                Error::Probe { name: probe.name.clone(), source, reason: reason(tracefs) }
            }
            error => error,
        })?;
    }
    Ok(())
}

/// What the kernel says of the last command that it refused.
fn reason(tracefs: &Tracefs) -> Option<KernelText> {
    let log = read(&tracefs.root().join("error_log")).unwrap_or_default();
    let last = log.lines().rev().find_map(|line| line.split_once("trace_uprobe: error: "));
    last.map(|(_, reason)| KernelText(reason.trim().to_owned()))
}

/// Removes the probes of the groups that `is_gone` names; those that are enabled somewhere stay.
///
/// # Errors
/// The last one that could not be removed, and why.
pub(crate) fn remove(root: &Path, mut is_gone: impl FnMut(&str) -> bool) -> Result<(), Error> {
    let control = root.join(FILE);
    let text = match read(&control) {
        Err(Error::Tracefs { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
        text => text?,
    };
    let mut removed = Ok(());
    for line in text.lines() {
        let Some((_, name)) = line.split(' ').next().and_then(|word| word.split_once(':')) else { continue };
        if name.split_once('/').is_some_and(|(group, _)| is_gone(group)) {
            match Change::Undefine(&control, name).make() {
                // Another process was faster.
                Err(source) if source.kind() == io::ErrorKind::NotFound => {}
                Err(source) => {
                    removed = Err(Error::Tracefs { action: Action::Write, path: control.clone(), source });
                }
                Ok(()) => {}
            }
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_a_line_of_the_kernels_language() {
        let file = File::open("/proc/self/exe").unwrap();
        let mut probe = Probe {
            name: "libc.so.6:malloc".to_owned(),
            file: "/proc/self/exe".into(),
            offset: 0x1234,
            semaphore: None,
            at_return: false,
            arguments: vec![Argument { name: "size".to_owned(), fetch: "%di:u64".to_owned() }],
        };
        let fd = file.as_raw_fd();
        assert_eq!(
            probe.definition("tracewing_1_2", 0, &file),
            format!("p:tracewing_1_2/p0 /proc/self/fd/{fd}:0x1234 size=%di:u64")
        );
        (probe.semaphore, probe.at_return, probe.arguments) = (Some(0x20), true, Vec::new());
        assert_eq!(probe.definition("g", 11, &file), format!("r:g/p11 /proc/self/fd/{fd}:0x1234(0x20)"));
        assert_eq!(group(Path::new("/x/instances/tracewing-1-2-3")), "tracewing_1_2_3");
    }
}
