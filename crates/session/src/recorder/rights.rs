//! Divides a recorder of root, before it has threads and before it reads anything that a program has written:
//! starts the processes that do for it what needs rights, and gives up its own.

use super::output::Output;
use super::{Observer, Subject};

use tracewing_consumer::survival::BufferFolder;
use tracewing_files::Dir;

use crate::attaches::Attaches;
use crate::confine::{confine, is_possible, needed};
use crate::fence;
use crate::helpers::Helpers;
use crate::listing::open_folder;
use crate::options::Options;
use crate::socket::Listener;

/// The processes; none where the recorder keeps its rights: where it is not root, runs a command, which gets
/// the rights that it has, or may not give them up ([`Options::is_confined`]).
pub(super) fn divide(
    options: &Options,
    subject: &Subject,
    (output, files, listener): (&Output, Option<&BufferFolder>, &Listener),
    observer: &mut dyn Observer,
) -> Helpers {
    if !options.is_confined || matches!(subject, Subject::Command(_)) || !is_possible() {
        return Helpers::default();
    }
    let attaches = matches!(subject, Subject::Processes { .. } | Subject::Programs);
    let by = if attaches { Attaches::start() } else { Attaches::default() };
    match Helpers::start(options) {
        Ok(helpers) => {
            let folders = [Some(output.dir()), files.map(BufferFolder::dir)];
            let folders: Vec<&Dir> = folders.into_iter().flatten().collect();
            let attaches_itself = attaches && by.is_here();
            confine(needed(folders.iter().map(|dir| dir.path()), attaches_itself));
            // No process can be debugged any more then.
            if !attaches_itself {
                let list = matches!(subject, Subject::Programs).then(open_folder).flatten();
                fence::close(&folders, listener.path(), list);
            }
            helpers.with_attaches(by)
        }
        Err(error) => {
            observer.note(&format!(
                "the recorder keeps all rights of root: no process to share them with ({error})"
            ));
            Helpers::default().with_attaches(by)
        }
    }
}
