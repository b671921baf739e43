//! Lets go of programs that have filters for system calls which the recorder has not.

use std::time::{Duration, Instant};

use super::Recorder;
use crate::client::Client;
use crate::seccomp::is_filtered;

/// Minimum time between two looks; at least 100 times as long as a look takes.
const INTERVAL: Duration = Duration::from_millis(250);

impl Recorder<'_> {
    /// Looks for filters, if it is time for that.
    pub(crate) fn look_for_filters(&mut self) {
        let begin = Instant::now();
        if begin >= self.watches.filters_due {
            self.leave_filtered_alone();
            self.watches.filters_due = begin + INTERVAL.max(100 * begin.elapsed());
        }
    }

    /// Lets go of programs that are filtered, before they are to do anything.
    pub(crate) fn leave_filtered_alone(&mut self) {
        let filters = |number| self.connections.clients.get(&number).map_or(0, Client::filters);
        let members = self.connections.members();
        let filtered = members.filter(|(number, member)| is_filtered(member.program.pid, filters(*number)));
        let filtered: Vec<u64> = filtered.map(|(number, _)| number).collect();
        for number in filtered {
            let Some(client) = self.connections.clients.get(&number) else { continue };
            client.leave_alone();
            if let Some((pid, name)) = client.member().map(|member| member.program.identity()) {
                self.join.note(format!(
                    "process {pid} ({name}) is filtered by seccomp and cannot be changed: it keeps its \
                     event rules"
                ));
            }
            self.disconnect(number);
        }
    }

    /// Bids all programs farewell: those that are not filtered leave the recording.
    pub(crate) fn bid_farewell(&mut self) {
        self.leave_filtered_alone();
        self.connections
            .clients
            .values()
            .filter(|client| client.member().is_some())
            .for_each(Client::dismiss);
    }
}
