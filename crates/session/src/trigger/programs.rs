//! The programs that a trigger runs: on a thread of their own, one firing at a time. Firings that come while
//! they run are counted, and run nothing.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use crate::options::{Action, Trigger};
use crate::runner::{Purpose, Runner};

/// How long a program may run.
const LIMIT: Duration = Duration::from_secs(60);

/// What one firing runs: programs, one after the other, each with the folder that it is given.
type Job = Vec<(OsString, Option<PathBuf>)>;

/// Has programs run.
pub(crate) struct Programs {
    jobs: Sender<Job>,
    busy: Busy,
}

/// While programs run, how many firings have come that run nothing.
type Busy = Arc<Mutex<Option<u64>>>;

impl Programs {
    /// Starts the thread, if the trigger runs programs. What they have done is said to `say`, after `name`.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(crate) fn start(
        trigger: &Trigger,
        name: String,
        runner: Runner,
        say: Sender<String>,
    ) -> io::Result<Option<Self>> {
        if !trigger.actions.iter().any(|action| matches!(action, Action::Run(_))) {
            return Ok(None);
        }
        let (jobs, next) = channel::<Job>();
        let busy = Busy::default();
        let of_thread = busy.clone();
        let work = move || {
            for job in next {
                let commands: Vec<_> = job.iter().map(|(command, _)| command.display().to_string()).collect();
                let mut lines: Vec<String> = job.iter().map(|one| run(&name, &runner, one)).collect();
                let missed = set(&of_thread, None).unwrap_or(0);
                if missed > 0 {
                    let commands = commands.join(", ");
                    lines.push(format!("{name}{commands}: not run again while it was running: {missed}"));
                }
                if lines.into_iter().any(|line| say.send(line).is_err()) {
                    return;
                }
            }
        };
        Builder::new().name("tracewing-run".to_owned()).spawn(work)?;
        Ok(Some(Self { jobs, busy }))
    }

    /// Has these run, unless those of an earlier firing still do.
    pub(crate) fn run(&self, job: Job) {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *busy {
            Some(missed) => *missed += 1,
            free => {
                *free = Some(0);
                let _ = self.jobs.send(job); // the thread lives as long as this
            }
        }
    }
}

fn set(busy: &Busy, to: Option<u64>) -> Option<u64> {
    std::mem::replace(&mut *busy.lock().unwrap_or_else(PoisonError::into_inner), to)
}

/// Runs one, and says how it ended.
fn run(name: &str, runner: &Runner, (command, folder): &(OsString, Option<PathBuf>)) -> String {
    let failed = runner.run(Purpose::Trigger, command, folder.as_deref(), LIMIT);
    let command = command.display();
    match failed {
        None => format!("{name}fired: {command} has run"),
        Some(why) => format!("{name}fired, but not done: {command}: {why}"),
    }
}
