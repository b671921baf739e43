//! Which analyses continue from a checkpoint.

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
