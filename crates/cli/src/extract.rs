//! `tracewing extract`: a part of a recording as a trace of its own.

use crate::convert;
use crate::input::Input;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Folder to write, which must not exist; without it, the last TRACE is OUT
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    #[command(flatten)]
    input: Input,
}

const HELP: &str = "\
Examples:
  tracewing extract my-trace --from +1s --to +2s -o one-second
  tracewing extract --from +1s --to +2s my-trace one-second
  tracewing extract my-trace --task 'worker-*' -o workers
  tracewing extract my-trace --process 4711 --kernel -o kernel-of-4711
  tracewing extract my-trace --where '$call == \"futex\"' -o futex

TIME and CONDITION are as in `tracewing list --help`.

OUT has the CTF version, the clocks, the environment and the losses of TRACE; \
several traces below TRACE stay several. `tracewing list` of OUT prints what `tracewing list` of TRACE prints with the same \
options. Events that have names are in OUT whatever is chosen, and from TRACE's begin on: those of threads (state dumps, \
tracewing:thread, profile:thread), what tasks have in common (user_thread:origin), call chains, and where in memory which file is \
(*:image, *:mapping), from which functions have their names; so are the creations of the tasks and threads that live at --from.

Analyses of OUT know only what is in it: which thread runs where follows from sched_switch and user_thread:switch. Where -e, --exclude, \
--user or --where leave out switches of threads, OUT says so, and what ran between two events is unknown; with --task, what \
threads do outside of the tasks is unknown, with --tid, --process what all others do, with --cpu what threads do on other CPUs. OUT begins at \
--from, also where it says that TIMEs count from its begin.

OUT gets its name when it is complete. After an error, or Ctrl-C, there is nothing.";

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { mut input, output } = args;
    let Some(out) = output.or_else(|| input.take_last()) else {
        anyhow::bail!("say where to write: tracewing extract TRACE OUT");
    };
    convert::write_traces(&input, None, true, &out)
}
