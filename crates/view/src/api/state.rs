//! `state`: what the recording is, and how far its index is made.

use super::filling::{Filling, Outline, filling, length, outline};
use super::notes::about;
use crate::recording::Viewed;
use crate::reply::Reply;
use serde::Serialize;
use std::path::PathBuf;
use tracewing_index::{Class, LossMark, Tail};
use tracewing_units::{Cpu, Duration};

/// Most marks of losses in an answer; `losses` and `lost` have more.
const LOSSES: usize = 1000;

#[derive(Debug, Serialize)]
#[serde(tag = "phase", rename_all = "lowercase")]
enum State<'a> {
    /// The index is being made: bytes of the recording that were read, and all of them.
    Indexing {
        name: String,
        is_live: bool,
        done: u64,
        total: u64,
    },
    Failed {
        name: String,
        why: &'a str,
    },
    Ready(Box<Facts<'a>>),
}

#[derive(Debug, Serialize)]
struct Facts<'a> {
    name: String,
    /// Its absolute paths, one by one: the command that shows a view works in every folder.
    inputs: Vec<String>,
    /// What distinguishes it from others at the same address of a viewer.
    identity: String,
    /// On the recording's clock, as a text: 64 bits.
    begin_ns: String,
    /// When that was, for people.
    begin: String,
    length: Duration,
    /// Whether the recording is still being made.
    is_live: bool,
    /// While its index is filled: events, rows and losses are those that have been read.
    filling: Option<Filling>,
    outline: Option<Outline<'a>>,
    /// Why the index does not grow any more.
    why: Option<&'a str>,
    events: u64,
    rows: usize,
    is_partial: bool,
    is_cut_off: bool,
    /// Whether another recording is below `/api/other/`.
    is_compared: bool,
    losses: Vec<Loss>,
    losses_left_out: usize,
    classes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Loss {
    scope: &'static str,
    cpu: Option<Cpu>,
    from: Duration,
    to: Duration,
    events: Option<u64>,
}

pub(super) fn answer(viewed: &Viewed) -> Reply {
    let name = name(viewed);
    let (done, total) = viewed.progress();
    Reply::json(&match viewed.ready() {
        None => State::Indexing { name, is_live: viewed.is_followed(), done, total },
        Some(Err(why)) => State::Failed { name, why },
        Some(Ok(ready)) => State::Ready(Box::new(Facts {
            length: length(viewed, &ready),
            is_live: viewed.is_followed() && ready.grows.is_some() && viewed.failure().is_none(),
            filling: filling(viewed, &ready),
            outline: outline(viewed, &ready),
            why: viewed.failure(),
            is_compared: viewed.is_compared,
            identity: about(viewed).map_or_else(|_| String::new(), |about| about.key),
            ..facts(name, inputs(viewed), ready.index.tail())
        })),
    })
}

fn facts<'a>(name: String, inputs: Vec<String>, tail: &Tail) -> Facts<'a> {
    let losses = tail.losses.iter().take(LOSSES).map(loss).collect();
    Facts {
        name,
        inputs,
        identity: String::new(),
        begin_ns: tail.begin.as_ns().to_string(),
        begin: tracewing_trace::Zone::Local.format(tail.begin),
        length: tail.length,
        is_live: false,
        filling: None,
        outline: None,
        why: None,
        events: tail.events,
        rows: tail.rows.len(),
        is_partial: tail.is_partial,
        is_cut_off: tail.is_cut_off,
        is_compared: false,
        losses,
        losses_left_out: tail.losses.len().saturating_sub(LOSSES),
        classes: Class::ALL.iter().map(|class| format!("{class:?}").to_lowercase()).collect(),
    }
}

pub(super) fn loss(mark: &LossMark) -> Loss {
    let scope = match mark.scope {
        0 => "kernel",
        1 => "programs",
        _ => "samples",
    };
    Loss { scope, cpu: mark.cpu, from: mark.from, to: mark.to, events: mark.events }
}

fn name(viewed: &Viewed) -> String {
    let inputs = viewed.inputs().iter();
    inputs.map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
}

fn inputs(viewed: &Viewed) -> Vec<String> {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    viewed.inputs().iter().map(|path| absolute(path).display().to_string()).collect()
}
