//! `tracewing index`: makes the index of a recording ahead of time; any window is then drawn at once.

use crate::convert::check_outside;
use crate::input::{conclude, warn_of_losses};
use crate::output::{count_of, raise_file_limit, shown, warn_of_missing};
use crate::progress::Watch;
use crate::screen::{self, Form};
use crate::traces::Traces;
use anyhow::Result;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use tracewing_index::{Cache, Made};
use tracewing_trace::Recording;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing index my-trace
  tracewing index my-trace --index /data/indexes

An index holds the states of each CPU, process, thread and task, the functions that threads were in, and the locks \
that threads and tasks waited for or held. From it, `tracewing view` draws and sums any interval of time without \
reading the trace.

The index is stored in the user's cache folder, ~/.cache/tracewing/view, never in the trace, and may be deleted at any \
time. It is made anew if the recording has changed since, if it was made while the recording was and has no \
checkpoints, if another version of tracewing has made it, or if it is damaged; otherwise nothing is done.")]
pub struct Args {
    #[command(flatten)]
    traces: Traces,

    /// Folder for the index; only you may write it [default: ~/.cache/tracewing/view]
    #[arg(long = "index", value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let (recording, cache, path) = open(args.traces.folders()?, args.folder.as_deref())?;
    let mut out = screen::stdout(Form::Text);
    if let Some(index) = cache.find(&recording)
        && !index.tail().lacks_checkpoints
        && index.check().is_ok()
    {
        let size = std::fs::metadata(&path)?.len();
        writeln!(out, "{}; it was up to date", said(&path, index.tail().events, size, recording.bytes()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let watch = Watch::new()?;
    let begin = Instant::now();
    let made = cache.make(&recording, &mut |progress| watch.show(progress));
    drop(watch);
    let Made { ran, bytes, .. } = made?;
    if ran.stopped {
        return Err(tracewing_trace::Error::Stopped.into());
    }
    let seconds = begin.elapsed().as_secs_f64();
    let rate = ran.events as f64 / seconds.max(1e-9) / 1e6;
    let said = said(&path, ran.events, bytes, recording.bytes());
    writeln!(out, "{said}; made in {seconds:.2} s, {rate:.1} million events/s")?;
    out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

/// Opens a recording and the folder for its index; gives the path of that, too.
pub fn open(traces: &[PathBuf], folder: Option<&Path>) -> Result<(Recording, Cache, PathBuf)> {
    raise_file_limit();
    let recording = Recording::open(traces)?;
    warn_of_missing(&recording);
    let cache = Cache::new(folder)?;
    let path = cache.path_of(&recording);
    check_outside(traces, &existing(&path).join("index"))?;
    Ok((recording, cache, path))
}

/// The innermost folder on the way to a path that exists.
fn existing(path: &Path) -> &Path {
    path.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new(""))
}

/// Where the index is, and how large.
fn said(path: &Path, events: u64, bytes: u64, trace: u64) -> String {
    let percent = bytes as f64 * 100.0 / trace.max(1) as f64;
    format!(
        "{}: {}, {}, {percent:.0} % of the trace",
        shown(&path.display().to_string()),
        count_of(events as usize, "event"),
        indicatif::HumanBytes(bytes)
    )
}
