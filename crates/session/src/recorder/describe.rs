//! Classes that programs make while they run. Their first events in the buffers contain the description of
//! the class, so recording them needs no request. With an id, later events take the fast path. To give ids,
//! the recorder requests that the agent's thread of the program describes these classes like all others.

use std::time::{Duration, Instant};

use super::Recorder;
use crate::seccomp::is_filtered;

/// Time between two questions to a program.
const INTERVAL: Duration = Duration::from_millis(20);

impl Recorder<'_> {
    /// Has processes get buffers for the children that they fork next.
    pub(crate) fn ask_parents(&mut self) {
        let parents = std::mem::take(&mut self.join.parents);
        for number in parents.into_iter().flat_map(|pid| self.connections.of_process(pid)) {
            let Some(client) = self.connections.clients.get(&number) else { continue };
            if client.member().is_some_and(|member| !is_filtered(member.program.pid, client.filters())) {
                client.ask_to_prepare();
            }
        }
    }

    /// Takes over the classes that were found in buffers, and asks the programs that write their events.
    pub(crate) fn describe_found(&mut self) {
        self.join.resolve_firsts();
        if let Some(error) = self.join.error.take() {
            self.cannot_write(&error);
        }
        let mut makers = std::mem::take(&mut self.join.makers);
        if self.join.regions.take_news() {
            // Which program has written the word is not known.
            makers.extend(self.connections.members().map(|(_, member)| member.program.pid));
        }
        let now = Instant::now();
        let numbers = makers.into_iter().flat_map(|pid| self.connections.of_process(pid));
        for number in numbers.collect::<Vec<_>>() {
            let Some(client) = self.connections.clients.get_mut(&number) else { continue };
            let Some(member) = client.member_mut() else { continue };
            if member.asked.is_some_and(|asked| now.duration_since(asked) < INTERVAL) {
                self.join.makers.insert(member.program.pid); // later
                continue;
            }
            member.asked = Some(now);
            // One that is filtered gets no ids: its agent's thread is left alone.
            if !is_filtered(member.program.pid, client.filters()) {
                client.ask_for_classes();
            }
        }
    }
}
