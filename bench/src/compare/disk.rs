//! How much reaches the disk when one thread emits events as fast as it can, alternating with a plain loop of
//! writes of 1 MiB to the same file system.
//!
//! Each side begins with a page cache that is as empty as this program can make it (the files of the previous
//! side are removed, `sync`, and, for root, /proc/sys/vm/drop_caches), and writes for the same time. Events
//! that are still in a recorder's buffer at the end of that time are written later, so the buffer's size is
//! subtracted from the result.

use crate::compare::figures::Rounds;
use crate::compare::lttng::{self, Lttng};
use crate::compare::own::{self, Contents, How, Recording};
use crate::compare::process::Worker;
use crate::compare::record::Setting;
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// A CPU's buffer: what may be written after the end.
const BUFFER_BYTES: u64 = 4 << 20;

/// What one side kept of what it was given.
#[derive(Default)]
pub struct Side {
    /// Bytes of packets in a second, a figure per round.
    pub kept: Rounds,
    /// Share of the emitted events that are in the trace.
    pub share: Rounds,
    /// Bytes that an event takes in the trace, packet headers included.
    pub event_bytes: Rounds,
    /// Events that were emitted, all rounds together.
    pub emitted: u64,
    /// Events in the traces.
    pub recorded: u64,
    /// Events that the traces say were lost.
    pub lost: u64,
}

/// Both sides, and the plain loop.
#[derive(Default)]
pub struct Disk {
    /// Bytes in a second.
    pub plain: Rounds,
    pub own: Side,
    pub lttng: Option<Side>,
    /// The caches were dropped, not only written out.
    pub dropped: bool,
}

pub fn measure(setting: &Setting, lttng: Option<&Lttng>) -> Result<Disk> {
    let mut disk = Disk { lttng: lttng.map(|_| Side::default()), ..Disk::default() };
    let folder = tempfile::tempdir_in(&setting.disk)
        .with_context(|| format!("cannot make a folder in {}", setting.disk.display()))?;
    let length = Duration::from_millis(setting.flood_ms);
    for round in 0..setting.disk_rounds {
        let path = |side: &str| folder.path().join(format!("{side}-{round}"));
        disk.dropped = fresh_cache();
        disk.plain.0.push(plain_writes(&path("plain"), length)?);
        disk.dropped &= fresh_cache();
        own_round(setting, &path("tracewing"), &mut disk.own)?;
        if let (Some(lttng), Some(side)) = (lttng, &mut disk.lttng) {
            fresh_cache();
            lttng_round(setting, lttng, &path("lttng"), side)?;
        }
    }
    Ok(disk)
}

fn own_round(setting: &Setting, folder: &Path, side: &mut Side) -> Result<()> {
    let how = How { to_disk: true, cpu: Some(setting.cpu), smp: false, ..How::default() };
    let mut recording = Recording::start(&setting.tracewing, folder, how)?;
    let flood = flood(recording.worker(), setting)?;
    let folder = recording.finish()?;
    let contents = own::contents(&setting.tracewing, &folder, own::CLASS)?;
    // The thread introduces itself with one event more, which may have been lost like any other.
    let all = contents.all_events + contents.lost;
    ensure!(
        all == flood[0] + 1,
        "{} events and the thread's introduction were emitted; recorded and lost are {all}: {contents:?}",
        flood[0]
    );
    side.add(flood, contents);
    fs::remove_dir_all(folder)?;
    Ok(())
}

fn lttng_round(setting: &Setting, lttng: &Lttng, folder: &Path, side: &mut Side) -> Result<()> {
    let session = lttng.session(Some(folder))?;
    let mut worker = session.worker(Some(setting.cpu))?;
    let flood = flood(&mut worker, setting)?;
    worker.finish_well()?;
    let contents = own::contents(&setting.tracewing, session.stop()?, lttng::CLASS)?;
    side.add(flood, contents);
    drop(session);
    fs::remove_dir_all(folder)?;
    Ok(())
}

impl Side {
    /// `flood`: the events that were emitted, and the nanoseconds that it took.
    fn add(&mut self, [emitted, time]: [u64; 2], contents: Contents) {
        self.kept.0.push(contents.bytes.saturating_sub(BUFFER_BYTES) as f64 / (time as f64 * 1e-9));
        self.share.0.push(contents.events as f64 / emitted as f64);
        self.event_bytes.0.push(contents.bytes as f64 / contents.all_events as f64);
        self.emitted += emitted;
        self.recorded += contents.events;
        self.lost += contents.lost;
    }
}

fn flood(worker: &mut Worker, setting: &Setting) -> Result<[u64; 2]> {
    worker.order(&format!("flood {}", setting.flood_ms))
}

/// Writes for some time; gives bytes in a second.
fn plain_writes(path: &Path, length: Duration) -> Result<f64> {
    let block = vec![0x5a_u8; 1 << 20];
    let mut file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let begin = Instant::now();
    let mut bytes = 0;
    while begin.elapsed() < length {
        file.write_all(&block).with_context(|| format!("cannot write to {}", path.display()))?;
        bytes += block.len();
    }
    let rate = bytes as f64 / begin.elapsed().as_secs_f64();
    drop(file);
    fs::remove_file(path)?;
    Ok(rate)
}

/// Writes dirty pages to the disk; returns whether clean ones could be dropped, too.
fn fresh_cache() -> bool {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}
