//! Divides a recorder of root, before it has threads and before it reads anything that a program has written:
//! starts the processes that do for it what needs rights, and gives up its own.

use super::output::Output;
use super::{Observer, Subject};

use tracewing_consumer::survival::BufferFolder;

use crate::confine::{confine, is_possible, needed};
use crate::helpers::Helpers;
use crate::options::Options;

/// The processes; none where the recorder keeps its rights: where it is not root, runs a command, which gets
/// the rights that it has, or may not give them up ([`Options::is_confined`]).
pub(super) fn divide(
    options: &Options,
    subject: &Subject,
    folders: (&Output, Option<&BufferFolder>),
    observer: &mut dyn Observer,
) -> Helpers {
    if !options.is_confined || matches!(subject, Subject::Command(_)) || !is_possible() {
        return Helpers::default();
    }
    match Helpers::start(options) {
        Ok(helpers) => {
            let (output, files) = folders;
            let attaches = matches!(subject, Subject::Processes { .. } | Subject::Programs);
            let folders = [Some(output.dir()), files.map(BufferFolder::dir)];
            confine(needed(folders.into_iter().flatten().map(|dir| dir.path()), attaches));
            helpers
        }
        Err(error) => {
            observer.note(&format!(
                "the recorder keeps all rights of root: no process to share them with ({error})"
            ));
            Helpers::default()
        }
    }
}
