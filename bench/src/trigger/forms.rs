//! The cost of passing a site, by how it is made: [`IN_A_ROW`] consecutive sites in a loop, each with two
//! values to record, and nothing else. That is more than they cost in a program, where the processor waits
//! for other things in the meantime, but it can be compared.

use crate::orders::cpu_time;
use anyhow::{Result, bail};
use std::arch::asm;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tracewing::{Event, emit};
use tracewing_abi::schema::Class;
use tracewing_trigger::{Attached, Kind, Place, Site, Trigger, fire, is_on, objects, switch};

/// Sites in one turn of the loop.
pub const IN_A_ROW: u64 = 16;

/// The event that all sides would record.
#[derive(Event)]
#[event(provider = "bench")]
struct Unwanted {
    first: u64,
    second: u64,
}

/// Fired with a callback attached that does nothing.
static EMPTY: Trigger<(u64, u64)> = Trigger::new();

macro_rules! place {
    ($place:ident, $name:literal) => {
        struct $place;
        impl Place for $place {
            const SITE: &'static Site = &Site {
                class: &Class { line: line!(), ..Class::named($name) },
                owner: Site::no_owner,
                file: file!(),
                line: line!(),
                kind: Kind::Callback,
            };
        }
    };
}
place!(Off, "bench:form_off");
place!(On, "bench:form_on");

/// Whether a class is enabled, as it was before there were sites: a word in memory, and a branch.
static WANTED: AtomicU32 = AtomicU32::new(0);

#[cold]
#[inline(never)]
extern "C" fn record(first: u64, second: u64) {
    black_box((first, second));
}

/// Feather-Trace's: a short jump over a long one (Brandenburg and Anderson 2007, figure 2).
#[inline(always)]
fn jump_over_jump() -> bool {
    // SAFETY: jumps over the code or, if the byte is changed, to `on`.
    unsafe {
        asm!(
            ".byte 0xeb, 5",
            ".byte 0xe9",
            ".long {on} - . - 4",
            on = label { return true },
            options(nomem, nostack, preserves_flags),
        );
    }
    false
}

#[inline(always)]
fn nop() -> bool {
    // SAFETY: does nothing (Intel's manual, volume 2, NOP: the recommended eight bytes).
    unsafe { asm!(".byte 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0", options(nomem, nostack, preserves_flags)) };
    false
}

/// Does the same so often in a row.
macro_rules! in_a_row {
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
        $step;
        $step;
        $step;
        $step;
        $step;
        $step;
    }};
}

/// Times a loop whose turn consists of sites.
macro_rules! time {
    ($count:expr, |$i:ident, $by:ident| $step:expr) => {{
        let $by = black_box($count);
        let begin = cpu_time();
        for $i in 0..$count / IN_A_ROW {
            // SAFETY: nothing; keeps the loop a loop.
            unsafe { asm!("/* {} */", in(reg) $i, options(nomem, nostack)) };
            in_a_row!($step);
        }
        cpu_time() - begin
    }};
}

/// What has to stay while forms are measured.
#[derive(Default)]
pub struct Forms {
    attached: Option<Attached<(u64, u64)>>,
}

impl Forms {
    /// Nanoseconds that so many sites take.
    pub fn run(&mut self, form: &str, count: u64) -> Result<u64> {
        Ok(match form {
            "empty" => time!(count, |i, by| {
                let _ = (i, by);
            }),
            "site" => time!(count, |i, by| if is_on::<Off>() {
                record(i, i ^ by);
            }),
            "nop" => time!(count, |i, by| if nop() {
                record(i, i ^ by);
            }),
            "jump" => time!(count, |i, by| if jump_over_jump() {
                record(i, i ^ by);
            }),
            "load" => {
                // Else the compiler would know that it never changes.
                WANTED.store(black_box(0), Relaxed);
                time!(count, |i, by| if WANTED.load(Relaxed) != 0 {
                    record(i, i ^ by);
                })
            }
            "emit" => time!(count, |i, by| emit!(Unwanted { first: i, second: i ^ by })),
            "on" => {
                switch_on("bench:form_on")?;
                time!(count, |i, by| if is_on::<On>() {
                    record(i, i ^ by);
                })
            }
            "callback" => {
                if self.attached.is_none() {
                    self.attached = Some(EMPTY.attach(|_| ())?);
                }
                time!(count, |i, by| fire!(EMPTY, &(i, i ^ by)))
            }
            other => bail!("unknown form `{other}`"),
        })
    }
}

fn switch_on(name: &str) -> Result<()> {
    let objects = objects();
    let changes: Vec<_> = objects
        .sites()
        .filter(|record| record.site().class.name == name)
        .map(|record| (record, true))
        .collect();
    let _ = switch(&changes)?;
    Ok(())
}
