//! Rotations: closes the present archive and begins the next one, and completes those that are closed.
//!
//! The next archive's folders are made first, with their metadata: if that fails, nothing has changed, and
//! the recording continues where it was. Then the files of all sources are closed, one source after the
//! other. No program takes part in that, or waits for it.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tracewing_abi::message::snapshot::{LARGEST_ANSWER, Taken};
use tracewing_consumer::description::{ArchiveDescription, ArchiveTotals, Description, State};
use tracewing_consumer::folder::Folder;
use tracewing_consumer::identity::random_uuid;
use tracewing_consumer::trace::NextTrace;
use tracewing_profile::{Rotated, Summary as ProfileSummary};
use tracewing_rules::Majors;
use tracewing_units::{Cycles, Pid};

use super::Recorder;
use crate::archive_names::{FOLDER, name};
use crate::archives::{Archives, Asked, Closing, Current, NotRotated, Reason};
use crate::client::Client;
use crate::course::Stop;
use crate::kernel::KernelSummary;
use crate::on_archive::OnArchive;
use crate::outcome::CommandTotals;
use crate::threads::{self, Threads};

/// Time between two rotations by themselves after one has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// Time between two looks at the command of `--on-archive` after the recording.
const COMMAND_LOOK: Duration = Duration::from_millis(20);

