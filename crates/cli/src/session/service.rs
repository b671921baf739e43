//! `tracewing service`: keeps the sessions of a folder started, in the foreground, for systemd and others
//! like it, and starts and stops others of them for those that may ask it.
//!
//! It only starts and stops recorders. If it is killed, they continue, and the next service finds them by
//! their names; if a recorder is killed, it is started again.
//!
//! | module | what |
//! |---|---|
//! | `folder`, `keep` | the files of the sessions; keeps these started |
//! | `message` | requests and replies |
//! | `limits`, `account` | how many a user has, and which ids are one user |
//! | `socket`, `control` | where it is asked; the thread that answers |
//! | `work`, `answer` | a request that is carried out by a process of its own, and what this process does |
//! | `ask` | asks a service |

mod account;
mod answer;
mod ask;
mod control;
mod folder;
mod keep;
mod limits;
mod message;
mod socket;
mod work;

use super::definition::{Start, parse_word};
use super::recorders;
use super::store::Store;
use crate::format::{TextFormat, TextFormatOption};
use crate::output::{count_of, print_warning, shown};
use crate::record::parse_seconds;
use crate::screen::{self, Form};
use anyhow::{Context, Result};
use clap::Subcommand;
use control::Control;
use folder::{Files, Kept, default_folder};
use keep::{keep_started, read, reread, stop, take};
use message::{Request, What};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register;
use socket::Socket;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time between two looks at signals, and at recorders.
const LOOK: Duration = Duration::from_millis(100);
const CHECK: Duration = Duration::from_secs(2);

const EXAMPLES: &str = "\
Examples:
  tracewing session save web -o /etc/tracewing/sessions.d/web.toml
  tracewing service
      start the sessions of the folder, and keep them started until Ctrl-C or SIGTERM, which stops them
  tracewing session save web --on-demand -o /etc/tracewing/sessions.d/web.toml
  tracewing service start web
      have the machine's service start a session that it keeps for this; for root and members of group tracewing

Files that are added to the folder are noticed. Not needed for sessions that `tracewing session start` starts. Under \
systemd, enable tracewing.service, for yourself or (as root) for the machine; it reports its state to systemd \
(sd_notify). tracewing.socket starts the machine's service when it is asked. If the service is killed, its sessions \
continue, and the next one takes them over.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Folder of sessions as `tracewing session save` writes them [default: /etc/tracewing/sessions.d for
    /// root, otherwise ~/.config/tracewing/sessions]
    #[arg(long, value_name = "DIR")]
    sessions: Option<PathBuf>,

    /// Answer requests at PATH; the group tracewing may send them to root's service [default: the socket that
    /// systemd passes; otherwise, without --sessions, /run/tracewing/control for root, and tracewing/control
    /// in $XDG_RUNTIME_DIR]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// End this long after the last request, if a request has started the service and none of its sessions is
    /// started
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, default_value = "60")]
    exit_idle_time: Duration,

    #[command(subcommand)]
    command: Option<ServiceCommand>,
}

#[derive(Debug, Subcommand)]
enum ServiceCommand {
    /// List the sessions of a service
    List {
        #[command(flatten)]
        at: At,
        #[command(flatten)]
        format: TextFormatOption,
    },
    /// Show what the channels of a service's sessions record, and how much was lost
    Status {
        #[command(flatten)]
        at: At,
        /// The session [default: all]
        #[arg(value_name = "SESSION", value_parser = parse_word)]
        session: Option<String>,
        #[command(flatten)]
        format: TextFormatOption,
    },
    /// Have a service start a session that it starts on demand
    Start(Asked),
    /// Have a service stop a session that it starts on demand
    Stop(Asked),
    /// Have the flight recorders of a service's session write what they hold
    Snapshot(Asked),
    /// Have the channels of a service's session complete their archives and begin the next ones
    Rotate(Asked),
    /// Carry out a request: what the service starts for each
    #[command(hide = true)]
    Answer(answer::Args),
}

