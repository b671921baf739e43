//! Where there is no room for all that checkpoints have, readers that need it begin before them.

use super::*;
use crate::run::checkpoints::{Keeper, leave_out};
use tracewing_trace::super_trace::Known;

/// What of a checkpoint is there: names of processes, numbers of events, and parts of analyses.
fn has(path: &Path, bytes: &[u8]) -> (bool, bool, usize) {
    let recording = continued(path, bytes);
    let known = Checkpoint::before(&recording, Timestamp::MAX).unwrap().known;
    (known.named.is_some(), known.counted.is_some(), known.parts.len())
}

#[test]
fn a_window_is_the_same_whatever_a_checkpoint_lacks() {
    let path = &recordings()[0];
    let recording = opened(path);
    let (begin, end) = (recording.begin().unwrap(), recording.end().unwrap());
    let point = |part: u64| Some(TimePoint::Absolute(begin + (end - begin) / 1000 * part));
    let whole = kept(&recording, &[begin + (end - begin) / 2]).swap_remove(0).1.len() as u64;
    let filters = filters(&recording);
    let mut seen = Vec::new();
    // From room for all of it to room for the state alone.
    for share in (1..400).map(|part| recording.bytes() * part / (whole * 20)) {
        let kept = kept_within(&recording, &[begin + (end - begin) / 2], share);
        let Some((_, bytes)) = kept.first() else { break };
        let has = has(path, bytes);
        if seen.contains(&has) {
            continue;
        }
        seen.push(has);
        for (chosen, from, to) in [
            (&Filter::default(), 600, 900),
            (&filters[3], 501, 503),
            (&filters[3], 600, 610),
            (&filters[6], 501, 503),
            (&filters[6], 700, 710),
        ] {
            let filter = Filter { from: point(from), to: point(to), ..chosen.clone() };
            let [found, expected] =
                [&continued(path, bytes), &recording].map(|recording| results(recording, &filter, false));
            assert!(found == expected, "{has:?} {filter:?}");
        }
    }
    assert_eq!((seen.first(), seen.last()), (Some(&(true, true, 3)), Some(&(false, false, 0))), "{seen:?}");
    assert!(seen.len() >= 4 && seen.is_sorted_by(|more, less| more > less), "{seen:?}");
}

/// What keeps explanations of everything keeps none of a kind of which there are too many.
#[test]
fn explanations_have_a_bound() {
    let parts = |path: &Path, most: usize| {
        let recording = opened(path);
        let explanations = Explanations::of_at_most(most);
        let mut keeps = Keeps { explanations, ..Keeps::default() };
        let mut go_on = |_| ControlFlow::Continue(());
        run_as(&recording, &Filter::default(), &mut keeps, false, &mut go_on).unwrap();
        keeps.parts(u64::MAX).iter().map(|part| part.kind).collect::<Vec<_>>()
    };
    let mut few = Vec::new();
    for path in recordings() {
        assert_eq!(parts(&path, 1 << 20), [0, 1, 2]);
        few.push(parts(&path, 0));
    }
    for kind in 0..=2 {
        assert!(few.iter().any(|parts| !parts.contains(&kind)), "{kind}: {few:?}");
    }
}

#[test]
fn all_checkpoints_share_their_room() {
    let room = |bytes, share, read| Keeper { bytes, share, ..Keeper::default() }.room(read);
    assert_eq!([room(0, 10, 1009), room(60, 10, 1009), room(100, 10, 1009)], [100, 40, 0]);
    assert_eq!([room(101, 10, 1009), room(7, 0, 1)], [0, u64::MAX]);
}

#[test]
fn the_largest_parts_are_left_out_first() {
    let left = |excess| {
        let part = |kind, bytes| Part { kind, bytes: vec![0; bytes].into() };
        let parts = vec![part(0, 5), part(1, 9), part(2, 7)];
        let mut known = Known { parts, counted: Some(Vec::new()), ..Known::default() };
        assert!(leave_out(&mut known, excess) && known.counted.is_some());
        known.parts.iter().map(|part| part.kind).collect::<Vec<_>>()
    };
    assert_eq!([left(1), left(9)], [[0, 2]; 2]);
    assert_eq!([left(10), left(16)], [[0]; 2]);
    assert!(left(1000).is_empty());
    let mut known = Known { counted: Some(Vec::new()), named: Some(Vec::new()), ..Known::default() };
    assert!(leave_out(&mut known, 1) && known.counted.is_none() && known.named.is_some());
    assert!(leave_out(&mut known, 1) && known.named.is_none());
    assert!(!leave_out(&mut known, 1));
}
