//! What is counted of archives that are complete, and of those that are removed.

use super::*;
use std::num::NonZeroUsize;
use std::path::Path;
use tracewing_consumer::clock::{ClockChoice, TraceClock};
use tracewing_consumer::description::{BufferDescription, Removed};

/// Archives of which so many are kept.
fn archives(place: &Path, keep: usize) -> (Archives, Description) {
    let root = Folder::create(&place.join("trace")).unwrap();
    let options = Rotate { keep: NonZeroUsize::new(keep), ..Rotate::default() };
    let clock = TraceClock::new(ClockChoice::Monotonic).unwrap();
    let buffers = BufferDescription {
        sub_buffer_bytes: 4096,
        sub_buffers: 2,
        per_process: true,
        overwrite: false,
        flush_ms: None,
    };
    let description = Description::new(&clock, clock.calibrate(), buffers);
    let mut archives = Archives::new(root, options, None, clock.now());
    archives.parent = Some(archives.root.dir().make(FOLDER).unwrap());
    (archives, description)
}

/// Completes an archive of 3 events and 10 bytes, which is on the disk, and begins the next one.
fn complete(archives: &mut Archives, description: &Description) {
    let name = format!("20260101T000000Z-{}", archives.current.number);
    archives.parent.as_ref().unwrap().make(&name).unwrap();
    complete_elsewhere(archives, description);
}

/// The same of one that is not.
fn complete_elsewhere(archives: &mut Archives, description: &Description) {
    let number = archives.current.number;
    archives.current.number += 1;
    let name = format!("20260101T000000Z-{number}");
    let totals = ArchiveTotals {
        number,
        folder: format!("{FOLDER}/{name}"),
        reason: String::new(),
        begin: Cycles(0),
        end: Cycles(0),
        events: 3,
        state_events: 1,
        lost: 0,
        is_lost_unknown: false,
        bytes: 10,
        is_removed: false,
    };
    archives.add(description, totals);
    archives.make_room(Some(0)).unwrap();
}

#[test]
fn archives_that_are_no_longer_listed_are_counted() {
    const REMOVED: usize = 5;
    let place = tempfile::tempdir().unwrap();
    let keep = MOST_LISTED + 3;
    let (mut archives, description) = archives(place.path(), keep);
    // With the one that is being written.
    let completed = keep - 1 + REMOVED;
    (0..REMOVED).for_each(|_| complete(&mut archives, &description));
    (REMOVED..completed).for_each(|_| complete_elsewhere(&mut archives, &description));
    archives.finish_removing();
    assert_eq!(archives.complete.len(), MOST_LISTED);
    assert!(archives.complete.iter().all(|one| !one.is_removed), "they are not listed");
    let removed = Removed { count: REMOVED as u64, events: 3 * REMOVED as u64, bytes: 10 * REMOVED as u64 };
    assert_eq!(archives.all, AllArchives { completed: completed as u64, removed });
}

#[test]
fn what_the_user_has_moved_away_was_not_removed() {
    let place = tempfile::tempdir().unwrap();
    let (mut archives, description) = archives(place.path(), 3);
    (0..2).for_each(|_| complete(&mut archives, &description));
    let first = archives.path(archives.complete[0].name());
    std::fs::rename(&first, place.path().join("moved")).unwrap();
    (0..2).for_each(|_| complete(&mut archives, &description));
    let removed: Vec<bool> = archives.complete.iter().map(|one| one.is_removed).collect();
    assert_eq!((removed, archives.all.removed.count), (vec![false, true, false, false], 1));
}
