//! Searches: events whose lines, as `tracewing list --pretty` prints them, have all words of a text, and
//! which a filter lets through.

use crate::passes::{Pass, Passes, Work};
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use tracewing_trace::{ClockStyle, FieldStyle, Filter, Format, Listing, Recording, Sink, Style};
use tracewing_units::{Duration, Timestamp};

/// Most matches of which the times are kept; further ones are only counted.
const MARKED: usize = 4_000_000;

/// The searches of a recording.
pub(crate) type Searches = Passes<Search>;

/// What is searched.
#[derive(Debug, Default)]
pub(crate) struct Text {
    /// In lower case.
    pub(crate) words: Vec<String>,
    /// As `tracewing list` takes it.
    pub(crate) filter: Filter,
}

#[derive(Debug)]
pub(crate) struct Search {
    text: Text,
    found: Mutex<Found>,
}

/// What a search has found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// Times of matches in their order, since the recording begins.
    pub(crate) times: Vec<Duration>,
    /// How many there are.
    pub(crate) count: u64,
    /// Up to when all are found.
    pub(crate) until: Duration,
    pub(crate) is_done: bool,
    /// Why it has ended before the recording.
    pub(crate) failure: Option<String>,
}

impl Searches {
    /// Starts a search; gives its number, or why there is none.
    pub(crate) fn search(
        &self,
        recording: &Arc<Recording>,
        begin: Timestamp,
        text: Text,
    ) -> Result<u64, String> {
        let recording = recording.clone();
        self.start(Search { text, found: Mutex::default() }, move |pass| run(pass, &recording, begin))
    }
}

impl Work for Search {
    type Done = ();
    const NAMES: [&'static str; 2] = ["search", "searches"];
    const KEPT: usize = 4;

    fn ends(&self, done: Result<(), String>) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        // Clocks may go back a little.
        found.times.sort_unstable();
        (found.is_done, found.failure) = (true, done.err());
    }
}

/// Searches; gives why it has ended before the recording, if it has.
fn run(search: &Pass<Search>, recording: &Recording, begin: Timestamp) -> Result<(), String> {
    let clock = ClockStyle { seconds: true, ..ClockStyle::default() };
    let fields = FieldStyle { hostname: false, procname: false, vpid: false, ..FieldStyle::default() };
    let style = Style { clock, delta: false, fields, ..Style::default() };
    let filter = search.text.filter.clone();
    let listing = Listing { format: Format::Pretty, style, filter, ..Listing::default() };
    listing.print(recording, &mut Matches { search, begin }).map_err(|error| error.to_string())
}

impl Search {
    /// What it has found so far.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&Found) -> T) -> T {
        look(&self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a line has all words; it is in lower case.
    fn matches(&self, line: &str) -> bool {
        self.text.words.iter().all(|word| line.contains(word))
    }
}

/// Takes lines of events.
struct Matches<'s> {
    search: &'s Pass<Search>,
    begin: Timestamp,
}

impl Sink for Matches<'_> {
    fn events(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.search.is_stopped() {
            return Err(io::Error::other("it was stopped"));
        }
        let lines = String::from_utf8_lossy(lines).to_lowercase();
        let mut times = Vec::new();
        let (mut count, mut until) = (0, Duration::ZERO);
        for line in lines.lines() {
            let Some((time, rest)) = stamp(line, self.begin) else { continue };
            until = time;
            if self.search.matches(rest) {
                times.push(time);
                count += 1;
            }
        }
        let mut found = self.search.found.lock().unwrap_or_else(PoisonError::into_inner);
        times.truncate(MARKED.saturating_sub(found.times.len()));
        found.times.append(&mut times);
        found.count += count;
        found.until = found.until.max(until);
        Ok(())
    }

    fn warning(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn reached(&mut self, time: Timestamp) -> ControlFlow<()> {
        if self.search.is_stopped() {
            return ControlFlow::Break(());
        }
        let mut found = self.search.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.until = found.until.max(time - self.begin);
        ControlFlow::Continue(())
    }
}

/// The time of a line since the recording begins, and what follows; `None` without a time.
fn stamp(line: &str, begin: Timestamp) -> Option<(Duration, &str)> {
    let (stamp, after) = line.strip_prefix('[')?.split_once(']')?;
    let (seconds, rest) = stamp.split_once('.')?;
    let (seconds, rest): (i64, i64) = (seconds.parse().ok()?, rest.parse().ok().filter(|_| rest.len() == 9)?);
    let ns = seconds.checked_mul(1_000_000_000)?.checked_add(rest)?;
    Some((Timestamp::from_ns(ns) - begin, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration as Pause;

    /// A recording of many events, one each microsecond.
    fn many() -> (tempfile::TempDir, Arc<Recording>) {
        const METADATA: &str = "/* CTF 1.8 */
            typealias integer { size = 8; align = 8; signed = false; } := u8;
            clock { name = c; freq = 1000000000; };
            typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := stamp;
            trace { major = 1; minor = 8; byte_order = le; };
            stream { event.header := struct { stamp timestamp; }; };
            event { name = tick; fields := struct { u8 n; }; };";
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("metadata"), METADATA).unwrap();
        let event = |n: u64| [&(n * 1000).to_le_bytes()[..], &[n as u8]].concat();
        fs::write(folder.path().join("stream"), (0..100_000).flat_map(event).collect::<Vec<u8>>()).unwrap();
        let recording = Recording::open(&[folder.path()]).unwrap();
        (folder, Arc::new(recording))
    }

    fn text(condition: &str) -> Text {
        let predicate = Some(tracewing_trace::Predicate::parse(condition).unwrap());
        Text { words: Vec::new(), filter: Filter { predicate, ..Filter::default() } }
    }

    #[test]
    fn a_search_that_finds_nothing_says_how_far_it_is_and_can_be_ended() {
        let (_folder, recording) = many();
        let search = |is_stopped: bool| {
            let search = Pass::new(0, Search { text: text("n == 256"), found: Mutex::default() });
            if is_stopped {
                search.stop();
            }
            let failure = run(&search, &recording, Timestamp::from_ns(0)).err();
            (failure, search.with(|found| (found.count, found.until)))
        };
        let (failure, (count, until)) = search(false);
        assert_eq!((failure, count), (None, 0));
        assert!(until > Duration::from_ns(50_000_000), "{until:?}");
        let (failure, found) = search(true);
        assert!(failure.is_some_and(|why| why.contains("stopped")));
        assert_eq!(found, (0, Duration::ZERO));
    }

    #[test]
    fn a_search_runs_in_a_thread_of_its_own() {
        let (_folder, recording) = many();
        let searches = Searches::default();
        let number = searches.search(&recording, Timestamp::from_ns(0), text("n == 7")).unwrap();
        let search = searches.get(number).unwrap();
        while !search.with(|found| found.is_done) {
            std::thread::sleep(Pause::from_millis(1));
        }
        assert_eq!(search.with(|found| found.count), 391);
    }

    #[test]
    fn a_stamp_is_exact() {
        let begin = Timestamp::from_ns(1_795_422_766_000_000_001);
        let (time, rest) = stamp("[1795422766.019285686] a: { b = 1 }", begin).unwrap();
        assert_eq!((time, rest), (Duration::from_ns(19_285_685), " a: { b = 1 }"));
        for line in ["", "a", "[]", "[1.5] a", "[x.000000000] a", "[99999999999999.000000000] a"] {
            assert_eq!(stamp(line, begin), None, "{line}");
        }
    }
}
