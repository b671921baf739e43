//! `tracewing extract`: a part of a recording as a trace of its own.

use crate::convert;
use crate::input::Input;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Folder to write, which must not exist. Without this option, the last TRACE is OUT
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    #[command(flatten)]
    input: Input,
}

const HELP: &str = "\
Examples:
  tracewing extract my-trace --from +1s --to +2s -o one-second
  tracewing extract --from +1s --to +2s my-trace one-second
  tracewing extract my-trace --task 'work/*' -o work
  tracewing extract my-trace --process 4711 --kernel -o kernel-of-4711
  tracewing extract my-trace --where '$call == \"futex\"' -o futex

TIME and CONDITION are as in `tracewing list --help`.

OUT keeps the CTF version, the clocks, the environment and the losses of TRACE; several traces below TRACE remain \
separate. `tracewing list OUT` prints what `tracewing list TRACE` prints with the same options. OUT always contains \
the events that give names, even those before --from: to threads (state dumps, tracewing:thread, profile:thread), to \
tasks (user_thread:origin), to call chains, and to mapped files (*:image, *:mapping), which are needed to find \
functions. It also contains the creations of tasks and threads that are alive at --from.

Analyses of OUT know only what it contains: sched_switch and user_thread:switch show which thread runs where. If -e, \
--exclude, --user or --where leave out switches of threads, OUT records that, and what ran between two events is \
unknown. Filters make more unknown: --task, what threads do outside the tasks; --tid and --process, what all others \
do; --cpu, what threads do on other CPUs. OUT begins at --from, and TIMEs count from there.

OUT appears when it is complete. After an error or Ctrl-C, nothing remains.";

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { mut input, output } = args;
    let Some(out) = output.or_else(|| input.take_last()) else {
        anyhow::bail!("say where to write: tracewing extract TRACE OUT");
    };
    convert::write_traces(&input, None, true, &out)
}