impl Recorder<'_> {
    /// The process of this connection waits for a rotation, or until the present archive is removed.
    pub(super) fn rotation_asked_for(&mut self, number: u64, what: Asked) {
        self.stop_listening(number);
        let Some(client) = self.connections.remove(number) else { return };
        let asked = match &mut self.archives {
            None if what == Asked::Clear => Err((client, NotRotated::NotCleared)),
            None => Err((client, NotRotated::FlightRecorder)),
            Some(archives) => archives.ask(what, client),
        };
        if let Err((client, why)) = asked {
            refuse(&client, &why);
        }
    }

    /// Completes the archive that is closed, if all of it is written, and rotates if there is a reason.
    pub(super) fn look_at_archives(&mut self) {
        if self.archives.as_ref().and_then(|it| it.closing.as_ref()).is_some_and(|it| it.archive.is_settled())
        {
            self.complete_archive();
        }
        let bytes = self.written();
        self.look_at_command();
        self.remove_oldest(bytes);
        let due = self.archives.as_ref().and_then(|archives| archives.due(Instant::now(), bytes));
        let Some(reason) = due.filter(|_| self.course.stop != Stop::CannotWrite) else { return };
        if let Err(why) = self.rotate(reason) {
            self.join.note(format!("no rotation ({reason}): {why}"));
            let Some(archives) = &mut self.archives else { return };
            archives.take_askers(reason).iter().for_each(|client| refuse(client, &why));
            archives.not_before = Some(Instant::now() + AFTER_FAILURE);
        }
    }

    /// Bytes of the present archive.
    fn written(&self) -> u64 {
        let (_, _, of_samples) = self.drains.profile.progress();
        self.join.regions.given() + self.drains.kernel.progress().bytes + of_samples
    }

    fn look_at_command(&mut self) {
        let command = self.archives.as_mut().and_then(|archives| archives.on_archive.as_mut());
        command.map(OnArchive::look).into_iter().flatten().for_each(|line| self.join.note(line));
    }

    /// Removes old archives if there are too many bytes in all, of which the present one has so many.
    fn remove_oldest(&mut self, bytes: u64) {
        let Some(archives) = &mut self.archives else { return };
        match archives.make_room(Some(bytes)) {
            Ok(false) => {}
            Ok(true) => self.describe_archives(),
            Err(error) => self.join.note(format!("an old archive cannot be removed: {error}")),
        }
    }

    /// After the recording: waits for the command of `--on-archive`, until a signal comes. Gives how often it
    /// was run.
    pub(super) fn finish_commands(&mut self) -> Option<CommandTotals> {
        let asked = self.course.asked;
        let mut is_said = false;
        loop {
            self.look_at_command();
            let command = self.archives.as_mut()?.on_archive.as_mut()?;
            let Some((number, _)) = command.working_on() else { break };
            if self.course.asked != asked {
                let line = command.skip_all();
                self.join.note(line);
                break;
            }
            if !std::mem::replace(&mut is_said, true) {
                self.observer.note(&format!(
                    "the recording is over; waiting for the command of --on-archive (archive {number}); Ctrl-C ends the wait"
                ));
            }
            self.wait(COMMAND_LOOK);
        }
        self.show_notes();
        Some(self.archives.as_ref()?.on_archive.as_ref()?.totals)
    }

    /// Closes the present archive and begins the next one.
    ///
    /// # Errors
    /// The next one's folder cannot be made; then the recording continues in the present one.
    fn rotate(&mut self, reason: Reason) -> Result<(), NotRotated> {
        let cut = self.join.clock.now();
        self.move_first()?;
        let Some(archives) = &mut self.archives else { return Err(NotRotated::FlightRecorder) };
        let Some(parent) = archives.parent.clone() else { return Ok(()) };
        let number = archives.current.number + 1;
        let name = name(self.join.clock.real_time(&self.join.description.clock.begin, cut), number);
        let folder = Folder::within(&parent, &name)?;
        let made = self.rotate_into(&folder, &name, (number, cut), reason);
        made.inspect_err(|_| drop(parent.remove_all(&name)))
    }

    /// Before the first rotation: moves what is written into an archive's folder.
    fn move_first(&mut self) -> Result<(), NotRotated> {
        let Some(archives) = &mut self.archives else { return Err(NotRotated::FlightRecorder) };
        if archives.current.name.is_some() {
            return Ok(());
        }
        let dir = archives.root.dir();
        let parent = match &archives.parent {
            Some(parent) => parent.clone(),
            None => dir.make(FOLDER).map_err(tracewing_consumer::Error::folder(&dir.path().join(FOLDER)))?,
        };
        archives.parent = Some(parent.clone());
        let begin = self.join.description.clock.begin;
        let name = name(self.join.clock.real_time(&begin, archives.current.begin), 1);
        let description = Description {
            archive: Some(ArchiveDescription { number: 1, begin: archives.current.begin, reason: None }),
            ..self.join.description.clone()
        };
        archives.current.folder = archives.root.moved(&parent, &name, &description)?;
        archives.current.name = Some(name);
        archives.current.rules = (description.event_rules, description.majors);
        Ok(())
    }

    /// Continues in this folder of the next archive.
    fn rotate_into(
        &mut self,
        folder: &Folder,
        name: &str,
        (number, cut): (u64, Cycles),
        reason: Reason,
    ) -> Result<(), NotRotated> {
        let uuid = || random_uuid().map_err(NotRotated::Uuid);
        let kernel = self.drains.kernel.prepare(folder.dir(), uuid()?)?;
        let profile = self.drains.profile.prepare(folder.dir(), uuid()?)?;
        let uuid = uuid()?;
        let next = NextTrace::new(folder.user(), uuid)?;
        let id = match self.drains.kernel.is_recorded() {
            true => None,
            false => threads::class(&mut self.join.classes),
        };
        self.join.classes.write_into(folder.user(), uuid)?;
        let current = self.next_archive(folder.clone(), name, number, cut);
        folder.describe(&self.description_of(&current, None))?;

        // From here on nothing is undone.
        let so_far = self.drains.totals(self.join.regions.totals());
        let archive = match self.join.regions.rotate(next) {
            Ok(archive) => archive,
            Err(error) => {
                self.cannot_write(&error);
                return Err(error.into());
            }
        };
        self.join.classes.continue_in(folder.user(), uuid);
        let (kernel, profile, is_cut_short) = self.continue_sources(kernel, profile, id, cut);
        self.ask_again();

        let state_bytes = self.written();
        let Some(archives) = &mut self.archives else { return Ok(()) };
        let ended = std::mem::replace(&mut archives.current, Current { state_bytes, ..current });
        let askers = archives.take_askers(reason);
        let Some(name) = ended.name.clone() else { return Ok(()) };
        let totals = totals_of(&ended, &name, reason, cut);
        let mut description = self.description_of(&ended, Some(reason));
        description.clock.stopped = Some(cut);
        description.clock.end = Some(self.join.clock.calibrate());
        if let Some(archives) = &mut self.archives {
            let folder = ended.folder;
            archives.closing = Some(Closing {
                folder,
                name,
                archive,
                kernel,
                profile,
                is_cut_short,
                description,
                totals,
                so_far,
                askers,
                is_cleared: matches!(reason, Reason::Asked(Asked::Clear, _)),
            });
        }
        Ok(())
    }

    /// Continues the sources other than programs in the next archive. Gives what they amount to in the
    /// present one, and whether some of it could not be written.
    fn continue_sources(
        &mut self,
        kernel: Option<tracewing_kernel::NextTrace>,
        profile: Option<tracewing_profile::NextTrace>,
        threads: Option<u16>,
        cut: Cycles,
    ) -> (KernelSummary, ProfileSummary, bool) {
        let kernel = self.drains.kernel.rotate(kernel, &mut |line| self.join.note(line));
        let Rotated { ended: mut profile, unwritten } = self.drains.profile.rotate(profile);
        let of_samples = profile.unwritten.take().map(tracewing_consumer::Error::from);
        let written = threads.map_or(Ok(()), |id| self.write_threads(id, cut));
        let written = written.and(self.join.regions.write_contexts(cut));
        let written = written.and(unwritten.map_or(Ok(()), |error| Err(error.into())));
        // The rest is written as far as it can be.
        let error = written.as_ref().err().or(kernel.error.as_ref()).or(of_samples.as_ref());
        error.into_iter().for_each(|error| self.cannot_write(error));
        let is_cut_short = kernel.error.is_some() || of_samples.is_some();
        (kernel, profile, is_cut_short)
    }

    /// Names the threads of programs at the beginning of an archive.
    fn write_threads(&mut self, id: u16, at: Cycles) -> Result<(), tracewing_consumer::Error> {
        let mut threads = Threads::new();
        threads.look_now(self.connections.members().map(|(_, member)| member.program.pid));
        self.join.regions.write_state(threads::STREAM, id, at, threads.events())
    }

    fn next_archive(&self, folder: Folder, name: &str, number: u64, begin: Cycles) -> Current {
        let Description { notes, changes, processes, .. } = &self.join.description;
        let majors = Majors(self.changes.majors);
        Current {
            folder,
            name: Some(name.to_owned()),
            number,
            begin,
            state_bytes: 0,
            begun: Instant::now(),
            before: [notes.len(), changes.len(), processes.len()],
            alive: self.connections.members().map(|(_, member)| member.program.pid).collect(),
            rules: (self.join.rules.texts(), (majors != Majors::ALL).then(|| majors.to_string())),
        }
    }

    /// The recording's description, with the part of its lists that concerns an archive.
    fn description_of(&mut self, archive: &Current, reason: Option<Reason>) -> Description {
        let all = &mut self.join.description;
        // Long lists are not copied as a whole.
        let (notes, changes, processes) = (
            std::mem::take(&mut all.notes),
            std::mem::take(&mut all.changes),
            std::mem::take(&mut all.processes),
        );
        let [first_note, first_change, first_process] = archive.before;
        let lived = |pid: Pid| archive.alive.contains(&pid);
        let before = processes.get(..first_process).unwrap_or_default().iter();
        let here = processes.get(first_process..).unwrap_or_default();
        let (event_rules, majors) = archive.rules.clone();
        let described = Description {
            state: State::Recording,
            notes: notes.get(first_note..).unwrap_or_default().to_vec(),
            changes: changes.get(first_change..).unwrap_or_default().to_vec(),
            processes: before.filter(|process| lived(process.pid)).chain(here).cloned().collect(),
            event_rules,
            majors,
            forgotten_processes: 0,
            archives: Vec::new(),
            archive_totals: None,
            archive: Some(ArchiveDescription {
                number: archive.number,
                begin: archive.begin,
                reason: reason.map(|reason| reason.to_string()),
            }),
            ..all.clone()
        };
        (all.notes, all.changes, all.processes) = (notes, changes, processes);
        described
    }

    /// Completes the archive that is closed: waits for the disk if packets are still in the queue.
    pub(super) fn complete_archive(&mut self) {
        let Some(closing) = self.archives.as_mut().and_then(|archives| archives.closing.take()) else {
            return;
        };
        let Closing {
            folder,
            name,
            archive,
            kernel,
            profile,
            is_cut_short,
            mut description,
            mut totals,
            askers,
            is_cleared,
            ..
        } = closing;
        let user = archive.finish(&self.join.clock);
        let is_written = user.error.is_none() && !is_cut_short;
        user.error.iter().for_each(|error| self.cannot_write(error));
        description.state = if is_written { State::Complete } else { State::CutShort };
        description.user_streams = user.streams;
        description.kernel_streams = kernel.streams;
        description.losses = user.losses;
        description.losses.extend(kernel.losses);
        description.profile_streams = profile.streams;
        description.losses.extend(profile.losses);
        description.overwritten = user.overwritten;
        description.overwritten.extend(kernel.overwritten);
        if let Err(error) = folder.describe(&description) {
            self.join.note(error.to_string());
        }
        let Some(archives) = &mut self.archives else { return };
        sum(&mut totals, &description, folder.dir().size());
        let mut path = archives.path(&name);
        let mut refusal = None;
        if is_cleared {
            refusal = archives.add_cleared(&description, totals).err();
            path = archives.current.name.as_deref().map_or(path, |name| archives.path(name));
        } else {
            archives.add(&description, totals);
        }
        archives.parent.iter().for_each(|parent| parent.release(&name));
        self.forget_listed();
        self.describe_archives();
        let refusal = refusal.map(|error| format!("what was recorded is not removed: {error}"));
        let folder = path.to_string_lossy();
        let answer = encoded(&refusal.as_deref().map_or(Taken::Folder(&folder), Taken::Failed));
        askers.iter().for_each(|client| client.answer(&answer));
    }

    /// Forgets the oldest programs and notes of the archives that are complete.
    fn forget_listed(&mut self) {
        let Some(archives) = &mut self.archives else { return };
        let [notes, changes, programs] = archives.current.before;
        let mut alive: HashSet<Pid> = archives.current.alive.iter().copied().collect();
        alive.extend(self.connections.members().map(|(_, member)| member.program.pid));
        // The user has not seen later ones.
        let notes_seen = notes.min(self.shown_notes);
        let [of_notes, of_programs] = self.join.forget([notes_seen, programs], &alive);
        archives.current.before = [notes - of_notes, changes, programs - of_programs];
        self.shown_notes -= of_notes;
    }

    /// Lists the complete archives in the recording's own description.
    fn describe_archives(&mut self) {
        let Some(archives) = &self.archives else { return };
        self.join.description.archives.clone_from(&archives.complete);
        self.join.description.archive_totals = Some(archives.all);
        self.join.description.forgotten_processes = self.join.lists.forgotten;
        if let Err(error) = archives.root.describe(&self.join.description)
            && !self.watches.places.are_lost()
        {
            self.join.note(error.to_string());
        }
    }

    /// At the end of the recording: completes the archive that is closed, and refuses the requests for
    /// the next one.
    pub(super) fn end_rotations(&mut self) {
        self.complete_archive();
        if let Some(archives) = &mut self.archives {
            archives.asked.drain(..).for_each(|(_, client)| refuse(&client, &NotRotated::Ending));
        }
    }

    /// At the end of the recording, whose description has the totals of the last archive: completes that, and
    /// puts those of the whole in their place.
    pub(super) fn complete_last(&mut self) {
        let several = self.archives.as_ref().filter(|archives| archives.are_several());
        let Some(ended) = several.map(|archives| archives.current.clone()) else { return };
        let Some(name) = ended.name.clone() else { return };
        let whole = &self.join.description;
        let (state, stopped) = (whole.state, whole.clock.stopped.unwrap_or(ended.begin));
        let description = Description { state, ..self.description_of(&ended, Some(Reason::End)) };
        if let Err(error) = ended.folder.describe(&description) {
            self.join.note(error.to_string());
        }
        let mut totals = totals_of(&ended, &name, Reason::End, stopped);
        sum(&mut totals, &description, ended.folder.dir().size());
        let Some(archives) = &mut self.archives else { return };
        archives.add(&description, totals);
        archives.parent.iter().for_each(|parent| parent.release(&name));
        let whole = &mut self.join.description;
        [whole.user_streams, whole.kernel_streams, whole.profile_streams] = archives.whole.streams();
        whole.losses.clone_from(&archives.whole.ranges.losses);
        whole.overwritten.clone_from(&archives.whole.ranges.overwritten);
        if let Err(error) = archives.make_room(None) {
            self.join.note(format!("an old archive cannot be removed: {error}"));
        }
        self.describe_archives();
        self.archives.iter_mut().for_each(Archives::finish_removing);
    }
}

