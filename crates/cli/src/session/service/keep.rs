//! Keeps the sessions of a folder started, and takes over those whose files come and change.

use super::folder::{Content, Kept};
use crate::output::print_warning;
use crate::session::definition::{Definition, Start};
use crate::session::recorders;
use crate::session::store::Store;
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tracewing_files::Dir;

/// Least time from one start of a session to the next.
const PAUSE: Duration = Duration::from_secs(10);

/// The start of a session by this service.
pub struct Started {
    at: Instant,
    /// What its file has said when all of it was started; `None` if it ran when the service began.
    from: Option<Definition>,
}

/// Takes over sessions whose files were added or changed since. One whose file has a mistake now stays as it
/// was, since an editor may be writing it. A session whose file was removed records until a command stops it.
pub fn reread(store: &Store, folder: &Path, served: &mut Option<Dir>, sessions: &mut Vec<Kept>) {
    if served.is_none() {
        match store.serve(folder) {
            Ok(now) => *served = now,
            Err(error) => return print_warning(&format!("{error:#}")),
        }
    }
    let Content { sessions: mut now, left_out } = match read(folder) {
        Ok(now) => now,
        Err(error) => return print_warning(&format!("{error:#}")),
    };
    let is_kept = |file: &Definition| sessions.iter().any(|(_, kept)| kept == file);
    now.retain(|(_, file)| is_kept(file) || take(store, file, folder));
    for (path, kept) in sessions.drain(..) {
        if now.iter().any(|(_, file)| file.name == kept.name) {
            continue;
        }
        if left_out.iter().any(|(left_out, _)| *left_out == path) {
            now.push((path, kept));
        } else if let Err(error) = store.lock().and_then(|locked| locked.serve_no_more(&kept.name)) {
            print_warning(&format!("{}: {error:#}", kept.name));
        }
    }
    *sessions = now;
}

/// Takes a session over from its file, unless a command has made one of its name in another form.
pub fn take(store: &Store, file: &Definition, folder: &Path) -> bool {
    let name = &file.name;
    if store.is_made_otherwise(file) {
        print_warning(&format!(
            "{name} is left alone: there is a session of this name that is not the one of {}; `tracewing session destroy {name}` forgets it",
            folder.display()
        ));
        return false;
    }
    if let Err(error) = store.lock().and_then(|locked| locked.serve_from(name, folder)) {
        print_warning(&format!("{name}: {error:#}"));
    }
    true
}

/// Starts what is missing of the sessions, except of those that start on demand. What fails is tried again
/// later.
pub fn keep_started(
    store: &Store,
    folder: &Path,
    sessions: &[Kept],
    started: &mut BTreeMap<String, Started>,
) {
    for (_, file) in sessions.iter().filter(|(_, file)| file.start == Start::Always) {
        // A command can have made another one meanwhile.
        if store.is_made_otherwise(file) {
            continue;
        }
        let running = recorders::find(file).running;
        let last = started.get(&file.name);
        // While it runs, channels come and go; when the service starts it, it is as its file says.
        let is_of_file = last.is_some_and(|last| last.from.as_ref() == Some(file));
        let is_known = !running.is_empty() || is_of_file;
        let stored = if is_known { store.get(&file.name).ok() } else { None };
        let session = stored.as_ref().unwrap_or(file);
        let is_whole = recorders::missing(session, &running).next().is_none();
        if is_whole || last.is_some_and(|last| last.at.elapsed() < PAUSE) {
            continue;
        }
        let from = if is_known { last.and_then(|last| last.from.clone()) } else { Some(file.clone()) };
        started.insert(file.name.clone(), Started { at: Instant::now(), from });
        if let Err(error) = start(store, folder, session, is_known) {
            print_warning(&format!("{}: {error:#}", session.name));
        }
    }
}

/// Stops all, also if one of them cannot be stopped.
pub fn stop(store: &Store, sessions: &[Kept]) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    let own = sessions.iter().map(|(_, session)| session).filter(|session| !store.is_made_otherwise(session));
    for session in own.filter(|session| !recorders::find(session).is_empty()) {
        if let Err(error) = store.lock().and_then(|locked| recorders::stop(&locked, session)) {
            print_warning(&format!("{}: {error:#}", session.name));
            status = ExitCode::FAILURE;
        }
    }
    status
}

/// Starts what is missing of a session, and says why it is, if it was started before.
fn start(store: &Store, folder: &Path, session: &Definition, was_started: bool) -> Result<()> {
    let locked = store.lock()?;
    if was_started {
        for (called, ended) in recorders::find(session).ended(session) {
            print_warning(&format!("{called} has ended: {}; it is started again", ended.why));
        }
    }
    // Commands find it by its name.
    locked.replace(session)?;
    locked.serve_from(&session.name, folder)?;
    recorders::start(&locked, session).map(drop)
}

/// The sessions of a folder; those with mistakes are reported, and left out.
pub fn read(folder: &Path) -> Result<Content> {
    let content = Content::read(folder)?;
    content.left_out.iter().for_each(|(_, error)| print_warning(&format!("{error:#}")));
    Ok(content)
}
