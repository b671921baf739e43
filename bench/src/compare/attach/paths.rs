//! What programs execute while they are not recorded: polls of tasks, which can be reported to
//! recordings that begin later, and spans. Compared with another build of the worker, if there is one.

use crate::compare::figures::Rounds;
use crate::compare::process::{Worker, measuring_cpu, pinned};
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// Of each in a measurement.
const COUNT: u64 = 400_000;

pub const ALONE: &str = "poll of a task of tokio alone";
pub const TOLD: &str = "poll of a task that can be recorded";

/// Order for the worker, title.
const VARIANTS: [(&str, &str); 3] =
    [("polls", ALONE), ("told-polls", TOLD), ("spans", "two spans, one in the other")];

pub struct Cost {
    pub title: &'static str,
    /// ns of CPU time.
    pub cost: Rounds,
    /// Of the other build.
    pub other: Option<Rounds>,
}

/// Measures all, in turn, round by round.
pub fn measure(worker: &Path, other: Option<&Path>, rounds: u32) -> Result<Vec<Cost>> {
    let cpu = measuring_cpu()?;
    let start = |program: &Path| pinned(cpu, || Worker::start("bench-tasks", &mut Command::new(program)));
    let mut own = start(worker)?;
    let mut others = other.map(start).transpose()?;
    let other_rounds = || others.is_some().then(Rounds::default);
    let mut paths: Vec<Cost> = VARIANTS
        .iter()
        .map(|(_, title)| Cost { title, cost: Rounds::default(), other: other_rounds() })
        .collect();
    // The first round fills caches and is not counted.
    for round in 0..=rounds {
        for ((variant, _), path) in VARIANTS.iter().zip(&mut paths) {
            let cost = own.measure(variant, COUNT)?;
            let other = others.as_mut().map(|worker| worker.measure(variant, COUNT)).transpose()?;
            if round > 0 {
                path.cost.0.push(cost);
                path.other.iter_mut().for_each(|rounds| rounds.0.extend(other));
            }
        }
    }
    own.finish_well()?;
    others.map_or(Ok(()), Worker::finish_well)?;
    Ok(paths)
}
