//! What an event costs when several threads emit at once: 1 to 16 threads, on all CPUs that there are.
//!
//! The figure is the CPU time of all threads, divided by their events, and by what an `rdtsc` costs the same
//! number of threads in a loop of nothing else, measured right before. What is left is what the threads do to
//! each other.

use crate::compare::figures::Rounds;
use crate::compare::lttng::Lttng;
use crate::compare::own::{self, How, Recording};
use crate::compare::record::Setting;
use anyhow::{Result, ensure};

pub const THREADS: &[u64] = &[1, 2, 4, 8, 16];

/// A thread's loop: the key, the title in reports, and its share of [`Setting::thread_events`], since slower
/// loops need fewer events for the same time.
const VARIANTS: &[(&str, &str, u64)] = &[
    ("rdtsc", "rdtsc", 1),
    ("two_u64", "tracewing", 1),
    ("buffer-k42", "K42, a buffer per CPU", 4),
    ("buffer-mutex", "mutex, a buffer per CPU", 4),
    ("shared-mutex", "mutex, one buffer for all", 4),
];

/// LTTng's, likewise.
const LTTNG: (&str, &str, u64) = ("lttng", "LTTng-UST", 8);

/// One of the variants.
pub struct Series {
    pub key: &'static str,
    pub title: &'static str,
    /// Nanoseconds of CPU time for one event; by the number of threads as in [`THREADS`], a figure per round.
    pub cost: Vec<Rounds>,
}

pub struct Threads {
    pub series: Vec<Series>,
}

impl Threads {
    /// A variant's cost in units of an `rdtsc` on as many threads, for each number of threads.
    pub fn in_rdtsc(&self, key: &str) -> Option<Vec<Rounds>> {
        let find = |key: &str| self.series.iter().find(|series| series.key == key);
        let (series, floor) = (find(key)?, find("rdtsc")?);
        Some(series.cost.iter().zip(&floor.cost).map(|(cost, floor)| cost.ratio_to(floor)).collect())
    }

    /// The largest of the medians of [`Self::in_rdtsc`], divided by the smallest: 1 where threads cost each
    /// other nothing.
    pub fn flatness(&self, key: &str) -> Option<f64> {
        let (least, most) = Rounds(self.in_rdtsc(key)?.iter().map(Rounds::median).collect()).range();
        Some(most / least)
    }
}

/// Measures all of them.
pub fn measure(setting: &Setting, lttng: Option<&Lttng>) -> Result<Threads> {
    let session = lttng.map(|lttng| lttng.session(None)).transpose()?;
    let mut peer = session.as_ref().map(|session| session.worker(None)).transpose()?;
    let mut own = Recording::start(&setting.tracewing, &setting.scratch.join("threads"), How::default())?;
    let series = |(key, title, _): (&'static str, &'static str, u64)| Series {
        key,
        title,
        cost: vec![Rounds::default(); THREADS.len()],
    };
    let mut all: Vec<Series> = VARIANTS.iter().copied().map(series).collect();
    all.extend(peer.is_some().then(|| series(LTTNG)));

    for round in 0..=setting.thread_rounds {
        for (which, threads) in THREADS.iter().enumerate() {
            let shares = VARIANTS.iter().chain([&LTTNG]).map(|(_, _, share)| *share);
            for (series, share) in all.iter_mut().zip(shares) {
                let count = (setting.thread_events / share / threads).max(1);
                let (worker, variant) = match &mut peer {
                    Some(peer) if series.key == LTTNG.0 => (peer, "two_u64"),
                    _ => (own.worker(), series.key),
                };
                let time: [f64; 1] = worker.order(&format!("threads {count} {threads} {variant}"))?;
                if round > 0 {
                    series.cost[which].0.push(time[0] / (count * threads) as f64);
                }
            }
        }
    }
    let contents = own::contents(&setting.tracewing, &own.finish()?, own::CLASS)?;
    ensure!(contents.events > 1000, "tracewing has recorded nothing: {contents:?}");
    if let (Some(session), Some(peer)) = (&session, peer) {
        session.check(&setting.scratch.join("threads-lttng"))?;
        peer.finish_well()?;
    }
    Ok(Threads { series: all })
}
