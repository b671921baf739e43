//! Handles connections: when the descriptor is ready, when the program has joined, and when the connection
//! ends.

use std::time::Instant;

use tracewing_abi::message::Joining;
use tracewing_abi::message::snapshot::Question;

use super::Recorder;
use crate::archives::Asked;
use crate::client::{Fate, Host, Member};
use crate::poll::Token;

impl Recorder<'_> {
    pub(crate) fn client_ready(&mut self, number: u64) {
        let Some(client) = self.connections.clients.get_mut(&number) else { return };
        let now = Instant::now();
        if client.is_heard() && !self.join.limits.may_speak(client.peer(), client.is_silent(), now) {
            self.poll.remove(&*client);
            return self.connections.rest(number);
        }
        let (is_new, peer) = (client.is_program() && client.is_silent(), client.peer());
        let fate = client.ready(&mut self.join, &mut self.connections.message, now);
        if is_new {
            self.join.limits.charge_join(peer, now.elapsed());
        }
        let has_joined = client.member().is_some();
        if client.is_silent() && matches!(fate, Fate::Stays) {
            return;
        }
        self.connections.silent.remove(&number);
        match fate {
            Fate::Stays => self.update_interest(number),
            Fate::Joins => self.joined(number),
            Fate::Ends => {
                if !has_joined {
                    self.connections.wasted.take(now);
                }
                self.disconnect(number);
            }
            Fate::Asks(Question::Rotate) => self.rotation_asked_for(number, Asked::Rotate),
            Fate::Asks(Question::Clear) => self.rotation_asked_for(number, Asked::Clear),
            Fate::Asks(question) => {
                let pid = client.pid();
                let answer = self.answer(question, pid);
                self.stop_listening(number);
                if let Some(client) = self.connections.remove(number) {
                    client.answer(&answer);
                }
            }
            Fate::Controls(len) => self.control(number, len),
        }
        if let Some(error) = self.join.error.take() {
            self.cannot_write(&error);
        }
    }

    /// Listens again to those that had said too much.
    pub(crate) fn end_rest(&mut self) {
        for number in self.connections.take_resting() {
            let Some(client) = self.connections.clients.get(&number) else { continue };
            if self.poll.add(client, Token::Client(number), client.interest).is_err() {
                self.disconnect(number);
            }
        }
    }

    fn joined(&mut self, number: u64) {
        let (rules_differ, classes) = (self.join.rules.differ(), &self.join.classes);
        let all = || classes.described().map(|(id, _)| id).collect();
        if !self.connections.keep(number, rules_differ, all) {
            self.join.note(format!(
                "more than {} programs at once: changed event rules do not reach some of them (the limit on \
                 open files, ulimit -n, allows no more)",
                self.connections.most()
            ));
        }
        self.send(number);
    }

    /// Sends a program the messages that are due.
    pub(crate) fn send(&mut self, number: u64) {
        let Some(client) = self.connections.clients.get_mut(&number) else { return };
        match client.send(&mut self.join) {
            Some(()) => self.update_interest(number),
            None => self.disconnect(number),
        }
    }

    fn update_interest(&mut self, number: u64) {
        let is_resting = self.connections.is_resting(number);
        let Some(client) = self.connections.clients.get_mut(&number) else { return };
        let interest = client.interest();
        if interest != client.interest {
            client.interest = interest;
            if !is_resting && self.poll.modify(&*client, Token::Client(number), interest).is_err() {
                self.disconnect(number);
            }
        }
    }

    pub(crate) fn disconnect_overdue(&mut self, now: Instant) {
        let clients = self.connections.clients.iter();
        let overdue: Vec<u64> =
            clients.filter(|(_, client)| client.is_overdue(now)).map(|(number, _)| *number).collect();
        for number in overdue {
            // It may have waited for the recorder.
            self.client_ready(number);
            if self.connections.clients.get(&number).is_some_and(|client| client.is_overdue(now)) {
                self.disconnect(number);
            }
        }
    }

    /// Closing would only take a connection out of the epoll set that no other process has a copy of.
    pub(crate) fn stop_listening(&self, number: u64) {
        self.connections.clients.get(&number).into_iter().for_each(|client| self.poll.remove(client));
    }

    pub(crate) fn disconnect(&mut self, number: u64) {
        self.stop_listening(number);
        let Some(client) = self.connections.remove(number) else { return };
        self.join.regions.left(client.pid());
        let Some(member) = client.member() else {
            return client.gave_up(&mut self.join, &mut self.connections.message);
        };
        let key = (member.program.pid, member.copy);
        let main = self.connections.main(key);
        match (member.joining, main) {
            (Joining::More, Some(main)) => self.got_more(number, main, member),
            (Joining::More, None) | (Joining::Parent, _) => {}
            // There is another connection in its place.
            (_, Some(main)) if main != number => {}
            _ => {
                self.connections.forget_main(key);
                if let Some(since) = member.unknown_since {
                    self.join.missed(client.peer(), &member.program, since, None);
                } else if member.has_no_classes() && member.program.is_alive() {
                    self.join.note_of(
                        client.peer(),
                        "it takes part in as many recordings as it can, or cannot map the buffers",
                    );
                }
                self.connections.leave(member);
            }
        }
    }

    /// Called when the connection `number`, over which a program has described more classes, has ended. The
    /// program has the rules of that time for them; later changes are sent over its main connection.
    fn got_more(&mut self, number: u64, main: u64, more: &Member) {
        let Some(client) = self.connections.clients.get_mut(&main) else { return };
        let Some(member) = client.member_mut() else { return };
        member.classes.extend(&more.classes);
        member.unconfirmed.extend(&more.unconfirmed);
        self.changes.hand_over(number, main);
        self.send(main);
    }
}
