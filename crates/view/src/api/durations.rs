//! `durations` starts to find how long calls of functions, spans, waits or locks of an area lasted, by name,
//! and the longest ones of a name. Only what begins and ends within the area counts; of waits, only what also
//! begins and ends within the recording.

use super::area::{Area, of_area, process_of};
use super::ask::{Refusal, ready, refused};
use super::held::{Named, Places, places};
use super::jobs;
use super::spans::named;
use crate::jobs::Job;
use crate::recording::{Ready, Viewed};
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::ops::ControlFlow;
use tracewing_analysis::{Distribution, Durations};
use tracewing_index::{Class, Index, Row, RowId, RowKind, Span, StateId};
use tracewing_trace::Progress;
use tracewing_units::{Duration, Pid};

/// Most names, and longest ones of some, in an answer.
const MOST: usize = 1000;
const LONGEST: usize = 300;
/// Durations of a name that are kept; quantiles of more come from a histogram.
const KEPT: usize = 1 << 12;
/// After so many states, the job learns how far it is; a power of two.
const PERIOD: u64 = 1 << 14;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    what: What,
    /// Lists the longest ones of this name.
    longest: Option<Key>,
    /// Locks are named by the place where they were held longest, instead of by their address.
    #[serde(default)]
    by_place: bool,
}

/// What distinguishes states: their numbers may change while the recording is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    class: u8,
    name: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum What {
    Functions,
    Spans,
    Locks,
    Waits,
}

#[derive(Debug, Serialize)]
struct Answer {
    names: Vec<Line>,
    left_out: usize,
    /// Row, beginning and end, the longest first.
    longest: Vec<(u32, Duration, Duration)>,
}

#[derive(Debug, Serialize)]
struct Line {
    name: String,
    class: u8,
    total_ns: Duration,
    #[serde(flatten)]
    took: Distribution,
}

/// What has one name.
#[derive(Debug)]
struct Group {
    sum: Duration,
    took: Durations,
}

impl What {
    fn is_of(self, row: &Row) -> bool {
        match self {
            What::Functions => matches!(row.kind, RowKind::Calls(_)),
            What::Spans => matches!(row.kind, RowKind::Spans(_)),
            What::Locks => matches!(row.kind, RowKind::Locks(_)),
            What::Waits => matches!(row.kind, RowKind::Thread(_) | RowKind::Task(_)),
        }
    }

    fn is_in(self, class: Class) -> bool {
        let is_wait = matches!(class, Class::Blocked | Class::Ready | Class::Preempted);
        !matches!(self, What::Waits) || is_wait
    }
}

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let ready = ready(viewed)?;
    let (area, Asked { what, longest, by_place }) = of_area(&ready, body)?;
    if by_place && !matches!(what, What::Locks) {
        return Err(refused("only locks have places"));
    }
    let rows = rows_of(&ready, &area, what)?;
    // Without the events of other threads, some holds have no length, and so some locks no place.
    let events = by_place.then(|| area.time(&ready)).transpose()?;
    let recording = viewed.recording();
    jobs::start(viewed, move |job| {
        let held = |filter| places(job, (&recording, filter), |_| true, Named::Comparable);
        let places = events.as_ref().map(held).transpose()?;
        find(job, &ready, &area, (what, &rows, longest.as_ref()), places.as_ref())
    })
}

fn find(
    job: &Job,
    ready: &Ready,
    &Area { from, to, .. }: &Area,
    (what, rows, wanted): (What, &[RowId], Option<&Key>),
    places: Option<&Places>,
) -> Result<Answer, String> {
    let index = &ready.index;
    let (total, mut done) = (rows.iter().map(|id| index.count(*id, from, to)).sum(), 0);
    let mut groups: HashMap<Key, Group> = HashMap::new();
    // States have few names: each is looked up once.
    let mut keys: HashMap<(StateId, Option<Pid>), Key> = HashMap::new();
    let mut longest = BinaryHeap::new();
    for id in rows.iter().copied() {
        let process = places.and_then(|_| process_of(index, id));
        let read = index.spans(id, from, to, |span| {
            done += 1;
            if done % PERIOD == 0 {
                job.watch(Progress { done, total })?;
            }
            let class = index.state(span.state).map(|state| state.class);
            let is_part = matches!(what, What::Waits) && is_cut(index, id, span);
            if span.from < from || span.to > to || is_part || !class.is_some_and(|class| what.is_in(class)) {
                return ControlFlow::Continue(());
            }
            let new = || Key::of(index, span.state).at(process, places);
            let key = keys.entry((span.state, process)).or_insert_with(new);
            add(&mut groups, key, span);
            if wanted == Some(&*key) {
                longest.push(Reverse((span.to - span.from, Reverse((span.from, id.0)))));
                if longest.len() > LONGEST {
                    longest.pop();
                }
            }
            ControlFlow::Continue(())
        });
        read.map_err(|error| error.to_string())?;
        job.go_on()?;
    }
    let span = |Reverse((length, Reverse((begin, row))))| (row, begin, begin + length);
    let longest = longest.into_sorted_vec().into_iter().map(span).collect();
    let line =
        |(Key { class, name }, Group { sum, took })| Line { name, class, total_ns: sum, took: took.finish() };
    let mut names: Vec<Line> = groups.into_iter().map(line).collect();
    names.sort_by(|one, other| {
        (other.total_ns, &one.name, one.class).cmp(&(one.total_ns, &other.name, other.class))
    });
    let left_out = names.len().saturating_sub(MOST);
    names.truncate(MOST);
    Ok(Answer { names, left_out, longest })
}

