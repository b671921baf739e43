//! What `tracing` is told of call sites: those whose events nobody wants are switched off by `tracing`
//! itself, by the word that each call site has for that, so that they cost nothing more.
//!
//! The answer is given as that of a per-layer filter, which speaks for this layer and no other. It changes
//! when a recording begins, ends or is told to record something else ([`tracewing::dynamic::on_change`]), and
//! when a call site's first event has shown that nobody wants it ([`ask_again_soon`]). Until it has been
//! asked again, `tracing` sends events of such a call site; they are not recorded.

use crate::site;
use core::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::Once;
use std::thread;
use std::time::Duration;
use tracewing::dynamic;
use tracing_core::subscriber::{Interest, NoSubscriber};
use tracing_core::{Dispatch, Metadata};
use tracing_subscriber::layer::{Context, Filter};

/// Speaks for the layer: wanted is what some recording wants.
pub struct Wanted;

impl<S> Filter<S> for Wanted {
    /// The layer sees for itself whether an event is wanted.
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if site::of(metadata).may_be_wanted() { Interest::always() } else { Interest::never() }
    }
}

/// From now on `tracing` is told of changes.
pub fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| dynamic::on_change(ask_again));
}

/// Has `tracing` ask about all call sites.
///
/// While it knows of one dispatcher only, `tracing` asks the calling thread's default one
/// (`tracing_core::callsite`, 0.1.36), which is none on a thread of ours if the program has set its own for
/// some threads only. So it is told of a second one, which is gone before it matters: then it asks all that
/// it knows.
fn ask_again() {
    drop(Dispatch::new(NoSubscriber::default()));
    tracing_core::callsite::rebuild_interest_cache();
}

/// Has `tracing` ask about all call sites a little later, when more of them have shown what they are.
///
/// On another thread, which ends then: this one is inside `tracing`, possibly with locks that asking needs.
#[cold]
pub fn ask_again_soon() {
    /// The process whose thread is waiting; not that which it was forked from.
    static WAITING: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    if WAITING.swap(process, Relaxed) == process {
        return;
    }
    let wait = || {
        thread::sleep(Duration::from_millis(20));
        WAITING.store(0, Relaxed); // what is learnt from now on needs another one
        ask_again();
    };
    // Without a thread the call site stays on.
    let _ = thread::Builder::new().name("tracewing".to_owned()).spawn(wait);
}
