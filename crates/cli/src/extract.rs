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
options. Events that give names are always in OUT, also those before --from: of threads (state dumps, tracewing:thread, profile:thread), \
of tasks (user_thread:origin), of call chains, and of files in memory (*:image, *:mapping), by which functions are found; also the \
creations of tasks and threads that are alive at --from.

Analyses of OUT know only what is in it: which thread runs where follows from sched_switch and user_thread:switch. If -e, --exclude, \
--user or --where leave out switches of threads, OUT says so, and what ran between two events is unknown. Also unknown is, with \
--task, what threads do outside of the tasks; with --tid and --process, what all others do; with --cpu, what threads do on other \
CPUs. The beginning of OUT, from which TIMEs count, is --from.

OUT appears when it is complete. After an error or Ctrl-C, nothing is left.";

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { mut input, output } = args;
    let Some(out) = output.or_else(|| input.take_last()) else {
        anyhow::bail!("say where to write: tracewing extract TRACE OUT");
    };
    convert::write_traces(&input, None, true, &out)
}
