//! What `tracing` costs its thread with tracewing's layer while it is recorded into a flight recorder, with
//! tracing-chrome, and with the registry alone: an event with two `u64`, a span that is entered and left, and
//! the first event of a call site, at which each side learns what the site is.

use super::{Setting, tracing_program};
use crate::compare::bounds::Bound;
use crate::compare::figures::{Rounds, median};
use crate::compare::own::{How, Recording, contents};
use crate::compare::process::Worker;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Events or spans in a burst. tracing-chrome hands them to a thread of its own, which would still be at work
/// while the next side is measured: its bursts are short.
const EVENTS: u64 = 20_000;
const CHROME_EVENTS: u64 = 1000;
const BURSTS: u32 = 5;
/// Time for that thread to come to rest.
const REST: Duration = Duration::from_millis(10);
/// Call sites of which a worker emits the first event.
const SITES: u64 = 64;

/// The least ratio that is required of events.
const LEAST: f64 = 20.0;

/// A line of a table: nanoseconds of CPU time.
pub struct Row {
    pub title: &'static str,
    pub rounds: Rounds,
}

/// One of the things that are measured, with each side.
pub struct Part {
    pub what: &'static str,
    pub own: Row,
    pub chrome: Row,
    pub registry: Row,
}

pub struct Layer {
    pub events: Part,
    pub spans: Part,
    pub first: Part,
}

impl Part {
    fn new(what: &'static str) -> Self {
        let row = |title| Row { title, rounds: Rounds::default() };
        Self {
            what,
            own: row("tracewing's layer, recorded"),
            chrome: row("tracing-chrome, to nowhere"),
            registry: row("registry alone"),
        }
    }

    /// The lines of the table.
    pub fn rows(&self) -> [&Row; 3] {
        [&self.own, &self.chrome, &self.registry]
    }

    /// How many times as much tracing-chrome costs as our layer.
    pub fn ratio(&self) -> Rounds {
        self.chrome.rounds.ratio_to(&self.own.rounds)
    }

    fn add(&mut self, figures: [f64; 3]) {
        for (row, figure) in [&mut self.own, &mut self.chrome, &mut self.registry].into_iter().zip(figures) {
            row.rounds.0.push(figure);
        }
    }
}

impl Layer {
    /// The tables, in the order in which they are shown.
    pub fn parts(&self) -> [&Part; 3] {
        [&self.events, &self.spans, &self.first]
    }

    pub fn bounds(&self) -> Vec<Bound> {
        let ratio = self.events.ratio();
        let (least, most) = ratio.range();
        vec![Bound {
            what: "tracing-chrome's event, compared with that of tracewing's layer",
            limit: "at least 20 x as expensive",
            measured: format!("{:.1} x ({least:.1} to {most:.1})", ratio.median()),
            holds: ratio.median() >= LEAST,
        }]
    }
}

/// The workers of all sides.
struct Sides {
    own: Recording,
    chrome: Worker,
    registry: Worker,
}

impl Sides {
    /// Starts them; nothing where the program was not built.
    fn start(setting: &Setting, folder: &Path) -> Result<Option<Self>> {
        let Some((peers, chrome)) = setting.peers.as_deref().zip(setting.tracing("chrome")?) else {
            return Ok(None);
        };
        let Some(registry) = setting.tracing("registry")? else { return Ok(None) };
        let program = tracing_program(peers);
        let cpu = setting.cpu.to_string();
        let how = How { cpu: Some(setting.cpu), ..How::default() };
        let command = [program.as_os_str(), cpu.as_ref(), "tracewing".as_ref()];
        let own = Recording::start_program(&setting.tracewing, folder, how, &command)?;
        Ok(Some(Self { own, chrome, registry }))
    }

    /// Medians of some bursts of each side, which take turns.
    fn bursts(&mut self, variant: &str) -> Result<[f64; 3]> {
        let mut bursts: [Vec<f64>; 3] = Default::default();
        for _ in 0..BURSTS {
            bursts[0].push(self.own.worker().measure(variant, EVENTS)?);
            bursts[1].push(self.chrome.measure(variant, CHROME_EVENTS)?);
            std::thread::sleep(REST);
            bursts[2].push(self.registry.measure(variant, EVENTS)?);
        }
        Ok(bursts.map(|figures| median(&figures)))
    }

    /// The first events of each side's call sites.
    fn first(&mut self) -> Result<[f64; 3]> {
        Ok([
            self.own.worker().measure("first", SITES)?,
            self.chrome.measure("first", SITES)?,
            self.registry.measure("first", SITES)?,
        ])
    }

    /// Ends them. What was timed has to be events that were recorded: no fewer than these.
    fn finish(self, setting: &Setting, least: u64) -> Result<()> {
        self.chrome.finish_well()?;
        self.registry.finish_well()?;
        let folder = self.own.finish()?;
        let recorded = contents(&setting.tracewing, &folder.join("snapshot-1"), "")?.all_events;
        ensure!(recorded >= least, "only {recorded} events of the layer were recorded");
        fs::remove_dir_all(&folder).context("cannot delete a recording")
    }
}

/// Measures all sides; nothing where the program was not built.
pub fn measure(setting: &Setting) -> Result<Option<Layer>> {
    let mut layer = Layer {
        events: Part::new("an event with two `u64`"),
        spans: Part::new("a span with a `u64`, entered and left"),
        first: Part::new("the first event of a call site"),
    };
    let folder = setting.scratch.join("layer");
    let Some(mut sides) = Sides::start(setting, &folder)? else {
        eprintln!("bench: the layer is left out, since its program was not built");
        return Ok(None);
    };
    for round in 0..=setting.rounds {
        let (events, spans) = (sides.bursts("two_u64")?, sides.bursts("span")?);
        // The first round has what comes once.
        if round > 0 {
            layer.events.add(events);
            layer.spans.add(spans);
        }
    }
    sides.finish(setting, EVENTS)?;
    for _ in 0..setting.rounds {
        let Some(mut sides) = Sides::start(setting, &folder)? else { break };
        layer.first.add(sides.first()?);
        sides.finish(setting, SITES)?;
    }
    Ok(Some(layer))
}
