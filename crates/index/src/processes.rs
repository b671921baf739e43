//! Rows that stand for others: processes, and the tasks of one name in each.

use crate::row::{Row, RowId, RowKind};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use tracewing_units::Pid;

/// So many names of tasks of a process have a row, in the order in which they occur. A name keeps its row
/// while the recording grows.
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

/// Adds rows of the tasks of one name.
fn add_tasks(rows: &mut Vec<Row>) {
    let first = rows.len();
    let mut groups: Vec<Row> = Vec::new();
    let mut named: HashMap<Option<Pid>, HashMap<String, usize>> = HashMap::new();
    let mut others: HashMap<Option<Pid>, usize> = HashMap::new();
    for row in rows.iter_mut().filter(|row| matches!(row.kind, RowKind::Task(_))) {
        let new = |groups: &mut Vec<Row>, number: u32, name: &str| {
            let (process, parent, name) = (row.process, row.parent, name.to_owned());
            groups.push(Row { process, parent, name, ..Row::new(RowKind::Tasks(number)) });
            groups.len() - 1
        };
        let names = named.entry(row.process).or_default();
        let name = common(&row.name);
        let group = match names.get(name.as_ref()) {
            Some(known) => *known,
            None if names.len() < NAMES => {
                let group = new(&mut groups, names.len() as u32, &name);
                names.insert(name.into_owned(), group);
                group
            }
            None => *others.entry(row.process).or_insert_with(|| new(&mut groups, RowKind::OTHERS, "")),
        };
        groups[group].includes(row);
        groups[group].used += row.used;
        row.group = Some(RowId((first + group) as u32));
    }
    rows.extend(groups);
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
