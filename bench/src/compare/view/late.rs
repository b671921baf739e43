//! How late the picture of a page that follows a recording is, and how often it is drawn anew.
//!
//! The page notes each of its drawings: when it was, on the recording's clock, and up to when the picture has
//! states of the CPUs, read from its pixels. What is drawn ages until the next drawing, so between two of
//! them it is looked at every 10 ms: a page that stands still is late.

use super::browser::Browser;
use super::page::Figure;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::{Duration, Instant, SystemTime};

/// Time between two looks at the picture, in seconds.
const STEP: f64 = 0.01;
/// By how much the machine's clock may differ from one that nothing sets, before it was set.
const SET: Duration = Duration::from_millis(5);

/// A drawing of the picture; times are in seconds since the recording begins.
#[derive(Debug, Clone, Copy)]
pub struct Drawing {
    at: f64,
    /// Up to when it has states.
    reaches: f64,
    /// Where the picture ends.
    end: f64,
}

/// The drawings of a round, or why they are not known.
pub type Drawings = Result<Vec<Drawing>, String>;

/// From now on, the page that the browser shows notes its drawings. False while it does not show CPUs.
pub fn watch(browser: &mut Browser) -> Result<bool> {
    Ok(browser.value(WATCH)? == true)
}

/// What the page that the browser shows has noted.
pub fn drawings(browser: &mut Browser) -> Drawings {
    noted(browser).map_err(|error| format!("{error:#}"))
}

fn noted(browser: &mut Browser) -> Result<Vec<Drawing>> {
    let noted = browser.value("drawings()")?;
    ensure!(noted["follows"] == true, "the page does not follow the recording any more");
    ensure!(noted["begin"] == noted["begun"], "the recording begins at another time than before");
    let number = |value: &Value| value.as_f64().context("no time of a drawing");
    let drawing =
        |of: &Value| Ok(Drawing { at: number(&of[0])?, reaches: number(&of[1])?, end: number(&of[2])? });
    noted["noted"].as_array().into_iter().flatten().map(drawing).collect()
}

/// The rows of a table, from the drawings of each round; `what` begins the first one. Both bounds hold where
/// the recorded programs leave time for a viewer: `is_bound`.
pub fn figures(what: &'static str, rounds: &[Drawings], is_bound: bool) -> Vec<Figure> {
    let rounds: Vec<_> = match rounds.iter().cloned().collect::<Result<_, _>>() {
        Ok(rounds) => rounds,
        Err(why) => return vec![Figure::missed(what, why)],
    };
    let late: Vec<_> = rounds.iter().map(|round| late(round)).collect();
    let rates = rounds.iter().map(|round| rate(round)).collect();
    let slow = Figure::percentile("the same (p95)", 0.95, &late);
    let rate = Figure::median("pictures drawn anew per second", rates);
    vec![
        Figure::percentile(what, 0.5, &late),
        if is_bound { slow.at_most(1.5) } else { slow },
        Figure::percentile("the same (largest)", 1.0, &late),
        if is_bound { rate.at_least(10.0) } else { rate },
    ]
}

/// By how much the picture was late at each look, in seconds. The last drawing only says until when.
fn late(drawings: &[Drawing]) -> Vec<f64> {
    let look = |at: f64| (at / STEP).ceil() as u64;
    let looks = drawings.windows(2).flat_map(|pair| {
        let reaches = pair[0].reaches;
        (look(pair[0].at)..look(pair[1].at)).map(move |at| at as f64 * STEP - reaches)
    });
    looks.collect()
}

/// Drawings per second that differ from the one before: in where the picture ends, or up to when it has
/// states.
fn rate(drawings: &[Drawing]) -> f64 {
    let [Some(first), Some(last)] = [drawings.first(), drawings.last()] else { return f64::NAN };
    let edges = |drawing: &Drawing| (drawing.reaches, drawing.end);
    let anew = drawings.windows(2).filter(|pair| edges(&pair[0]) != edges(&pair[1])).count();
    anew as f64 / (last.at - first.at)
}

