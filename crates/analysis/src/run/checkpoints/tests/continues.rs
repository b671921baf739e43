//! Which analyses continue from a checkpoint.

use super::occurrences::All;
use super::*;

/// How often a run asks for a checkpoint: once if it continues from there.
fn asked<A: Analysis>(path: &Path, bytes: &[u8], filter: &Filter, mut analysis: A) -> usize {
    let (recording, asked) = (opened(path), Arc::new(AtomicUsize::new(0)));
    recording.use_checkpoints(Box::new(One(bytes.to_vec(), asked.clone())));
    run_as(&recording, filter, &mut analysis, false, &mut |_| ControlFlow::Continue(())).unwrap();
    asked.load(Ordering::Relaxed)
}

#[test]
fn analyses_of_a_time_continue() {
    for path in recordings() {
        let recording = opened(&path);
        let (begin, end) = (recording.begin().unwrap(), recording.end().unwrap());
        let (until, bytes) = kept(&recording, &[begin + (end - begin) / 2]).swap_remove(0);
        let filter = Filter { from: Some(TimePoint::Absolute(until.next())), ..Filter::default() };
        let locks = |by| asked(&path, &bytes, &filter, Locks::new(by, Bins::Log));
        assert_eq!([LocksBy::Lock, LocksBy::Thread, LocksBy::Chain].map(locks), [1; 3], "{}", path.display());
        assert_eq!(asked(&path, &bytes, &filter, Functions::new()), 1);
        assert_eq!(asked(&path, &bytes, &filter, Profile::new()), 1);
        assert_eq!(asked(&path, &bytes, &filter, Threads::new()), 1);
        // Of locks, a checkpoint knows only what concerns all events.
        let filter = Filter { cpus: vec![Cpu(0)..=Cpu(0)], ..filter };
        assert_eq!(asked(&path, &bytes, &filter, Locks::new(LocksBy::Lock, Bins::Log)), 0);
        assert_eq!(asked(&path, &bytes, &filter, Functions::new()), 1);
    }
}

/// Some checkpoints, and how often one was asked for.
#[derive(Debug)]
struct Counted(All, Arc<AtomicUsize>);

impl Checkpoints for Counted {
    fn before(&self, time: Timestamp) -> Option<Vec<u8>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.before(time)
    }

    fn times(&self) -> Vec<Timestamp> {
        self.0.times()
    }
}

/// That a checkpoint lacks a part is known before its state is read, which is cut off here.
#[test]
fn a_checkpoint_that_lacks_a_part_is_not_read() {
    let mut runs = 0;
    for path in recordings() {
        let recording = opened(&path);
        let (begin, end) = (recording.begin().unwrap(), recording.end().unwrap());
        let time = |part: u64| begin + (end - begin) / 10 * part;
        let explanations = Explanations::of_at_most(0);
        let (mut keeps, mut go_on) =
            (Keeps { explanations, ..Keeps::default() }, |_| ControlFlow::Continue(()));
        run_apart(&recording, &mut keeps, false, Pauses::at(vec![time(6)]), &mut go_on).unwrap();
        let both = kept(&recording, &[time(3)]).pop().zip(keeps.kept.pop());
        let Some((early, (until, mut late))) = both else { continue };
        let known = Checkpoint::before(&continued(&path, &late), end).unwrap().known;
        let mut locks = Locks::new(LocksBy::Lock, Bins::Log);
        if locks.can_take(&known.parts) {
            continue;
        }
        late.pop();
        let (other, asked) = (opened(&path), Arc::new(AtomicUsize::new(0)));
        other.use_checkpoints(Box::new(Counted(All(vec![early, (until, late)]), asked.clone())));
        let filter = Filter { from: Some(TimePoint::Absolute(time(8))), ..Filter::default() };
        run_as(&other, &filter, &mut locks, false, &mut go_on).unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), 2, "{}", path.display());
        runs += 1;
    }
    assert!(runs > 0);
}
