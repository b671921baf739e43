//! `tracewing enable`, `disable`, `pause`, `resume` and `rules`: show and change what a running
//! recording records.

use crate::format::{TextFormat, TextFormatOption};
use crate::output::{count_of, print_warning, shown};
use crate::owner::Which;
use crate::screen::{self, Form};
use crate::selection::{self, Condition, Requested, Selection};
use std::io::Write;
use std::process::ExitCode;
use tracewing_session::change::{Change, Changed, Process};
use tracewing_session::running::Kind;

const CHANGE_EXAMPLES: &str = "\
Examples:
  tracewing enable -e 'shop:*'
      also record the events of the provider shop (in the only running recording)
  tracewing enable server -e 'shop:dequeued' --where 'depth > 100'
      in the recording of the command `server`, record these events only if depth is large
  tracewing disable -e '*' --exclude 'shop:*'
      stop recording all events except those of shop
  tracewing disable --level debug..trace --process 4711
      stop recording this process's events that are less severe than info
  tracewing disable --major 3,8-12
      stop recording these major classes, by the recording's mask

When the command returns, every program has confirmed the change, and no longer writes events that the rules disable. \
Programs that have not answered after two seconds (for example, because they are stopped) are named; they make the \
change when they continue.

The exit status is 0 if all programs have confirmed, 1 if some have not, or if there is no such recording.";

const PAUSE_EXAMPLES: &str = "\
Examples:
  tracewing pause && sleep 10 && tracewing resume
      ten seconds without events of programs
  tracewing resume server
      continue the recording of the command `server`

A pause is a single store into the memory that programs and recorder share; programs need no message. Kernel events, \
samples and probes are still recorded, so a recording of these alone cannot be paused.";

#[derive(Debug, clap::Args)]
pub struct Common {
    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    format: TextFormatOption,
}

#[derive(Debug, clap::Args)]
#[command(after_help = CHANGE_EXAMPLES, after_long_help = format!("{}\n\n{CHANGE_EXAMPLES}", selection::LONG_HELP))]
pub struct EnableArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    condition: Condition,
}

#[derive(Debug, clap::Args)]
#[command(after_help = CHANGE_EXAMPLES, after_long_help = format!("{}\n\n{CHANGE_EXAMPLES}", selection::LONG_HELP))]
pub struct DisableArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    selection: Selection,
    /// Refused, with a hint on what to do instead
    #[arg(long = "where", value_name = "CONDITION", hide = true)]
    condition: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = PAUSE_EXAMPLES)]
pub struct PauseArgs {
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing rules
      of the only running recording
  tracewing rules server --format json
      of the recording of the command `server`")]
pub struct RulesArgs {
    #[command(flatten)]
    common: Common,
}

pub fn enable(args: &EnableArgs) -> anyhow::Result<ExitCode> {
    let names = args.selection.names_of_tasks(&args.condition);
    let change = change(args.selection.enable(&args.condition), true)?;
    args.common.make(&change, names.map(|rule| Change::Rule(Box::new(rule))).as_ref())
}

pub fn disable(args: &DisableArgs) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.condition.is_none(),
        "`disable` has no condition: it disables all events of a class. To keep some, choose them: \
         `tracewing enable -e GLOB --where CONDITION`"
    );
    args.common.make(&change(args.selection.disable(), false)?, None)
}

pub fn pause(args: &PauseArgs) -> anyhow::Result<ExitCode> {
    args.common.make(&Change::Pause, None)
}

pub fn resume(args: &PauseArgs) -> anyhow::Result<ExitCode> {
    args.common.make(&Change::Resume, None)
}

pub fn rules(args: &RulesArgs) -> anyhow::Result<ExitCode> {
    args.common.make(&Change::Nothing, None)
}

fn change(requested: Requested, on: bool) -> anyhow::Result<Change> {
    match requested {
        Requested::Nothing => {
            anyhow::bail!(
                "which events? give -e GLOB or another option that chooses events; -e '*' chooses all"
            )
        }
        Requested::Majors(majors) => Ok(Change::Majors { on, majors }),
        Requested::Rule(rule) => Ok(Change::Rule(rule)),
    }
}

impl Common {
    /// Makes a change, then another one, and prints the rules after both.
    fn make(&self, change: &Change, then: Option<&Change>) -> anyhow::Result<ExitCode> {
        let recording = self.which.find(Kind::Any)?;
        let mut changed = recording.change(change)?;
        if let Some(change) = then {
            changed = recording.change(change)?;
        }
        match self.format.format {
            TextFormat::Text => print(&changed)?,
            TextFormat::Json => {
                let mut object = serde_json::to_value(&changed)?;
                object["recorder"] = recording.pid.as_unsigned().into();
                object["command"] = recording.command.into();
                writeln!(screen::stdout(Form::Json), "{object}")?;
            }
        }
        Ok(if changed.is_everywhere() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn print(changed: &Changed) -> std::io::Result<()> {
    let mut out = screen::stdout(Form::Text);
    for rule in &changed.rules {
        writeln!(out, "{}", shown(rule))?;
    }
    let count =
        |count: u32, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let mut state = format!(
        "{} on; {} recorded",
        count(changed.classes, "event class is", "event classes are"),
        count(changed.programs, "program is", "programs are")
    );
    if changed.majors != "0-63" {
        let majors = if changed.majors.is_empty() { "none" } else { &changed.majors };
        state += &format!("; major classes that are on: {majors}");
    }
    if changed.paused {
        state += "; paused";
    }
    writeln!(out, "{state}")?;
    for line in changed.notes.iter().chain(&changed.failures) {
        print_warning(line);
    }
    let line = |process: &Process, what| {
        print_warning(&format!("process {} ({}) {what}", process.pid, process.name))
    };
    for process in &changed.unanswered {
        line(process, "has not confirmed the change; it may still record as before");
    }
    for process in &changed.unreachable {
        line(process, "does not change: its connection is gone, and it continues as before");
    }
    if changed.unlisted > 0 {
        print_warning(&format!("and {}", count_of(changed.unlisted as usize, "more process")));
    }
    Ok(())
}
