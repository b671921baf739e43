//! What is done when an event comes, or when buffers are full or much has been written. For events, there is
//! a recorder with no other purpose: it records those that are meant, looks at its buffers every few
//! milliseconds, and asks other recorders of the session. A recorder asks itself in the same way.
//!
//! The program does nothing for it but write its event. The thread here asks, so that the recorder's loop
//! waits for no other process. The events are on disk, too: the recording says what has fired, and when.
//! Programs that are to be run have a thread of their own ([`programs`]), so that a slow one delays nothing.
//!
//! A flight recorder that is asked has the event in its buffers: a program writes an event to its recordings
//! in the order in which it joined them, and joins triggers last. If an earlier recording has ended, a
//! trigger may have its place; then a program that is preempted between the two writes for longer than the
//! trigger takes can be seen here first.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

mod programs;

use programs::Programs;

use crate::ask::{AskError, Running};
use crate::change::Change;
use crate::options::{Action, Trigger, When};
use crate::runner::{Purpose, Runner};
use crate::running::Recordings;

/// How long what is being done may take at the end of the recording, what programs may take of that, and how
/// long it may take that these are killed.
const ENDING: Duration = Duration::from_secs(10);
const ENDING_OF_PROGRAMS: Duration = Duration::from_secs(5);
const KILLING: Duration = Duration::from_secs(3);

/// The thread that acts, and how often something has come to pass.
pub(crate) struct Firing {
    when: When,
    name: String,
    runner: Runner,
    fired: Sender<()>,
    said: Receiver<String>,
    /// Events, or sizes that were reached.
    seen: u64,
    was_full: bool,
}

/// How far the recording is, as far as triggers are concerned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reached {
    pub events: u64,
    pub bytes: u64,
    /// How full the fullest buffer is, in hundredths.
    pub fullest: u8,
}

impl Firing {
    /// Nothing has fired. To be called before the priority of this thread is raised: commands have the one
    /// that the recorder was started with.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(crate) fn new(trigger: Trigger, runner: Runner) -> io::Result<Self> {
        let (when, name) = (trigger.when, name(&trigger));
        let (fired, next) = channel();
        let (say, said) = channel();
        let programs = Programs::start(&trigger, name.clone(), runner.clone(), say.clone())?;
        let work = move || work(&trigger, programs.as_ref(), &next, &say);
        Builder::new().name("tracewing-fire".to_owned()).spawn(work)?;
        Ok(Self { when, name, runner, fired, said, seen: 0, was_full: false })
    }

    /// The recording has reached this since it began. Gives lines about what was done.
    pub(crate) fn look(&mut self, reached: Reached) -> Vec<String> {
        if self.has_come_to_pass(reached) {
            let _ = self.fired.send(()); // the thread lives as long as this
        }
        self.said.try_iter().collect()
    }

    fn has_come_to_pass(&mut self, reached: Reached) -> bool {
        let count = match self.when {
            When::Event => reached.events,
            When::Size(size) => reached.bytes / size.max(1),
            When::Full(percent) => {
                let is_full = reached.fullest >= percent;
                let was_full = std::mem::replace(&mut self.was_full, is_full);
                return is_full && !was_full;
            }
        };
        let is_more = count > self.seen;
        self.seen = self.seen.max(count);
        is_more
    }

    /// Waits until what is being done is over, for some seconds at most for all together; programs that still
    /// run then are killed. Gives lines about it.
    pub(crate) fn finish_all(all: Vec<Self>) -> Vec<String> {
        let begin = Instant::now();
        let ending: Vec<_> =
            all.into_iter().map(|Self { name, runner, said, .. }| (name, runner, said)).collect();
        let mut lines = Vec::new();
        // Without an end of what they have to say, triggers are at work.
        let mut at_work = ending;
        at_work.retain(|(.., said)| !Self::rest(said, begin + ENDING_OF_PROGRAMS, &mut lines));
        at_work.iter().for_each(|(_, runner, _)| runner.end(Purpose::Trigger));
        let until = (begin + ENDING).max(Instant::now() + KILLING);
        for (name, _, said) in at_work {
            if !Self::rest(&said, until, &mut lines) {
                lines.push(format!("what {name}was to do was not over when the recording ended"));
            }
        }
        lines
    }

    /// Takes what is still to be said until this time. Whether that was all.
    fn rest(said: &Receiver<String>, until: Instant, lines: &mut Vec<String>) -> bool {
        loop {
            match said.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }
}

/// The trigger's name before other words.
fn name(trigger: &Trigger) -> String {
    trigger.name.as_ref().map(|name| format!("{name} ")).unwrap_or_default()
}

fn work(trigger: &Trigger, programs: Option<&Programs>, fired: &Receiver<()>, say: &Sender<String>) {
    // Found ahead of time: one that does not answer would delay the first action.
    let (mut targets, _) = targets(trigger);
    let mut last: Option<Instant> = None;
    for () in fired {
        if last.is_some_and(|last| last.elapsed() < trigger.pause) {
            continue;
        }
        last = Some(Instant::now());
        let mut lines = fire(trigger, programs, &mut targets, &|| self::targets(trigger).0);
        // Channels come and go while the session is started.
        let (now, absent) = self::targets(trigger);
        lines.extend(absent.map(|why| format!("{}fired, and not done everywhere: {why}", name(trigger))));
        let known = std::mem::replace(&mut targets, now);
        let is_new = |one: &&Running| !known.iter().any(|known| known.pid == one.pid);
        let mut new: Vec<Running> = targets.iter().filter(is_new).cloned().collect();
        if !new.is_empty() && !known.is_empty() {
            // Only these: the others have done what they were asked.
            let suits_one = |action: &&Action| new.iter().any(|one| suits(action, one));
            let actions = trigger.actions.iter().filter(suits_one).cloned().collect();
            let all = new.clone();
            lines.extend(fire(&Trigger { actions, ..trigger.clone() }, None, &mut new, &|| all.clone()));
        }
        if lines.into_iter().any(|line| say.send(line).is_err()) {
            return;
        }
    }
}

