//! `tracewing session` and `tracewing channel`: recordings in the background, described once, started and
//! stopped at will.
//!
//! A session is a file; while it is started, each of its channels is a recorder in the background, the same
//! one that `tracewing record` is. Nothing else runs: no daemon, and nothing at all while it is stopped.
//!
//! | module | what |
//! |---|---|
//! | `definition` | a session: its channels with their options, as TOML |
//! | `store` | where the sessions of this user are |
//! | `buffers` | where their recorders have buffers that are files |
//! | `earlier` | what earlier starts have left, and what of it goes |
//! | `ended` | why a recorder has ended by itself |
//! | `recorders` | starts and stops the recorders of channels |
//! | `status` | what they do, as a table |
//! | `service` | keeps sessions started |

mod buffers;
mod definition;
mod earlier;
mod ended;
mod recorders;
pub mod service;
pub mod status;
mod store;

use crate::format::{TextFormat, TextFormatOption};
use crate::output::{print_note, print_warning, shown};
use crate::screen::{self, Form};
use anyhow::{Context, Result, ensure};
use clap::Subcommand;
use definition::{Definition, MAIN, Start};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use store::Store;
use tracewing_files::OutputFile;

pub use definition::parse_word;

const EXAMPLES: &str = "\
Examples:
  tracewing session create web -e 'shop:*' -o /srv/traces/web
      a session that records the events of the provider shop, of all programs of this user
  tracewing channel add web kernel -k 'sched_*'
      also record events of the kernel, in buffers of their own
  tracewing session start web
      record in the background, until `tracewing session stop web`
  tracewing session status web --watch
      events per second, losses and buffers of each channel, every second

A session is a file with options of `tracewing record`; `tracewing session save` prints it. While the session is \
started, each of its channels is a recorder in the background, and other commands find it by the session's name: \
`tracewing snapshot web`, `tracewing enable web -e GLOB`, `tracewing top web`. With several channels, the name of one is \
SESSION/CHANNEL. Each start writes a new folder below the session's; `tracewing list` reads all of it at once.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: SessionCommand,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    /// Describe a session, with one channel called main; nothing is recorded before it is started
    Create {
        /// The session's name
        #[arg(value_parser = parse_word)]
        name: String,
        /// What its channel records: options of `tracewing record`, without a command. -o is the folder for
        /// the traces of all channels [default: NAME in the current folder]; --total-size limits all its
        /// starts, channels and triggers together
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "RECORD OPTION")]
        options: Vec<OsString>,
    },
    /// Begin to record, in the background
    Start(Which),
    /// End the recording, and print what was recorded
    Stop(Which),
    /// Show what the channels record, and how much was lost
    Status(status::Args),
    /// List the sessions of this user
    List(TextFormatOption),
    /// Stop a session and forget it; its traces stay
    Destroy(Which),
    /// Print a session as TOML, or write it to a file
    Save {
        #[command(flatten)]
        which: Which,
        /// Say in it that a service starts the session only when it is asked to (`tracewing service start`)
        #[arg(long)]
        on_demand: bool,
        /// Write to FILE
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Describe the session that `save` has written
    Load {
        /// The file
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub struct Which {
    /// The session [default: the only one]
    #[arg(value_name = "SESSION", value_parser = parse_word)]
    session: Option<String>,
}

/// What is listed, and how.
#[derive(Debug, clap::Args)]
pub struct Listed {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    format: TextFormatOption,
}

const CHANNEL_EXAMPLES: &str = "\
Examples:
  tracewing channel add web errors -e '*' --level error --on-full overwrite
      a channel for events that are at least errors, which keeps the newest ones
  tracewing channel add web kernel -k 'sched_*' --sub-buffers 64 --sub-buffer-size 64K
      a channel for events of the kernel, of the whole machine, in kernel buffers of 4 MiB per CPU; needs root
  tracewing channel list web
  tracewing channel remove web errors

An event goes to each channel whose rules match it. Every channel has buffers of its own, also in the kernel; programs \
take part in at most 8 channels and other recordings at once. A channel with -k and without -e, --where and other \
options for events of programs records none of these.";

#[derive(Debug, clap::Args)]
#[command(after_help = CHANNEL_EXAMPLES)]
pub struct ChannelArgs {
    #[command(subcommand)]
    command: ChannelCommand,
}

#[derive(Debug, Subcommand)]
enum ChannelCommand {
    /// Add a channel to a session; if that is started, the channel begins to record
    #[command(after_help = CHANNEL_EXAMPLES)]
    Add {
        /// The session
        #[arg(value_parser = parse_word)]
        session: String,
        /// The channel's name
        #[arg(value_parser = parse_word)]
        name: String,
        /// What it records: options of `tracewing record`, without a command
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "RECORD OPTION")]
        options: Vec<OsString>,
    },
    /// Remove a channel from a session; if that is started, the channel's recording ends
    Remove {
        /// The session
        #[arg(value_parser = parse_word)]
        session: String,
        /// The channel's name
        #[arg(value_parser = parse_word)]
        name: String,
    },
    /// Print the channels of a session, with their options
    List(Listed),
}

