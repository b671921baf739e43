//! Makes the changes of one recorder in tracefs from another process: what belongs to the recorder's
//! instances, and before it is settled also what recorders have left that are no more. When the recorder has
//! ended, however that was, it removes what is left, as a [`crate::guardian`] does.

use crate::change::Change;
use crate::instance::{is_busy, is_stale, owner, this_process};
use crate::probes;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use tracewing_units::Pid;

/// How often, and with which pauses, it tries to remove an instance: the recorder's files may close later.
const ATTEMPTS: usize = 25;
const PAUSE: Duration = Duration::from_millis(200);

/// What makes the changes of a recorder.
#[derive(Debug, Clone)]
pub struct Changer {
    /// Where tracefs is.
    root: PathBuf,
    /// The recorder's process, and when it started.
    recorder: (Pid, u64),
    is_settled: bool,
}

impl Changer {
    /// For this process, in the tracefs at `root`: to be given to the other one.
    pub fn of_this_process(root: &Path) -> Self {
        Self { root: root.to_owned(), recorder: this_process(), is_settled: false }
    }

    /// Makes a change that the recorder asks for, which may be any bytes; gives the file that it opens.
    ///
    /// # Errors
    /// The kernel's; `EINVAL` if it is no change of what is the recorder's.
    pub fn make(&mut self, request: &[u8]) -> io::Result<Option<OwnedFd>> {
        let change = Change::decode(request).filter(|change| self.may(change));
        let change = change.ok_or(io::ErrorKind::InvalidInput)?;
        self.is_settled |= change == Change::Settle;
        change.here()
    }

    fn may(&self, change: &Change<'_>) -> bool {
        match change {
            Change::Open(path) if **path == self.definitions() => !self.is_settled,
            Change::Open(path) | Change::Empty(path) => self.below_own(path).is_some_and(|depth| depth > 0),
            Change::Make(path) => self.below_own(path) == Some(0),
            Change::Remove(path) => {
                self.below_own(path) == Some(0) || !self.is_settled && self.is_stale_instance(path)
            }
            Change::Undefine(path, probe) => {
                let group = probe.split('/').next().unwrap_or_default().replace('_', "-");
                let may = owner(&group) == Some(self.recorder) || !self.is_settled && is_stale(&group);
                may && **path == self.definitions()
            }
            Change::Settle => true,
        }
    }

    /// The file of all probes.
    fn definitions(&self) -> PathBuf {
        self.root.join(probes::FILE)
    }

    /// How far a path is below an instance of the recorder's.
    fn below_own(&self, path: &Path) -> Option<usize> {
        let mut names = path.strip_prefix(self.root.join("instances")).ok()?.components();
        let is_own = |name: &OsStr| name.to_str().and_then(owner) == Some(self.recorder);
        matches!(names.next()?, Component::Normal(name) if is_own(name)).then_some(())?;
        let rest: Vec<_> = names.collect();
        rest.iter().all(|name| matches!(name, Component::Normal(_))).then_some(rest.len())
    }

    fn is_stale_instance(&self, path: &Path) -> bool {
        let is_one = path.parent() == Some(&self.root.join("instances"));
        is_one && path.file_name().and_then(OsStr::to_str).is_some_and(is_stale)
    }

    /// Removes what the recorder has left, which has ended.
    pub fn clean_up(self) {
        let entries = fs::read_dir(self.root.join("instances")).into_iter().flatten().flatten();
        let own = entries.map(|entry| entry.path()).filter(|path| self.below_own(path) == Some(0));
        for path in own.collect::<Vec<_>>() {
            for _ in 0..ATTEMPTS {
                match fs::remove_dir(&path) {
                    Err(error) if is_busy(&error) => sleep(PAUSE),
                    _ => break,
                }
            }
        }
        // Those that cannot be removed are in use.
        let _ = probes::remove(&self.root, |group| owner(&group.replace('_', "-")) == Some(self.recorder));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changer() -> (Changer, String) {
        let changer = Changer::of_this_process(Path::new("/t"));
        let name = format!("tracewing-{}-{}", changer.recorder.0, changer.recorder.1);
        (changer, name)
    }

    #[test]
    fn only_what_is_the_recorders_is_changed() {
        let (changer, name) = changer();
        let may = |path: &str, of: fn(&'static Path) -> Change<'static>| {
            changer.may(&of(Path::new(path.to_owned().leak())))
        };
        for own in [name.clone(), format!("{name}-2")] {
            assert!(may(&format!("/t/instances/{own}/tracing_on"), Change::Open));
            assert!(may(&format!("/t/instances/{own}/events/sched/enable"), Change::Open));
            assert!(may(&format!("/t/instances/{own}/set_event_notrace_pid"), Change::Empty));
            assert!(may(&format!("/t/instances/{own}"), Change::Make));
            assert!(may(&format!("/t/instances/{own}"), Change::Remove));
        }
        for other in [
            "/t/tracing_on".to_owned(),
            "/etc/passwd".to_owned(),
            format!("/t/instances/{name}"),
            format!("/t/instances/{name}/../x/tracing_on"),
            format!("/t/instances/{name}/../../tracing_on"),
            "/t/instances/tracewing-1-1/tracing_on".to_owned(),
            "/t/instances/other/tracing_on".to_owned(),
            format!("instances/{name}/tracing_on"),
        ] {
            assert!(!may(&other, Change::Open) && !may(&other, Change::Empty), "{other}");
        }
        for other in ["/t/instances/other".to_owned(), format!("/t/instances/{name}/x"), "/t".to_owned()] {
            assert!(!may(&other, Change::Make) && !may(&other, Change::Remove), "{other}");
        }
    }

    #[test]
    fn once_settled_it_defines_nothing_and_removes_nothing_of_others() {
        let (mut changer, name) = changer();
        let file = Path::new("/t/uprobe_events");
        let stale = Path::new("/t/instances/tracewing-1-1");
        let own = format!("{}/p0", name.replace('-', "_"));
        let others = [Change::Open(file), Change::Remove(stale), Change::Undefine(file, "tracewing_1_1/p0")];
        assert!(others.iter().all(|change| changer.may(change)));
        changer.make(&[5, 0]).unwrap();
        assert!(others.iter().all(|change| !changer.may(change)));
        assert!(changer.may(&Change::Undefine(file, &own)));
        assert!(!changer.may(&Change::Undefine(Path::new("/t/kprobe_events"), &own)));
        assert!(!changer.may(&Change::Undefine(file, "other/p0")));
        assert!(changer.make(&[]).is_err());
    }
}
