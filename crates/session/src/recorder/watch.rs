//! Periodic checks: whether the recording's folders are in their places, and which programs did not join.

use super::Recorder;
use crate::course::Stop;
use crate::listing::Listing;
use crate::program::Program;
use crate::socket::MOST_RECORDERS;
use tracewing_units::Pid;

impl Recorder<'_> {
    /// Looks at the folders; with `all`, at every file. The recording stops where the trace was deleted. A
    /// folder that was moved is written to where it is now.
    pub(super) fn check_places(&mut self, all: bool) {
        let missing = self.watches.places.look(all);
        if self.watches.places.are_deleted() {
            self.course.stop = Stop::CannotWrite;
        }
        missing.iter().for_each(|missing| self.join.note(missing.to_string()));
    }

    /// Reports processes that carry out requests for the recorder, and have ended, and users about whose
    /// programs they do not learn everything.
    pub(super) fn note_lost_helpers(&mut self) {
        for (process, loss) in self.helpers.lost() {
            self.join.note(format!("{loss} from now on: {process}, a process of this recorder, has ended"));
        }
        for user in self.helpers.refused() {
            self.join.note(format!(
                "what only root sees in /proc of programs of user {user} is incomplete: looking there takes too long"
            ));
        }
    }

    /// Reports that programs which start do not join any more, or do so again, since root has begun or ended
    /// other recordings, which they join first.
    pub(super) fn note_lost_place(&mut self) {
        let Some(is_crowded_out) = self.listing.as_ref().and_then(Listing::is_crowded_out) else { return };
        if is_crowded_out == self.watches.is_crowded_out {
            return;
        }
        self.watches.is_crowded_out = is_crowded_out;
        let seconds = self.timers.started.elapsed().as_secs();
        self.join.note(match is_crowded_out {
            true => format!(
                "programs that start are not recorded, from about {seconds} s after the begin on: they join \
                 {MOST_RECORDERS} recordings at most, and first those that root has begun meanwhile"
            ),
            false => {
                format!("programs that start are recorded again, from about {seconds} s after the begin on")
            }
        });
    }

    /// Reports programs that were found filtered, and looks again if it is time for that.
    pub(super) fn look_for_left_out(&mut self) {
        let Some(left_out) = &mut self.watches.left_out else { return };
        let found = left_out.look(self.entrance.path());
        self.report_left_out(&found);
    }

    /// Looks for them a last time.
    pub(super) fn find_left_out(&mut self) {
        let Some(left_out) = &mut self.watches.left_out else { return };
        let found = left_out.look_last(self.entrance.path());
        self.report_left_out(&found);
    }

    fn report_left_out(&mut self, found: &[Pid]) {
        for pid in found {
            let name = Program::of(*pid).name;
            self.join.note(format!(
                "process {pid} ({name}) is not recorded: it was filtered by seccomp when it started"
            ));
        }
    }
}
