//! What all threads of a process, or all tasks of one name, did together, where they are very many: levels
//! of detail of the group's own row, which are made of those of its members when these are complete. A window
//! that is too narrow for them has little of each member.

use crate::body::Body;
use crate::error::Error;
use crate::format::{self, Identity};
use crate::index::Index;
use crate::levels::{self, Content, LEVELS, STEP, Summary, begin_of, bucket_of, shift};
use crate::picture::{Bucket, Window, overlapping};
use crate::row::{Entry, RowId, RowKind};
use crate::together::{MOST, Together};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

/// Groups with fewer members are drawn from these.
pub(crate) const LEAST: usize = 64;

/// Most buckets of the finest level of a group, as a power of two.
const BUCKETS: u32 = 18;

/// The finest level of a group has at most one bucket for so many states, as a power of two: it is small,
/// compared with the states.
const STATES: u32 = 2;

/// Adds levels of groups with at least `least` members to a complete index in `file`; `out` writes to it.
/// Returns its size; `None` if nothing was added.
pub(crate) fn add(
    (file, path): (File, &Path),
    identity: Identity,
    least: usize,
    out: &mut (impl Write + Seek + Send),
) -> Result<Option<u64>, Error> {
    let io = |cause| Error::Io { path: path.to_owned(), cause };
    let Some(index) = Index::open(file, path, identity)? else { return Ok(None) };
    let mut groups = index.groups();
    groups.retain(|(_, members)| members.len() >= least);
    if groups.is_empty() {
        return Ok(None);
    }
    // The tail gives way: it is written again after what is added.
    out.seek(SeekFrom::Start(index.end())).map_err(io)?;
    let mut body = Body::after(out, index.end());
    let mut added = Vec::new();
    for (group, members) in groups {
        added.push((group, levels_of(&index, &members, &mut body)?));
    }
    let mut tail = index.into_tail();
    for (group, levels) in added {
        tail.rows[group.0 as usize].levels = levels;
    }
    let bytes = tail.write();
    let foot = format::foot(&format::head(identity), body.offset, &bytes);
    body.write(&bytes);
    body.write(&foot);
    body.finish().map(Some).map_err(io)
}

/// The blocks of each level of a group.
fn levels_of(index: &Index, members: &[RowId], body: &mut Body<'_>) -> Result<Vec<Vec<Entry>>, Error> {
    let end = members.iter().map(|member| index.row(*member).end).max().unwrap_or_default();
    let leaves = members.iter().flat_map(|member| &index.row(*member).leaves);
    let states: u64 = leaves.map(|entry| u64::from(entry.count)).sum();
    let most = (states >> STATES).clamp(1, 1 << BUCKETS);
    let fits = |level: &usize| end.as_ns() >> shift(*level) < most;
    let finest = (0..LEVELS - 1).find(fits).unwrap_or(LEVELS - 1);
    let window = Window::covering_all(end, shift(finest));
    let mut together = Together::new(window.shift, window.count, MOST);
    for member in members {
        index.paint(*member, window, &mut together)?;
    }
    let mut contents = together.finish();
    let mut entries = vec![Vec::new(); finest];
    loop {
        let level = entries.len();
        entries.push(levels::write(level, &contents, body));
        if contents.len() == 1 || level + 1 == LEVELS {
            return Ok(entries);
        }
        contents = contents.chunks(1 << STEP).map(sum).collect();
    }
}

fn sum(parts: &[Content]) -> Content {
    let mut sum = Content::default();
    parts.iter().for_each(|part| sum.add_all(part));
    sum
}

impl Index {
    /// The threads of each process, and the tasks of each name, where there are any.
    fn groups(&self) -> Vec<(RowId, Vec<RowId>)> {
        let mut members = vec![Vec::new(); self.tail().rows.len()];
        for (id, row) in self.rows() {
            let group = if let RowKind::Thread(_) = row.kind { row.parent } else { row.group };
            group.into_iter().for_each(|group| members[group.0 as usize].push(id));
        }
        (0..).map(RowId).zip(members).filter(|(_, members)| !members.is_empty()).collect()
    }

    /// What all threads of a process, or all tasks of a name, did together in each bucket of a window;
    /// `longest` of a bucket means nothing. `None` if the index has nothing for a window of so short buckets,
    /// or a group of so few members: these are to be asked, see [`Index::finest_of_group`].
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn group(&self, group: RowId, window: Window) -> Result<Option<Vec<Bucket>>, Error> {
        let row = self.row(group);
        let mut levels = (0..row.levels.len()).rev();
        let level = levels.find(|level| shift(*level) <= window.shift && !row.levels[*level].is_empty());
        let (Some(level), true) = (level, row.is_group()) else { return Ok(None) };
        let (from, to) = window.times();
        let mut buckets: Vec<Bucket> = Vec::new();
        let mut room = Vec::new();
        for entry in overlapping(&row.levels[level], from, to) {
            self.nodes(row, level, entry, &mut room, |bucket, content| {
                let begin = begin_of(bucket, shift(level));
                if from <= begin && begin < to {
                    let number = bucket_of(begin, window.shift);
                    match buckets.last_mut() {
                        Some(last) if last.number == number => last.content.add_all(content),
                        _ => buckets.push(Bucket { number, content: *content }),
                    }
                }
                Ok(())
            })?;
        }
        Ok(Some(buckets))
    }

    /// The length of the shortest buckets that [`Index::group`] has of a group, as a power of two of
    /// nanoseconds.
    pub fn finest_of_group(&self, group: RowId) -> Option<u32> {
        let row = self.row(group);
        let level = row.levels.iter().position(|entries| !entries.is_empty())?;
        row.is_group().then(|| shift(level))
    }
}
