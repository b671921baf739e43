//! Ten thousand sites, to be switched.

use crate::orders::nanoseconds;
use anyhow::{Result, ensure};
use rustix::time::ClockId;
use std::hint::black_box;
use tracewing_abi::schema::Class;
use tracewing_trigger::{Kind, Place, Record, Site, is_on, objects, switch};

const NAME: &str = "bench:many";

struct Many<const GROUP: usize>;
impl<const GROUP: usize> Place for Many<GROUP> {
    const SITE: &'static Site = &Site {
        class: &Class { description: "one of ten thousand", line: line!(), ..Class::named(NAME) },
        owner: Site::no_owner,
        file: file!(),
        line: line!(),
        kind: Kind::Callback,
    };
}

macro_rules! ten {
    ($step:expr) => {{
        $step;
        $step;
        $step;
        $step;
        $step;
        $step;
        $step;
        $step;
        $step;
        $step;
    }};
}

/// A hundred sites.
#[inline(never)]
fn group<const GROUP: usize>(mut on: u64) -> u64 {
    ten!(ten!(if is_on::<Many<GROUP>>() {
        on += passed();
    }));
    // Functions that are equal become one.
    black_box(GROUP);
    on
}

#[cold]
#[inline(never)]
fn passed() -> u64 {
    black_box(1)
}

macro_rules! groups {
    ($($tens:literal)+) => {
        &[$(
            group::<{ $tens }>, group::<{ $tens + 1 }>, group::<{ $tens + 2 }>, group::<{ $tens + 3 }>,
            group::<{ $tens + 4 }>, group::<{ $tens + 5 }>, group::<{ $tens + 6 }>, group::<{ $tens + 7 }>,
            group::<{ $tens + 8 }>, group::<{ $tens + 9 }>,
        )+]
    };
}

const GROUPS: &[fn(u64) -> u64] = groups!(0 10 20 30 40 50 60 70 80 90);

/// The number of sites on the program's path that are on.
fn walk() -> u64 {
    GROUPS.iter().fold(0, |on, group| black_box(group)(on))
}

/// Switches `count` sites on, then off; gives the nanoseconds on the clock that each took for all.
pub fn flip(count: u64) -> Result<String> {
    let objects = objects();
    let records: Vec<&Record> = objects
        .sites()
        .filter(|record| record.site().class.name == NAME)
        .take(usize::try_from(count)?)
        .collect();
    ensure!(records.len() as u64 == count, "there are only {} sites", records.len());
    let mut taken = Vec::new();
    for on in [true, false] {
        let changes: Vec<_> = records.iter().map(|record| (*record, on)).collect();
        let begin = nanoseconds(ClockId::Monotonic);
        let switched = switch(&changes)?;
        taken.push((nanoseconds(ClockId::Monotonic) - begin).to_string());
        ensure!(switched.changed == records.len(), "{} sites were left alone", switched.obstructed);
        ensure!(walk() == if on { count } else { 0 }, "sites are not what they were switched to");
    }
    Ok(taken.join(" "))
}
