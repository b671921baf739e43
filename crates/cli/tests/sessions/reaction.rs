//! How long a trigger takes: from just before a program emits its event until a program that the trigger has
//! executed has noted the time. That is more than the recorder takes, since a shell and `date` have to start.
//!
//! Only that it reacts is checked. The figures, of an idle machine and a release build:
//!
//! ```text
//! REACTIONS=1000 cargo test --release -p tracewing-cli --test sessions reaction -- --nocapture
//! ```

use crate::background::{Background, Pilot};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracewing_testing::wait_until;

/// Rounds if the variable does not say how many.
const FEW: u64 = 10;
/// Time for what a trigger does after it has acted, and more than the time between two looks at the buffers.
const PAUSE: Duration = Duration::from_millis(30);
/// Rounds begin at so many moments of these 30 ms, whatever the time between two looks is.
const MOMENTS_US: u64 = 30_000;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
fn a_trigger_reacts_to_each_event() {
    let sessions = Background::new();
    let script = sessions.folder().join("note");
    fs::write(&script, "#!/bin/sh\nexec date +%s%N >> \"$0.times\"\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let file = script.with_extension("times");
    let times = || -> Vec<u64> {
        let text = fs::read_to_string(&file).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    sessions.succeeds("session create web -e nothing:*");
    let exec = format!("--exec {} --at-most-every 0", script.display());
    sessions.succeeds(&format!("trigger add web hit -e pilot:count {exec}"));
    sessions.start("web");
    let mut pilot = Pilot::start(&sessions);
    let rounds = std::env::var("REACTIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(FEW);
    let mut reactions: Vec<u64> = (0..rounds)
        .map(|round| {
            sleep(PAUSE + Duration::from_micros(round * 617 % MOMENTS_US));
            let before = times().len();
            let begin = now();
            pilot.emit(1);
            // Each CPU's thread emits one, and the last round's second one may have come late.
            let first = || times().into_iter().skip(before).find(|time| *time >= begin);
            wait_until("it has reacted", || first().is_some());
            first().unwrap() - begin
        })
        .collect();
    reactions.sort_unstable();
    let share =
        |share: usize| reactions[(reactions.len() * share / 100).min(reactions.len() - 1)] as f64 / 1e6;
    println!(
        "{rounds} reactions, ms: median {:.1}, p99 {:.1}, largest {:.1}",
        share(50),
        share(99),
        share(100)
    );
    sessions.succeeds("session stop web");
}
