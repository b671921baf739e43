//! `events`: the first events of a window, or the last before a time, as `tracewing list --pretty` prints
//! them, and their fields one by one.

use super::ask::{Refusal, parsed, ready, refused};
use super::fields::Event;
use super::source;
use crate::recording::Viewed;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::sync::Arc;
use tracewing_trace::{ClockStyle, FieldStyle, Filter, Format, Listing, Recording, Style, TimePoint};
use tracewing_units::{Cpu, Duration, Timestamp};

/// Most events of an answer.
const MOST: u64 = 500;
/// The last events before a time are looked for in this time, then in [`WIDER`] times as much, and so on.
const NEAR: Duration = Duration::from_ns(20_000);
const WIDER: u64 = 8;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    from: Duration,
    to: Duration,
    most: u64,
    /// Only events of this CPU's buffers.
    buffer: Option<u32>,
    /// The last ones of the window instead of the first.
    #[serde(default)]
    last: bool,
}

#[derive(Debug, Serialize, Default)]
struct Answer {
    events: Vec<Event>,
    /// What was lost there.
    warnings: Vec<String>,
    /// Whether there may be more.
    is_cut: bool,
}

/// The part of a recording that is listed.
struct Window {
    /// The same for all lists: it may grow.
    recording: Arc<Recording>,
    begin: Timestamp,
    cpus: Vec<RangeInclusive<Cpu>>,
    most: u64,
}

pub(super) fn answer(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { from, to, most, buffer, last } = parsed(body)?;
    if from > to || most > MOST {
        return Err(refused("there is no such window"));
    }
    let begin = ready(viewed)?.index.tail().begin;
    let cpus = buffer.map(Cpu).into_iter().map(|cpu| cpu..=cpu).collect();
    let window = Window { recording: viewed.recording(), begin, cpus, most };
    Ok(Reply::json(&if last { window.last(from, to)? } else { window.first(from, to)? }))
}

impl Window {
    /// The first events of a window.
    fn first(&self, from: Duration, to: Duration) -> Result<Answer, Refusal> {
        let (pretty, warnings) = self.list(from, to, Format::Pretty, false)?;
        self.answer(from, to, pretty, warnings, false)
    }

    /// The last events of a window: few of a long one are read.
    fn last(&self, from: Duration, to: Duration) -> Result<Answer, Refusal> {
        let mut length = NEAR;
        loop {
            let near = from.max(to - length);
            let (pretty, warnings) = self.list(near, to, Format::Pretty, true)?;
            if near == from || pretty.len() as u64 >= self.most {
                return self.answer(near, to, pretty, warnings, true);
            }
            length = length * WIDER;
        }
    }

    fn answer(
        &self,
        from: Duration,
        to: Duration,
        pretty: Vec<String>,
        warnings: Vec<String>,
        last: bool,
    ) -> Result<Answer, Refusal> {
        let (json, _) = self.list(from, to, Format::Json, last)?;
        let is_cut = pretty.len() as u64 >= self.most;
        let event = |(pretty, json): (&String, &String)| Event::new(pretty, json, self.begin);
        let events = pretty.iter().zip(&json).map(event).collect::<Option<_>>();
        let mut events: Vec<Event> = events.ok_or_else(|| refused("an event cannot be read"))?;
        source::find(&self.recording, &self.filter(from, to)?, last, self.begin, &mut events)?;
        Ok(Answer { events, warnings, is_cut })
    }

    /// Lines of events, and of losses.
    fn list(
        &self,
        from: Duration,
        to: Duration,
        format: Format,
        last: bool,
    ) -> Result<(Vec<String>, Vec<String>), Refusal> {
        let fields = FieldStyle { hostname: false, procname: false, vpid: false, ..FieldStyle::default() };
        let most = Some(self.most);
        let listing = Listing {
            format,
            style: Style { clock: ClockStyle::default(), delta: false, fields, ..Style::default() },
            filter: self.filter(from, to)?,
            count: most.filter(|_| !last),
            last: most.filter(|_| last),
            ..Listing::default()
        };
        let (mut events, mut warnings) = (Vec::new(), Vec::new());
        listing.print(&self.recording, &mut (&mut events, &mut warnings))?;
        Ok((lines(&events), lines(&warnings)))
    }

    fn filter(&self, from: Duration, to: Duration) -> Result<Filter, Refusal> {
        let at = |time| self.begin.checked_add(time).map(TimePoint::Absolute);
        let (Some(from), Some(to)) = (at(from), at(to)) else {
            return Err(refused("there is no such time"));
        };
        Ok(Filter { from: Some(from), to: Some(to), cpus: self.cpus.clone(), ..Filter::default() })
    }
}

fn lines(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text).lines().map(str::to_owned).collect()
}
