//! `held` starts to find where in the programs some locks of an area were taken: for each address the place
//! of the longest hold, as `tracewing locks` prints it.

use super::area::of_area;
use super::ask::{Refusal, ready, refused};
use super::jobs;
use crate::jobs::Job;
use crate::recording::Viewed;
use crate::reply::Reply;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tracewing_analysis::{Bins, Frame, Group, Locks, Row, Subject};
use tracewing_programs::symbols::Symbols;
use tracewing_trace::{Filter, Recording};
use tracewing_units::Pid;

/// A lock: its process, which the kernel's locks have not, whether it is a futex, and its address.
pub(super) type Lock = (Option<Pid>, bool, String);

/// Places of locks; several if the lock at an address was destroyed and another one created there.
pub(super) type Places = BTreeMap<Lock, BTreeSet<String>>;

/// Locks of a question, at most: so many a table has.
const MOST: usize = 1000;

/// What is asked: an area, and the addresses of locks as they are printed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    locks: BTreeSet<String>,
}

/// How places are named.
#[derive(Debug, Clone, Copy)]
pub(super) enum Named {
    /// As `tracewing locks` prints them; without lines, a lock has none.
    Printed,
    /// In the same way in each run: by lines or, without these, by functions.
    Comparable,
}

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let ready = ready(viewed)?;
    let (area, Asked { locks }) = of_area(&ready, body)?;
    if locks.len() > MOST {
        return Err(refused("too many locks at once"));
    }
    // Without the events of other threads, some holds have no length, and so some locks no place.
    let (filter, processes) = (area.time(&ready)?, area.processes(&ready)?);
    let recording = viewed.recording();
    let is_asked = move |(process, _, address): &Lock| {
        let is_in = |all: &BTreeSet<Pid>| process.is_none_or(|process| all.contains(&process));
        locks.contains(address) && processes.as_ref().is_none_or(is_in)
    };
    jobs::start(viewed, move |job| {
        let mut found = BTreeMap::<String, BTreeSet<String>>::new();
        for ((.., address), places) in places(job, (&recording, &filter), is_asked, Named::Printed)? {
            found.entry(address).or_default().extend(places);
        }
        Ok(found)
    })
}

/// The places of some locks in what a filter lets through.
pub(super) fn places(
    job: &Job,
    (recording, filter): (&Recording, &Filter),
    is_asked: impl Fn(&Lock) -> bool,
    named: Named,
) -> Result<Places, String> {
    let mut locks = Locks::new(Group::Lock, Bins::default());
    let ran = tracewing_analysis::run(recording, filter, &mut locks, &mut |progress| job.watch(progress));
    let ran = ran.map_err(|error| error.to_string())?;
    let (mut texts, mut places) =
        (Texts { named, symbols: Symbols::new(), known: HashMap::new() }, Places::new());
    for row in locks.finish(&ran).rows {
        job.go_on()?;
        let Some(lock) = lock_of(&row).filter(&is_asked) else { continue };
        if let Some(place) = named.place(&row) {
            places.entry(lock).or_default().insert(texts.of(place));
        }
    }
    Ok(places)
}

fn lock_of(row: &Row) -> Option<Lock> {
    let (is_futex, address) = match row.subject {
        Subject::Lock(address) => (false, address),
        Subject::Futex(address) => (true, address),
        Subject::Thread(_) | Subject::Task(_) | Subject::Caller(_) | Subject::Chain(_) => return None,
    };
    Some((row.process, is_futex, format!("{address:#x}")))
}

impl Named {
    fn place(self, row: &Row) -> Option<&Frame> {
        match self {
            Named::Printed => row.frames.first(),
            Named::Comparable => row.held_at.as_ref().filter(|place| is_comparable(place)),
        }
    }

    /// A call by the address to which it returns.
    fn call(self, symbols: &mut Symbols, path: &str, address: u64) -> String {
        // It returns to the instruction after the call, which may be another function's first.
        let function = match self {
            Named::Printed => None,
            Named::Comparable => {
                symbols.at(path, address.saturating_sub(1)).map(|symbol| symbol.name.to_owned())
            }
        };
        function.unwrap_or_else(|| symbols.call(path, address))
    }
}

/// Whether more is known of a place than an address in memory, which differs from run to run.
fn is_comparable(place: &Frame) -> bool {
    place.source.is_some() || place.image.is_some() || place.activity.is_some()
}

/// The names of places. Symbols take longer than all the rest, so each place in a file is named once.
struct Texts {
    named: Named,
    symbols: Symbols,
    known: HashMap<(String, u64), String>,
}

impl Texts {
    fn of(&mut self, place: &Frame) -> String {
        place.text(|path, address| {
            let (named, symbols) = (self.named, &mut self.symbols);
            let new = || named.call(symbols, path, address);
            self.known.entry((path.to_owned(), address)).or_insert_with(new).clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Named, Texts};
    use std::collections::HashMap;
    use std::path::Path;
    use tracewing_analysis::Frame;
    use tracewing_programs::symbols::{Symbols, functions};

    #[test]
    fn calls_of_a_function_are_compared_as_one_place() {
        let path = std::env::current_exe().unwrap();
        let own = |name: &str| name.contains("calls_of_a_function_are_compared_as_one_place");
        let function =
            functions(Path::new(&path), own).into_iter().find(|function| function.size > 64).unwrap();
        let path = path.to_str().unwrap();
        let texts = |named| {
            let mut texts = Texts { named, symbols: Symbols::new(), known: HashMap::new() };
            // The last one is the address after a call at the function's end.
            let found = [8, 32, function.size].map(|offset| {
                let image = Some((path.to_owned(), function.begin + offset));
                texts.of(&Frame { address: 7, image, source: None, activity: None })
            });
            assert_eq!(texts.known.len(), 3);
            found
        };
        let found = texts(Named::Comparable);
        assert!(found.iter().all(|text| *text == function.name), "{found:?}");
        let printed = texts(Named::Printed);
        assert!(
            printed[0] != printed[1] && printed[0].starts_with(&format!("{}+0x8", function.name)),
            "{printed:?}"
        );
    }
}
