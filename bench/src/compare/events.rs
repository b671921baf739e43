//! What one event costs one thread.
//!
//! Everything runs on one CPU, in turn, burst by burst: a burst of `rdtsc`, one of tracewing, one of
//! LTTng-UST, and so on. A round's figure is the median of its bursts, of the thread's CPU time, so that
//! other programs on the machine do not count. Both recorders keep a flight recorder: nothing is lost for
//! want of a reader, and nothing is written meanwhile. Afterwards a snapshot of each shows that the events
//! were there.

use crate::compare::figures::{Rounds, median};
use crate::compare::lttng::Lttng;
use crate::compare::own::{self, Contents, How, Recording};
use crate::compare::peers::PEERS;
use crate::compare::process::Worker;
use crate::compare::record::Setting;
use anyhow::{Result, ensure};
use std::collections::HashMap;
use std::time::Duration;

/// Bytes that a burst of events takes in the buffer: one of its 4 sub-buffers.
const BURST_BYTES: u64 = 1 << 20;

/// What is not compared with a bound is measured in every sixth burst.
const SPARSE: u32 = 6;

/// Time for a peer's own threads to come to rest.
const REST: Duration = Duration::from_millis(10);

/// What measures a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Tracer {
    Own,
    Smp,
    Plain,
    Lttng,
    Peer(usize),
}

/// A line of the table.
pub struct Row {
    /// What others find it by.
    pub key: &'static str,
    /// Under which heading it stands.
    pub group: &'static str,
    pub title: String,
    /// Nanoseconds for one, a figure per round.
    pub rounds: Rounds,
    tracer: Tracer,
    variant: &'static str,
    /// How many in a burst.
    count: u64,
    /// Length of an event in tracewing's buffers, by which the burst's length was chosen.
    bytes: u64,
    /// Measured in every burst.
    dense: bool,
}

const FLOOR: &str = "operations";
const OWN: &str = "tracewing";
const SCHEMES: &str = "the same event in a buffer of another scheme";
const OTHERS: &str = "other tracers";

/// The rows, in the order in which they are measured and printed.
fn rows(peers: &[bool]) -> Vec<Row> {
    let row = |group, tracer, key: &'static str, variant, title: &str, bytes: u64, dense| Row {
        key,
        group,
        title: title.to_owned(),
        rounds: Rounds::default(),
        tracer,
        variant,
        count: BURST_BYTES / bytes,
        bytes,
        dense,
    };
    #[rustfmt::skip]
    let mut rows = vec![
        row(FLOOR, Tracer::Plain, "rdtsc", "rdtsc", "rdtsc", 28, true),
        row(OWN, Tracer::Own, "two_u64", "two_u64", "two u64", 28, true),
        row(OTHERS, Tracer::Lttng, "lttng", "two_u64", "LTTng-UST, two u64", 28, true),
        row(OWN, Tracer::Smp, "smp", "two_u64", "two u64, protocol Smp", 28, true),
        row(FLOOR, Tracer::Plain, "lfence-rdtsc", "lfence-rdtsc", "lfence; rdtsc", 28, true),
        row(OWN, Tracer::Own, "ordered", "ordered", "two u64, ordered", 28, true),
        row(OWN, Tracer::Own, "bytes16", "bytes16", "16 bytes", 28, false),
        row(OWN, Tracer::Own, "bytes64", "bytes64", "64 bytes", 76, false),
        row(OWN, Tracer::Own, "bytes256", "bytes256", "256 bytes", 268, false),
        row(OWN, Tracer::Own, "string", "string", "string of 20 bytes", 33, false),
        row(FLOOR, Tracer::Plain, "local-cas", "local-cas", "compare-and-swap, local", 28, false),
        row(FLOOR, Tracer::Plain, "locked-cas", "locked-cas", "compare-and-swap, locked", 28, false),
        row(FLOOR, Tracer::Plain, "mutex", "mutex", "mutex, uncontended, lock and unlock", 28, false),
        row(SCHEMES, Tracer::Plain, "buffer-local-cas", "buffer-local-cas", "local compare-and-swap, local commit", 28, false),
        row(SCHEMES, Tracer::Plain, "buffer-locked-cas", "buffer-locked-cas", "locked compare-and-swap, locked commit", 28, false),
        row(SCHEMES, Tracer::Plain, "buffer-k42", "buffer-k42", "K42", 28, false),
        row(SCHEMES, Tracer::Plain, "buffer-seqlock", "buffer-seqlock", "seqlock and locked compare-and-swap", 28, false),
        row(SCHEMES, Tracer::Plain, "buffer-mutex", "buffer-mutex", "mutex", 28, false),
    ];
    for (i, peer) in PEERS.iter().enumerate().filter(|(i, _)| peers[*i]) {
        let mut row = row(OTHERS, Tracer::Peer(i), peer.key, peer.variant, &peer.title(), 28, false);
        row.count = peer.burst;
        rows.push(row);
    }
    rows
}

pub struct Events {
    pub rows: Vec<Row>,
    /// How many bursts a round has.
    pub bursts: u32,
    /// The CPU on which all ran.
    pub cpu: usize,
}

impl Events {
    /// A row's figures, if it was measured.
    pub fn find(&self, key: &str) -> Option<&Rounds> {
        self.rows.iter().find(|row| row.key == key).map(|row| &row.rounds)
    }

