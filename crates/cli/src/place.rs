//! Places in programs: functions, and the lines of their sources.

use tracewing_analysis::Frame;
use tracewing_programs::symbols::Symbols;

/// A call chain, the innermost first.
pub fn chain(frames: &[Frame], symbols: &mut Symbols) -> String {
    let place = |frame: &Frame| frame.text(|path, address| symbols.call(path, address));
    frames.iter().map(place).collect::<Vec<_>>().join(" < ")
}
