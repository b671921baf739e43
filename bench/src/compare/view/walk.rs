//! How long the page takes to open and to draw, and its memory.

use super::browser::Browser;
use super::page::Figure;
use super::server::Server;
use super::{Part, ROUNDS, Size, pss};
use anyhow::{Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// Steps of a walk between two looks at memory.
const STEPS: u32 = 50;

/// Opens the recording without an index, and with the one in `home`; gives the last server.
pub fn openings(
    browser: &mut Browser,
    tracewing: &Path,
    recording: &Path,
    home: &Path,
    size: &Size,
) -> Result<(Part, Server)> {
    let empty = home.join("empty");
    std::fs::create_dir(&empty)?;
    let (first, server) = open(browser, tracewing, recording, &empty)?;
    drop(server);
    std::fs::remove_dir_all(&empty)?;
    let mut again = Vec::new();
    for _ in 1..size.openings {
        again.push(open(browser, tracewing, recording, home)?.0);
    }
    let (last, server) = open(browser, tracewing, recording, home)?;
    again.push(last);
    let about = format!(
        "From the start of `tracewing view` until the page shows its tracks, in a browser that runs; with its index \
         {} times, the median.",
        size.openings
    );
    let figures = vec![
        Figure::median("without an index: first picture, s", vec![first]).at_most(2.0),
        Figure::median("with its index: first picture, s", again).at_most(1.0),
    ];
    Ok((Part { title: "Opening", about, figures }, server))
}

/// How long it takes until the page shows a recording, in seconds; its server.
fn open(browser: &mut Browser, tracewing: &Path, recording: &Path, home: &Path) -> Result<(f64, Server)> {
    browser.navigate("about:blank")?;
    let begin = Instant::now();
    let server = Server::start(tracewing, recording, home, &[])?;
    browser.navigate(&server.address)?;
    let is_drawn = "!!window.tracewing && document.querySelector('#cover').hidden && tracewing.isIdle() \
                    && Object.keys(tracewing.drawn()).length > 0";
    while browser.value(is_drawn)? != true {
        ensure!(begin.elapsed() < Duration::from_secs(300), "the page does not show the recording");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok((begin.elapsed().as_secs_f64(), server))
}

/// Zooms and pans at random in the page; meanwhile looks at the memory of server and page.
pub fn walk(browser: &mut Browser, server: &Server, size: &Size) -> Result<Part> {
    // Threads of one process: more than are unfolded at first.
    browser.value("document.querySelectorAll('#labels .track.group[aria-expanded=false]')[0]?.click()")?;
    let (mut times, mut of_server, mut of_page, mut seed) = (Vec::new(), Vec::new(), Vec::new(), 1);
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let (mut round, mut most) = (Vec::new(), [0_f64; 2]);
        while begin.elapsed() < size.walk / ROUNDS as u32 {
            let steps = browser.value(&format!("({WALK})({STEPS}, {seed})"))?;
            round.extend(steps.as_array().into_iter().flatten().filter_map(Value::as_f64));
            most = [most[0].max(pss(server.pid())), most[1].max(pss(browser.renderer()?))];
            seed += 1;
        }
        ensure!(!round.is_empty(), "the walk has no steps");
        times.push(round);
        of_server.push(most[0]);
        of_page.push(most[1]);
    }
    let about = format!(
        "Random zooms, pans and scrolls for {} s. A picture takes from the input until all its data has come and is \
         drawn. Memory is the proportional set size, that of the page the one of its renderer process. The spread is \
         from the least to the greatest of {ROUNDS} equal parts of this time; of memory, the largest counts.",
        size.walk.as_secs()
    );
    let figures = vec![
        Figure::percentile("from a zoom or pan to its picture, ms (p50)", 0.5, &times),
        Figure::percentile("the same (p95)", 0.95, &times).at_most(50.0),
        Figure::largest("memory of the server, MiB", of_server).at_most(300.0),
        Figure::largest("memory of the page, MiB", of_page).at_most(300.0),
    ];
    Ok(Part { title: "Walking", about, figures })
}

/// Steps of a walk: from the view that is seen to another one, and how long each takes until all of its data
/// has come and is drawn, in milliseconds.
const WALK: &str = "async (steps, seed) => {
    const random = () => (seed = (seed * 1664525 + 1013904223) % 4294967296) / 4294967296;
    const pause = (ms) => new Promise((done) => setTimeout(done, ms));
    const { view } = tracewing, scroll = document.querySelector('#scroll'), times = [];
    random();
    for (let step = 0; step < steps; step++) {
        const begin = performance.now(), kind = random();
        if (kind < 0.05) {
            const width = view.length * 10 ** (-6 * random()), from = (view.length - width) * random();
            view.set(from, from + width);
        } else if (kind < 0.15) scroll.scrollTop = (scroll.scrollHeight - scroll.clientHeight) * random();
        else if (kind < 0.55) view.pan(2 * random() - 1);
        else view.zoom(2 ** (4 * random() - 2), view.from + (view.to - view.from) * random());
        await pause(0);
        while (!tracewing.isIdle()) await pause(1);
        times.push(performance.now() - begin);
        await pause(30);
    }
    return times;
}";