    /// How many times the first costs what the second costs.
    pub fn ratio(&self, above: &str, below: &str) -> Option<Rounds> {
        Some(self.find(above)?.ratio_to(self.find(below)?))
    }

    /// The headings, in their order in the table.
    pub fn groups(&self) -> impl Iterator<Item = (&'static str, impl Iterator<Item = &Row>)> {
        [FLOOR, OWN, SCHEMES, OTHERS]
            .into_iter()
            .map(|group| (group, self.rows.iter().filter(move |row| row.group == group)))
    }
}

pub fn measure(setting: &Setting, lttng: Option<&Lttng>) -> Result<Events> {
    let session = lttng.map(|lttng| lttng.session(None)).transpose()?;
    let lttngs = session.as_ref().map(|session| session.worker(Some(setting.cpu))).transpose()?;
    let (mut workers, there) = Workers::start(setting, lttngs)?;
    let mut rows = rows(&there);
    rows.retain(|row| row.tracer != Tracer::Lttng || session.is_some());
    // The first round touches every page of the buffers and is not counted.
    for round in 0..=setting.rounds {
        let bursts = workers.round(&rows, setting.bursts)?;
        if round > 0 {
            for (row, figures) in rows.iter_mut().zip(&bursts) {
                row.rounds.0.push(median(figures));
            }
        }
    }
    workers.finish(&rows, setting)?;
    if let Some(session) = &session {
        session.check(&setting.scratch.join("events-lttng"))?;
    }
    Ok(Events { rows, bursts: setting.bursts, cpu: setting.cpu })
}

/// The processes that emit.
struct Workers {
    own: Recording,
    smp: Recording,
    others: HashMap<Tracer, Worker>,
}

impl Workers {
    /// Starts all, and says which peers are there.
    fn start(setting: &Setting, lttngs: Option<Worker>) -> Result<(Self, Vec<bool>)> {
        let cpu = setting.cpu;
        let start = |name, smp| {
            let how = How { to_disk: false, smp, cpu: Some(cpu), ..How::default() };
            Recording::start(&setting.tracewing, &setting.scratch.join(name), how)
        };
        let own = start("events", false)?;
        let smp = start("events-smp", true)?;
        let mut others: HashMap<Tracer, Worker> = HashMap::new();
        others.insert(Tracer::Plain, setting.plain_worker(Some(cpu))?);
        others.extend(lttngs.map(|worker| (Tracer::Lttng, worker)));
        let mut there = vec![false; PEERS.len()];
        for (i, peer) in PEERS.iter().enumerate() {
            if let Some(folder) = &setting.peers
                && let Some(worker) = peer.start(folder, cpu)?
            {
                others.insert(Tracer::Peer(i), worker);
                there[i] = true;
            }
        }
        Ok((Self { own, smp, others }, there))
    }

    /// The figures of one round, of each row in turn.
    fn round(&mut self, rows: &[Row], count: u32) -> Result<Vec<Vec<f64>>> {
        let mut bursts: Vec<Vec<f64>> = vec![Vec::new(); rows.len()];
        for burst in 0..count {
            for (row, figures) in rows.iter().zip(&mut bursts) {
                if !row.dense && burst % SPARSE != 0 {
                    continue;
                }
                let worker = match row.tracer {
                    Tracer::Own => self.own.worker(),
                    Tracer::Smp => self.smp.worker(),
                    other => self.others.get_mut(&other).expect("only rows with a worker were kept"),
                };
                figures.push(worker.measure(row.variant, row.count)?);
                if matches!(row.tracer, Tracer::Peer(_)) {
                    std::thread::sleep(REST);
                }
            }
        }
        Ok(bursts)
    }

    /// Ends all, and checks what was recorded.
    fn finish(self, rows: &[Row], setting: &Setting) -> Result<()> {
        for (tracer, recording) in [(Tracer::Own, self.own), (Tracer::Smp, self.smp)] {
            let bursts = |row: &Row| {
                let in_round = if row.dense { setting.bursts } else { setting.bursts.div_ceil(SPARSE) };
                u64::from(in_round) * u64::from(setting.rounds + 1)
            };
            let emitted = rows
                .iter()
                .filter(|row| row.tracer == tracer)
                .map(|row| bursts(row) * row.count * row.bytes)
                .sum();
            let contents = own::contents(&setting.tracewing, &recording.finish()?, own::CLASS)?;
            ensure!(
                (contents.private_buffers > 0) == (tracer == Tracer::Smp),
                "the worker without restartable sequences must use Smp, the other one Publish: {contents:?}"
            );
            account(contents, emitted)?;
        }
        self.others.into_values().try_for_each(Worker::finish_well)
    }
}

/// Makes sure that every byte that was emitted is in the snapshot, or has been overwritten and counted. The
/// thread's introduction and the headers of packets come on top, less than a hundred bytes to a sub-buffer;
/// and ten bytes for each event that follows the beginning of its sub-buffer by 2^32 cycles, since this
/// process had to wait so long for its turn.
fn account(contents: Contents, emitted: u64) -> Result<()> {
    let known = contents.bytes + contents.overwritten;
    let most = emitted + emitted * 10 / 28 + 100 * (emitted / BURST_BYTES + 8);
    ensure!(
        contents.lost == 0 && (emitted..=most).contains(&known),
        "{emitted} bytes of events were emitted, and the flight recorder knows of {known}: {contents:?}"
    );
    Ok(())
}
