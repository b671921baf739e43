//! The layer's interest in call sites: `tracing` itself switches off call sites that no layer enables, by a
//! word of the call site, so that they cost nothing more.
//!
//! The answer is that of a per-layer filter, which speaks for this layer only. It changes when a recording
//! begins, ends or changes its rules ([`tracewing::dynamic::on_change`]), and when a call site's first event
//! has shown that no recording enables it ([`ask_again_soon`]). Until `tracing` has asked again, it sends
//! events of such a call site; they are not recorded.

use crate::site;
use core::sync::atomic::{AtomicU32, Ordering::*};
use std::sync::Once;
use std::thread;
use std::time::Duration;
use tracewing::dynamic;
use tracing_core::subscriber::{Interest, NoSubscriber};
use tracing_core::{Dispatch, Metadata};
use tracing_subscriber::layer::{Context, Filter};

/// The layer's filter: enables the call sites that some recording enables.
pub struct Recorded;

impl<S> Filter<S> for Recorded {
    /// The layer itself checks whether an event is enabled.
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if site::of(metadata).may_be_enabled() { Interest::always() } else { Interest::never() }
    }
}

/// Makes `tracing` ask again whenever recordings change.
pub(crate) fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| dynamic::on_change(ask_again));
}

/// Makes `tracing` ask about all call sites.
///
/// While `tracing` knows only one dispatcher, it asks the calling thread's default one
/// (`tracing_core::callsite`, 0.1.36), which does not exist on a thread of ours if the program has set a
/// dispatcher only for some threads. So a second one is registered, and dropped before it matters: with two,
/// `tracing` asks every dispatcher it knows.
fn ask_again() {
    drop(Dispatch::new(NoSubscriber::default()));
    tracing_core::callsite::rebuild_interest_cache();
}

/// Makes `tracing` ask about all call sites a little later, when more of them have shown their classes.
///
/// It asks on another thread, which then ends: the calling thread is inside `tracing` and may hold locks that
/// asking needs.
#[cold]
pub(crate) fn ask_again_soon() {
    /// The process whose thread is waiting; not a process that was forked from it.
    static WAITING: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    if WAITING.swap(process, Relaxed) == process {
        return;
    }
    let wait = || {
        thread::sleep(Duration::from_millis(20));
        WAITING.store(0, Relaxed); // what is learnt from now on needs another thread
        ask_again();
    };
    // Without a thread the call site stays on.
    let _ = thread::Builder::new().name("tracewing".to_owned()).spawn(wait);
}
