//! `events`: the first events of a window, as `tracewing list --pretty --from --to` prints them.

use super::ask::{Refusal, parsed, ready, refused};
use crate::recording::Viewed;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use tracewing_trace::{ClockStyle, Filter, Format, Listing, Style, TimePoint};
use tracewing_units::Duration;

/// Most events of an answer.
const MOST: u64 = 500;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    from: Duration,
    to: Duration,
    most: u64,
}

#[derive(Debug, Serialize)]
struct Answer {
    lines: Vec<String>,
    /// What was lost there.
    warnings: Vec<String>,
    /// Whether there may be more.
    is_cut: bool,
}

pub(super) fn answer(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { from, to, most } = parsed(body)?;
    if from > to || most > MOST {
        return Err(refused("there is no such window"));
    }
    let begin = ready(viewed)?.index.tail().begin;
    let at = |time| begin.checked_add(time).map(TimePoint::Absolute);
    let (Some(first), Some(last)) = (at(from), at(to)) else { return Err(refused("there is no such time")) };
    let listing = Listing {
        format: Format::Pretty,
        style: Style { clock: ClockStyle::default(), delta: false, ..Style::default() },
        filter: Filter { from: Some(first), to: Some(last), ..Filter::default() },
        count: Some(most),
        ..Listing::default()
    };
    let (mut events, mut warnings) = (Vec::new(), Vec::new());
    listing.print(&viewed.recording, &mut (&mut events, &mut warnings))?;
    let (lines, warnings) = (lines(&events), lines(&warnings));
    let is_cut = lines.len() as u64 >= most;
    Ok(Reply::json(&Answer { lines, warnings, is_cut }))
}

fn lines(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text).lines().map(str::to_owned).collect()
}
