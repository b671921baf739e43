//! The command `tracewing`: reads the command line and hands over to a module per subcommand.
//!
//! What a subcommand does lies in the libraries; here is only what a terminal needs. A new subcommand is a
//! module and a variant of [`Command`].

mod across;
mod arguments;
mod asking;
mod bar;
mod breakdown;
mod bytes;
mod clear;
mod colors;
mod completions;
mod control;
mod convert;
mod critical_path;
mod cuts;
mod defaults;
mod export;
mod extract;
mod flame_graph;
mod format;
mod functions;
mod help;
mod index;
mod info;
mod input;
mod latency;
mod list;
mod locks;
mod losses;
mod manual;
mod no_result;
mod options;
mod output;
mod owner;
mod pager;
mod parts;
mod place;
mod preloaded;
mod profile;
mod progress;
mod record;
mod record_summary;
mod recorded;
mod recover;
mod rotate;
mod sched;
mod screen;
mod selection;
mod session;
mod sites;
mod snapshot;
mod stats;
mod style;
mod table;
mod tasks;
mod terminal;
mod threads;
mod top;
mod traces;
mod view;
mod wrap;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Records what a Linux machine does, from the scheduler up to the events of programs, and reads recordings
/// back.
#[derive(Debug, Parser)]
#[command(name = "tracewing", bin_name = "tracewing", version, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    /// When to use colours
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t, display_order = 900)]
    color: style::Color,

    /// Print on the terminal without a pager
    #[arg(long, global = true, display_order = 901)]
    no_pager: bool,

    /// Read defaults for options from FILE instead of ~/.config/tracewing/config.toml; '' reads no file
    #[arg(long, global = true, value_name = "FILE", value_parser = config, display_order = 902)]
    config: Option<std::path::PathBuf>,

    /// Ignore the configuration file's default for --OPTION; separate several with commas
    #[arg(long, global = true, value_name = "OPTION", value_delimiter = ',', display_order = 903)]
    no_default: Vec<String>,

    #[command(subcommand)]
    command: Command,
}

/// Empty means none.
#[expect(clippy::unnecessary_wraps, reason = "clap wants it so")]
fn config(text: &str) -> Result<std::path::PathBuf, std::convert::Infallible> {
    Ok(text.into())
}

const EXAMPLES: &str = "\
Examples:
  tracewing record -o my-trace -- ./server        record a program and what the kernel does for it
  tracewing info my-trace                         what was recorded, what was lost
  tracewing list -n 20 my-trace                   the first events
  tracewing threads my-trace                      where the time went

