//! A marked area: its time, and the filter that lets through what lies in it.

use super::ask::{ALL_CPUS, Refusal, is_read, parsed, read, refused, row};
use crate::recording::Ready;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use tracewing_index::{Index, Row, RowId, RowKind};
use tracewing_trace::{Filter, ThreadPattern, TimePoint};
use tracewing_units::{Duration, Pid};

/// What is asked of an area.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Area {
    pub(super) from: Duration,
    pub(super) to: Duration,
    /// All threads if it is missing. A process stands for its members, and CPUs for what ran on them.
    pub(super) rows: Option<Vec<u32>>,
}

/// The fields of [`Area`].
const FIELDS: [&str; 3] = ["from", "to", "rows"];

/// Of an area, nothing else is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// What a body asks of an area: the area, and in `More` everything else. Each refuses what it does not know.
pub(super) fn of_area<More: DeserializeOwned>(ready: &Ready, body: &[u8]) -> Result<(Area, More), Refusal> {
    let mut more: Map<String, Value> = parsed(body)?;
    let area = FIELDS.into_iter().filter_map(|field| more.remove_entry(field)).collect();
    let (area, more): (Area, More) = (read(Value::Object(area))?, read(Value::Object(more))?);
    if area.from > area.to {
        return Err(refused("there is no such window"));
    }
    is_read(ready, area.to)?;
    Ok((area, more))
}

/// What the rows of an area are; parts stand for their threads and tasks.
struct Chosen {
    threads: Vec<RowId>,
    tasks: Vec<RowId>,
    cpus: Vec<RowId>,
}

impl Chosen {
    fn of(ready: &Ready, ids: &[RowId]) -> Self {
        let whole = |id: RowId| {
            let row = ready.index.row(id);
            row.parent.filter(|_| row.is_part()).unwrap_or(id)
        };
        let ids: BTreeSet<RowId> = ids.iter().map(|id| whole(*id)).collect();
        let of =
            |fits: fn(&Row) -> bool| ids.iter().copied().filter(|id| fits(ready.index.row(*id))).collect();
        Chosen {
            threads: of(|row| matches!(row.kind, RowKind::Thread(_))),
            tasks: of(|row| matches!(row.kind, RowKind::Task(_))),
            cpus: of(|row| matches!(row.kind, RowKind::Cpu(_))),
        }
    }
}

/// The rows that are meant: a group, or the row of all CPUs, stands for its members.
fn chosen(ready: &Ready, rows: Vec<u32>) -> Result<Vec<RowId>, Refusal> {
    let mut ids = BTreeSet::new();
    for number in rows {
        if number == ALL_CPUS {
            ids.extend(&ready.cpus);
            continue;
        }
        if let Some(names) = ready.names(number) {
            ids.extend(names.iter().flat_map(|name| ready.members(*name)));
            continue;
        }
        let id = row(&ready.index, number)?;
        match ready.index.row(id).is_group() {
            true => ids.extend(ready.members(id)),
            false => ids.extend([id]),
        }
    }
    Ok(ids.into_iter().collect())
}

impl Area {
    /// The time alone.
    pub(super) fn time(&self, ready: &Ready) -> Result<Filter, Refusal> {
        let at = |time| ready.index.tail().begin.checked_add(time).map(TimePoint::Absolute);
        let (Some(from), Some(to), true) = (at(self.from), at(self.to), self.from < self.to) else {
            return Err(refused("there is no such window"));
        };
        is_read(ready, self.to)?;
        Ok(Filter { from: Some(from), to: Some(to), ..Filter::default() })
    }

    /// The rows that are meant; `None` for all.
    pub(super) fn ids(&self, ready: &Ready) -> Result<Option<Vec<RowId>>, Refusal> {
        self.rows.clone().map(|rows| chosen(ready, rows)).transpose()
    }

    /// The processes of what the area has; `None` if these may be all.
    pub(super) fn processes(&self, ready: &Ready) -> Result<Option<BTreeSet<Pid>>, Refusal> {
        let Some(ids) = self.ids(ready)? else { return Ok(None) };
        Ok(ids.into_iter().map(|id| process_of(&ready.index, id)).collect())
    }

    /// The threads of the area in its time; if it has none, its CPUs. `what` is what tasks have none of.
    pub(super) fn threads(&self, ready: &Ready, what: &str) -> Result<Filter, Refusal> {
        let mut filter = self.time(ready)?;
        let Some(ids) = self.ids(ready)? else { return Ok(filter) };
        let Chosen { threads, cpus, .. } = Chosen::of(ready, &ids);
        if threads.is_empty() && cpus.is_empty() {
            return Err(refused(&format!("there are no {what} of tasks: select threads, processes or CPUs")));
        }
        // Where threads are chosen, CPUs choose nothing further.
        match threads.is_empty() {
            true => filter.cpus = cpus_of(ready, &cpus),
            false => filter.tids = tids_of(ready, &threads),
        }
        Ok(filter)
    }

    /// What the events of the area are of: its threads; if it has none, its tasks; otherwise its CPUs.
    pub(super) fn events(&self, ready: &Ready) -> Result<Filter, Refusal> {
        let ids = self.ids(ready)?.unwrap_or_default();
        let Chosen { threads, tasks, .. } = Chosen::of(ready, &ids);
        match threads.is_empty() && !tasks.is_empty() {
            true => self.tasks(ready),
            false => self.threads(ready, "events"),
        }
    }

    /// The tasks of the area in its time; if it has none, the tasks on its threads or CPUs.
    pub(super) fn tasks(&self, ready: &Ready) -> Result<Filter, Refusal> {
        let mut filter = self.time(ready)?;
        let Some(ids) = self.ids(ready)? else { return Ok(filter) };
        let Chosen { threads, tasks, cpus } = Chosen::of(ready, &ids);
        let pattern = |id: &RowId| {
            let row = ready.index.row(*id);
            match row.kind {
                RowKind::Task(thread) => Some(ThreadPattern::Number { process: row.process, thread }),
                _ => None,
            }
        };
        match (tasks.is_empty(), threads.is_empty()) {
            (false, _) => filter.threads = tasks.iter().filter_map(pattern).collect(),
            (true, false) => filter.tids = tids_of(ready, &threads),
            (true, true) if !cpus.is_empty() => filter.cpus = cpus_of(ready, &cpus),
            (true, true) => return Err(refused("the area has neither tasks nor threads")),
        }
        Ok(filter)
    }
}

/// The process of a row or, of a part, of its thread or task; `None` if unknown, and of a CPU.
pub(super) fn process_of(index: &Index, id: RowId) -> Option<Pid> {
    let row = index.row(id);
    match row.parent {
        Some(whole) if row.is_part() => index.row(whole).process,
        _ => row.process,
    }
}

fn tids_of(ready: &Ready, ids: &[RowId]) -> Vec<tracewing_units::Tid> {
    let tid = |id: &RowId| match ready.index.row(*id).kind {
        RowKind::Thread(tid) => Some(tid),
        _ => None,
    };
    let all: BTreeSet<_> = ids.iter().filter_map(tid).collect();
    all.into_iter().collect()
}

fn cpus_of(ready: &Ready, ids: &[RowId]) -> Vec<std::ops::RangeInclusive<tracewing_units::Cpu>> {
    let cpu = |id: &RowId| match ready.index.row(*id).kind {
        RowKind::Cpu(cpu) => Some(cpu..=cpu),
        _ => None,
    };
    ids.iter().filter_map(cpu).collect()
}
