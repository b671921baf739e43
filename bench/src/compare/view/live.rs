//! What a viewer that follows a recording costs its recorder: CPU time of the recorder for the events of a
//! server under load, without a viewer and with one whose page follows the end. And how late that page is.

use super::browser::Browser;
use super::late::{self, Clocks, Drawings};
use super::page::Figure;
use super::server::Server;
use super::{HEIGHT, Part, WIDTH};
use crate::compare::figures::Rounds;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time until a recording begins, or its page is there.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);
/// Before the load ends, the page is asked what it has drawn: later, it waits for what does not come.
const BEFORE: Duration = Duration::from_secs(1);
/// Events of which the time is compared: a viewer takes CPU time from the server, too, so that it does less.
const MILLION: f64 = 1e6;

/// Clients of the server: with so few, CPUs are idle at times, and with so many they are not.
const FEW: &str = "1";
const MANY: &str = "4";

/// How long is recorded, and how often in each way.
pub struct Size {
    pub seconds: u64,
    pub rounds: usize,
}

/// What one recording took.
struct Took {
    /// Seconds of CPU time.
    recorder: f64,
    viewer: f64,
    /// What was recorded.
    events: f64,
    seconds: f64,
    /// What the page drew that followed it.
    drawings: Drawings,
}

impl Took {
    /// CPU time of the recorder for a million events, in ms.
    fn per_million(&self) -> f64 {
        self.recorder * 1e3 / (self.events / MILLION)
    }
}

/// Records by turns with a viewer and one client, without a viewer, and with one, both with four clients.
pub fn measure(tracewing: &Path, home: &Path, size: &Size) -> Result<Part> {
    let mut browser = Browser::start(WIDTH, HEIGHT)?;
    let [mut few, mut without, mut with] = [const { Vec::new() }; 3];
    for _ in 0..size.rounds {
        few.push(one(tracewing, home, (size.seconds, FEW), Some(&mut browser))?);
        without.push(one(tracewing, home, (size.seconds, MANY), None)?);
        with.push(one(tracewing, home, (size.seconds, MANY), Some(&mut browser))?);
    }
    let about = format!(
        "`tracewing record` of the example server under load (`shop`, with the kernel's events), {} s at a time, {} times \
         each: with one client and `tracewing view --follow`, whose page follows the end in Chromium; with four clients, \
         which leave no CPU idle, without and with a viewer; by turns. Figures are medians. CPU time is that of the process, \
         in user and kernel mode: what the recorded programs spend in their events is not in it. The picture is looked at \
         every 10 ms: up to when it has states of the CPUs, read from its pixels, against the recording's clock. It is drawn \
         anew if its end or that of its states has moved. Where no CPU is idle, viewer and browser wait for one as the server \
         does, so the bounds are for one client. The load of the machine when this began: {}.",
        size.seconds,
        size.rounds,
        load()
    );
    let drawings = |all: &[Took]| all.iter().map(|took| took.drawings.clone()).collect::<Vec<_>>();
    let [first, then] = [
        "one client: right edge of the picture, s behind the recording's clock (p50)",
        "four clients: right edge of the picture, s behind the recording's clock (p50)",
    ];
    let mut figures = late::figures(first, &drawings(&few), true);
    let rates = |all: &[Took]| all.iter().map(|took| took.events / MILLION / took.seconds).collect();
    figures.push(Figure::median("million events/s", rates(&few)));
    figures.extend(late::figures(then, &drawings(&with), false));
    figures.extend(costs(&without, &with));
    Ok(Part { title: "While it is recorded", about, figures })
}

/// What recording takes without a viewer and with one, and what the viewer takes.
fn costs(without: &[Took], with: &[Took]) -> Vec<Figure> {
    let of = |all: &[Took], figure: fn(&Took) -> f64| all.iter().map(figure).collect::<Vec<_>>();
    let share = |cpu: fn(&Took) -> f64, all: &[Took]| {
        all.iter().map(|took| cpu(took) * 100.0 / took.seconds).collect::<Vec<_>>()
    };
    let [before, after] = [without, with].map(|all| Rounds(of(all, Took::per_million)));
    vec![
        Figure::median("recorder without a viewer, ms of CPU time per million events", before.0.clone()),
        Figure::median("the same with a viewer", after.0.clone()),
        Figure::median("ratio", after.ratio_to(&before).0),
        Figure::median("recorder without a viewer, % of a CPU", share(|took| took.recorder, without)),
        Figure::median("the same with a viewer", share(|took| took.recorder, with)),
        Figure::median("viewer, % of a CPU", share(|took| took.viewer, with)),
        Figure::median(
            "million events/s without a viewer",
            of(without, |took| took.events / MILLION / took.seconds),
        ),
        Figure::median("the same with a viewer", of(with, |took| took.events / MILLION / took.seconds)),
    ]
}

