//! Recordings of `examples/ledger`, a program that counts its own events and kills one of its children.
//! Meanwhile the recorder is stopped repeatedly, disks fill up, and a hostile user is active. Afterwards
//! `events read + events lost = events emitted`, per recording.

use super::neighbour::Neighbour;
use crate::steps::{cargo, target_folder};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Options of the recordings, one after the other.
const WAYS: [&[&str]; 5] = [
    &[],
    &["--buffers", "process"],
    &["--sub-buffer-size", "16K", "--sub-buffers", "4"],
    &["--clock", "mono"],
    &["--sub-buffer-size", "1M", "--flush", "5000"],
];
/// Every so many rounds the disk is too small for the recording.
const FULL_DISK: usize = 4;
/// Events per task of the ledger.
const EVENTS: &str = "150000";

/// Reveals the socket's secret name to all users, as a careless recorded program might, and becomes the
/// ledger.
const LEAK: &str = r#"echo "$TRACEWING_SOCKET" > "$0"; exec "$@""#;

/// What a recording came to.
#[derive(Default)]
struct Sum {
    rounds: usize,
    full_disks: usize,
    stops: usize,
    read: u64,
    lost: u64,
    emitted: u64,
}

/// Records for `length`.
pub fn run(length: Duration) -> Result<()> {
    cargo(&["build", "--release", "--package", "tracewing-cli", "--package", "ledger"])?;
    let target = target_folder()?.join("release");
    let folder = PathBuf::from(format!("/tmp/tracewing-soak-{}", std::process::id()));
    fs::create_dir(&folder)?;
    // As /tmp is: all users can write, and cannot remove what others wrote.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777))?;
    let outcome = rounds(&target, &folder, length);
    fs::remove_dir_all(&folder)?;
    let sum = outcome?;
    println!(
        "{} recordings ({} on full disks), {} stops of the recorder: {} read + {} lost = {} emitted",
        sum.rounds, sum.full_disks, sum.stops, sum.read, sum.lost, sum.emitted
    );
    Ok(())
}

fn rounds(target: &Path, folder: &Path, length: Duration) -> Result<Sum> {
    let neighbour = match Neighbour::start(folder) {
        Ok(neighbour) => Some(neighbour),
        Err(error) => {
            println!("skipped: no hostile neighbour ({error:#}; only root can have one)");
            None
        }
    };
    let (begin, mut sum) = (Instant::now(), Sum::default());
    let mut random = begin.elapsed().as_nanos() as u64 ^ u64::from(std::process::id());
    while begin.elapsed() < length {
        let way = WAYS[sum.rounds % WAYS.len()];
        let is_full = sum.rounds % FULL_DISK == FULL_DISK - 1;
        round(target, folder, way, is_full, &mut random, &mut sum).with_context(|| {
            format!("round {}, record {}, full disk: {is_full}", sum.rounds, way.join(" "))
        })?;
        sum.rounds += 1;
    }
    if let Some(neighbour) = neighbour {
        println!("hostile neighbour: {}", neighbour.stop()?);
    }
    Ok(sum)
}

fn round(
    target: &Path,
    folder: &Path,
    way: &[&str],
    is_full: bool,
    random: &mut u64,
    sum: &mut Sum,
) -> Result<()> {
    let place = folder.join(format!("round{}", sum.rounds));
    fs::create_dir(&place)?;
    let disk = if is_full { Disk::mount(&place) } else { None };
    let trace = place.join("trace");
    let own = |what: &str| folder.join(format!("{what}{}", sum.rounds));
    let (truth, summary) = (own("truth"), own("summary"));
    let mut recorder = Command::new(target.join("tracewing"))
        .args(["record", "--no-kernel", "--format", "json", "-o"])
        .arg(&trace)
        .args(way)
        .args(["--", "sh", "-c", LEAK])
        .arg(folder.join("leaked"))
        .arg(target.join("ledger"))
        .arg(&truth)
        .arg(EVENTS)
        .stdout(Stdio::null())
        .stderr(fs::File::create(&summary)?)
        .spawn()
        .context("cannot start tracewing")?;
    while recorder.try_wait()?.is_none() {
        sleep(Duration::from_millis(next(random) % 150));
        if next(random).is_multiple_of(3) {
            signal(recorder.id(), "STOP")?;
            sleep(Duration::from_millis(next(random) % 1500));
            signal(recorder.id(), "CONT")?;
            sum.stops += 1;
        }
    }
    let checked = check(target, &trace, &truth, &summary, disk.is_some(), sum);
    sum.full_disks += usize::from(disk.is_some());
    drop(disk);
    checked?;
    fs::remove_dir_all(&place)?;
    [truth, summary].iter().try_for_each(fs::remove_file)?;
    Ok(())
}

/// Compares the recording with the ledger's own account.
fn check(
    target: &Path,
    trace: &Path,
    truth: &Path,
    summary: &Path,
    is_full: bool,
    sum: &mut Sum,
) -> Result<()> {
    let truth: Value = serde_json::from_slice(&fs::read(truth).context("the ledger kept no account")?)?;
    let count = |what: &str| -> u64 {
        let tasks = truth.as_array().into_iter().flatten();
        tasks
            .flat_map(|task| task[what].as_object().into_iter().flatten())
            .filter_map(|(_, n)| n.as_u64())
            .sum()
    };
    let (emitted, begun) = (count("emitted"), count("begun"));
    let listed = Command::new(target.join("tracewing")).arg("list").arg(trace).output()?;
    ensure!(listed.status.success(), "list fails: {}", String::from_utf8_lossy(&listed.stderr));
    let lines = String::from_utf8_lossy(&listed.stdout);
    let read = lines.lines().filter(|line| line.contains(" ledger:")).count() as u64;
    let announced = lines.lines().filter(|line| line.contains(" tracewing:thread:")).count() as u64;
    let said = fs::read_to_string(summary)?;
    let last = said.lines().next_back().unwrap_or_default();
    let summary: Value =
        serde_json::from_str(last).with_context(|| format!("record has no summary: {said}"))?;
    let lost =
        summary["lost_events"].as_u64().with_context(|| format!("no number of lost events: {said}"))?;
    if is_full {
        ensure!(read <= begun, "{read} read of {begun} events");
        return Ok(());
    }
    // What is lost may include the announcements of threads, one per task.
    let tasks = truth.as_array().map_or(0, Vec::len) as u64;
    let found = read + lost;
    let most = begun + tasks.saturating_sub(announced);
    ensure!(
        (emitted..=most).contains(&found),
        "{read} read + {lost} lost, {emitted} to {begun} emitted: {}",
        summary["losses"]
    );
    (sum.read, sum.lost, sum.emitted) = (sum.read + read, sum.lost + lost, sum.emitted + emitted);
    Ok(())
}

fn signal(process: u32, name: &str) -> Result<()> {
    // It may have ended meanwhile.
    Command::new("kill").args(["-s", name, &process.to_string()]).stderr(Stdio::null()).status()?;
    Ok(())
}

/// The next of a sequence of random numbers (xorshift64*).
fn next(state: &mut u64) -> u64 {
    *state |= 1;
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
}

/// A small file system in memory, mounted on a folder until dropped.
struct Disk(PathBuf);

impl Disk {
    /// `None` where only root may mount and this is another user.
    fn mount(place: &Path) -> Option<Self> {
        let options = ["-t", "tmpfs", "-o", "size=8M,mode=0755", "tracewing-soak"];
        let status = Command::new("mount").args(options).arg(place).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success()).then(|| Self(place.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