const TRIGGER_EXAMPLES: &str = "\
Examples:
  tracewing session create flight --flight-recorder
  tracewing trigger add flight slow -e shop:answered --where 'latency > 1s' --do snapshot
  tracewing session start flight
      a flight recorder that writes its buffers whenever an answer takes longer than a second
  tracewing trigger add flight slow -e shop:answered --where 'latency > 1s' --do snapshot --exec ./mail
      also run the program ./mail, with the snapshot's folder as its argument
  tracewing trigger add flight full --when-full 80 --do rotate --at-most-every 60
      complete the archives when a buffer is 80 % full, at most once a minute
  tracewing trigger list flight

--do is snapshot, rotate, start, stop, notify or exec, and may be given several times. After stop, channels record no \
events of programs until start; their recorders continue. exec runs the program of --exec CMD, without a shell, as this \
user; --exec CMD alone does, too. Everything is done at most once in the seconds of --at-most-every (default 10). The \
events of a trigger are chosen as those of `tracewing record` are (-e, --where, --level, --process), and recorded below \
the session's folder. Programs do nothing for a trigger except write its events: a recorder looks for them every 5 ms.

--when-full PERCENT and --when-size SIZE, in place of events, fire when the fullest buffer of a channel is so full, and \
whenever a channel has written SIZE more.";

#[derive(Debug, clap::Args)]
#[command(after_help = TRIGGER_EXAMPLES)]
pub struct TriggerArgs {
    #[command(subcommand)]
    command: TriggerCommand,
}

#[derive(Debug, Subcommand)]
enum TriggerCommand {
    /// Add a trigger to a session, also while it is started
    #[command(after_help = TRIGGER_EXAMPLES)]
    Add {
        /// The session
        #[arg(value_parser = parse_word)]
        session: String,
        /// The trigger's name
        #[arg(value_parser = parse_word)]
        name: String,
        /// Which events fire it, what is done, and how often at most: see the examples
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
        options: Vec<OsString>,
    },
    /// Remove a trigger from a session, also while it is started
    Remove {
        /// The session
        #[arg(value_parser = parse_word)]
        session: String,
        /// The trigger's name
        #[arg(value_parser = parse_word)]
        name: String,
    },
    /// Print the triggers of a session, with their options
    List(Listed),
}

pub fn run(args: Args) -> Result<ExitCode> {
    let store = Store::open()?;
    match args.command {
        SessionCommand::Create { name, options } => create(&store, &name, options),
        SessionCommand::Start(which) => recorders::start(&store.lock()?, &which.of(&store)?),
        SessionCommand::Stop(which) => stop(&store, &which),
        SessionCommand::Status(args) => status::run(&store, &args),
        SessionCommand::List(format) => list(&store, format.format),
        SessionCommand::Destroy(which) => destroy(&store, &which),
        SessionCommand::Save { which, on_demand, output } => save(which.of(&store)?, on_demand, output),
        SessionCommand::Load { file } => load(&store, &file),
    }
}

pub fn channel(args: ChannelArgs) -> Result<ExitCode> {
    let store = Store::open()?;
    match args.command {
        ChannelCommand::Add { session, name, options } => change(&store, &session, |definition| {
            let channel = definition::options(options)?;
            ensure!(channel.output.is_none(), "-o is the session's: a channel writes to a folder below it");
            definition::check(&channel.options, false)?;
            definition.insert(false, name, channel.options)
        }),
        ChannelCommand::Remove { session, name } => change(&store, &session, |definition| {
            definition.channels.remove(&name).with_context(|| {
                let names: Vec<&str> = definition.channels.keys().map(String::as_str).collect();
                format!("the session has no channel {name}; it has: {}", names.join(", "))
            })?;
            ensure!(
                !definition.channels.is_empty(),
                "this is the session's last channel: destroy the session"
            );
            Ok(())
        }),
        ChannelCommand::List(listed) => {
            print_options("channel", &listed.which.of(&store)?.channels, listed.format.format)
        }
    }
}

pub fn trigger(args: TriggerArgs) -> Result<ExitCode> {
    let store = Store::open()?;
    match args.command {
        TriggerCommand::Add { session, name, options } => change(&store, &session, |definition| {
            let trigger = definition::options(options)?;
            ensure!(trigger.output.is_none(), "-o is the session's: a trigger writes to a folder below it");
            definition::check(&trigger.options, true)?;
            definition.insert(true, name, trigger.options)
        }),
        TriggerCommand::Remove { session, name } => change(&store, &session, |definition| {
            definition
                .triggers
                .remove(&name)
                .with_context(|| format!("the session has no trigger {name}"))?;
            Ok(())
        }),
        TriggerCommand::List(listed) => {
            print_options("trigger", &listed.which.of(&store)?.triggers, listed.format.format)
        }
    }
}

