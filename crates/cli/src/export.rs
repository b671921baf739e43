//! `tracewing export`: a recording, or a part of it, for other viewers.

use crate::convert::check_outside;
use crate::input::{Input, conclude};
use crate::no_result::ANY;
use crate::output::{print_broken, print_warning, shown};
use crate::progress::Watch;
use crate::screen::{self, Form};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracewing_export::{Export, Format, Shown};
use tracewing_trace::Unfinished;

/// What `tracewing export` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing export my-trace --format perfetto -o my-trace.perfetto
      then open it in https://ui.perfetto.dev
  tracewing export my-trace --format chrome -o my-trace.json
      then load it in chrome://tracing
  tracewing export my-trace --format paje -o my-trace.paje && vite my-trace.paje
  tracewing export my-trace --format paje -o - --from +1s --to +2s | pj_dump -l 9

Each CPU, process, thread and task has a line that shows what it did and when; states and times are those of \
`tracewing threads`. Also written are events of programs, other events of the kernel, wakes (from waker to woken \
thread), and the number of threads that wait for a CPU.

FILE is written after everything has been read, since a state is known only once it has ended. Data beyond 64 MiB is \
kept in a temporary file next to FILE, or in TMPDIR for standard output. FILE gets its name when it is complete. \
Ctrl-C stops the reading, and what was read is written; a second Ctrl-C also stops the writing.")]
pub struct Args {
    /// What to write
    #[arg(long, value_enum)]
    format: Target,

    /// File to write, which must not exist unless it is a pipe; - is standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    out: PathBuf,

    #[command(flatten)]
    input: Input,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// Pajé's format, for ViTE and pajeng
    Paje,
    /// Perfetto's protocol buffers
    Perfetto,
    /// Chrome's trace events, JSON
    Chrome,
}

impl From<Target> for Format {
    fn from(target: Target) -> Self {
        match target {
            Target::Paje => Format::Paje,
            Target::Perfetto => Format::Perfetto,
            Target::Chrome => Format::Chrome,
        }
    }
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let out = &args.out;
    if out.as_os_str() != "-" {
        check_outside(args.input.traces()?, out)?;
        let (unfinished, mut file) = Unfinished::file(out)?;
        let Some(unfinished) = unfinished else {
            return Ok(export(args, &std::env::temp_dir(), &mut file)?.1);
        };
        let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
        let (said, status) = export(args, folder.unwrap_or(Path::new(".")), &mut file)?;
        unfinished.finish()?;
        let line = format!("{}: {said}", shown(&out.display().to_string()));
        print_broken(&mut screen::stdout(Form::Text), 0, &line)?;
        return Ok(status);
    }
    let is_terminal = std::io::stdout().is_terminal();
    ensure!(
        args.format != Target::Perfetto || !is_terminal,
        "Perfetto's format is not for a terminal; give a file with -o"
    );
    let form = if args.format == Target::Chrome { Form::Json } else { Form::Data };
    Ok(export(args, &std::env::temp_dir(), &mut screen::stdout(form))?.1)
}

/// Writes it; says how much it is.
fn export(args: &Args, folder: &Path, out: &mut dyn Write) -> Result<(String, ExitCode)> {
    let (recording, filter) = args.input.open()?;
    let mut watch = Watch::new()?;
    let export = Export { format: args.format.into(), folder };
    let ready = export.run(recording, &filter, &mut |progress| watch.show(progress))?;
    let Shown { cpus, threads, tasks, strangers, lacks_functions, lacks_locks } = ready.shown();
    watch.again();
    let written = ready.write(out, &mut |progress| watch.show(progress));
    let cut = watch.is_stopped();
    drop(watch);
    let (bytes, mut ran) = written.with_context(|| format!("cannot write {}", args.out.display()))?;
    ran.stopped |= cut;
    let mut said = format!("{}; ", indicatif::HumanBytes(bytes));
    let counts = [(cpus, "CPU"), (threads, "thread"), (tasks, "task")];
    let counts = counts.map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }));
    said += &counts.join(", ");
    if strangers > 0 {
        said += &format!(
            "; {strangers} other threads also appear, but were not followed, and are not shown; --system-wide records all threads"
        );
    }
    if lacks_functions {
        said += "; functions are not shown, because not all of their ends are there";
    }
    if lacks_locks {
        said += "; some waits for locks, or holds, are not shown, because not all events that mark them are there";
    }
    if ran.lost_events > 0 {
        said += &format!("; {} events are missing, shown where they were lost", ran.lost_events);
    }
    if ran.lost_parts > 0 {
        said += &format!("; in {} places, an unknown number is missing", ran.lost_parts);
    }
    if cpus + threads + tasks == 0
        && !ran.stopped
        && let Some(why) = ANY.why_no_event(&args.input)?
    {
        print_warning(&why);
    }
    Ok((said, conclude(ran)))
}
