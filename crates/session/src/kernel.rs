//! Kernel events in a recording: started where they can be had, polled beside the user events, summed up alike.

use std::time::{Duration, Instant};

use rustix::process::Pid;
use tracewing_abi::region::Clock;
use tracewing_consumer::clock::TraceClock;
use tracewing_consumer::drain::{LossRange, StreamSummary};
use tracewing_consumer::folder::Folder;
use tracewing_consumer::identity::random_uuid;
use tracewing_ctf::model::ClockClass;
use tracewing_kernel::{DEFAULT_BUFFER_KIB, KernelClock, KernelRecorder, POLL_INTERVAL, Progress, Scope};

use crate::Error;
use crate::options::Options;

const LOSS_REASON: &str = "kernel buffer full";

/// The kernel side of a recording, or nothing.
pub(crate) struct Kernel {
    recorder: Option<KernelRecorder>,
    flush: Duration,
    polled: Instant,
    flushed: Instant,
    progress: Progress,
}

/// What the kernel side amounts to.
#[derive(Default)]
pub(crate) struct KernelSummary {
    pub streams: Vec<StreamSummary>,
    pub losses: Vec<LossRange>,
}

impl Kernel {
    /// Starts recording what the options ask for, as far as this process may. What is missing is a line for the user.
    ///
    /// # Errors
    /// What was asked for does not exist, or fails for reasons that the user must know before anything runs.
    pub(crate) fn start(
        options: &Options,
        folder: &Folder,
        clock: &TraceClock,
        clock_class: ClockClass,
        root: Pid,
        note: &mut dyn FnMut(String),
    ) -> Result<Self, Error> {
        let now = Instant::now();
        let none = Self {
            recorder: None,
            flush: options.flush,
            polled: now,
            flushed: now,
            progress: Progress::default(),
        };
        let Some(globs) = &options.kernel_events else { return Ok(none) };
        if let Err(missing) = tracewing_kernel::privileges() {
            note(format!("no kernel events: {missing}"));
            return Ok(none);
        }
        let scope = if options.system_wide { Scope::System } else { Scope::Tree };
        let settings = tracewing_kernel::Options {
            globs: globs.clone(),
            scope,
            clock: match clock.kind() {
                Clock::Tsc => KernelClock::X86Tsc,
                Clock::Monotonic => KernelClock::Mono,
            },
            clock_class,
            uuid: random_uuid().map_err(Error::system("getrandom"))?,
            buffer_kib: DEFAULT_BUFFER_KIB,
            env: Vec::new(),
        };
        let mut recorder = KernelRecorder::start(&folder.kernel(), &settings)?;
        if scope == Scope::Tree {
            match recorder.set_root_pid(root.as_raw_nonzero().get().unsigned_abs()) {
                Err(error @ tracewing_kernel::Error::PidNamespace) => {
                    note(format!("no kernel events: {error}"));
                    drop(recorder);
                    return Ok(none);
                }
                other => other?,
            }
        }
        recorder.notices().iter().cloned().for_each(&mut *note);
        Ok(Self { recorder: Some(recorder), ..none })
    }

    /// Moves what is in the kernel's buffers, if it is time for that.
    pub(crate) fn poll(&mut self, now: Instant, note: &mut dyn FnMut(String)) {
        let interval = POLL_INTERVAL.min(self.flush);
        if now.duration_since(self.polled) < interval {
            return;
        }
        let Some(recorder) = &mut self.recorder else { return };
        let flush = now.duration_since(self.flushed) + interval >= self.flush;
        self.polled = now;
        if flush {
            self.flushed = now;
        }
        match recorder.poll(flush) {
            Ok(progress) => self.progress = progress,
            Err(error) => {
                note(format!("kernel events end here: {error}"));
                self.flush = Duration::MAX;
                self.polled = now + Duration::from_secs(u32::MAX.into());
            }
        }
    }

    /// Numbers so far.
    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }

    /// Stops and writes the rest.
    pub(crate) fn finish(&mut self, note: &mut dyn FnMut(String)) -> KernelSummary {
        let Some(recorder) = self.recorder.take() else { return KernelSummary::default() };
        let told = recorder.notices().len();
        match recorder.finish() {
            Ok(summary) => {
                summary.notices.iter().skip(told).cloned().for_each(&mut *note);
                summarise(&summary.streams)
            }
            Err(error) => {
                note(format!("the kernel trace is incomplete: {error}"));
                KernelSummary::default()
            }
        }
    }
}

fn summarise(streams: &[tracewing_kernel::StreamSummary]) -> KernelSummary {
    let mut summary = KernelSummary::default();
    for stream in streams.iter().filter(|stream| stream.packets > 0 || stream.losses.events > 0) {
        let name = format!("channel_{}", stream.cpu);
        summary.losses.extend(stream.losses.ranges.iter().map(|range| LossRange {
            stream: name.clone(),
            reason: LOSS_REASON.to_owned(),
            events: range.events,
            begin: range.begin,
            end: range.end,
        }));
        summary.streams.push(StreamSummary {
            name,
            cpu: stream.cpu,
            events: stream.events,
            packets: stream.packets,
            bytes: stream.bytes,
            lost: stream.losses.events,
        });
    }
    summary
}
