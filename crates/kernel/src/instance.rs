//! An own instance of the tracer under `instances/`, with the probes that are defined for it: made, set up,
//! and removed again in every case.
//!
//! Its name is `tracewing-PID-START` (then `-2`, `-3`, …): process number and start time (clock ticks after
//! boot, field 22 of `/proc/PID/stat`) of the recorder. The instance of a recorder that was killed is removed
//! by its [`Guardian`], or by the process that makes its changes ([`crate::changer`]). Where that was killed
//! as well, the next recorder recognises the instance by a process that is gone, or that started at another
//! time, and removes it. Two things protect the instance of a living recorder: its name, and that the kernel
//! refuses (`EBUSY`) to remove an instance of which `tracing_on` is open, which a recorder keeps open from
//! the beginning; the latter even where the recorder lives in another PID namespace. (Files below `options/`
//! do not keep an instance from being removed; Linux 6.18 dereferences freed memory when one of them is
//! written then.)

use crate::change::{self, Change};
use crate::error::{Action, Error};
use crate::guardian::Guardian;
use crate::probes::{self, Probe};
use crate::tracefs::{Tracefs, write};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracewing_proc::Stat;
use tracewing_units::Pid;

const PREFIX: &str = "tracewing-";
/// How long to wait for others to close the files of an instance that is to be removed.
const PATIENCE: Duration = Duration::from_secs(1);

/// A tracer instance, removed when dropped.
#[derive(Debug)]
pub(crate) struct Instance {
    /// Where tracefs is.
    root: PathBuf,
    path: PathBuf,
    removed: bool,
    /// `tracing_on`, to write to it, until the instance is to be removed.
    held: Option<File>,
    guardian: Option<Guardian>,
}

impl Instance {
    /// Makes one that records nothing yet, after removing those of dead recorders.
    pub(crate) fn create(tracefs: &Tracefs) -> Result<Self, Error> {
        let instances = tracefs.root().join("instances");
        remove_stale(&instances)?;
        // Those of a recorder that cannot be removed are in use.
        let _ = probes::remove(tracefs.root(), |group| is_stale(&group.replace('_', "-")));
        let (pid, began) = this_process();
        let own = format!("{PREFIX}{pid}-{began}");
        let mut path = instances.join(&own);
        for nth in 2.. {
            match Change::Make(&path).make() {
                Ok(()) => break,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    path = instances.join(format!("{own}-{nth}"))
                }
                Err(source) => return Err(Error::Tracefs { action: Action::Make, path, source }),
            }
        }
        let guardian = if change::are_made_elsewhere() {
            None
        } else {
            Guardian::start(&path, &tracefs.root().join(probes::FILE))
        };
        let mut instance =
            Self { root: tracefs.root().to_owned(), removed: false, held: None, guardian, path };
        let path = instance.path.join("tracing_on");
        let held = Change::open(&path);
        instance.held = Some(held.map_err(|source| Error::Tracefs { action: Action::Open, path, source })?);
        instance.switch(false)?;
        Ok(instance)
    }

    /// Has it record, or not.
    pub(crate) fn switch(&self, on: bool) -> Result<(), Error> {
        let failed =
            |source| Error::Tracefs { action: Action::Write, path: self.path.join("tracing_on"), source };
        let Some(mut held) = self.held.as_ref() else { return Ok(()) };
        held.write_all(if on { b"1" } else { b"0" }).map_err(failed)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Defines probes that go with this instance; gives the group of their events.
    pub(crate) fn define(&self, tracefs: &Tracefs, probes: &[Probe]) -> Result<String, Error> {
        let group = probes::group(&self.path);
        probes::define(tracefs, &group, probes)?;
        Ok(group)
    }

    /// Writes one of its settings.
    pub(crate) fn set(&self, file: &str, value: &str) -> Result<(), Error> {
        write(&self.path.join(file), value)
    }

    /// Removes it. Its files must be closed; where another process has one open it is waited for a second.
    pub(crate) fn remove(mut self) -> Result<(), Error> {
        self.try_remove()
    }

    fn try_remove(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.removed, true) {
            return Ok(());
        }
        // An instance that cannot be removed shall at least cost nothing.
        let quiet = self.switch(false).and_then(|()| self.set("events/enable", "0"));
        drop(self.held.take());
        let begin = Instant::now();
        loop {
            match Change::Remove(&self.path).make() {
                Ok(()) => break,
                Err(e) if is_gone(&e) => break,
                Err(e) if is_busy(&e) && begin.elapsed() < PATIENCE => sleep(Duration::from_millis(10)),
                Err(source) => {
                    quiet?;
                    return Err(Error::Tracefs { action: Action::Remove, path: self.path.clone(), source });
                }
            }
        }
        let group = probes::group(&self.path);
        probes::remove(&self.root, |other| other == group)?;
        self.guardian.take().into_iter().for_each(Guardian::dismiss);
        Ok(())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Callers that need the result call `remove`.
        let _ = self.try_remove();
    }
}