`tracewing COMMAND --help` has examples for each command. The Debian package has a book with tutorial, how-to and \
reference pages in /usr/share/doc/tracewing/docs; the sources have it in docs.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Record a command, everything it starts, and what the kernel does for them
    Record(Box<record::Args>),
    /// Record more events of programs in a running recording
    Enable(control::EnableArgs),
    /// Record fewer events of programs in a running recording
    Disable(control::DisableArgs),
    /// Stop recording events of programs, until `tracewing resume`
    Pause(control::PauseArgs),
    /// Record events of programs again after `tracewing pause`
    Resume(control::PauseArgs),
    /// Print the event rules of a running recording
    Rules(control::RulesArgs),
    /// Make a running flight recorder write the events that it holds
    Snapshot(snapshot::Args),
    /// Make a running recording complete its present archive and begin the next one
    Rotate(rotate::Args),
    /// Remove what a running recording has recorded since its last rotation; the recording continues
    Clear(clear::Args),
    /// Describe, start, stop and list recordings in the background
    Session(session::Args),
    /// Change what a session records
    Channel(session::ChannelArgs),
    /// Have a session do something when an event comes: take a snapshot, rotate, run a program
    Trigger(session::TriggerArgs),
    /// Keep the sessions of a folder started, under systemd for example
    Service(session::service::Args),
    /// Show what the threads, tasks, locks and system calls of a running recording did in the last second
    Top(top::Args),
    /// Read the last events of a program from its buffers, in a core dump, a process or files
    Recover(recover::Args),
    /// List the places where a program or process can emit events, and whether they are enabled
    Sites(sites::Args),
    /// Print the events of traces in time order
    List(list::Args),
    /// Show what a trace contains: when and where it was recorded, clocks, streams, event classes, losses
    Info(info::Args),
    /// Count events by class, stream and process, with rates, bytes and losses
    Stats(stats::Args),
    /// Show how each thread spent its time: running, waiting for a CPU, or blocked
    Threads(threads::Args),
    /// Show the time of each process by system call, and what other threads did for it
    Breakdown(breakdown::Args),
    /// Show when each thread had a CPU, how long it had waited for the CPU, and what woke it
    Sched(sched::Args),
    /// Show what each task of an async runtime did in its polls and how long it waited for them, and warn
    /// about tasks that block their worker, run for a long time, or are woken for nothing
    Tasks(tasks::Args),
    /// Measure the time from one event to another, and show what happened in the worst cases
    Latency(Box<latency::Args>),
    /// Show which threads and tasks a thread or a task waited for, step by step
    CriticalPath(critical_path::Args),
    /// Show waits for locks, which threads and tasks held the locks, and for how long
    Locks(locks::Args),
    /// Show how often functions were called, from where, and how long they took
    Functions(functions::Args),
    /// Show in which functions programs and the kernel spent their time (from samples), and draw flame graphs
    Profile(profile::Args),
    /// Write a recording for other viewers: Pajé, Perfetto, Chrome
    Export(export::Args),
    /// Write a part of a recording as a separate trace
    Extract(extract::Args),
    /// Write a recording, or a part of it, as CTF 1.8, CTF 2, JSON or CSV
    Convert(convert::Args),
    /// Look at a recording in the browser: what each CPU, thread and task did, at any zoom level
    View(view::Args),
    /// Make the index of a recording: what each CPU, thread and task did, for any window of time
    Index(index::Args),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example: tracewing completions bash > ~/.local/share/bash-completion/completions/tracewing"
    )]
    Completions {
        /// The shell that reads the script
        shell: clap_complete::Shell,
    },
    /// Print the manual page of tracewing, or of one of its commands
    #[command(after_help = MANUALS)]
    Man {
        /// The command, such as `sched latency`
        command: Vec<String>,
    },
}

const MANUALS: &str = "\
Examples:
  tracewing man record          on a terminal, `man` shows it
  tracewing man session create > tracewing-session-create.1";

/// All tables of all commands.
fn views() -> Vec<table::reference::View> {
    let one = vec![breakdown::view(), critical_path::view()];
    let tables = [
        functions::views(),
        info::views(),
        latency::views(),
        locks::views(),
        profile::views(),
        sched::views(),
        session::status::views(),
        stats::views(),
    ];
    let views = [one].into_iter().chain(tables).chain([tasks::views(), threads::views()]);
    views.flatten().chain([sites::view(), record_summary::view()]).collect()
}

/// The same and those of top, which shows tables of other commands.
fn completed_views() -> Vec<table::reference::View> {
    let mut views = views();
    views.push(table::reference::View::new("top", top::heads()));
    views
}

impl Command {
    /// Whether it prints what one reads: a pager shows that on a terminal.
    fn is_for_reading(&self) -> bool {
        match self {
            Command::List(args) => !args.follows(),
            Command::Recover(args) => args.prints_events(),
            Command::Sites(_)
            | Command::Info(_)
            | Command::Stats(_)
            | Command::Threads(_)
            | Command::Breakdown(_)
            | Command::Sched(_)
            | Command::Tasks(_)
            | Command::Latency(_)
            | Command::CriticalPath(_)
            | Command::Locks(_)
            | Command::Functions(_)
            | Command::Profile(_) => true,
            _ => false,
        }
    }
}

