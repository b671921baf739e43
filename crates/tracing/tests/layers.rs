//! The layer among other layers, with filters, and without a recording.

mod recorded;

use recorded::{alone, only, record};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tracing::{Event, Level, Subscriber, event, info, info_span, subscriber};
use tracing_subscriber::filter::{EnvFilter, FilterExt, LevelFilter};
use tracing_subscriber::layer::Context;
use tracing_subscriber::prelude::*;

/// Counts what it sees.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> tracing_subscriber::Layer<S> for Seen {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.lock().unwrap().push(event.metadata().target().to_owned());
    }
}

fn emit() {
    event!(target: "enabled", Level::INFO, number = 1);
    event!(target: "other", Level::INFO, number = 2);
    event!(target: "enabled", Level::DEBUG, number = 3);
}

fn numbers(events: &[recorded::Event]) -> Vec<u64> {
    events.iter().map(|event| event.number("number")).collect()
}

#[test]
fn other_layers_see_what_is_not_recorded() {
    let _alone = alone();
    let seen = Seen::default();
    let subscriber = tracing_subscriber::registry().with(tracewing_tracing::layer()).with(seen.clone());
    subscriber::with_default(subscriber, || {
        emit();
        let events = record(&["enabled:*"], || (0..3).for_each(|_| emit()));
        assert_eq!(numbers(&events), [1, 3, 1, 3, 1, 3]);
        emit();
    });
    assert_eq!(seen.0.lock().unwrap().len(), 5 * 3);
}

#[test]
fn other_layers_filters_are_theirs() {
    let _alone = alone();
    let (above, below) = (Seen::default(), Seen::default());
    let subscriber = tracing_subscriber::registry()
        .with(below.clone().with_filter(EnvFilter::new("other")))
        .with(tracewing_tracing::layer())
        .with(above.clone().with_filter(LevelFilter::INFO));
    subscriber::with_default(subscriber, || {
        let events = record(&["enabled:*"], emit);
        assert_eq!(numbers(&events), [1, 3]);
        emit();
    });
    assert_eq!(*below.0.lock().unwrap(), ["other", "other"]);
    assert_eq!(*above.0.lock().unwrap(), ["enabled", "other", "enabled", "other"]);
}

#[test]
fn filters_of_the_layers_own() {
    let _alone = alone();
    let filter = || EnvFilter::new("enabled=info,other=info");
    let check = || {
        emit();
        assert_eq!(numbers(&record(&["enabled:*"], emit)), [1]);
        assert_eq!(numbers(&record(&["*"], emit)), [1, 2]);
    };
    let layer = tracewing_tracing::layer().with_filter(filter());
    subscriber::with_default(tracing_subscriber::registry().with(layer), check);
    let both = tracewing_tracing::layer().with_filter(filter().and(tracewing_tracing::Recorded));
    subscriber::with_default(tracing_subscriber::registry().with(both), check);
    let of_all = tracing_subscriber::registry().with(filter()).with(tracewing_tracing::layer());
    subscriber::with_default(of_all, check);
}

#[test]
fn a_filter_that_looks_at_spans() {
    let _alone = alone();
    let filter = EnvFilter::new("[order{id=7}]=trace");
    let subscriber = tracing_subscriber::registry().with(tracewing_tracing::layer().with_filter(filter));
    subscriber::with_default(subscriber, || {
        let events = record(&["*"], || {
            for id in [6, 7] {
                let _order = info_span!(target: "enabled", "order", id).entered();
                event!(name: "step", target: "enabled", Level::TRACE, id);
            }
        });
        let step = only(&events, "enabled:step");
        assert_eq!(step.number("id"), 7);
        assert!(events.iter().any(|event| {
            event.name == "enabled:order_new"
                && event.payload["id"] == 7
                && event.payload["span"] == step.payload["span"]
        }));
    });
}

/// How often a call site's arguments are evaluated.
static EVALUATED: AtomicU64 = AtomicU64::new(0);

