//! What an event of `tracing` with two `u64` costs its thread: with tracewing's layer while it is recorded
//! into a flight recorder, with tracing-chrome, and with the registry alone.

use super::{Setting, tracing_program};
use crate::compare::bounds::Bound;
use crate::compare::figures::{Rounds, median};
use crate::compare::own::{How, Recording, contents};
use anyhow::{Result, ensure};
use std::time::Duration;

/// Events in a burst. tracing-chrome hands them to a thread of its own, which would still be at work while
/// the next side is measured: its bursts are short.
const EVENTS: u64 = 20_000;
const CHROME_EVENTS: u64 = 1000;
const BURSTS: u32 = 5;
/// Time for that thread to come to rest.
const REST: Duration = Duration::from_millis(10);

/// The least ratio that is required.
const LEAST: f64 = 20.0;

/// A line of the table.
pub struct Row {
    pub title: &'static str,
    /// Nanoseconds of CPU time for an event.
    pub rounds: Rounds,
}

/// The table.
pub struct Layer {
    pub own: Row,
    pub chrome: Row,
    pub registry: Row,
}

/// Measures all sides; nothing where the program was not built.
pub fn measure(setting: &Setting) -> Result<Option<Layer>> {
    let Some((peers, mut chrome)) = setting.peers.as_deref().zip(setting.tracing("chrome")?) else {
        eprintln!("bench: the layer is left out, since its program was not built");
        return Ok(None);
    };
    let Some(mut registry) = setting.tracing("registry")? else { return Ok(None) };
    let folder = setting.scratch.join("layer");
    let program = tracing_program(peers);
    let cpu = setting.cpu.to_string();
    let how = How { cpu: Some(setting.cpu), ..How::default() };
    let command = [program.as_os_str(), cpu.as_ref(), "tracewing".as_ref()];
    let mut own = Recording::start_program(&setting.tracewing, &folder, how, &command)?;
    let row = |title| Row { title, rounds: Rounds::default() };
    let mut layer = Layer {
        own: row("tracewing's layer, recorded"),
        chrome: row("tracing-chrome, to nowhere"),
        registry: row("registry alone"),
    };
    for round in 0..=setting.rounds {
        let mut bursts: [Vec<f64>; 3] = Default::default();
        for _ in 0..BURSTS {
            bursts[0].push(own.worker().measure("two_u64", EVENTS)?);
            bursts[1].push(chrome.measure("two_u64", CHROME_EVENTS)?);
            std::thread::sleep(REST);
            bursts[2].push(registry.measure("two_u64", EVENTS)?);
        }
        if round > 0 {
            for (row, figures) in
                [&mut layer.own, &mut layer.chrome, &mut layer.registry].into_iter().zip(&bursts)
            {
                row.rounds.0.push(median(figures));
            }
        }
    }
    chrome.finish_well()?;
    registry.finish_well()?;
    // What was timed has to be events that were recorded.
    let folder = own.finish()?;
    let contents = contents(&setting.tracewing, &folder.join("snapshot-1"), "")?;
    ensure!(contents.all_events >= EVENTS, "only {} events of the layer were recorded", contents.all_events);
    Ok(Some(layer))
}

impl Layer {
    /// The lines of the table.
    pub fn rows(&self) -> [&Row; 3] {
        [&self.own, &self.chrome, &self.registry]
    }

    /// How many times tracing-chrome's event costs what ours costs.
    pub fn ratio(&self) -> Rounds {
        self.chrome.rounds.ratio_to(&self.own.rounds)
    }

    pub fn bounds(&self) -> Vec<Bound> {
        let ratio = self.ratio();
        let (least, most) = ratio.range();
        vec![Bound {
            what: "tracing-chrome's event, to that of our layer",
            limit: "at least 20 x as expensive",
            measured: format!("{:.1} x ({least:.1} to {most:.1})", ratio.median()),
            holds: ratio.median() >= LEAST,
        }]
    }
}
