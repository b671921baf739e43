//! How far a long command is, on a terminal; and that Ctrl-C ends it where it is.

use indicatif::{ProgressBar, ProgressStyle};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tracewing_trace::Progress;

/// A bar on standard error, if that is a terminal, and whether the user wants to stop.
#[derive(Debug)]
pub struct Watch {
    /// The bar, which other output must suspend.
    pub bar: ProgressBar,
    stopped: Arc<AtomicBool>,
}

impl Watch {
    /// From now on, SIGINT, SIGTERM, SIGQUIT do not end the process: they are seen by [`Watch::show`]. Those
    /// that were ignored stay so.
    ///
    /// # Errors
    /// The signals cannot be caught.
    pub fn new() -> std::io::Result<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        for signal in signal_hook::consts::TERM_SIGNALS {
            if !tracewing_session::is_ignored(*signal) {
                signal_hook::flag::register(*signal, stopped.clone())?;
            }
        }
        Ok(Watch { bar: ProgressBar::no_length(), stopped })
    }

    /// Shows how far it is; breaks if the user wants to stop.
    pub fn show(&self, progress: Progress) -> ControlFlow<()> {
        let bar = &self.bar;
        if progress.total > 0 && bar.length().is_none() {
            // The length draws it, so the style comes first.
            let style = ProgressStyle::with_template("{bar:40} {percent}% of {total_bytes}, {eta} to go");
            style.into_iter().for_each(|style| bar.set_style(style));
            bar.set_length(progress.total);
        } else if progress.total == 0 && bar.position() == 0 {
            let style = ProgressStyle::with_template("{spinner} {bytes} written");
            style.into_iter().for_each(|style| bar.set_style(style));
        }
        bar.set_position(progress.done);
        // Nothing else is published with it.
        match self.is_stopped() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Something else begins, which the user does not want to stop yet.
    pub fn again(&mut self) {
        self.bar.finish_and_clear();
        self.bar = ProgressBar::no_length();
        self.stopped.store(false, Ordering::Relaxed);
    }

    /// Whether the user wants to stop.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
