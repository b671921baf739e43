//! The slot FIFO under every interleaving and every order of accesses that the memory model allows.
//!
//! Loom's cells report two accesses to a slot that nothing orders; the rest is asserted: nothing twice,
//! nothing lost uncounted, each writer's order kept, every value dropped once. A killed writer is one that
//! stops between two steps. These models cover it: the reader looks at every moment.

use loom::sync::Arc;
use loom::thread;
use tracewing_ring::slot_fifo::SlotFifo;

/// A value on the heap, so that one popped twice, or not written when it is popped, is found.
type Value = Box<u32>;

fn drain(fifo: &SlotFifo<Value, 2>) -> Vec<u32> {
    let mut reader = fifo.reader().expect("no other reader");
    std::iter::from_fn(|| reader.pop()).map(|value| *value).collect()
}

/// Two writers and a reader with one slot free and another being freed: A may have looked before the pop and
/// then write to the slot that the pop freed.
#[test]
fn a_writer_overtaken_before_it_has_its_slot() {
    loom::model(|| {
        let fifo = Arc::new(SlotFifo::<Value, 2>::new());
        fifo.try_push(Box::new(0)).unwrap();
        let writers: Vec<_> = [10, 20]
            .map(|value| {
                let fifo = fifo.clone();
                thread::spawn(move || fifo.try_push(Box::new(value)).is_ok())
            })
            .into();
        let mut popped = drain(&fifo);
        let pushed = writers.into_iter().map(|writer| usize::from(writer.join().unwrap())).sum::<usize>();
        popped.extend(drain(&fifo));
        assert_eq!(popped[0], 0);
        assert_eq!(popped.len(), 1 + pushed);
        assert_eq!(popped.len() as u64 + fifo.failed(), 3);
        popped.sort_unstable();
        popped.dedup();
        assert_eq!(popped.len(), 1 + pushed, "one value twice: {popped:?}");
    });
}

/// One writer goes around the slots while the reader pops: the order is kept, and slots pass back and forth.
#[test]
fn a_writer_that_laps() {
    loom::model(|| {
        let fifo = Arc::new(SlotFifo::<Value, 2>::new());
        let writer = {
            let fifo = fifo.clone();
            thread::spawn(move || {
                (0..4).filter(|value| fifo.try_push(Box::new(*value)).is_ok()).collect::<Vec<_>>()
            })
        };
        let mut popped = drain(&fifo);
        popped.extend(drain(&fifo));
        let pushed = writer.join().unwrap();
        popped.extend(drain(&fifo));
        assert_eq!(popped, pushed);
        assert_eq!(pushed.len() as u64 + fifo.failed(), 4);
    });
}

/// A failing writer gives back a slot, and a writer that needs it takes it.
#[test]
fn writers_that_fail() {
    loom::model(|| {
        let fifo = Arc::new(SlotFifo::<Value, 1>::new());
        let writers: Vec<_> = [1, 2]
            .map(|value| {
                let fifo = fifo.clone();
                thread::spawn(move || fifo.try_push(Box::new(value)).map_err(|back| assert_eq!(*back, value)))
            })
            .into();
        let pushed = writers.into_iter().map(|w| w.join().unwrap().is_ok()).collect::<Vec<_>>();
        assert_eq!(pushed.iter().filter(|ok| **ok).count(), 1, "one slot, never more, never none");
        assert_eq!(fifo.failed(), 1);
        let mut reader = fifo.reader().unwrap();
        assert!(reader.pop().is_some());
        assert!(reader.pop().is_none());
        fifo.try_push(Box::new(3)).expect("what the failing one took is back");
    });
}

/// The reading end passes from one thread to another, which continues where the first stopped.
#[test]
fn a_reader_after_another() {
    loom::model(|| {
        let fifo = Arc::new(SlotFifo::<Value, 2>::new());
        fifo.try_push(Box::new(1)).unwrap();
        fifo.try_push(Box::new(2)).unwrap();
        let first = {
            let fifo = fifo.clone();
            thread::spawn(move || fifo.reader().and_then(|mut reader| reader.pop()).map(|value| *value))
        };
        let second = fifo.reader().and_then(|mut reader| reader.pop()).map(|value| *value);
        let mut popped: Vec<_> = [first.join().unwrap(), second].into_iter().flatten().collect();
        popped.extend(drain(&fifo));
        popped.sort_unstable();
        assert_eq!(popped, [1, 2]);
    });
}

/// Values that were not popped are dropped with the queue, once (loom counts leaks of its own `Arc`s).
#[test]
fn dropped_with_values_inside() {
    loom::model(|| {
        let witness = Arc::new(());
        let fifo = Arc::new(SlotFifo::<Arc<()>, 2>::new());
        let writer = {
            let (fifo, witness) = (fifo.clone(), witness.clone());
            thread::spawn(move || (0..3).filter(|_| fifo.try_push(witness.clone()).is_ok()).count())
        };
        drop(fifo.reader().unwrap().pop());
        writer.join().unwrap();
        drop(fifo);
        assert_eq!(Arc::strong_count(&witness), 1);
    });
}