/// Prints channels or triggers with their options: in JSON, a line for each.
fn print_options(kind: &str, all: &BTreeMap<String, toml::Table>, format: TextFormat) -> Result<ExitCode> {
    let mut out = screen::stdout(format.into());
    for (name, options) in all {
        match format {
            TextFormat::Text => writeln!(out, "{name}  {}", shown(&definition::command_line(options)))?,
            TextFormat::Json => writeln!(out, "{}", serde_json::json!({ kind: name, "options": options }))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Which {
    fn of(&self, store: &Store) -> Result<Definition> {
        store.get(&store.named(self.session.as_deref())?)
    }
}

fn create(store: &Store, name: &str, options: Vec<OsString>) -> Result<ExitCode> {
    let mut channel = definition::options(options)?;
    definition::check(&channel.options, false)?;
    let total_size = channel.options.remove("total-size").map(|size| size.as_str().map(str::to_owned));
    let total_size = total_size.flatten();
    let folder = std::env::current_dir().context("the current folder is gone")?;
    let output = folder.join(channel.output.unwrap_or_else(|| name.into()));
    let channels = [(MAIN.to_owned(), channel.options)].into();
    let triggers = BTreeMap::new();
    store.lock()?.add(&Definition {
        name: name.to_owned(),
        output,
        folder,
        total_size,
        start: Start::default(),
        channels,
        triggers,
    })?;
    writeln!(screen::stderr(Form::Text), "`tracewing session start {name}` begins to record")?;
    Ok(ExitCode::SUCCESS)
}

/// Changes a session, also while it is started.
fn change(
    store: &Store,
    session: &str,
    change: impl FnOnce(&mut Definition) -> Result<()>,
) -> Result<ExitCode> {
    let locked = store.lock()?;
    let before = store.get(session)?;
    let mut definition = before.clone();
    change(&mut definition)?;
    let running = recorders::all_of(&before)?;
    if !running.is_empty() {
        return recorders::adjust(&locked, &running, &before, &definition);
    }
    locked.replace(&definition)?;
    Ok(ExitCode::SUCCESS)
}

fn list(store: &Store, format: TextFormat) -> Result<ExitCode> {
    let mut out = screen::stdout(format.into());
    let (sessions, is_whole) = store.all()?;
    if sessions.is_empty() && is_whole && format == TextFormat::Text {
        print_note(&mut out, "there are no sessions: `tracewing session create NAME` describes one")?;
    }
    for definition in sessions {
        let state = recorders::state(&definition);
        let channels: Vec<&str> = definition.channels.keys().map(String::as_str).collect();
        match format {
            TextFormat::Text => writeln!(
                out,
                "{}  {state}  {}  {}",
                definition.name,
                shown(&definition.output.to_string_lossy()),
                channels.join(", ")
            )?,
            TextFormat::Json => {
                let line = serde_json::json!({
                    "session": definition.name, "state": state, "output": definition.output, "channels": channels,
                    "triggers": definition.triggers.keys().collect::<Vec<_>>(),
                });
                writeln!(out, "{line}")?;
            }
        }
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn stop(store: &Store, which: &Which) -> Result<ExitCode> {
    let definition = which.of(store)?;
    let status = recorders::stop(&store.lock()?, &definition)?;
    if definition.start == Start::Always {
        warn_of_service(store, &definition.name);
    }
    Ok(status)
}

/// Says that a service starts the session again, if one runs that has it.
fn warn_of_service(store: &Store, name: &str) {
    if let Some(folder) = store.served_from(name).filter(|folder| store.serve(folder).is_err()) {
        print_warning(&format!(
            "a service starts {name} again: to end it, remove its file from {} first",
            folder.display()
        ));
    }
}

fn destroy(store: &Store, which: &Which) -> Result<ExitCode> {
    let locked = store.lock()?;
    let name = store.named(which.session.as_deref())?;
    let (status, start) = match store.get(&name) {
        Ok(definition) => {
            let found = recorders::find(&definition);
            let status = match found.is_empty() {
                true if recorders::report_ended(&definition, &found) => ExitCode::FAILURE,
                true => ExitCode::SUCCESS,
                false => recorders::stop(&locked, &definition)?,
            };
            (status, definition.start)
        }
        // Its recorders are known by its name.
        Err(error) if store::is_invalid(&error) => {
            print_warning(&format!("{error:#}"));
            (recorders::stop_named(&name)?, Start::Always)
        }
        Err(error) => return Err(error),
    };
    if start == Start::Always {
        warn_of_service(store, &name);
    }
    locked.remove(&name)?;
    Ok(status)
}

fn save(mut definition: Definition, on_demand: bool, output: Option<PathBuf>) -> Result<ExitCode> {
    if on_demand {
        definition.start = Start::OnDemand;
    }
    let text = definition.to_toml()?;
    match output {
        None => screen::stdout(Form::Text).write_all(text.as_bytes())?,
        Some(path) => {
            let file = OutputFile::create(&path);
            let written = file.and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.finish()
            });
            written.with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn load(store: &Store, file: &std::path::Path) -> Result<ExitCode> {
    let definition = Definition::load(file)?;
    store.lock()?.add(&definition)?;
    Ok(ExitCode::SUCCESS)
}
