//! The cost of passing a site, by how it is made: a loop with sixteen of them per iteration, minus the same
//! program's loop without.

use super::Setting;
use crate::compare::figures::{Rounds, median};
use crate::compare::process::{Worker, pinned};
use anyhow::Result;
use std::collections::HashMap;
use std::process::Command;

/// Sites in a burst, and bursts in a round.
const SITES: u64 = 1 << 18;
const BURSTS: u32 = 7;

/// In whose program a form is measured.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Tracer {
    Own,
    Lttng,
    Tracing(&'static str),
}

/// A line of the table.
pub struct Form {
    pub group: &'static str,
    pub title: &'static str,
    /// Nanoseconds of one site, a figure per round.
    pub rounds: Rounds,
    tracer: Tracer,
    order: &'static str,
}

pub struct Forms {
    pub rows: Vec<Form>,
    pub rounds: u32,
    pub cpu: usize,
}

const OFF: &str = "disabled";
const ON: &str = "enabled, with an empty callback";

fn rows() -> Vec<Form> {
    let row = |group, tracer, order, title| Form { group, title, rounds: Rounds::default(), tracer, order };
    vec![
        row(OFF, Tracer::Own, "site", "tracewing's site"),
        row(OFF, Tracer::Own, "emit", "tracewing's emit! with two u64"),
        row(OFF, Tracer::Own, "nop", "nop of eight bytes, as Intel recommends it"),
        row(OFF, Tracer::Own, "jump", "Feather-Trace: short jump over a long one"),
        row(OFF, Tracer::Own, "load", "load of a word, compare, branch"),
        row(OFF, Tracer::Lttng, "site", "LTTng-UST, tracepoint with two u64"),
        row(OFF, Tracer::Tracing("nobody"), "site", "tracing, event with two u64, no subscriber"),
        row(
            OFF,
            Tracer::Tracing("uninterested"),
            "site",
            "tracing, the same event, subscriber not interested",
        ),
        row(ON, Tracer::Own, "on", "tracewing's site, call of an empty function"),
        row(ON, Tracer::Own, "callback", "tracewing's fire!, empty callback attached"),
    ]
}

pub fn measure(setting: &Setting) -> Result<Forms> {
    let mut workers = HashMap::from([(Tracer::Own, setting.worker()?)]);
    if let Some(program) = &setting.lttng {
        // No recorder has to answer: the program must not be recorded.
        let start =
            || Worker::start("lttng-ust", Command::new(program).env("LTTNG_UST_REGISTER_TIMEOUT", "0"));
        workers.insert(Tracer::Lttng, pinned(setting.cpu, start)?);
    }
    for mode in ["nobody", "uninterested"] {
        if let Some(worker) = setting.tracing(mode)? {
            workers.insert(Tracer::Tracing(mode), worker);
        }
    }
    let mut rows = rows();
    rows.retain(|row| workers.contains_key(&row.tracer));
    // The first round warms up and is not counted.
    for round in 0..=setting.rounds {
        let mut bursts: Vec<Vec<f64>> = vec![Vec::new(); rows.len()];
        for _ in 0..BURSTS {
            for (row, figures) in rows.iter().zip(&mut bursts) {
                let Some(worker) = workers.get_mut(&row.tracer) else { continue };
                let empty = worker.measure("empty", SITES)?;
                figures.push(worker.measure(row.order, SITES)? - empty);
            }
        }
        if round > 0 {
            for (row, figures) in rows.iter_mut().zip(&bursts) {
                row.rounds.0.push(median(figures));
            }
        }
    }
    for worker in workers.into_values() {
        worker.finish_well()?;
    }
    Ok(Forms { rows, rounds: setting.rounds, cpu: setting.cpu })
}

impl Forms {
    /// The headings, in their order in the table.
    pub fn groups(&self) -> impl Iterator<Item = (&'static str, impl Iterator<Item = &Form>)> {
        [OFF, ON].into_iter().map(|group| (group, self.rows.iter().filter(move |row| row.group == group)))
    }
}
