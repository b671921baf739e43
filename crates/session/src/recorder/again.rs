//! What programs report only once: at the beginning of an archive they are asked for it again, so that the
//! archive can be read without those before it.
//!
//! These are user threads, which have their names and places in an event of their own. A grant that repeats
//! what is in force anyway is a change to the program: each user thread is reported again when it next runs
//! (`tracewing::user_thread::existed`). No program waits for it, and one that is filtered is not asked.

use tracewing_vocabulary::user_thread::Existed;

use super::Recorder;

impl Recorder<'_> {
    /// Has the programs report their user threads again.
    pub(super) fn ask_for_user_threads(&mut self) {
        let described = self.join.classes.described();
        let ids: Vec<u16> =
            described.filter(|(_, class)| class.name == Existed::NAME).map(|(id, _)| id).collect();
        if ids.is_empty() {
            return;
        }
        self.leave_filtered_alone();
        let mut concerned = Vec::new();
        for (number, client) in &mut self.connections.clients {
            let Some(member) = client.member_mut() else { continue };
            let on = ids.iter().copied().filter(|id| member.classes.get(id) == Some(&true));
            let before = member.unconfirmed.len();
            member.unconfirmed.extend(on);
            if member.unconfirmed.len() > before {
                concerned.push(*number);
            }
        }
        concerned.into_iter().for_each(|number| self.send(number));
    }
}