/// An archive as the whole recording lists it, without numbers.
fn totals_of(archive: &Current, name: &str, reason: Reason, end: Cycles) -> ArchiveTotals {
    ArchiveTotals {
        number: archive.number,
        folder: format!("{FOLDER}/{name}"),
        reason: reason.to_string(),
        begin: archive.begin,
        end,
        events: 0,
        state_events: 0,
        lost: 0,
        is_lost_unknown: false,
        bytes: 0,
        is_removed: false,
    }
}

/// Adds what the streams of an archive amount to.
fn sum(totals: &mut ArchiveTotals, archive: &Description, bytes: u64) {
    let Description { user_streams, kernel_streams, profile_streams, .. } = archive;
    for stream in user_streams.iter().chain(kernel_streams).chain(profile_streams) {
        totals.events += stream.events;
        totals.state_events += stream.state_events;
        totals.lost = totals.lost.saturating_add(stream.lost);
        totals.is_lost_unknown |= stream.loses_more();
    }
    totals.bytes = bytes;
}

fn refuse(client: &Client, why: &NotRotated) {
    client.answer(&encoded(&Taken::Failed(&why.to_string())));
}

fn encoded(answer: &Taken<'_>) -> Vec<u8> {
    let mut message = vec![0; LARGEST_ANSWER];
    let len = answer.encode(&mut message).unwrap_or(0);
    message.truncate(len);
    message
}