/// Makes a recording, which is followed in a browser if there is one, and removes it.
fn one(
    tracewing: &Path,
    home: &Path,
    (seconds, clients): (u64, &str),
    browser: Option<&mut Browser>,
) -> Result<Took> {
    let trace = home.join("live");
    let shop = tracewing.with_file_name("shop");
    let mut record = Command::new(tracewing);
    record.args(["record", "-q", "-o"]).arg(&trace).arg("--").arg(shop);
    record
        .args(["--clients", clients, "--seconds", &seconds.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut recorder = record.spawn().context("cannot start tracewing record")?;
    let followed = followed(tracewing, home, (&trace, seconds), &mut recorder, browser);
    // It ends by itself.
    let status = recorder.wait()?;
    ensure!(status.success(), "tracewing record ended with {status}");
    let (recorder, viewer, lasted, drawings) = followed?;
    let info = Command::new(tracewing).args(["stats", "--format", "json"]).arg(&trace).output()?;
    let stats: Value = serde_json::from_slice(&info.stdout).context("tracewing stats has printed no JSON")?;
    let counts = stats["events"].as_array().into_iter().flatten();
    let events = counts.filter_map(|row| row["events"].as_f64()).sum();
    std::fs::remove_dir_all(&trace)?;
    Ok(Took { recorder, viewer, events, seconds: lasted, drawings })
}

/// CPU times of recorder and viewer at the end, how long the recording lasted, and what was drawn meanwhile.
fn followed(
    tracewing: &Path,
    home: &Path,
    (trace, seconds): (&Path, u64),
    recorder: &mut Child,
    browser: Option<&mut Browser>,
) -> Result<(f64, f64, f64, Drawings)> {
    let (begin, clocks) = (Instant::now(), Clocks::now());
    let is_there = || std::fs::read_dir(trace).is_ok_and(|mut entries| entries.next().is_some());
    while !is_there() {
        ensure!(begin.elapsed() < PATIENCE, "the recording does not begin");
        std::thread::sleep(PAUSE);
    }
    let mut viewer = match browser {
        None => None,
        Some(browser) => {
            let server = Server::start(tracewing, trace, home, &["--follow"])?;
            browser.navigate(&server.address)?;
            while browser.value("!!window.tracewing?.live()?.follows")? != true || !late::watch(browser)? {
                ensure!(begin.elapsed() < PATIENCE, "the page does not follow the recording");
                std::thread::sleep(PAUSE);
            }
            Some((server, browser, clocks.are_right().map_err(|error| format!("{error:#}"))))
        }
    };
    let (mut took, mut drawings) = ((0.0, 0.0), None);
    while recorder.try_wait()?.is_none() {
        // Of a process that has just ended, there is no time: the last one is right to a pause.
        took.0 = cpu(recorder.id()).unwrap_or(took.0);
        if let Some((server, browser, are_right)) = &mut viewer {
            took.1 = cpu(server.pid()).unwrap_or(0.0);
            if drawings.is_none() && begin.elapsed() + BEFORE > Duration::from_secs(seconds) {
                drawings = Some(are_right.clone().and_then(|()| late::drawings(browser)));
            }
        }
        std::thread::sleep(PAUSE);
    }
    if let Some((_, browser, _)) = viewer {
        browser.navigate("about:blank")?;
    }
    let missed = || Err("the page was not asked before the recording ended".to_owned());
    Ok((took.0, took.1, begin.elapsed().as_secs_f64(), drawings.unwrap_or_else(missed)))
}

/// Seconds of CPU time of a process, if it runs: without those of its children.
fn cpu(pid: u32) -> Option<f64> {
    seconds(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The same from the text of its `stat`: fields 14 and 15, in ticks; its name may have spaces.
fn seconds(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let ticks = rustix::param::clock_ticks_per_second();
    Some((user + system) as f64 / ticks as f64).filter(|seconds| *seconds > 0.0)
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_a_process_is_found() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 900 80 0 0 150 50 3000 4000 20 0 1 0 33 1 2";
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(seconds(stat), Some(200.0 / ticks));
        assert_eq!(seconds("7 (a) S"), None);
        assert!(cpu(std::process::id()).is_none_or(|seconds| seconds > 0.0));
    }
}
