//! A logger for the crate `log` in programs that do not use `tracing`.
//!
//! Its classes are the same as for records that come through `tracing-log`: `log:error` to `log:trace`, with
//! the record's target, module, file and line as fields, since `log` has no distinguishable call sites.

use crate::classes::{Classes, Description};
use crate::name;
use crate::record::record;
use log::{LevelFilter, Metadata, Record, SetLoggerError};
use std::sync::LazyLock;
use tracewing::Level;
use tracewing::dynamic::{self, span};
use tracewing_vocabulary::span::WITHIN;

/// Records every log record.
struct Logger;

/// Makes recordings of the program contain everything that it logs through the crate `log`. It is not written
/// anywhere else.
///
/// This changes the maximum level of `log` while the program runs: to `Trace` while the program is recorded,
/// to `Off` otherwise, so that logging then costs one load and a comparison.
///
/// In a program that uses `tracing`, let `tracing_subscriber` or `tracing-log` forward the records to the
/// layer instead.
///
/// # Errors
/// The program already has a logger.
pub fn init_logger() -> Result<(), SetLoggerError> {
    log::set_logger(&Logger)?;
    dynamic::on_change(set_level);
    set_level();
    Ok(())
}

fn set_level() {
    log::set_max_level(if dynamic::is_recorded() { LevelFilter::Trace } else { LevelFilter::Off });
}

fn classes(level: log::Level) -> &'static Classes {
    static CLASSES: LazyLock<[Classes; 5]> = LazyLock::new(|| {
        [Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace].map(|level| {
            let description = Description {
                name: format!("log:{}", format!("{level:?}").to_ascii_lowercase()),
                level,
                text: name::RECORD_OF_LOG.to_owned(),
                file: "",
                line: 0,
                ids: WITHIN,
            };
            Classes::new(description, vec!["message", "target", "module_path", "file", "line"])
        })
    });
    &CLASSES[level as usize - 1]
}

impl log::Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        classes(metadata.level()).may_be_enabled()
    }

    fn log(&self, of: &Record<'_>) {
        let classes = classes(of.level());
        if !classes.may_be_enabled() {
            return;
        }
        record(classes, &[span::innermost()], |values| {
            values.put_debug(0, of.args());
            values.put_str(1, of.target());
            [of.module_path(), of.file()].into_iter().zip(2..).for_each(|(text, index)| {
                if let Some(text) = text {
                    values.put_str(index, text);
                }
            });
            if let Some(line) = of.line() {
                values.put_u64(4, line.into());
            }
        });
    }

    fn flush(&self) {}
}