/// The machine's clock and one that nothing sets, both at a time.
pub struct Clocks(Instant, SystemTime);

impl Clocks {
    pub fn now() -> Self {
        Clocks(Instant::now(), SystemTime::now())
    }

    /// Fails if the machine's clock was set since then: what the page says of the time is wrong.
    pub fn are_right(&self) -> Result<()> {
        let passed = self.1.elapsed().context("the machine's clock was set back")?;
        ensure!(passed.abs_diff(self.0.elapsed()) < SET, "the machine's clock was set: measure again");
        Ok(())
    }
}

/// Notes drawings. The track of all CPUs is the first one; a column without a state is empty. Times are
/// counted by the page's own clock, which nothing sets.
const WATCH: &str = "(async () => {
    const [{ ask }, { ALL_CPUS, HEIGHT }] = [await import('/api.js'), await import('/tracks.js')];
    const begin = async () => (await ask('live')).begin_ns;
    const [{ view }, first, noted] = [tracewing, await begin(), []];
    if (tracewing.shown()[0]?.id !== ALL_CPUS) return false;
    const shift = Number(BigInt(Date.now()) * 1000000n - BigInt(first)) / 1e9 - performance.now() / 1e3;
    const now = () => performance.now() / 1e3 + shift;
    const reaches = (image) => {
        const pixels = new Uint32Array(image.data.buffer);
        const lines = Math.min(image.height, HEIGHT * devicePixelRatio);
        const isEmpty = (column) => {
            for (let line = 0; line < lines; line++) if (pixels[line * image.width + column] !== 0) return false;
            return true;
        };
        let column = image.width;
        while (column > 0 && isEmpty(column - 1)) column--;
        return view.from + ((view.to - view.from) * column) / image.width;
    };
    const put = CanvasRenderingContext2D.prototype.putImageData;
    CanvasRenderingContext2D.prototype.putImageData = function (image, ...place) {
        put.call(this, image, ...place);
        if (this.canvas.id === 'picture') noted.push([now(), reaches(image) / 1e9, view.to / 1e9]);
    };
    window.drawings = async () => {
        const { follows, isLive } = tracewing.live();
        if (noted.length > 0) noted.push([now(), ...noted.at(-1).slice(1)]);
        return { follows: follows && isLive, begin: await begin(), begun: first, noted };
    };
    return true;
})()";

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(at: f64, reaches: f64, end: f64) -> Drawing {
        Drawing { at, reaches, end }
    }

    #[test]
    fn a_picture_ages_until_the_next_one() {
        let drawings = [drawing(1.001, 0.5, 0.5), drawing(1.021, 0.52, 0.52), drawing(1.05, 0.52, 0.52)];
        let looks = late(&drawings);
        // At 1.01 and 1.02 the first is seen, then the second until 1.04.
        let expected = [0.51, 0.52, 0.51, 0.52];
        assert_eq!(looks.len(), expected.len(), "{looks:?}");
        assert!(
            looks.iter().zip(expected).all(|(look, expected)| (look - expected).abs() < 1e-9),
            "{looks:?}"
        );
        assert!(late(&[]).is_empty());
    }

    #[test]
    fn a_drawing_counts_if_an_edge_has_moved() {
        let edges = [(0.5, 0.5), (0.5, 0.5), (0.5, 0.6), (0.6, 0.6), (0.6, 0.6)];
        let times = [1.0, 1.1, 1.2, 1.3, 1.5];
        let drawings: Vec<_> =
            times.iter().zip(edges).map(|(at, (reaches, end))| drawing(*at, reaches, end)).collect();
        assert!((rate(&drawings) - 4.0).abs() < 1e-9);
        assert!(rate(&[]).is_nan());
    }

    #[test]
    fn a_clock_that_was_set_is_noticed() {
        let (Clocks(other, machine), by) = (Clocks::now(), Duration::from_secs(100));
        assert!(Clocks(other, machine + by).are_right().is_err(), "set back");
        assert!(Clocks(other, machine - by).are_right().is_err(), "set forward");
    }
}
