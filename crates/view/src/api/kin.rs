//! `kin` starts to look for the next event with the name of another one, or the last one before it: in all
//! threads, in the order of `tracewing list`.

use super::ask::{Refusal, parsed, ready, refused};
use super::classes::LONGEST;
use super::jobs;
use crate::events::{literal, plain};
use crate::jobs::Job;
use crate::recording::Viewed;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use tracewing_trace::{Filter, Recording, TimePoint};
use tracewing_units::{Duration, Timestamp};

/// The last events before a time are looked for in this time, then in [`WIDER`] times as much, and so on.
const NEAR: Duration = Duration::from_ns(1_000_000);
const WIDER: u64 = 8;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    name: String,
    time: Duration,
    /// How many events with this name and time come before the one from which the step is made.
    among: u64,
    /// 1 for the next one, -1 for the last one before.
    step: i8,
}

#[derive(Debug, Serialize)]
struct Answer {
    /// `null` if there is none.
    event: Option<At>,
}

/// An event of a name.
#[derive(Debug, Serialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    at: Duration,
    /// How many with this name and time come before it.
    among: u64,
}

/// The events of a name.
struct Kind<'k> {
    job: &'k Job,
    recording: &'k Recording,
    begin: Timestamp,
    name: &'k str,
}

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { name, time: at, among, step } = parsed(body)?;
    let begin = ready(viewed)?.index.tail().begin;
    if name.len() > LONGEST || ![-1, 1].contains(&step) || begin.checked_add(at).is_none() {
        return Err(refused("there is no such event"));
    }
    let recording = viewed.recording();
    jobs::start(viewed, move |job| {
        let kind = Kind { job, recording: &recording, begin, name: &name };
        let of = At { at, among };
        Ok(Answer { event: if step == 1 { kind.after(of)? } else { kind.before(of)? } })
    })
}

impl Kind<'_> {
    fn after(&self, of: At) -> Result<Option<At>, String> {
        let mut found = None;
        let ended = self.each((of.at, None), |event| {
            found = Some(event).filter(|event| *event > of);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if found.is_some() { Ok(found) } else { ended.map(|()| None) }
    }

    fn before(&self, of: At) -> Result<Option<At>, String> {
        let mut length = NEAR;
        loop {
            let (from, mut found) = (of.at - length.min(of.at), None);
            self.each((from, Some(of.at)), |event| {
                found = found.max(Some(event).filter(|event| *event < of));
                ControlFlow::Continue(())
            })?;
            if found.is_some() || from == Duration::ZERO {
                return Ok(found);
            }
            length = length * WIDER;
        }
    }

    /// Takes the events of a time, both ends included.
    fn each(
        &self,
        (from, to): (Duration, Option<Duration>),
        mut take: impl FnMut(At) -> ControlFlow<()>,
    ) -> Result<(), String> {
        let point = |time| self.begin.checked_add(time).map(TimePoint::Absolute);
        let filter = Filter {
            from: point(from),
            to: to.and_then(point),
            events: vec![literal(self.name)],
            ..Filter::default()
        };
        let mut last: Option<At> = None;
        plain(self.recording, &filter, &mut |progress| self.job.watch(progress), &mut |_, time| {
            let at = time - self.begin;
            let among = last.filter(|last| last.at == at).map_or(0, |last| last.among + 1);
            let event = At { at, among };
            last = Some(event);
            take(event)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const METADATA: &str = "/* CTF 1.8 */
        typealias integer { size = 8; align = 8; signed = false; } := u8;
        clock { name = c; freq = 1000000000; };
        typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := stamp;
        trace { major = 1; minor = 8; byte_order = le; };
        stream { event.header := struct { u8 id; stamp timestamp; }; };
        event { id = 0; name = tick; fields := struct { u8 n; }; };
        event { id = 1; name = tock; fields := struct { u8 n; }; };";

    #[test]
    fn events_of_one_time_are_visited_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("metadata"), METADATA).unwrap();
        // Some lie further apart than the first time in which earlier ones are looked for.
        let stamps = [0_u64, 5, 5, 5, 6, 90_000_000, 90_000_000, 90_000_001];
        let event = |id: u8, at: u64| [&[id][..], &at.to_le_bytes(), &[7]].concat();
        let bytes = stamps.iter().flat_map(|at| [event(0, *at), event(1, *at)].concat());
        fs::write(folder.path().join("stream"), bytes.collect::<Vec<u8>>()).unwrap();
        let (recording, job) = (Recording::open(&[folder.path()]).unwrap(), Job::default());
        let kind = Kind { job: &job, recording: &recording, begin: Timestamp::from_ns(0), name: "tock" };
        let expected =
            [(0, 0), (5, 0), (5, 1), (5, 2), (6, 0), (90_000_000, 0), (90_000_000, 1), (90_000_001, 0)]
                .map(|(at, among)| At { at: Duration::from_ns(at), among });
        for pair in expected.windows(2) {
            assert_eq!(kind.after(pair[0]).unwrap(), Some(pair[1]));
            assert_eq!(kind.before(pair[1]).unwrap(), Some(pair[0]));
        }
        assert_eq!((kind.before(expected[0]).unwrap(), kind.after(expected[7]).unwrap()), (None, None));
    }
}
