//! Samples and counters in a recording: started where the kernel gives them, polled with its events.

use std::time::{Duration, Instant};

use tracewing_consumer::clock::TraceClock;
use tracewing_consumer::folder::PROFILE;
use tracewing_consumer::identity::random_uuid;
use tracewing_ctf::model::{ClockClass, Uuid};
use tracewing_files::Dir;
use tracewing_profile::{NextTrace, ProfileRecorder, Rotated, Stacks, Subject, Summary};
use tracewing_units::Pid;

use crate::scope::Scope;
use crate::{Error, Options};

/// Checks that samples can be taken, if they were requested.
///
/// # Errors
/// They cannot.
pub(crate) fn check(options: &Options, clock: &TraceClock) -> Result<(), Error> {
    let Some(hertz) = options.profile else { return Ok(()) };
    let subject = match &options.attach {
        _ if options.system_wide => Subject::System,
        Some(attach) => Subject::Processes { children: attach.children },
        None if options.command.is_empty() => Subject::Processes { children: true },
        None => Subject::MYSELF,
    };
    Ok(tracewing_profile::check(subject, hertz, options.stacks, clock.kind())?)
}

/// The samples of a recording, or nothing.
pub(crate) struct Profile {
    recorder: Option<ProfileRecorder>,
    flush: Duration,
    flushed: Instant,
}

impl Profile {
    /// No samples are recorded.
    pub(crate) fn none() -> Self {
        Self { recorder: None, flush: Duration::MAX, flushed: Instant::now() }
    }

    /// Starts taking `hertz` samples a second of the threads that are meant.
    ///
    /// # Errors
    /// The kernel gives none. The folder is not there then.
    pub(crate) fn start(
        folder: &Dir,
        (hertz, stacks): (u32, Stacks),
        recorded: &Scope,
        (clock, clock_class): (&TraceClock, ClockClass),
        flush: Duration,
        note: &mut dyn FnMut(String),
    ) -> Result<Self, Error> {
        let subject = match recorded {
            Scope::System => Subject::System,
            Scope::Tree(root) => Subject::Tree(*root),
            Scope::Processes { children, .. } => Subject::Processes { children: *children },
        };
        let uuid = random_uuid().map_err(Error::system("getrandom"))?;
        let options = tracewing_profile::Options { subject, hertz, stacks, clock: *clock, clock_class, uuid };
        let recorder = ProfileRecorder::start(folder, PROFILE, &options)?;
        recorder.notices().iter().cloned().for_each(&mut *note);
        let mut this = Self { recorder: Some(recorder), flush, flushed: Instant::now() };
        if let Scope::Processes { pids, .. } = recorded {
            pids.iter().try_for_each(|pid| this.follow(*pid, note))?;
        }
        Ok(this)
    }

    /// Takes samples of a process that runs already, too.
    ///
    /// # Errors
    /// The trace cannot be written any more.
    pub(crate) fn follow(
        &mut self,
        pid: Pid,
        note: &mut dyn FnMut(String),
    ) -> Result<(), tracewing_consumer::Error> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        recorder.follow(pid)?.note().into_iter().for_each(note);
        Ok(())
    }

    /// Moves what is in the kernel's buffers, and into the folder when it would be too old there at a next
    /// call `longest` from now.
    ///
    /// # Errors
    /// The trace cannot be written any more.
    pub(crate) fn poll(&mut self, now: Instant, longest: Duration) -> Result<(), tracewing_consumer::Error> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        let flush = now.duration_since(self.flushed) + longest >= self.flush;
        if flush {
            self.flushed = now;
        }
        Ok(recorder.poll(flush)?)
    }

    /// Makes the folder of the trace that is to continue this one; `None` where there are no samples.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn prepare(
        &self,
        folder: &Dir,
        uuid: Uuid,
    ) -> Result<Option<NextTrace>, tracewing_profile::Error> {
        let next = self.recorder.as_ref().map(|recorder| recorder.prepare(folder, PROFILE, uuid));
        next.transpose()
    }

    /// Ends the trace with what the kernel has recorded by now, and continues in the next one.
    pub(crate) fn rotate(&mut self, next: Option<NextTrace>) -> Rotated {
        match self.recorder.as_mut().zip(next) {
            Some((recorder, next)) => recorder.rotate(next),
            None => Rotated { ended: Summary::default(), unwritten: None },
        }
    }

    /// How many events were written and lost so far, and in how many bytes.
    pub(crate) fn progress(&self) -> (u64, u64, u64) {
        self.recorder.as_ref().map_or((0, 0, 0), ProfileRecorder::progress)
    }

    /// Stops and writes the rest.
    pub(crate) fn finish(&mut self, note: &mut dyn FnMut(String)) -> Summary {
        let Some(recorder) = self.recorder.take() else { return Summary::default() };
        let shown = recorder.notices().len();
        let summary = recorder.finish();
        summary.notices.iter().skip(shown).cloned().for_each(note);
        summary
    }
}
