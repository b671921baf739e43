//! Changes of a running recording: event rules, major classes, pauses. A change is sent to every program that
//! it concerns, and answered when all of them have confirmed it, or [`PATIENCE`] is over.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use tracewing_abi::message::MAX_MESSAGE;
use tracewing_abi::message::control::{Answer, AnswerWriter, Control, Effect, Item};
use tracewing_abi::wire::Input;
use tracewing_consumer::description::ChangeDescription;
use tracewing_rules::{Majors, Rule, TooManyRules};
use tracewing_units::Pid;

use super::Recorder;
use crate::changes::{NotChanged, PATIENCE, Waiting};
use crate::client::Client;
use crate::rules::{Fit, is_own, note_on_numbers};

/// Changes that are described one by one.
const MOST_CHANGES: usize = 10_000;
/// Lines of a kind in an answer.
const MOST_LINES: usize = 64;

impl Recorder<'_> {
    /// Connection `asker` wants what the message's first `len` bytes say.
    pub(crate) fn control(&mut self, asker: u64, len: usize) {
        let message = self.connections.message[..len].to_vec();
        match self.change(asker, &message) {
            Ok(waiting) => self.changes.waiting.push(waiting),
            Err(why) => self.reply(asker, &Answer::Refused(&why.to_string()), &[]),
        }
    }

    fn change(&mut self, asker: u64, message: &[u8]) -> Result<Waiting, NotChanged> {
        let mut waiting = Waiting {
            asker,
            until: Instant::now() + PATIENCE,
            concerned: BTreeSet::new(),
            notes: Vec::new(),
            failures: Vec::new(),
            shows: false,
        };
        let request = Control::decode(message)?;
        self.leave_filtered_alone();
        match request {
            Control::Show => waiting.shows = true,
            Control::Rule(rule) => {
                let mut input = Input::new(rule);
                let rule = Rule::decode_from(&mut input)?;
                if !input.bytes.is_empty() {
                    return Err(NotChanged::Surplus);
                }
                self.add_rule(rule, &mut waiting)?;
            }
            Control::Majors { on, majors } => {
                let word = if on { self.changes.majors | majors } else { self.changes.majors & !majors };
                let what = if on { "enable" } else { "disable" };
                self.changes.majors = word;
                self.mask_changed(format!("{what} --major {}", Majors(majors)));
            }
            Control::Pause | Control::Resume if !self.options.records_programs() => {
                return Err(NotChanged::NoPrograms);
            }
            Control::Pause => {
                self.changes.is_paused = true;
                self.mask_changed("pause".to_owned());
            }
            Control::Resume => {
                self.changes.is_paused = false;
                self.mask_changed("resume".to_owned());
            }
            Control::Invite(path) => self.connections.invite(Path::new(OsStr::from_bytes(path)))?,
        }
        Ok(waiting)
    }

    fn mask_changed(&mut self, what: String) {
        self.join.regions.set_majors(self.changes.mask());
        self.describe_change(what);
    }

    fn describe_change(&mut self, what: String) {
        let changes = &mut self.join.description.changes;
        if changes.len() < MOST_CHANGES {
            changes.push(ChangeDescription { time: self.join.clock.now(), what });
        }
    }

    fn add_rule(&mut self, rule: Rule, waiting: &mut Waiting) -> Result<(), TooManyRules> {
        let fit = Fit::of(&rule, &self.join.classes);
        waiting.notes.extend(fit.notes(&rule));
        self.join.change_rules(rule.clone())?;
        self.describe_change(rule.to_string());
        for (number, client) in &mut self.connections.clients {
            let Some(member) = client.member_mut() else { continue };
            let note = note_on_numbers(&rule, &member.program);
            waiting.notes.extend(note.filter(|note| !waiting.notes.contains(note)));
            let process = member.program.process();
            let concerns = |id: &&u16| {
                let class = self.join.classes.class(**id);
                fit.matching.contains(*id)
                    && (rule.processes.is_empty()
                        || class.is_some_and(|class| rule.matches(&class, &process)))
            };
            let ids: Vec<u16> = member.classes.keys().filter(concerns).copied().collect();
            member.unconfirmed.extend(ids);
            if !member.is_settled() {
                waiting.concerned.insert(*number);
            }
        }
        waiting.concerned.clone().into_iter().for_each(|number| self.send(number));
        Ok(())
    }

    /// Answers connections whose changes are in force, or that have waited long enough.
    pub(crate) fn settle(&mut self) {
        let now = Instant::now();
        let mut waiting = std::mem::take(&mut self.changes.waiting);
        waiting.retain_mut(|one| {
            one.concerned.retain(|number| self.await_member(*number, &mut one.failures));
            let is_over = one.concerned.is_empty() || now >= one.until;
            if is_over {
                self.report(one);
            }
            !is_over
        });
        self.changes.waiting.append(&mut waiting);
    }

    /// Whether the program of a connection has yet to confirm a change. Once it has reported that it could
    /// not make the change, that moves to `failures`.
    fn await_member(&mut self, number: u64, failures: &mut Vec<String>) -> bool {
        let client = self.connections.clients.get_mut(&number);
        let Some(member) = client.and_then(Client::member_mut) else { return false };
        let is_unsettled = !member.is_settled();
        if let Some((sites, why)) = member.failure.take_if(|_| !is_unsettled) {
            let program = &member.program;
            let noun = if sites == 1 { "site" } else { "sites" };
            failures.push(format!(
                "process {} ({}): {sites} {noun} could not be switched: {why}",
                program.pid, program.name
            ));
        }
        is_unsettled
    }

    /// Says what a change has led to.
    fn report(&mut self, waiting: &Waiting) {
        let (mut pids, mut on) = (HashSet::new(), HashSet::new());
        for (_, member) in self.connections.members() {
            pids.insert(member.program.pid);
            on.extend(member.classes.iter().filter(|(_, is_on)| **is_on).map(|(id, _)| *id));
        }
        let classes = &self.join.classes;
        on.retain(|id| classes.class(*id).is_some_and(|class| !is_own(&class)));
        let unanswered: Vec<(Pid, String)> = waiting
            .concerned
            .iter()
            .filter_map(|number| self.connections.clients.get(number)?.member())
            .map(|member| member.program.identity())
            .collect();
        let unreachable: Vec<_> = self.connections.unreachable().map(|program| program.identity()).collect();
        let effect = Effect {
            programs: pids.len() as u32,
            classes: on.len() as u32,
            majors: self.changes.majors,
            is_paused: self.changes.is_paused,
            unanswered: unanswered.len() as u32,
            unreachable: unreachable.len() as u32,
        };
        let rules: Vec<String> = if waiting.shows { self.join.rules.texts() } else { Vec::new() };
        let mut items: Vec<Item<'_>> = Vec::new();
        let few = |list| <[(Pid, String)]>::iter(list).take(MOST_LINES);
        items.extend(few(&unanswered).map(|(pid, name)| Item::Unanswered(pid.as_unsigned(), name)));
        items.extend(few(&unreachable).map(|(pid, name)| Item::Unreachable(pid.as_unsigned(), name)));
        items.extend(waiting.failures.iter().take(MOST_LINES).map(|failure| Item::Failure(failure)));
        items.extend(waiting.notes.iter().take(MOST_LINES).map(|note| Item::Note(note)));
        items.extend(rules.iter().map(|rule| Item::Rule(rule)));
        self.reply(waiting.asker, &Answer::Changed(effect), &items);
    }

    fn reply(&mut self, asker: u64, answer: &Answer<'_>, items: &[Item<'_>]) {
        self.stop_listening(asker);
        let Some(client) = self.connections.remove(asker) else { return };
        let mut message = vec![0; MAX_MESSAGE];
        if let Ok(mut writer) = AnswerWriter::new(&mut message, answer) {
            // What does not fit is counted in the answer's first part.
            let _ = items.iter().try_for_each(|item| writer.push(*item));
            let len = writer.finish();
            client.answer(&message[..len]);
        }
    }
}
