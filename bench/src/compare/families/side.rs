//! One round of one side: a load of many programs, alone or recorded, and what its recorder took meanwhile.

use crate::compare::own::{Contents, contents};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Time between two looks at a recorder.
const LOOK: Duration = Duration::from_millis(20);
const MIB: f64 = (1 << 20) as f64;

/// What a round took.
#[derive(Default)]
pub struct Took {
    /// Of the load, on the clock, s.
    pub seconds: f64,
    /// CPU time of the load, s.
    pub load: f64,
    /// CPU time of the recorder, s.
    pub cpu: f64,
    /// Largest resident memory of the recorder, MiB.
    pub peak: f64,
    /// Most memory in buffers that the recorder held, MiB.
    pub buffers: f64,
    /// Most files that the recorder had open.
    pub open: usize,
    /// Files of the recording.
    pub files: usize,
    pub contents: Contents,
}

/// The load without a recorder.
pub fn alone(command: &[String]) -> Result<Took> {
    let output = Command::new(&command[0]).args(&command[1..]).output().context("cannot start the load")?;
    ensure!(output.status.success(), "the load failed: {}", output.status);
    let (seconds, load) = times(&output.stdout)?;
    Ok(Took { seconds, load, ..Took::default() })
}

/// The load, recorded by `tracewing` into a folder that is removed afterwards; `reader` reads what came out.
pub fn recorded(tracewing: &Path, reader: &Path, folder: &Path, command: &[String]) -> Result<Took> {
    let child = Command::new(tracewing)
        .args(["record", "--quiet", "--no-kernel", "--locks", "--lock-chains", "none", "-o"])
        .arg(folder)
        .arg("--")
        .args(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", tracewing.display()))?;
    let mut took = watch(&child)?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("{} failed: {}", tracewing.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    (took.seconds, took.load) = times(&output.stdout)?;
    took.contents = contents(reader, folder, "")?;
    took.files = count_files(folder)?;
    fs::remove_dir_all(folder).context("cannot remove the recording")?;
    Ok(took)
}

/// What the load says: its time on the clock, and of CPUs.
fn times(said: &[u8]) -> Result<(f64, f64)> {
    let mut numbers = str::from_utf8(said)?.split_whitespace().map(str::parse);
    let (Some(wall), Some(cpu)) = (numbers.next(), numbers.next()) else {
        bail!("the load did not say how long it took")
    };
    Ok((wall?, cpu?))
}

/// Looks at a recorder until it is dead, and leaves it to be waited for.
fn watch(child: &Child) -> Result<Took> {
    let process = format!("/proc/{}", child.id());
    let mut took = Took::default();
    loop {
        let stat = fs::read_to_string(format!("{process}/stat")).context("the recorder is gone")?;
        // After the name: state, and as 12th and 13th the time in user and kernel code.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let [state, .., user, system] = fields.get(..13).context("the kernel's line is too short")? else {
            bail!("the kernel's line is too short")
        };
        took.cpu = (user.parse::<f64>()? + system.parse::<f64>()?) / 100.0;
        if *state == "Z" {
            return Ok(took);
        }
        let status = fs::read_to_string(format!("{process}/status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
        took.peak = took.peak.max(peak.and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0);
        let (open, buffers) = buffers(&process);
        (took.open, took.buffers) = (took.open.max(open), took.buffers.max(buffers));
        std::thread::sleep(LOOK);
    }
}

/// How many files a process has open, and what those of them take that are memory, MiB.
fn buffers(process: &str) -> (usize, f64) {
    let Ok(files) = fs::read_dir(format!("{process}/fd")) else { return (0, 0.0) };
    let (mut open, mut bytes) = (0, 0);
    for path in files.filter_map(|file| Some(file.ok()?.path())) {
        open += 1;
        let is_memory =
            fs::read_link(&path).is_ok_and(|to| to.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"));
        // A block of stat(2) has 512 bytes.
        bytes += fs::metadata(&path).map_or(0, |file| if is_memory { 512 * file.blocks() } else { 0 });
    }
    (open, bytes as f64 / MIB)
}

fn count_files(folder: &Path) -> Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        count += if entry.file_type()?.is_dir() { count_files(&entry.path())? } else { 1 };
    }
    Ok(count)
}
