//! A program that is recorded while it runs: when the first events come, for how long a thread was stopped,
//! and what memory it takes.

use super::side::{Side, end, pss};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time of one recording.
const SECONDS: &str = "0.5";
/// Processes of one recording whose memory is looked at.
const MANY: usize = 20;
/// Time after which a recording of all of them is under way.
const UNDER_WAY: Duration = Duration::from_millis(1500);

/// One recording. Times are from the start of `tracewing record`, ms.
pub struct Attached {
    /// Its first event of the kernel.
    pub kernel: Option<f64>,
    /// Its first event of the program.
    pub program: Option<f64>,
    /// The longest time for which a thread was stopped, ms; `None` where none was.
    pub stopped: Option<f64>,
}

/// Memory for each recorded process, KiB.
#[derive(Default)]
pub struct Memory {
    /// More of the process itself.
    pub process: f64,
    pub recorder: f64,
}

/// Records a program while it runs.
pub fn attach(tracewing: &Path, side: &Side, folder: &Path) -> Result<Attached> {
    let mut target = side.start(Some("emit"))?;
    let begin = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as i64;
    let output = record(tracewing, &[target.id()], folder).args(["--for", SECONDS]).output();
    let output = output.context("cannot start tracewing")?;
    end(&mut target)?;
    let notes = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "tracewing record failed: {}", notes.trim());
    let summary: Value = serde_json::from_str(notes.lines().next_back().unwrap_or_default())?;
    // The state dump is stamped with the beginning, and is not an event of the program.
    let kernel = first(tracewing, folder, &["--exclude", "lttng_statedump*", "--exclude", "bench_attach:*"])?;
    let program = first(tracewing, folder, &["-e", "bench_attach:turn"])?;
    fs::remove_dir_all(folder)?;
    let since = |ns: i64| (ns - begin) as f64 / 1e6;
    Ok(Attached {
        kernel: kernel.map(since),
        program: program.map(since),
        stopped: summary["longest_stop_ns"].as_u64().filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e6),
    })
}

/// A recorder of running processes, which prints its summary as JSON.
pub fn record(tracewing: &Path, pids: &[u32], folder: &Path) -> Command {
    let pids = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let mut command = Command::new(tracewing);
    command.args(["record", "--format", "json", "--pid", &pids, "-o"]).arg(folder).stdin(Stdio::null());
    command
}

/// The time of the first event that is chosen, ns since 1970.
fn first(tracewing: &Path, folder: &Path, choice: &[&str]) -> Result<Option<i64>> {
    let mut list = Command::new(tracewing);
    let output = list.args(["list", "--format", "json", "-n", "1"]).args(choice).arg(folder).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let event: Option<Value> = text.lines().next().map(serde_json::from_str).transpose()?;
    Ok(event.and_then(|event| event["ns"].as_i64()))
}

/// A recorder that programs join at their start, by a socket.
pub struct Recorder {
    child: Child,
    pub socket: String,
}

impl Recorder {
    /// Starts it, to record into a folder.
    pub fn start(tracewing: &Path, folder: &Path) -> Result<Self> {
        let mut command = Command::new(tracewing);
        command.args(["record", "--no-kernel", "--quiet", "-o"]).arg(folder).arg("--");
        command.args(["sh", "-c", "echo \"$TRACEWING_SOCKET\"; exec cat"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start tracewing")?;
        let mut socket = String::new();
        let output = child.stdout.take().context("the recorder has no standard output")?;
        BufReader::new(output).read_line(&mut socket)?;
        Ok(Self { child, socket: socket.trim().to_owned() })
    }

    pub fn end(mut self) -> Result<()> {
        end(&mut self.child)
    }
}

/// What each of many processes takes while they are recorded.
pub fn memory(tracewing: &Path, side: &Side, folder: &Path) -> Result<Memory> {
    let (_, recorder_of_one, _) = recorded(tracewing, side, folder, 1)?;
    let (before, recorder, during) = recorded(tracewing, side, folder, MANY)?;
    let more = MANY as f64;
    Ok(Memory {
        process: (during as f64 - before as f64) / more,
        recorder: (recorder as f64 - recorder_of_one as f64) / (more - 1.0),
    })
}

/// Resident memory of so many processes before they are recorded, of the recorder, and of the processes while
/// they are recorded.
fn recorded(tracewing: &Path, side: &Side, folder: &Path, count: usize) -> Result<(u64, u64, u64)> {
    let mut targets = (0..count).map(|_| side.start(Some("emit"))).collect::<Result<Vec<_>>>()?;
    let pids: Vec<u32> = targets.iter().map(Child::id).collect();
    let all = || pids.iter().map(|pid| pss(*pid)).sum::<u64>();
    let before = all();
    let mut recorder = record(tracewing, &pids, folder).stderr(Stdio::null()).spawn()?;
    std::thread::sleep(UNDER_WAY);
    let (of_recorder, during) = (pss(recorder.id()), all());
    targets.iter_mut().try_for_each(end)?;
    ensure!(recorder.wait()?.success(), "tracewing record failed");
    fs::remove_dir_all(folder)?;
    Ok((before, of_recorder, during))
}
