//! The answers: one module each. `ask` reads what is asked and checks it.
//!
//! Times are in nanoseconds since the recording begins. Numbers in JSON are exact up to 2^53 in the page:
//! 104 days.

mod area;
mod ask;
mod calls;
mod classes;
mod durations;
mod events;
mod fields;
mod filling;
mod find;
mod flame;
mod graph;
mod held;
mod jobs;
mod kin;
mod live;
mod longest;
mod losses;
mod marked;
mod named;
mod notes;
mod picture;
mod polls;
mod sampled;
mod search;
mod selected;
mod series;
mod source;
mod spans;
mod state;
mod statistics;
mod tasks;
mod tracks;
mod why;

pub(crate) use ask::Refusal;

use crate::recording::{Ready, Viewed};
use crate::reply::Reply;

/// Answers what is asked at a path below `/api/`; `None` if there is nothing.
pub(crate) fn answer(viewed: &Viewed, path: &str, body: &[u8]) -> Option<Result<Reply, Refusal>> {
    let of_index: fn(&Ready, &[u8]) -> Result<Reply, Refusal> = match path {
        "state" => return Some(Ok(state::answer(viewed))),
        "live" => return Some(live::answer(viewed, body)),
        "events" => return Some(events::answer(viewed, body)),
        "find" => return Some(find::find(viewed, body)),
        "found" => return Some(find::found(viewed, body)),
        "match" => return Some(find::one(viewed, body)),
        "why" => return Some(why::start(viewed, body)),
        "flame" => return Some(flame::start(viewed, body)),
        "graph" => return Some(graph::start(viewed, body)),
        "sampled" => return Some(sampled::start(viewed, body)),
        "durations" => return Some(durations::start(viewed, body)),
        "held" => return Some(held::start(viewed, body)),
        "classes" => return Some(classes::start(viewed, body)),
        "kin" => return Some(kin::start(viewed, body)),
        "names" => return Some(marked::names(viewed)),
        "mark" => return Some(marked::mark(viewed, body)),
        "marked" => return Some(marked::marked(viewed, body)),
        "unmark" => return Some(marked::unmark(viewed, body)),
        "series" => return Some(series::start(viewed, body)),
        "valued" => return Some(series::valued(viewed, body)),
        "values" => return Some(series::values(viewed, body)),
        "unseries" => return Some(series::end(viewed, body)),
        "calls" => return Some(calls::start(viewed, body)),
        "tasks" => return Some(tasks::start(viewed, body)),
        "polls" => return Some(polls::start(viewed, body)),
        "notes" => return Some(notes::all(viewed)),
        "note" => return Some(notes::change(viewed, body)),
        "job" => return Some(jobs::job(viewed, body)),
        "end" => return Some(jobs::end(viewed, body)),
        "forget" => return Some(find::forget(viewed, body)),
        "tracks" => tracks::answer,
        "rows" => picture::answer,
        "spans" => spans::answer,
        "at" => selected::answer,
        "longest" => longest::answer,
        "statistics" => statistics::answer,
        "search" => search::answer,
        "named" => named::answer,
        "losses" => losses::seen,
        "lost" => losses::list,
        _ => return None,
    };
    Some(ask::ready(viewed).and_then(|ready| of_index(&ready, body)))
}
