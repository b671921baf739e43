//! The n-th occurrence of an event is the same from any checkpoint.

use super::*;
use std::collections::BTreeMap;

/// Checkpoints with their times, as an index has them.
#[derive(Debug, Clone)]
pub(super) struct All(pub(super) Vec<(Timestamp, Vec<u8>)>);

impl Checkpoints for All {
    fn before(&self, time: Timestamp) -> Option<Vec<u8>> {
        self.0.iter().rfind(|(until, _)| *until < time).map(|(_, bytes)| bytes.clone())
    }

    fn times(&self) -> Vec<Timestamp> {
        self.0.iter().map(|(until, _)| *until).collect()
    }
}

fn with(path: &Path, checkpoints: &All) -> Recording {
    let recording = opened(path);
    recording.use_checkpoints(Box::new(checkpoints.clone()));
    recording
}

/// When an event occurs for the n-th time, or why it does not.
fn occurrence(recording: &Recording, event: &str, number: u64) -> String {
    let from = TimePoint::parse(&format!("{event}#{number}"), Default::default()).unwrap();
    let filter = Filter { from: Some(from), ..Filter::default() };
    format!("{:?}", filter.range(recording).map_err(|error| error.to_string()))
}

/// The names of all events, each with how many there are.
fn names(recording: &Recording) -> BTreeMap<String, u64> {
    let mut names = BTreeMap::new();
    let mut merge = Pauses::none().merge(recording);
    while let Ok(Some(message)) = merge.advance() {
        if let Message::Event(event) = message
            && let Some(name) = event.decoded().class().name.as_deref()
        {
            *names.entry(name.to_owned()).or_default() += 1;
        }
    }
    names
}

/// Compares occurrences of all events, in steps, with those that a search from the beginning finds.
fn compare_all(path: &Path, at: &[f64]) -> usize {
    let recording = opened(path);
    let (begin, end) = (recording.begin().unwrap(), recording.end().unwrap());
    let time = |share: f64| begin + Duration::from_ns(((end - begin).as_ns() as f64 * share) as u64);
    let checkpoints = All(kept(&recording, &at.iter().map(|share| time(*share)).collect::<Vec<_>>()));
    let mut names = names(&recording);
    let sum = names.values().sum();
    names.extend(["*", "sched_*", "user_thread:*", "*s*", "nothing"].map(|glob| (glob.to_owned(), sum)));
    let continued = with(path, &checkpoints);
    for (name, count) in names {
        for number in (1..=count + 2).step_by(1.max(count as usize / 6)) {
            let [found, expected] =
                [&continued, &recording].map(|recording| occurrence(recording, &name, number));
            assert_eq!(found, expected, "{}: {name}#{number} {at:?}", path.display());
        }
    }
    checkpoints.0.len()
}

#[test]
fn an_occurrence_is_the_same_from_any_checkpoint() {
    for path in recordings() {
        assert!(compare_all(&path, &AT) >= 3);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn an_occurrence_in_a_damaged_recording_is_the_same(
        recording in 0..6_usize,
        changes in prop::collection::vec((0..KINDS, any::<u16>()), 4),
        at in prop::collection::vec(0.0..1.0, 1..5),
    ) {
        let copy = changed(&recordings()[recording], &changes);
        compare_all(copy.path(), &at);
    }
}

/// A checkpoint with another number changes what is found: the search begins there.
#[test]
fn the_search_begins_at_a_checkpoint() {
    let path = &recordings()[0];
    let recording = opened(path);
    let (begin, end) = (recording.begin().unwrap(), recording.end().unwrap());
    let (until, bytes) = kept(&recording, &[begin + (end - begin) / 2]).swap_remove(0);
    let known = Checkpoint::before(&continued(path, &bytes), end).unwrap().known;
    let (name, count) = known.counted.unwrap().into_iter().max_by_key(|(_, count)| *count).unwrap();
    let found = |bytes| occurrence(&with(path, &All(vec![(until, bytes)])), &name, count + 2);
    assert_eq!(found(bytes.clone()), occurrence(&recording, &name, count + 2));
    // The number follows the name, its lowest bits first.
    let place = bytes.windows(name.len()).position(|window| window == name.as_bytes()).unwrap() + name.len();
    let mut other = bytes;
    let is_odd = other[place] & 1 == 1;
    other[place] ^= 1;
    let there = if is_odd { count + 3 } else { count + 1 };
    assert_eq!(found(other), occurrence(&recording, &name, there));
}
