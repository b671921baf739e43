//! Locks that tasks hold across an `.await` while others wait: the findings of `locks`, for other commands
//! whose times contain them.

use crate::input::Input;
use crate::output::print_warning;
use crate::place;
use crate::progress::Watch;
use crate::table::period;
use anyhow::Result;
use tracewing_analysis::{self as analysis, AcrossAwait, Bins, Group, Locks};
use tracewing_programs::symbols::Symbols;
use tracewing_trace::Filter;
use tracewing_vocabulary::user_thread;

/// The event without which no hold is known.
const RELEASED: &str = user_thread::Released::NAME;

/// Warns of each lock for which `is_meant` is true and that is held across an `.await` in the selected part;
/// `more` names the command with details. The recording is read once more, if it has locks of tasks.
///
/// # Errors
/// The recording can no longer be read.
pub fn warn(input: &Input, filter: &Filter, mut is_meant: impl FnMut(&AcrossAwait) -> bool) -> Result<()> {
    let (recording, _) = input.open()?;
    if !recording.has_event(RELEASED) {
        return Ok(());
    }
    let mut locks = Locks::new(Group::Lock, Bins::default());
    let watch = Watch::new()?;
    let ran = analysis::run(recording, filter, &mut locks, &mut |progress| watch.show(progress))?;
    drop(watch);
    let (mut symbols, mut any) = (Symbols::new(), false);
    for across in locks.finish(&ran).across_awaits.iter().filter(|across| is_meant(across)) {
        print_warning(&warning(across, ran.lossy.programs, &mut symbols));
        any = true;
    }
    if any {
        print_warning(&format!("{HINT} `tracewing locks` shows all waits and holds."));
    }
    Ok(())
}

/// What to do about such locks.
pub const HINT: &str = "Drop the guard before the .await, or give the data to one task and send it messages.";

/// The warning about a lock that is held across an `.await`. If events of programs were lost, its numbers are
/// lower bounds.
pub fn warning(across: &AcrossAwait, is_lossy: bool, symbols: &mut Symbols) -> String {
    let at = match &across.frames[..] {
        [] => String::new(),
        frames => format!(", taken at {},", place::chain(frames, symbols)),
    };
    let times = if across.holds.count == 1 { "once" } else { &format!("{} times", across.holds.count) };
    let [least, more] = if is_lossy { ["at least ", " or more"] } else { [""; 2] };
    let process = across.process.map(|process| format!(" of process {process}")).unwrap_or_default();
    format!(
        "{} {:#x}{process}{at} is held across an .await while others wait for it: {least}{times}, for up to {}{more}, with up to \
         {}{more} waiting; the waits total {least}{}.",
        across.kind,
        across.lock,
        period(across.holds.max_ns),
        across.waiters,
        period(across.waited_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_analysis::Sum;
    use tracewing_units::{Duration, LockAddress};

    #[test]
    fn where_events_were_lost_numbers_are_the_least() {
        let ms = |ms: u64| Duration::from_ns(ms * 1_000_000);
        let holds = Sum { count: 18, max_ns: ms(20), ..Sum::default() };
        let across = AcrossAwait {
            process: None,
            lock: LockAddress(0x10),
            kind: "mutex",
            frames: Vec::new(),
            holds,
            waiters: 3,
            waited_ns: ms(233),
        };
        let said = |is_lossy| warning(&across, is_lossy, &mut Symbols::new());
        let begin = "mutex 0x10 is held across an .await while others wait for it: ";
        let [whole, lossy] = [
            "18 times, for up to 20.0 ms, with up to 3 waiting; the waits total 233 ms.",
            "at least 18 times, for up to 20.0 ms or more, with up to 3 or more waiting; the waits total at least 233 ms.",
        ];
        assert_eq!([said(false), said(true)], [format!("{begin}{whole}"), format!("{begin}{lossy}")]);
    }
}
