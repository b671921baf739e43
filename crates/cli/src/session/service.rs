//! `tracewing service`: keeps the sessions of a folder started, in the foreground, for systemd and others
//! like it.
//!
//! It only starts and stops recorders. If it is killed, they continue, and the next service finds them by
//! their names; if a recorder is killed, it is started again.

use super::definition::Definition;
use super::recorders;
use super::store::Store;
use crate::defaults::distrust;
use crate::output::{print_warning, shown};
use crate::screen::{self, Form};
use anyhow::{Context, Result, anyhow};
use rustix::process::geteuid;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracewing_files::Dir;

const ROOTS: &str = "/etc/tracewing/sessions.d";
/// Time between two looks at signals, and at recorders.
const LOOK: Duration = Duration::from_millis(100);
const CHECK: Duration = Duration::from_secs(2);
/// Least time from one start of a session to the next.
const PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing session save web -o /etc/tracewing/sessions.d/web.toml
  tracewing service
      start the sessions of the folder, and keep them started until Ctrl-C or SIGTERM, which stops them

Files that are added to the folder are noticed. Not needed for sessions that `tracewing session start` starts. Under systemd, enable tracewing.service, for yourself or \
(as root) for the machine; it reports its state to systemd (sd_notify). If the service is killed, its sessions continue, and \
the next one takes them over.")]
pub struct Args {
    /// Folder of sessions as `tracewing session save` writes them [default: /etc/tracewing/sessions.d for
    /// root, otherwise ~/.config/tracewing/sessions]
    #[arg(long, value_name = "DIR")]
    sessions: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let stops = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        register(signal, Arc::clone(&stops)).context("cannot wait for signals")?;
    }
    let folder = args.sessions.clone().map_or_else(default_folder, Ok)?;
    let store = Store::open()?;
    let mut served = store.serve(&folder)?;
    let mut files = Files::of(&folder);
    let Content { mut sessions, .. } = read(&folder)?;
    sessions.retain(|(_, session)| take(&store, session, &folder));
    let mut started = BTreeMap::new();
    keep_started(&store, &folder, &sessions, &mut started);
    let line = format!("{} of {}", crate::output::count_of(sessions.len(), "session"), folder.display());
    writeln!(screen::stderr(Form::Text), "{}", shown(&line))?;
    notify(&[NotifyState::Ready, NotifyState::Status(&line)]);
    let mut checked = Instant::now();
    // Nothing else is published with it.
    while !stops.load(Ordering::Relaxed) {
        sleep(LOOK);
        if checked.elapsed() >= CHECK {
            let now = Files::of(&folder);
            if std::mem::replace(&mut files, now) != files {
                reread(&store, &folder, &mut served, &mut sessions);
            }
            keep_started(&store, &folder, &sessions, &mut started);
            checked = Instant::now();
        }
    }
    notify(&[NotifyState::Stopping]);
    Ok(stop(&store, &sessions))
}

/// A session that is kept started, with its file.
type Kept = (PathBuf, Definition);

/// The start of a session by this service.
struct Started {
    at: Instant,
    /// What its file has said when all of it was started; `None` if it ran when the service began.
    from: Option<Definition>,
}

/// Takes over sessions whose files were added or changed since. One whose file has a mistake now stays as it
/// was, since an editor may be writing it. A session whose file was removed records until a command stops it.
fn reread(store: &Store, folder: &Path, served: &mut Option<Dir>, sessions: &mut Vec<Kept>) {
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
        if left_out.contains(&path) {
            now.push((path, kept));
        } else if let Err(error) = store.lock().and_then(|locked| locked.serve_no_more(&kept.name)) {
            print_warning(&format!("{}: {error:#}", kept.name));
        }
    }
    *sessions = now;
}

/// The files of a folder, by which a change of them is noticed, also of their permissions and owners.
#[derive(PartialEq)]
struct Files(Vec<(PathBuf, Option<About>)>);

#[derive(PartialEq)]
struct About {
    inode: u64,
    len: u64,
    /// When it was changed in any way, in seconds and nanoseconds.
    changed: (i64, i64),
}

impl Files {
    fn of(folder: &Path) -> Self {
        let with_about = |path: PathBuf| {
            let about = path.metadata().ok().map(|data| About {
                inode: data.ino(),
                len: data.len(),
                changed: (data.ctime(), data.ctime_nsec()),
            });
            (path, about)
        };
        Self(paths(folder).unwrap_or_default().into_iter().map(with_about).collect())
    }
}

/// Takes a session over from its file, unless a command has made one of its name in another form.
fn take(store: &Store, file: &Definition, folder: &Path) -> bool {
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

/// Starts what is missing of the sessions. What fails is tried again later.
fn keep_started(store: &Store, folder: &Path, sessions: &[Kept], started: &mut BTreeMap<String, Started>) {
    for (_, file) in sessions {
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
fn stop(store: &Store, sessions: &[Kept]) -> ExitCode {
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

/// What is in a folder of sessions.
struct Content {
    sessions: Vec<Kept>,
    /// Files that cannot be read, have mistakes, or can be written by others.
    left_out: Vec<PathBuf>,
}

/// The sessions of a folder; those with mistakes are reported, and left out.
fn read(folder: &Path) -> Result<Content> {
    let mut content = Content { sessions: Vec::new(), left_out: Vec::new() };
    for path in paths(folder)? {
        // What a session says is run with this user's rights.
        let trusted = match File::open(&path).ok().as_ref().and_then(distrust) {
            Some(why) => Err(anyhow!("{} is left out: {why}", path.display())),
            None => Definition::read(&path),
        };
        match trusted {
            Ok(session) => content.sessions.push((path, session)),
            Err(error) => {
                print_warning(&format!("{error:#}"));
                content.left_out.push(path);
            }
        }
    }
    Ok(content)
}

/// The files with sessions, in the order of their names.
fn paths(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", folder.display())),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort_unstable();
    Ok(paths)
}

fn default_folder() -> Result<PathBuf> {
    if geteuid().is_root() {
        return Ok(ROOTS.into());
    }
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    Ok(config
        .context("no folder of sessions: neither XDG_CONFIG_HOME nor HOME is set")?
        .join("tracewing/sessions"))
}

/// Reports to systemd, if it has started this process.
fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        print_warning(&format!("cannot report to systemd: {error}"));
    }
}
