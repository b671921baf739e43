//! How long single events take: each is timed separately, and the cost of timing itself is reported next to
//! it. Each round has new processes, so that its first million events are the first after start-up. Page
//! faults and system calls during the events are counted (`worker/latency.rs`).

use crate::compare::figures::{Rounds, percentile};
use crate::compare::lttng::Lttng;
use crate::compare::own::{How, Recording};
use crate::compare::process::Worker;
use crate::compare::record::Setting;
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// The shares of events for which the latency is reported.
pub const SHARES: &[(&str, f64)] =
    &[("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("max", 1.0)];

pub struct Distribution {
    pub key: &'static str,
    pub title: &'static str,
    /// Cycles; of all rounds, sorted.
    pub samples: Vec<u32>,
    /// Cycles at each of [`SHARES`], a figure per round.
    pub percentiles: Vec<Rounds>,
    /// Page faults in a thread's first event, and in all others, over all rounds.
    pub faults: (i64, i64),
    /// Events with a system call, likewise; `None` where they are not caught.
    pub system_calls: Option<(i64, i64)>,
}

/// All of them; the first is that of timing nothing.
pub struct Latency {
    pub distributions: Vec<Distribution>,
    /// Events in a round.
    pub events: u64,
}

impl Latency {
    pub fn find(&self, key: &str) -> Option<&Distribution> {
        self.distributions.iter().find(|distribution| distribution.key == key)
    }

    /// What timing nothing costs at the median, in cycles.
    pub fn empty(&self) -> f64 {
        self.distributions[0].percentiles[0].median()
    }

    /// p99.9 divided by the median, both without what timing costs; a figure per round.
    pub fn tail(&self, key: &str) -> Option<Rounds> {
        let at = |name| SHARES.iter().position(|(share, _)| *share == name);
        let distribution = self.find(key)?;
        let net = |which: usize| {
            Rounds(distribution.percentiles[which].0.iter().map(|cycles| cycles - self.empty()).collect())
        };
        Some(net(at("p99.9")?).ratio_to(&net(at("p50")?)))
    }
}

/// Measures all of them.
pub fn measure(setting: &Setting, lttng: Option<&Lttng>) -> Result<Latency> {
    let new = |key, title| Distribution {
        key,
        title,
        samples: Vec::new(),
        percentiles: vec![Rounds::default(); SHARES.len()],
        faults: (0, 0),
        system_calls: None,
    };
    let mut empty = new("empty", "nothing");
    let mut flight = new("flight", "tracewing, flight recorder");
    let mut disk = new("disk", "tracewing, to disk");
    let mut smp = new("smp", "tracewing, Smp, flight recorder");
    let mut peer = lttng.map(|_| new("lttng", "LTTng-UST, flight recorder"));
    let cpu = Some(setting.cpu);
    for round in 0..setting.latency_rounds {
        let mut plain = setting.plain_worker(cpu)?;
        empty.round("empty", &mut plain, setting)?;
        plain.finish_well()?;
        let sides = [
            (&mut flight, How { to_disk: false, smp: false, cpu, ..How::default() }),
            (&mut disk, How { to_disk: true, smp: false, cpu, ..How::default() }),
            (&mut smp, How { to_disk: false, smp: true, cpu, ..How::default() }),
        ];
        for (distribution, how) in sides {
            let folder = setting.scratch.join(format!("latency-{}-{round}", distribution.key));
            let mut recording = Recording::start(&setting.tracewing, &folder, how)?;
            distribution.round("latency", recording.worker(), setting)?;
            std::fs::remove_dir_all(recording.finish()?)?;
        }
        if let (Some(lttng), Some(peer)) = (lttng, &mut peer) {
            let session = lttng.session(None)?;
            let mut worker = session.worker(cpu)?;
            peer.round("latency", &mut worker, setting)?;
            worker.finish_well()?;
        }
    }
    let mut distributions = vec![empty, flight, disk, smp];
    distributions.extend(peer);
    for distribution in &mut distributions {
        distribution.samples.sort_unstable();
    }
    Ok(Latency { distributions, events: setting.latency_events })
}

impl Distribution {
    fn round(&mut self, order: &str, worker: &mut Worker, setting: &Setting) -> Result<()> {
        let path = setting.scratch.join("samples");
        let text = path.to_str().context("the scratch folder is not UTF-8")?;
        let [first_faults, first_calls, faults, calls]: [i64; 4] =
            worker.order(&format!("{order} {} {text}", setting.latency_events))?;
        self.faults.0 += first_faults;
        self.faults.1 += faults;
        if calls >= 0 {
            let before = self.system_calls.unwrap_or_default();
            self.system_calls = Some((before.0 + first_calls, before.1 + calls));
        }
        let mut samples = read_samples(&path)?;
        ensure!(samples.len() as u64 == setting.latency_events, "{} samples", samples.len());
        samples.sort_unstable();
        for (percentiles, (_, share)) in self.percentiles.iter_mut().zip(SHARES) {
            percentiles.0.push(percentile(&samples, *share).into());
        }
        self.samples.append(&mut samples);
        Ok(())
    }
}

fn read_samples(path: &Path) -> Result<Vec<u32>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let words = bytes.chunks_exact(4);
    Ok(words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}
