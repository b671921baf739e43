//! What programs report only once: at the beginning of an archive they are asked for it again, so that the
//! archive can be read without those before it.
//!
//! These are names and places of user threads, each of which is reported when it next runs
//! (`tracewing::user_thread::existed`), and the call chains and places of locks. No program waits for it, and
//! one that is filtered is not asked.

use tracewing_vocabulary::{lock, user_thread};

use super::Recorder;
use crate::client::Member;

impl Recorder<'_> {
    /// Has the programs with such events report them again.
    pub(super) fn ask_again(&mut self) {
        let is_once = |name: &str| name.starts_with(user_thread::START) || name.starts_with(lock::START);
        let described = self.join.classes.described();
        let ids: Vec<u16> = described.filter(|(_, class)| is_once(class.name)).map(|(id, _)| id).collect();
        if ids.is_empty() {
            return;
        }
        self.leave_filtered_alone();
        for client in self.connections.clients.values() {
            let has_any = |member: &Member| ids.iter().any(|id| member.classes.get(id) == Some(&true));
            if client.member().is_some_and(has_any) {
                client.ask_again();
            }
        }
    }
}
