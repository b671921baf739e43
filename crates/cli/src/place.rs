//! Places in programs: functions, and the lines of their sources.

use tracewing_analysis::Frame;
use tracewing_programs::symbols::Symbols;

/// A call chain, the innermost first.
pub fn chain(frames: &[Frame], symbols: &mut Symbols) -> String {
    let places: Vec<String> = frames.iter().map(|frame| place(frame, symbols)).collect();
    places.join(" < ")
}

/// A place, as precisely as the recording and the files allow.
fn place(frame: &Frame, symbols: &mut Symbols) -> String {
    if let Some(activity) = &frame.activity {
        return activity.clone();
    }
    if let Some((file, line)) = &frame.source {
        return format!("{file}:{line}");
    }
    let Some((path, address)) = &frame.image else { return format!("{:#x}", frame.address) };
    // It returns to the instruction after the call, which may be another function's first.
    let call = address.saturating_sub(1);
    let function = match symbols.at(path, call) {
        Some(symbol) => format!("{}+{:#x}", symbol.name, symbol.offset + 1),
        None => format!("{}+{address:#x}", last(path)),
    };
    match symbols.line(path, call) {
        Some((file, line)) => format!("{function} ({}:{line})", last(&file)),
        None => function,
    }
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}