fn evaluated() -> u64 {
    EVALUATED.fetch_add(1, Relaxed)
}

#[test]
fn call_sites_are_off_while_no_layer_enables_them() {
    let _alone = alone();
    let subscriber = tracing_subscriber::registry().with(tracewing_tracing::layer());
    subscriber::with_default(subscriber, || {
        let emit = || event!(target: "off", Level::INFO, number = evaluated());
        emit();
        assert!(!tracing::enabled!(target: "off", Level::ERROR));
        assert_eq!(EVALUATED.load(Relaxed), 0);
        assert_eq!(record(&["off:*"], emit).len(), 1);
        assert_eq!(EVALUATED.load(Relaxed), 1);
        emit();
        assert_eq!(EVALUATED.load(Relaxed), 1, "the recording has ended");
        record(&["another:*"], || {
            emit();
            assert_eq!(EVALUATED.load(Relaxed), 1, "known, and not enabled");
        });
        // A new call site is asked once, and switched off a little later.
        record(&["another:*"], || {
            let emit = || event!(target: "off", Level::WARN, number = evaluated());
            let begin = Instant::now();
            loop {
                let before = EVALUATED.load(Relaxed);
                emit();
                if EVALUATED.load(Relaxed) == before {
                    break;
                }
                assert!(begin.elapsed() < Duration::from_secs(60), "it stays on");
                thread::sleep(Duration::from_millis(1));
            }
        });
        assert_eq!(record(&["off:*"], emit).len(), 1);
    });
}

#[test]
fn a_span_is_not_created_while_no_layer_enables_it() {
    let _alone = alone();
    let subscriber = tracing_subscriber::registry().with(tracewing_tracing::layer());
    subscriber::with_default(subscriber, || {
        let span = || info_span!(target: "off", "span");
        assert!(span().is_disabled());
        record(&["off:*"], || assert!(!span().is_disabled()));
        record(&["another:*"], || assert!(span().is_disabled()));
        assert!(span().is_disabled());
    });
}

#[test]
fn recordings_that_begin_and_end_inside_of_spans() {
    let _alone = alone();
    let subscriber = tracing_subscriber::registry().with(tracewing_tracing::layer()).with(Seen::default());
    subscriber::with_default(subscriber, || {
        let early = info_span!(target: "across", "early").entered();
        let mut late = None;
        let events = record(&["across:*"], || {
            info!(target: "across", number = 1);
            late = Some(info_span!(target: "across", "late").entered());
        });
        let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names[1..], ["across:late_new", "across:late_enter"]);
        assert_eq!(events[0].number("span"), 0);
        let id = events[1].number("span");
        let events = record(&["across:*"], || {
            info!(target: "across", number = 2);
            drop(late.take());
            drop(early);
        });
        let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names[1..], ["across:late_exit", "across:late_close"]);
        assert!(events.iter().all(|event| event.number("span") == id));
    });
}

#[test]
fn layers_on_two_threads() {
    let _alone = alone();
    let events = record(&["threads:*"], || {
        let thread = |number: u64| {
            thread::spawn(move || {
                let subscriber = tracing_subscriber::registry().with(tracewing_tracing::layer());
                subscriber::with_default(subscriber, || {
                    // The registries assign the same number to both.
                    let _span = info_span!(target: "threads", "span", number).entered();
                    event!(name: "step", target: "threads", Level::INFO, number);
                });
            })
        };
        [1, 2].map(thread).into_iter().for_each(|thread| thread.join().unwrap());
    });
    for number in [1, 2] {
        let of = |name: &str| {
            let mut of =
                events.iter().filter(|event| event.name == name && event.payload["number"] == number);
            of.next().unwrap().number("span")
        };
        assert_eq!(of("threads:span_new"), of("threads:step"));
    }
    let spans = recorded::named(&events, "threads:span_new");
    assert_ne!(spans[0].number("span"), spans[1].number("span"));
}
