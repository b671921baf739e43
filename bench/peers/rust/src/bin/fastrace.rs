//! fastrace: one span in place of each event, without properties, which it would format as text. Its reporter
//! counts what arrives, and the program fails if that is not everything.

use fastrace::Span;
use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use fastrace::local::LocalSpan;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Spans under one parent; a parent takes 10,240 at most.
const SPANS: u64 = 1000;

static REPORTED: AtomicU64 = AtomicU64::new(0);

struct Count;

impl Reporter for Count {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        REPORTED.fetch_add(spans.len() as u64, Relaxed);
    }
}

fn main() -> ExitCode {
    fastrace::set_reporter(Count, Config::default());
    let mut spans = 0;
    let outcome = orders::obey(|variant, count| {
        let mut left = count;
        while left > 0 {
            let parent = Span::root("burst", SpanContext::random());
            let _guard = parent.set_local_parent();
            let some = left.min(SPANS);
            for _ in 0..some {
                let _span = LocalSpan::enter_with_local_parent("two");
            }
            left -= some;
            spans += some + 1;
        }
        variant == "span"
    });
    fastrace::flush();
    let reported = REPORTED.load(Relaxed);
    match outcome {
        Ok(()) if reported == spans => ExitCode::SUCCESS,
        Ok(()) => {
            eprintln!("peer-fastrace: of {spans} spans {reported} were reported");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("peer-fastrace: {error}");
            ExitCode::FAILURE
        }
    }
}
