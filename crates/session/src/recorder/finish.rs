//! Ends a recording: closes the buffers, writes the rest, and makes the summary.

use std::mem;

use super::Recorder;
use super::output::{Kind, Output};

use tracewing_consumer::description::State;
use tracewing_consumer::outside::UNSEEN;
use tracewing_profile::Summary as ProfileSummary;
use tracewing_units::Duration;

use crate::archives::Archives;
use crate::course::Stop;
use crate::ended::Ended;
use crate::flight::{Flight, absolute};
use crate::join::Join;
use crate::kernel::KernelSummary;
use crate::outcome::Summary;
use crate::regions::Totals;
use crate::trigger::Firing;

/// What the sources amount to.
struct Sources {
    user: Ended,
    kernel: KernelSummary,
    profile: ProfileSummary,
    is_snapshot_written: bool,
}

impl Recorder<'_> {
    /// Closes the buffers, writes the rest of their contents, and makes the summary.
    pub(super) fn finish(&mut self, output: &Output) -> Summary {
        let seconds = self.timers.started.elapsed().as_secs_f64();
        self.join.description.clock.stopped = Some(self.join.clock.now());
        self.find_left_out();
        self.listing = None;
        self.turn_away_waiting();
        self.entrance.listener = None;
        self.end_attempts();
        self.close_doors();
        let sources = self.end_sources();
        let lines = Firing::finish_all(std::mem::take(&mut self.firing));
        lines.iter().for_each(|line| self.observer.note(line));
        self.give_hints(&sources.user);
        self.check_places(true);
        self.join.note_left_out();
        self.describe_end(output, sources);
        self.check_places(true);
        if self.course.stop == Stop::CannotWrite {
            self.join.description.state = State::CutShort;
        }
        self.show_notes();
        self.summary(output, seconds)
    }

    /// Ends samples, programs and kernel, in this order, and writes what each still has.
    fn end_sources(&mut self) -> Sources {
        // First, since its counters are read at the end of what was recorded; the kernel takes a while to end
        // the rest.
        let mut profile = self.drains.profile.finish(&mut |line| self.join.note(line));
        if let Some(error) = profile.unwritten.take() {
            self.cannot_write(&error.into());
        }
        self.look_at_contexts_now();
        // Programs that see their connection end look at their buffers: whether the recording is over.
        self.join.regions.close();
        self.bid_farewell();
        self.connections.clients.clear();
        self.end_rotations();
        let is_snapshot_written = self.last_snapshot();
        let user = self.end_regions();
        let mut kernel = self.drains.kernel.finish(&mut |line| self.join.note(line));
        if let Some(error) = &kernel.error {
            self.cannot_write(error);
        }
        self.note_executed(mem::take(&mut kernel.executed));
        Sources { user, kernel, profile, is_snapshot_written }
    }

    /// Writes the rest of the programs' buffers, unless the disk has refused writes.
    fn end_regions(&mut self) -> Ended {
        if self.course.stop != Stop::CannotWrite {
            self.join.write_firsts(true);
            self.join.error.take().into_iter().for_each(|error| self.cannot_write(&error));
        }
        let (user, written) = self.join.regions.finish(self.course.stop != Stop::CannotWrite);
        if let Err(error) = written {
            self.cannot_write(&error);
        }
        let unseen = self.join.regions.unseen();
        if unseen > 0 {
            self.join.note(format!(
                "{unseen} threads of other PID namespaces ended before their numbers were known; they have numbers from {UNSEEN} on"
            ));
        }
        self.join.note_damages();
        user
    }

    /// Notes which rules no event came of. What could not be written, or is lost, is not known.
    fn give_hints(&mut self, user: &Ended) {
        if self.course.stop == Stop::CannotWrite {
            return;
        }
        let Join { rules, classes, regions, .. } = &self.join;
        let before = self.archives.as_ref().map_or(Totals::default(), Archives::so_far);
        let is_whole = user.losses.is_empty()
            && user.overwritten.is_empty()
            && before.lost == 0
            && !before.is_lost_unknown;
        let has_seen = |id| regions.has_seen(id).filter(|seen| *seen || is_whole);
        let hints = rules.hints(classes, self.options.preload.as_ref(), has_seen);
        hints.into_iter().for_each(|hint| self.join.note(hint));
    }

    /// Writes the trace's description, complete now.
    fn describe_end(&mut self, output: &Output, sources: Sources) {
        let Sources { user, kernel, profile, is_snapshot_written } = sources;
        let description = &mut self.join.description;
        let is_all_written = is_snapshot_written && self.course.stop != Stop::CannotWrite;
        description.state = if is_all_written { State::Complete } else { State::CutShort };
        description.clock.end = Some(self.join.clock.calibrate());
        description.user_streams = user.streams();
        description.kernel_streams = kernel.streams;
        description.losses = user.losses;
        description.losses.extend(kernel.losses);
        description.profile_streams = profile.streams;
        description.losses.extend(profile.losses);
        description.overwritten = user.overwritten;
        if self.archives.as_ref().is_some_and(Archives::are_several) {
            return self.complete_last();
        }
        if let Some(Err(error)) = output.folder().map(|folder| folder.describe(description))
            && !self.watches.places.are_lost()
        {
            self.join.note(error.to_string());
        }
    }

    /// The numbers for the user.
    fn summary(&mut self, output: &Output, seconds: f64) -> Summary {
        self.flight.iter_mut().for_each(Flight::finish_removing);
        let (folder, bytes) = match &output.kind {
            Kind::Trace(folder) => (folder.path().to_owned(), folder.dir().size()),
            Kind::Snapshots(dir, _) => {
                output.remove_empty(); // empty without a snapshot
                (absolute(dir.path()), dir.size())
            }
        };
        let description = &self.join.description;
        let (user, kernel, profile) =
            (&description.user_streams, &description.kernel_streams, &description.profile_streams);
        let streams = || user.iter().chain(kernel).chain(profile);
        let flight = self.flight.take();
        let unlisted = flight.as_ref().map_or(0, |flight| flight.unlisted_events);
        let snapshot_totals = flight.as_ref().map(|flight| flight.totals);
        let snapshots = flight.map(|flight| flight.taken);
        let in_snapshots = snapshots.iter().flatten().map(|snapshot| snapshot.events).sum::<u64>() + unlisted;
        Summary {
            folder,
            state: description.state,
            seconds,
            begin: self.timers.began,
            frequency: description.clock.frequency,
            events: in_snapshots + streams().map(|stream| stream.events).sum::<u64>(),
            lost: streams().map(|stream| stream.lost).fold(0, u64::saturating_add),
            bytes,
            processes: self.join.listed(),
            user_streams: description.user_streams.clone(),
            kernel_streams: description.kernel_streams.clone(),
            profile_streams: description.profile_streams.clone(),
            losses: description.losses.clone(),
            overwritten: description.overwritten.clone(),
            snapshots,
            snapshot_totals,
            archives: description.archives.clone(),
            archive_totals: description.archive_totals,
            on_archive: None,
            attached: description.attached.clone(),
            longest_stop: self.attaching.longest_stop.map(|stop| Duration::from_ns(stop.as_nanos() as u64)),
            notes: description.notes.clone(),
        }
    }
}
