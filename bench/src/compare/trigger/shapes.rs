//! Functions with a disabled site compared with the same functions without it. Each round copies them to
//! another position in a page, the same for all of them, so that effects of the layout appear in the spread
//! and not in the ratio. A second copy of the function without a site shows the ratio that is measured if
//! there is no difference.

use super::Setting;
use crate::compare::bounds::Bound;
use crate::compare::figures::Rounds;
use anyhow::Result;

/// A shape's name in the worker's orders, what it is, calls per measurement, and whether it has to cost
/// nothing.
const SHAPES: &[(&str, &str, u32, bool)] = &[
    ("straight", "straight line", 50_000, true),
    ("calls", "two calls", 50_000, true),
    ("tight", "loop with some work", 200, true),
    ("memory", "loop over memory", 200, true),
    ("vectors", "loop that is vectorised without it", 1_000, false),
];

/// How far from 1 the interval may reach.
const MOST: f64 = 0.02;

/// Positions in a page at which a function can begin.
const POSITIONS: u64 = 256;

/// A line of the table.
pub struct Shape {
    pub title: &'static str,
    /// Nanoseconds of a call without a site.
    pub bare: Rounds,
    /// A call with a site that is off, divided by one without; a figure per layout.
    pub off: Rounds,
    /// The same of another copy without a site.
    pub again: Rounds,
    must_be_free: bool,
}

pub struct Shapes {
    pub rows: Vec<Shape>,
    pub layouts: u32,
    pub cpu: usize,
}

pub fn measure(setting: &Setting) -> Result<Shapes> {
    let mut worker = setting.worker()?;
    let new = |&(_, title, _, must_be_free): &(_, _, _, _)| Shape {
        title,
        bare: Rounds::default(),
        off: Rounds::default(),
        again: Rounds::default(),
        must_be_free,
    };
    let mut rows: Vec<_> = SHAPES.iter().map(new).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..setting.layouts {
        for ((name, _, calls, _), row) in SHAPES.iter().zip(&mut rows) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let position = (random >> 32) % POSITIONS * 16;
            let [bare, off, again] = worker.order::<f64, 3>(&format!("shape {calls} {name} {position}"))?;
            row.bare.0.push(bare / f64::from(*calls));
            row.off.0.push(off / bare);
            row.again.0.push(again / bare);
        }
    }
    worker.finish_well()?;
    Ok(Shapes { rows, layouts: setting.layouts, cpu: setting.cpu })
}

impl Shapes {
    pub fn bounds(&self) -> Vec<Bound> {
        let bound = |shape: &Shape| {
            let (least, most) = shape.off.interval();
            Bound {
                what: shape.title,
                limit: "time with a disabled site, divided by the time without: the 95 % interval includes 1 or less, \
                        and lies within 2 % of 1",
                measured: format!("{:.4} ({least:.4} to {most:.4})", shape.off.median()),
                holds: (1.0 - MOST..=1.0).contains(&least) && most <= 1.0 + MOST,
            }
        };
        self.rows.iter().filter(|shape| shape.must_be_free).map(bound).collect()
    }
}
