//! Carries out a request, as a process of its own that the service starts: what it prints is the answer.

use super::folder::Content;
use super::message::What;
use crate::asking::print_answers;
use crate::format::{TableFormat, TextFormat};
use crate::output::shown;
use crate::owner::{no_answer, not_asked};
use crate::screen;
use crate::session::definition::{Definition, Start, parse_word};
use crate::session::recorders::{self, Found};
use crate::session::status;
use crate::session::store::Store;
use crate::table::TableOptions;
use anyhow::{Error, Result, bail, ensure};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracewing_session::running::{AskError, Kind, Recordings, Running};

/// What text shows of a channel, since this process does not know how wide the terminal is.
const COLUMNS: [&str; 9] =
    ["session", "channel", "state", "elapsed", "programs", "events", "per_second", "lost", "bytes"];

/// What the service gives this process.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder of the service
    #[arg(long, value_name = "DIR")]
    sessions: PathBuf,
    /// What is asked for
    #[arg(value_enum)]
    what: What,
    /// Of which session
    #[arg(value_parser = parse_word)]
    session: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let store = Store::open()?;
    // The service has reported the files that it leaves out.
    let sessions = Content::read(&args.sessions)?.sessions.into_iter().map(|(_, session)| session);
    let sessions: Vec<Definition> = sessions.filter(|file| !store.is_made_otherwise(file)).collect();
    let Some(name) = &args.session else {
        return match args.what {
            What::List => list(&sessions, args.json),
            _ => print_status(&store, &sessions, args.json),
        };
    };
    let Some(file) = sessions.iter().find(|session| session.name == *name) else {
        match sessions.iter().map(|session| session.name.as_str()).collect::<Vec<_>>()[..] {
            [] => bail!("the service has no sessions"),
            ref names => bail!("the service has no session {name}; it has: {}", names.join(", ")),
        }
    };
    match args.what {
        What::List | What::Status => print_status(&store, std::slice::from_ref(file), args.json),
        What::Start => start(&store, &args.sessions, file),
        What::Stop => stop(&store, file),
        What::Snapshot => ask_recorders(&store, file, Kind::FlightRecorder, Running::snapshot),
        What::Rotate => ask_recorders(&store, file, Kind::Any, Running::rotate),
    }
}

/// Asks the recorders of a session, and no other recording, whatever that is called.
fn ask_recorders(
    store: &Store,
    file: &Definition,
    kind: Kind,
    ask: fn(&Running) -> Result<PathBuf, AskError>,
) -> Result<ExitCode> {
    let name = &file.name;
    let found = recorders::find(&at_present(store, file));
    ensure!(!found.is_empty(), "{name} is not started: `tracewing service status {name}` shows it");
    let Found { running, mut silent, unseen } = found;
    let found = Recordings { running, ..Recordings::default() }.of_session(name, kind);
    silent.retain(|one| one.may_be(kind));
    let absent: Vec<Error> = silent.iter().map(no_answer).chain(not_asked(&unseen)).collect();
    ensure!(!found.is_empty() || !absent.is_empty(), "{name} runs no {kind}");
    print_answers(&found, &absent, TextFormat::Text, ask)
}

fn list(sessions: &[Definition], is_json: bool) -> Result<ExitCode> {
    let format = if is_json { TextFormat::Json } else { TextFormat::Text };
    let mut out = screen::stdout(format.into());
    for session in sessions {
        let start = match session.start {
            Start::Always => "always",
            Start::OnDemand => "on demand",
        };
        let (name, state, output) = (&session.name, recorders::state(session), &session.output);
        match format {
            TextFormat::Text => {
                writeln!(out, "{name}  {state}  {start}  {}", shown(&output.to_string_lossy()))?
            }
            TextFormat::Json => writeln!(
                out,
                "{}",
                serde_json::json!({ "session": name, "state": state, "start": start, "output": output })
            )?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_status(store: &Store, files: &[Definition], is_json: bool) -> Result<ExitCode> {
    let sessions: Vec<Definition> = files.iter().map(|file| at_present(store, file)).collect();
    let mut table = TableOptions::default();
    if !is_json {
        table.choice.columns = COLUMNS.map(str::to_owned).into();
    }
    table.format.format = if is_json { TableFormat::Json } else { TableFormat::Table };
    status::print(store, &sessions, status::Others::LeftOut, &table, false)
}

/// A session as it runs, or as its file says if it does not: channels come and go while it runs.
fn at_present(store: &Store, file: &Definition) -> Definition {
    let stored = if recorders::find(file).is_empty() { None } else { store.get(&file.name).ok() };
    stored.unwrap_or_else(|| file.clone())
}

fn must_be_on_demand(file: &Definition) -> Result<()> {
    let name = &file.name;
    ensure!(
        file.start == Start::OnDemand,
        "the service keeps {name} started: only sessions whose files say `start = \"on-demand\"` are started and \
         stopped by request"
    );
    Ok(())
}

fn start(store: &Store, folder: &Path, file: &Definition) -> Result<ExitCode> {
    must_be_on_demand(file)?;
    let locked = store.lock()?;
    let session = at_present(store, file);
    let name = &session.name;
    let running = recorders::all_of(&session)?;
    if recorders::missing(&session, &running).next().is_none() {
        bail!("{name} is started already: `tracewing service status {name}` shows it");
    }
    // Commands find it by its name.
    locked.replace(&session)?;
    locked.serve_from(name, folder)?;
    recorders::start(&locked, &session)
}

fn stop(store: &Store, file: &Definition) -> Result<ExitCode> {
    must_be_on_demand(file)?;
    let locked = store.lock()?;
    let session = at_present(store, file);
    let name = &session.name;
    if recorders::find(&session).is_empty() {
        bail!("{name} is not started: `tracewing service start {name}` starts it");
    }
    recorders::stop(&locked, &session)
}
