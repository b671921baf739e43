//! Values of counters against a slow model: all of them in a list.

use super::model::{self, rows};
use super::{Model, opened, written};
use crate::picture::Window;
use crate::row::{RowId, RowKind};
use crate::values::{Value, Values};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tracewing_units::Duration;

/// Values of a counter in place of the states of a row: of any size, and some several times in a row.
pub(super) fn of(model: &Model) -> impl Iterator<Item = Value> {
    model.spans.iter().map(|span| {
        let ns = (span.to - span.from).as_ns();
        let value = ns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (ns % 8 * 8);
        Value { value, from: span.from, to: span.to }
    })
}

/// Each value once: those that follow each other are one if they are equal.
fn merged(model: &Model) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for value in of(model) {
        match merged.last_mut() {
            Some(last) if (last.value, last.to) == (value.value, value.from) => last.to = value.to,
            _ => merged.push(value),
        }
    }
    merged
}

fn picture(all: &[Value], window: Window) -> Vec<(u64, Values)> {
    let mut buckets: BTreeMap<u64, Vec<(Value, Duration)>> = BTreeMap::new();
    let (from, to) = window.times();
    for value in all {
        let (mut at, end) = (value.from.max(from), value.to.min(to));
        while at < end {
            let number = at.as_ns() >> window.shift;
            let next = end.min(Duration::from_ns((number + 1) << window.shift));
            buckets.entry(number).or_default().push((Value { from: at, ..*value }, next - at));
            at = next;
        }
    }
    let begins = |value: &Value| all.binary_search_by_key(&value.from, |value| value.from).is_ok();
    let values = |within: Vec<(Value, Duration)>| Values {
        least: within.iter().map(|(value, _)| value.value).min().unwrap(),
        most: within.iter().map(|(value, _)| value.value).max().unwrap(),
        last: within.last().unwrap().0.value,
        changes: within.iter().filter(|(value, _)| begins(value)).count() as u64,
        known: within.iter().map(|(_, time)| *time).sum(),
    };
    buckets.into_iter().map(|(number, within)| (number, values(within))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// The least, the greatest and the last value of each bucket are those of all values, at every zoom; and
    /// the values one by one are those that were added.
    #[test]
    fn values_of_any_window_are_exact(models in rows(), windows in model::windows()) {
        let index = opened(&written(&models)).unwrap().unwrap();
        let id = RowId(2 * models.len() as u32);
        let row = index.row(id);
        let all = merged(&models[0]);
        let counter = row.counter.as_ref().unwrap();
        prop_assert_eq!((row.kind, row.name.as_str(), counter.unit.as_str()), (RowKind::Counter(0), "faults", "/s"));
        let values = || all.iter().map(|value| value.value);
        prop_assert_eq!(counter.range, (values().min().unwrap_or(0), values().max().unwrap_or(0)));
        for (from, length, most) in &windows {
            let from = models[0].scaled(*from);
            let to = from + models[0].scaled(*length).max(Duration::from_ns(1));
            let window = Window::covering(from, to, *most);
            prop_assert_eq!(index.values(id, window).unwrap(), picture(&all, window));
            let mut found = Vec::new();
            index.each_value(id, from, to, |value| {
                found.push(value);
                if found.len() == *most as usize { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }).unwrap();
            let within = all.iter().filter(|value| value.from < to && value.to > from).take(*most as usize);
            prop_assert_eq!(found, within.copied().collect::<Vec<_>>());
        }
        let drawn = index.picture(id, Window { shift: 40, first: 0, count: 9 }).unwrap();
        prop_assert_eq!(drawn, Vec::new());
    }
}