pub(crate) fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::BUSY.raw_os_error())
}

/// Whether another process has removed an instance, or is about to.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::NODEV.raw_os_error())
}

/// Removes the instances of recorders that are no more.
fn remove_stale(instances: &Path) -> Result<(), Error> {
    let list = |source| Error::Tracefs { action: Action::List, path: instances.to_owned(), source };
    for entry in fs::read_dir(instances).map_err(list)? {
        let entry = entry.map_err(list)?;
        if entry.file_name().to_str().is_some_and(is_stale) {
            // A process may look at it, or another recorder remove it right now: no reason not to record.
            let _ = Change::Remove(&entry.path()).make();
        }
    }
    Ok(())
}

/// Process number and start time in an instance's name, if it is one of ours.
pub(crate) fn owner(name: &str) -> Option<(Pid, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    let (pid, start) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let nth = parts.next().map(|n| n.parse::<u32>());
    (parts.next().is_none() && !matches!(nth, Some(Err(_)))).then_some((pid, start))
}

/// Whether an instance has the name of a recorder that is no more.
pub(crate) fn is_stale(name: &str) -> bool {
    owner(name).is_some_and(|(pid, start)| start_time(pid) != Some(start))
}

/// When a process started, in clock ticks after boot; `None` if there is none of that number, or only its
/// zombie.
/// This process, and when it started: 0 where `/proc` is that of other processes.
pub(crate) fn this_process() -> (Pid, u64) {
    let pid = Pid::from_unsigned(std::process::id());
    (pid, start_time(pid).unwrap_or_default())
}

pub(crate) fn start_time(pid: Pid) -> Option<u64> {
    Stat::of(pid).filter(|stat| !stat.has_ended())?.began()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_our_form_are_ours() {
        assert_eq!(owner("tracewing-12-345"), Some((Pid(12), 345)));
        assert_eq!(owner("tracewing-12-345-2"), Some((Pid(12), 345)));
        for name in
            ["tracewing-12", "tracewing-12-345-x", "tracewing-12-345-2-3", "tracewing-probe-kernel", "other"]
        {
            assert_eq!(owner(name), None, "{name}");
        }
    }

    #[test]
    fn an_instance_cannot_be_removed_by_others_from_the_beginning() {
        let tracefs = match Tracefs::open() {
            Ok(tracefs) => tracefs,
            Err(missing) => {
                return tracewing_testing::skip(
                    tracewing_testing::Cause::KernelEvents,
                    format_args!("{missing}"),
                );
            }
        };
        let instance = Instance::create(&tracefs).unwrap();
        let path = instance.path().to_owned();
        assert!(is_busy(&fs::remove_dir(&path).unwrap_err()));
        instance.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn the_start_time_of_this_process_is_stable_and_of_none_there_is_none() {
        let own = start_time(Pid::from_unsigned(std::process::id()));
        assert!(own.is_some());
        assert_eq!(own, start_time(Pid::from_unsigned(std::process::id())));
        // Larger than any process number the kernel gives out (PID_MAX_LIMIT is 2^22).
        assert_eq!(start_time(Pid(1 << 23)), None);
    }
}