/// Whether the recording begins or ends during a state, so that its length is unknown.
fn is_cut(index: &Index, row: RowId, span: Span) -> bool {
    let end = index.row(row).certain;
    span.from == Duration::ZERO || span.to >= index.tail().length || span.to > end
}

fn add(groups: &mut HashMap<Key, Group>, key: &Key, span: Span) {
    let length = span.to - span.from;
    let new = || Group { sum: Duration::ZERO, took: Durations::keeping(KEPT) };
    // Most are known: their name is not copied.
    if !groups.contains_key(key) {
        groups.insert(key.clone(), new());
    }
    if let Some(group) = groups.get_mut(key) {
        group.sum += length;
        group.took.add(length);
    }
}

impl Key {
    /// The class of a state, and what it is about.
    fn of(index: &Index, state: StateId) -> Self {
        let named = named(index, state);
        Key { class: named.class, name: if named.about.is_empty() { named.name } else { named.about } }
    }

    /// The same, with the place of a lock of this process if places are known.
    fn at(self, process: Option<Pid>, places: Option<&Places>) -> Self {
        match places {
            Some(places) => Key { name: placed(&self.name, process, places), ..self },
            None => self,
        }
    }
}

/// The name of a lock, whose last word is its address, with its place instead; without one, only its kind.
fn placed(name: &str, process: Option<Pid>, places: &Places) -> String {
    let Some((kind, address)) = name.rsplit_once(' ') else { return name.to_owned() };
    // The kernel's locks are of no process, whichever takes them.
    let of = |process| places.get(&(process, kind == "futex", address.to_owned()));
    let Some(places) = of(process).or_else(|| of(None)) else { return kind.to_owned() };
    let places: Vec<&str> = places.iter().map(String::as_str).collect();
    format!("{} ({kind})", places.join(", "))
}

/// The rows that have what is asked: those of the area, and the parts of its threads and tasks.
fn rows_of(ready: &Ready, area: &Area, what: What) -> Result<Vec<RowId>, Refusal> {
    let fits = |(id, row): (RowId, &Row)| {
        (what.is_of(row) && row.begin < area.to && row.end > area.from).then_some((id, row.parent))
    };
    let all: BTreeMap<RowId, Option<RowId>> = ready.index.rows().filter_map(fits).collect();
    let Some(ids) = area.ids(ready)? else { return Ok(all.into_keys().collect()) };
    let ids: BTreeSet<RowId> = ids.into_iter().collect();
    let is_part = |id: RowId| ready.index.row(id).is_part();
    let is_in = |id: RowId, parent: Option<RowId>| {
        ids.contains(&id) || is_part(id) && parent.is_some_and(|parent| ids.contains(&parent))
    };
    Ok(all.into_iter().filter(|(id, parent)| is_in(*id, *parent)).map(|(id, _)| id).collect())
}

#[cfg(test)]
mod tests {
    use super::{Pid, Places, placed};

    #[test]
    fn places_are_those_of_the_process_and_of_no_futex() {
        let place =
            |process, address: &str, at: &str| ((process, false, address.to_owned()), [at.to_owned()].into());
        let [parent, child, other] = [7, 8, 9].map(|number| Some(Pid(number)));
        let places: Places =
            [place(parent, "0x10", "a.rs:1"), place(child, "0x10", "b.rs:2"), place(None, "0xf0", "read")]
                .into();
        let found = |name: &str| [parent, child, other, None].map(|process| placed(name, process, &places));
        assert_eq!(found("mutex 0x10"), ["a.rs:1 (mutex)", "b.rs:2 (mutex)", "mutex", "mutex"]);
        assert_eq!(found("futex 0x10"), ["futex"; 4]);
        assert_eq!(found("kernel spin 0xf0"), ["read (kernel spin)"; 4]);
    }
}
