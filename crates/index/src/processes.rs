//! Rows that stand for others: processes, and the tasks of one name in each.

use crate::row::{Row, RowId, RowKind};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use tracewing_units::{Duration, Pid, Task};

/// So many names of tasks of a process have a row: those whose first tasks began the earliest. Later tasks of
/// a recording that grows change nothing of that.
const NAMES: usize = 64;

/// Adds a row for each process, after those of its threads and tasks, and then those of its tasks by name.
pub(crate) fn add(rows: &mut Vec<Row>) {
    let mut processes: BTreeMap<Option<Pid>, Row> = BTreeMap::new();
    for at in 0..rows.len() {
        // A part is in the process of the thread or task that it is of.
        if let (true, Some(parent)) = (rows[at].is_part(), rows[at].parent) {
            rows[at].process = rows[parent.0 as usize].process;
        }
    }
    let has_process = |row: &&mut Row| !matches!(row.kind, RowKind::Cpu(_)) && !row.is_part();
    for row in rows.iter_mut().filter(has_process) {
        let process = processes.entry(row.process).or_insert_with(|| Row::new(RowKind::Process(row.process)));
        process.includes(row);
        // A task runs on a thread of the same process, whose time this is.
        if let RowKind::Thread(_) = row.kind {
            process.used += row.used;
        }
        if let (RowKind::Thread(tid), Some(pid)) = (row.kind, row.process)
            && tid == pid.first_thread()
        {
            process.name.clone_from(&row.name);
        }
    }
    let ids: BTreeMap<_, _> = processes.keys().copied().zip((rows.len() as u32..).map(RowId)).collect();
    for row in rows.iter_mut().filter(has_process) {
        row.parent = ids.get(&row.process).copied();
    }
    rows.extend(processes.into_values());
    add_tasks(rows);
}

/// A name of tasks of a process.
struct Named {
    text: String,
    process: Option<Pid>,
    /// The row of the process.
    parent: Option<RowId>,
    /// When the first task of the name begins, and which it is.
    first: (Duration, Task),
    /// The place of its row among those of all names.
    group: usize,
}

/// Adds rows of the tasks of one name.
fn add_tasks(rows: &mut Vec<Row>) {
    let (mut names, named) = names_of(rows);
    let mut groups = groups_of(&mut names);
    let (first, names) = (rows.len(), &names);
    let tasks = rows.iter_mut().filter(|row| matches!(row.kind, RowKind::Task(_)));
    for (row, name) in tasks.zip(named) {
        let group = names[name].group;
        groups[group].includes(row);
        groups[group].used += row.used;
        row.group = Some(RowId((first + group) as u32));
    }
    rows.extend(groups);
}

/// The names of all tasks, and of each task the place of its name among them.
fn names_of(rows: &[Row]) -> (Vec<Named>, Vec<usize>) {
    let mut places: HashMap<Option<Pid>, HashMap<String, usize>> = HashMap::new();
    let (mut names, mut named) = (Vec::<Named>::new(), Vec::new());
    for row in rows {
        let RowKind::Task(task) = row.kind else { continue };
        let (of, text, first) =
            (places.entry(row.process).or_default(), common(&row.name), (row.begin, task));
        let place = match of.get(text.as_ref()) {
            Some(known) => *known,
            None => {
                let (text, process, parent) = (text.into_owned(), row.process, row.parent);
                of.insert(text.clone(), names.len());
                names.push(Named { text, process, parent, first, group: 0 });
                names.len() - 1
            }
        };
        names[place].first = names[place].first.min(first);
        named.push(place);
    }
    (names, named)
}

/// The rows of names, without what is known of their tasks.
fn groups_of(names: &mut [Named]) -> Vec<Row> {
    let mut groups: Vec<Row> = Vec::new();
    let mut names: Vec<&mut Named> = names.iter_mut().collect();
    names.sort_unstable_by_key(|name| (name.process, name.first));
    for of in names.chunk_by_mut(|one, other| one.process == other.process) {
        for (number, name) in of.iter_mut().enumerate() {
            if number <= NAMES {
                let (kind, text) = match number < NAMES {
                    true => (RowKind::Tasks(number as u32), std::mem::take(&mut name.text)),
                    false => (RowKind::Tasks(RowKind::OTHERS), String::new()),
                };
                let (process, parent) = (name.process, name.parent);
                groups.push(Row { process, parent, name: text, ..Row::new(kind) });
            }
            name.group = groups.len() - 1;
        }
    }
    groups
}

/// What the names of tasks have in common that differ only in a number at their end: `connection/*` of
/// `connection/7`.
fn common(name: &str) -> Cow<'_, str> {
    let before = name.trim_end_matches(|sign: char| sign.is_ascii_digit());
    match before.len() < name.len() && before.ends_with(['/', '-', '_', '#', ' ']) {
        true => Cow::Owned(format!("{before}*")),
        false => Cow::Borrowed(name),
    }
}

impl Row {
    /// Is the row of another one as well.
    fn includes(&mut self, member: &Row) {
        self.covers(member.begin, member.end);
        self.is_followed |= member.is_followed;
        self.certain = self.certain.min(member.certain);
    }
}

#[cfg(test)]
mod tests {
    use super::common;

    #[test]
    fn names_that_differ_in_a_number_are_one() {
        for (name, expected) in [
            ("connection/17", "connection/*"),
            ("job #3", "job #*"),
            ("sha256", "sha256"),
            ("src/main.rs:42", "src/main.rs:42"),
            ("work", "work"),
            ("17", "17"),
            ("", ""),
        ] {
            assert_eq!(common(name), expected);
        }
    }
}