/// Which service is asked.
#[derive(Debug, clap::Args)]
struct At {
    /// Ask the service that listens at PATH [default: /run/tracewing/control, the one of the machine]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Asked {
    #[command(flatten)]
    at: At,
    /// The session
    #[arg(value_name = "SESSION", value_parser = parse_word)]
    session: String,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let ask = |what, at: &At, session, format| {
        ask::run(at.socket.as_deref(), &Request { what, is_json: format == TextFormat::Json, session })
    };
    let ask_of = |what, Asked { at, session }: Asked| ask(what, &at, Some(session), TextFormat::Text);
    match args.command {
        None => serve(&args),
        Some(ServiceCommand::List { at, format }) => ask(What::List, &at, None, format.format),
        Some(ServiceCommand::Status { at, session, format }) => {
            ask(What::Status, &at, session, format.format)
        }
        Some(ServiceCommand::Start(asked)) => ask_of(What::Start, asked),
        Some(ServiceCommand::Stop(asked)) => ask_of(What::Stop, asked),
        Some(ServiceCommand::Snapshot(asked)) => ask_of(What::Snapshot, asked),
        Some(ServiceCommand::Rotate(asked)) => ask_of(What::Rotate, asked),
        Some(ServiceCommand::Answer(args)) => answer::run(&args),
    }
}

fn serve(args: &Args) -> Result<ExitCode> {
    let stops = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        register(signal, Arc::clone(&stops)).context("cannot wait for signals")?;
    }
    let folder = args.sessions.clone().map_or_else(default_folder, Ok)?;
    let store = Store::open()?;
    let mut served = store.serve(&folder)?;
    let socket = socket(args)?;
    let mut idle = Idle::new(socket.as_ref().is_some_and(Socket::has_started_this), args.exit_idle_time);
    let mut files = Files::of(&folder);
    let mut sessions = read(&folder)?.sessions;
    sessions.retain(|(_, session)| take(&store, session, &folder));
    // Requests need not wait until all are started.
    let control = socket.map(|socket| Control::start(socket, folder.clone())).transpose()?;
    let mut started = BTreeMap::new();
    keep_started(&store, &folder, &sessions, &mut started);
    let line = format!("{} of {}", count_of(sessions.len(), "session"), folder.display());
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
        if idle.is_over(control.as_ref(), &sessions) {
            notify(&[NotifyState::Stopping]);
            // What is started by a last request continues, and the next service finds it.
            return Ok(ExitCode::SUCCESS);
        }
    }
    notify(&[NotifyState::Stopping]);
    // What was asked for by now is done first, so that it is stopped, too.
    drop(control);
    Ok(stop(&store, &sessions))
}

/// Where the service is asked, if anywhere.
fn socket(args: &Args) -> Result<Option<Socket>> {
    if let Some(path) = &args.socket {
        let made = Socket::at(path).with_context(|| format!("cannot listen at {}", path.display()))?;
        return Ok(Some(made));
    }
    let passed = Socket::passed()?;
    if passed.is_some() || args.sessions.is_some() {
        return Ok(passed);
    }
    // Sessions are kept started, also without it.
    Ok(Socket::at_default()
        .inspect_err(|error| print_warning(&format!("no requests are answered: {error:#}")))
        .ok())
}

/// How long a service that a request has started has had nothing to do.
struct Idle {
    /// `None`: it was not started by a request.
    after: Option<Duration>,
    since: Instant,
    /// Connections by then.
    accepted: usize,
}

impl Idle {
    fn new(by_request: bool, after: Duration) -> Self {
        Self { after: by_request.then_some(after), since: Instant::now(), accepted: 0 }
    }

    /// Whether that is long enough to end.
    fn is_over(&mut self, control: Option<&Control>, sessions: &[Kept]) -> bool {
        let Some((after, control)) = self.after.zip(control) else { return false };
        let (connected, accepted) = control.connections();
        let is_kept = |(_, session): &Kept| session.start == Start::Always;
        if connected > 0 || accepted != self.accepted || sessions.iter().any(is_kept) {
            (self.since, self.accepted) = (Instant::now(), accepted);
        }
        if self.since.elapsed() < after {
            return false;
        }
        // Only then, since all recorders are asked.
        let is_started = sessions.iter().any(|(_, session)| !recorders::find(session).is_empty());
        if is_started {
            self.since = Instant::now();
        }
        !is_started
    }
}

/// Reports to systemd, if it has started this process.
fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        print_warning(&format!("cannot report to systemd: {error}"));
    }
}
