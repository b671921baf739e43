//! The blocks of all rows while they are made: states become leaves and levels, wakes and values blocks of
//! their own. What is known of a row otherwise is in [`Builder`](crate::builder::Builder).

use crate::body::Body;
use crate::leaf::{OpenLeaf, SPANS, Span};
use crate::levels::Levels;
use crate::row::{Entry, Row, RowKind};
use crate::values::{OpenValues, Value};
use crate::wakes::OpenWakes;
use tracewing_timeline::{Class, StateId, TrackId};
use tracewing_units::Duration;

/// What is added to the rows. Its order determines that of the blocks in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Addition {
    /// The next row.
    Row(RowKind),
    /// A row was in a state, which is over.
    Span { of: TrackId, class: Class, span: Span },
    /// A row was woken, by the waker of this number.
    Wake { of: TrackId, waker: u32, at: Duration },
    /// A counter had a value.
    Value { of: TrackId, value: Value },
    /// Nothing follows of a row.
    End { of: TrackId },
}

/// The blocks of all rows, and where they are written.
pub(crate) struct Blocks<'w> {
    pub(crate) body: Body<'w>,
    rows: Vec<OpenRow>,
    /// The classes of all states that have occurred, by number.
    classes: Vec<Class>,
    /// Memory that is used again for each block.
    room: Vec<u8>,
}

/// A row while it is made.
#[derive(Clone)]
struct OpenRow {
    row: Row,
    leaf: OpenLeaf,
    wakes: OpenWakes,
    /// Only for rows that have filled a block.
    levels: Option<Box<Levels>>,
    /// Only for counters.
    values: Option<Box<OpenValues>>,
}

impl<'w> Blocks<'w> {
    pub(crate) fn new(body: Body<'w>) -> Self {
        Blocks { body, rows: Vec::new(), classes: Vec::new(), room: Vec::new() }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, addition: Addition) {
        match addition {
            Addition::Row(kind) => self.add_row(kind),
            Addition::Span { of, class, span } => self.keep(of, class, span),
            Addition::Wake { of, waker, at } => self.rows[of as usize].wakes.push(at, waker, &mut self.body),
            Addition::Value { of, value } => {
                let open = &mut self.rows[of as usize];
                if let Some(values) = &mut open.values {
                    values.add(value, &mut open.row, &mut self.body);
                }
            }
            Addition::End { of } => self.rows[of as usize].end(&self.classes, &mut self.room, &mut self.body),
        }
    }

    fn add_row(&mut self, kind: RowKind) {
        let (leaf, wakes, levels) = Default::default();
        let values = matches!(kind, RowKind::Counter(_)).then(Box::default);
        self.rows.push(OpenRow { row: Row::new(kind), leaf, wakes, levels, values });
    }

    /// A state is over, and the next one is another.
    #[inline]
    fn keep(&mut self, of: TrackId, class: Class, span: Span) {
        let state = span.state.0 as usize;
        if self.classes.len() <= state {
            self.classes.resize(state + 1, Class::Unknown);
        }
        self.classes[state] = class;
        let open = &mut self.rows[of as usize];
        open.row.covers(span.from, span.to);
        open.leaf.push(span);
        if open.leaf.count == SPANS {
            open.levels.get_or_insert_default();
            open.flush(&self.classes, &mut self.room, &mut self.body);
        }
    }

    /// Up to when the values of a counter are certain.
    pub(crate) fn values_certain(&self, of: TrackId) -> Duration {
        self.rows[of as usize].values.as_ref().map_or(Duration::ZERO, |values| values.certain())
    }

    /// The same, written to `body` from now on.
    pub(crate) fn same<'b>(&self, body: Body<'b>) -> Blocks<'b> {
        Blocks { body, rows: self.rows.clone(), classes: self.classes.clone(), room: Vec::new() }
    }

    /// Times and blocks of all rows, each of which has got its end, and what they are written to.
    pub(crate) fn finish(self) -> (Vec<Row>, Body<'w>) {
        (self.rows.into_iter().map(|open| open.row).collect(), self.body)
    }
}

/// The class of a state that has occurred.
#[inline]
fn class(state: StateId, classes: &[Class]) -> Class {
    classes.get(state.0 as usize).copied().unwrap_or(Class::Unknown)
}

impl OpenRow {
    fn flush(&mut self, classes: &[Class], room: &mut Vec<u8>, body: &mut Body<'_>) {
        let (from, to, count) = (self.leaf.from, self.leaf.to, self.leaf.count);
        if let Some(levels) = &mut self.levels {
            // What was written into memory just now can be read.
            for span in self.leaf.spans().flatten() {
                levels.push((class(span.state, classes), span), (span.from, span.to), body);
            }
        }
        let running = self.leaf.sums.iter().filter(|(state, _)| class(*state, classes).is_running());
        self.row.used += running.map(|(_, ns)| *ns).sum();
        room.clear();
        self.leaf.finish(room);
        let (offset, length) = body.block(room);
        self.row.leaves.push(Entry { from, to, offset, length, count });
    }

    /// Nothing follows.
    fn end(&mut self, classes: &[Class], room: &mut Vec<u8>, body: &mut Body<'_>) {
        if self.leaf.count > 0 {
            self.flush(classes, room, body);
        }
        self.leaf = OpenLeaf::default();
        self.row.wakes.extend(std::mem::take(&mut self.wakes).finish(body));
        if let Some(levels) = self.levels.take() {
            self.row.levels = levels.finish(body);
        }
        if let Some(values) = self.values.take() {
            values.end(&mut self.row, body);
        }
    }
}