/// Does everything, and says what was done; programs run afterwards, and say so themselves. `look` finds the
/// targets again where none of them has done anything.
fn fire(
    trigger: &Trigger,
    programs: Option<&Programs>,
    targets: &mut Vec<Running>,
    look: &dyn Fn() -> Vec<Running>,
) -> Vec<String> {
    let (mut folder, mut to_run, mut lines) = (None, Vec::new(), Vec::new());
    let name = name(trigger);
    for action in &trigger.actions {
        match action {
            Action::Run(command) => to_run.push((command.clone(), folder.clone())),
            action => lines.push(match act(action, targets, look, &mut folder) {
                Ok(done) => format!("{name}fired: {done}"),
                Err(why) => format!("{name}fired, but not done: {why}"),
            }),
        }
    }
    programs.into_iter().for_each(|programs| programs.run(to_run.clone()));
    lines
}

/// The recordings that the trigger is for, as far as they run: channels of sessions. A recording that only
/// has the name of the session is none of its channels. Also a text about those that cannot be asked.
fn targets(trigger: &Trigger) -> (Vec<Running>, Option<String>) {
    let is_named = |one: &Running| trigger.targets.iter().any(|target| one.is_named(target));
    let recordings = Recordings::find();
    let of_target = |target: &String| {
        let silent =
            recordings.silent_of(target.split_once('/').map_or(target.as_str(), |(session, _)| session));
        silent.into_iter().find(|one| !one.is_trigger && one.is_named(target))
    };
    let silent = trigger.targets.iter().find_map(of_target);
    let silent = silent.and_then(|one| Some(format!("{} (process {}) does not answer", one.name?, one.pid)));
    let unseen = || {
        let first = recordings.unseen.first()?;
        Some(format!("not all recorders could be asked: {}", first.of(recordings.unseen.len())))
    };
    let absent = silent.or_else(unseen);
    let mut running = recordings.running;
    running.retain(|one| !one.is_trigger && one.name.contains('/') && is_named(one));
    (running, absent)
}

/// Whether a recorder can be asked to do this.
fn suits(action: &Action, one: &Running) -> bool {
    match action {
        Action::Notify | Action::Run(_) => false,
        Action::Snapshot => one.is_flight_recorder,
        Action::Rotate => !one.is_flight_recorder,
        Action::Start | Action::Stop => true,
    }
}

/// Does one thing, and says what. `folder`: of the latest snapshot or archive.
fn act(
    action: &Action,
    targets: &mut Vec<Running>,
    look: &dyn Fn() -> Vec<Running>,
    folder: &mut Option<PathBuf>,
) -> Result<String, String> {
    let asked: fn(&Running) -> Result<Option<PathBuf>, AskError> = match action {
        Action::Notify | Action::Run(_) => return Ok("noted".to_owned()),
        Action::Snapshot => |one| one.snapshot().map(Some),
        Action::Rotate => |one| one.rotate().map(Some),
        Action::Start => |one| one.change(&Change::Resume).map(|_| None),
        Action::Stop => |one| one.change(&Change::Pause).map(|_| None),
    };
    let is_switch = matches!(action, Action::Start | Action::Stop);
    let (mut done, mut failed, mut unsuited) = (Vec::new(), None, None);
    for is_again in [false, true] {
        for one in targets.iter().filter(|one| suits(action, one)) {
            match asked(one) {
                Ok(path) => {
                    done.push(path.as_ref().map_or(one.name.clone(), |path| path.display().to_string()));
                    *folder = path.or(folder.take());
                }
                // Another recorder may have its place since.
                Err(AskError::NoAnswer(_)) if !is_again => {}
                // It records the kernel alone, as only it knows.
                Err(error @ AskError::Refused(..)) if is_switch => unsuited = Some(error.to_string()),
                Err(error) => failed = Some(error.to_string()),
            }
        }
        if !done.is_empty() || failed.is_some() {
            break;
        }
        *targets = look();
    }
    let line = format!("{action} {}", done.join(", "));
    match failed {
        None if done.is_empty() => {
            Err(unsuited.unwrap_or_else(|| format!("no channel of the session can {action}")))
        }
        None => Ok(line),
        Some(why) if done.is_empty() => Err(why),
        Some(why) => Err(format!("{why}; {line}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fires(when: When, reached: &[(u64, u64, u8)]) -> Vec<bool> {
        let (targets, actions, pause) = (Vec::new(), Vec::new(), Duration::ZERO);
        let trigger = Trigger { name: None, when, targets, actions, pause };
        let mut firing = Firing::new(trigger, Runner::default()).unwrap();
        let reached = reached.iter().map(|&(events, bytes, fullest)| Reached { events, bytes, fullest });
        reached.map(|reached| firing.has_come_to_pass(reached)).collect()
    }

    #[test]
    fn a_trigger_fires_once_for_what_has_come_to_pass() {
        assert_eq!(
            fires(When::Event, &[(0, 9, 99), (1, 9, 99), (1, 9, 99), (5, 9, 99)]),
            [false, true, false, true]
        );
        assert_eq!(
            fires(When::Size(100), &[(1, 99, 0), (1, 100, 0), (1, 199, 0), (1, 450, 0), (1, 460, 0)]),
            [false, true, false, true, false]
        );
        assert_eq!(
            fires(When::Full(80), &[(1, 0, 79), (1, 0, 80), (1, 0, 100), (1, 0, 10), (1, 0, 81)]),
            [false, true, false, false, true]
        );
    }
}