fn main() -> ExitCode {
    let Cli { color, no_pager, config: _, no_default: _, command } = arguments::parse::<Cli>();
    color.apply();
    let _paging = (command.is_for_reading() && !no_pager).then(pager::allow);
    let result = match command {
        Command::Record(args) => record::run(&args),
        Command::Enable(args) => control::enable(&args),
        Command::Disable(args) => control::disable(&args),
        Command::Pause(args) => control::pause(&args),
        Command::Resume(args) => control::resume(&args),
        Command::Rules(args) => control::rules(&args),
        Command::Snapshot(args) => snapshot::run(&args),
        Command::Rotate(args) => rotate::run(&args),
        Command::Clear(args) => clear::run(&args),
        Command::Session(args) => session::run(args),
        Command::Channel(args) => session::channel(args),
        Command::Trigger(args) => session::trigger(args),
        Command::Service(args) => session::service::run(args),
        Command::Top(args) => top::run(&args),
        Command::Recover(args) => recover::run(&args),
        Command::Sites(args) => sites::run(&args),
        Command::List(args) => list::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Threads(args) => threads::run(&args),
        Command::Breakdown(args) => breakdown::run(&args),
        Command::Sched(args) => sched::run(&args),
        Command::Tasks(args) => tasks::run(&args),
        Command::Latency(args) => latency::run(&args),
        Command::CriticalPath(args) => critical_path::run(&args),
        Command::Locks(args) => locks::run(&args),
        Command::Functions(args) => functions::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Extract(args) => extract::run(args),
        Command::Convert(args) => convert::run(args),
        Command::View(args) => view::run(&args),
        Command::Index(args) => index::run(&args),
        Command::Man { command } => manual::print(Cli::command(), &command),
        Command::Completions { shell } => completions::print(Cli::command(), shell, &completed_views()),
    };
    result.unwrap_or_else(|error| {
        if output::is_broken_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        output::print_error(&error);
        match error.downcast_ref() {
            Some(tracewing_trace::Error::Stopped) => ExitCode::from(input::STOPPED),
            _ => ExitCode::FAILURE,
        }
    })
}

#[cfg(test)]
#[path = "../tests/help_examples/mod.rs"]
mod help_examples;

#[cfg(test)]
mod tests {
    use super::help_examples::examples;
    use super::*;
    use clap::Args;

    /// The names of what `args` adds to a command.
    fn names(args: &clap::Command) -> Vec<&str> {
        args.get_arguments().map(|arg| arg.get_id().as_str()).collect()
    }

    fn with_subcommands(command: &clap::Command) -> Vec<&clap::Command> {
        std::iter::once(command).chain(command.get_subcommands().flat_map(with_subcommands)).collect()
    }

    #[test]
    fn options_stand_under_headings_that_are_theirs() {
        let none = || clap::Command::new("none");
        let filters = input::FilterArgs::augment_args(none());
        let events = selection::Condition::augment_args(selection::Selection::augment_args(none()));
        let cli = Cli::command();
        for command in with_subcommands(&cli) {
            for arg in command.get_arguments() {
                let id = arg.get_id().as_str();
                let suits = match arg.get_help_heading() {
                    None => true,
                    Some("Filters") => names(&filters).contains(&id),
                    Some("Events of programs") => names(&events).contains(&id),
                    Some(_) => false,
                };
                assert!(suits, "{}: {id} under {:?}", command.get_name(), arg.get_help_heading());
            }
        }
    }

    /// The book is not installed everywhere; the help of the program says where it is.
    #[test]
    fn help_of_commands_names_no_files_of_the_book() {
        let cli = Cli::command();
        for command in with_subcommands(&cli).into_iter().skip(1) {
            let help = command.clone().render_long_help().to_string();
            assert!(!help.contains("docs/"), "{help}");
        }
    }

    /// The words of the first command of a line, as a shell splits them: up to a pipe, a redirection or `&&`.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in line.chars() {
            match (quote, c) {
                (None, '\'' | '"') => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (Some(open), _) if open == c => quote = None,
                (None, ' ') => words.extend(word.take()),
                (None, '|' | '>' | '&') => break,
                _ => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    #[test]
    fn the_command_line_accepts_all_examples_of_the_help() {
        let cli = Cli::command();
        let mut count = 0;
        for command in with_subcommands(&cli) {
            for help in [command.get_after_help(), command.get_after_long_help()].into_iter().flatten() {
                for example in examples(&help.to_string()) {
                    let parsed = Cli::try_parse_from(words(&example));
                    assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
                    count += 1;
                }
            }
        }
        assert!(count > 90, "{count} examples");
    }
}
