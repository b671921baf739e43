//! Recordings that begin while the process runs.

/// As [`tracewing::on_attach`].
#[unsafe(no_mangle)]
extern "C" fn tracewing_on_attach(report: extern "C" fn()) {
    tracewing::on_attach(move || report());
}
