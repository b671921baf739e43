//! Losses that a converted trace declares in its environment, since its packets cannot report them: those
//! before the first and after the last packets of streams, and the parts inside an extract of losses that
//! begin or end outside of it. Its own files lack nothing, and the description next to it lists the files of
//! the original.

use crate::open::recording::Trace;
use crate::stream::cursor::{Lost, LostKind};
use tracewing_ctf::model::{EnvValue, TraceClass};
use tracewing_units::Timestamp;
use tracewing_vocabulary::environment;

/// After a number of packets.
const PACKETS: &str = "p";

/// Where something was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// Before the first packet.
    Begin,
    /// After the last packet, or up to the end of the extract.
    End,
    /// Within the stream: neither before its first packet nor after its last.
    Within,
}

impl At {
    /// The name in the environment of a line for each loss: how many events, since when, until when, and the
    /// name of the stream's file; `-` for what is unknown. A `p` after the number stands for packets.
    fn key(self) -> &'static str {
        match self {
            Self::Begin => environment::LOST_AT_BEGIN,
            Self::End => environment::LOST_AT_END,
            Self::Within => environment::LOST_WITHIN,
        }
    }
}

/// Declares the losses there, with the name of each stream's file.
pub(crate) fn set(class: &mut TraceClass, at: At, lost: &[(String, Lost)]) {
    class.env.retain(|(name, _)| name != at.key());
    if lost.is_empty() {
        return;
    }
    let number = |number: Option<i128>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let line = |(name, lost): &(String, Lost)| {
        let (count, begin) = (lost.count.map(i128::from), lost.range.map(|range| range.0.as_ns().into()));
        let end = lost.range.map(|range| range.1.as_ns().into());
        let packets = if lost.kind == LostKind::Packets { PACKETS } else { "" };
        format!("{}{packets} {} {} {name}", number(count), number(begin), number(end))
    };
    let lines: Vec<String> = lost.iter().map(line).collect();
    class.set_env(at.key(), lines.join("\n").as_str());
}

/// The declared losses there of a trace's streams. Invalid lines are ignored.
pub(crate) fn get(trace: &Trace, at: At) -> Vec<(String, Lost)> {
    let Some(EnvValue::String(text)) = trace.class().env(at.key()) else { return Vec::new() };
    text.lines().filter_map(line).collect()
}

fn line(text: &str) -> Option<(String, Lost)> {
    let mut parts = text.splitn(4, ' ');
    let (count, begin, end) = (parts.next()?, parts.next()?, parts.next()?);
    let (kind, count) = match count.strip_suffix(PACKETS) {
        Some(count) => (LostKind::Packets, count),
        None => (LostKind::Events, count),
    };
    let name = parts.next().filter(|name| !name.is_empty() && !name.contains('/'))?;
    let time = |text: &str| text.parse().ok().map(Timestamp::from_ns);
    let range = time(begin).zip(time(end)).filter(|(begin, end)| begin <= end);
    Some((name.to_owned(), Lost { kind, count: count.parse().ok(), range }))
}
