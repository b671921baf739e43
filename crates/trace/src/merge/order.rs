//! The order of streams whose events have the same stamp: babeltrace2's rule, so that both print the same
//! order.
//!
//! In this order, the first difference decides: the trace's UUID, or its identity in CTF 2 (a trace without
//! one comes last), the trace's name, the data stream class id, the data stream id. All of these are known
//! when a recording is opened, so each stream gets a rank, and merging compares numbers. Streams that are
//! equal in all of these (two traces without UUID and name) share a rank; then a loss comes after an event,
//! and of two events the one with the lower class id comes first, then by class name, log level, model URI,
//! and stream name.

use crate::open::recording::{Stream, Trace, identity};
use std::cmp::Ordering;
use tracewing_ctf::model::EventRecordClass;

/// A rank for each of `streams`; lower comes first.
pub(crate) fn ranks(traces: &[Trace], streams: &[Stream]) -> Vec<u32> {
    let compare = |left: &Stream, right: &Stream| {
        let (left_trace, right_trace) = (&traces[left.trace_index()], &traces[right.trace_index()]);
        present_first(identity(left_trace.class()), identity(right_trace.class()))
            .then_with(|| left_trace.name().cmp(right_trace.name()))
            .then_with(|| left.class_id().cmp(&right.class_id()))
            .then_with(|| left.id().cmp(&right.id()))
    };
    let mut sorted: Vec<usize> = (0..streams.len()).collect();
    sorted.sort_by(|&left, &right| compare(&streams[left], &streams[right]));
    let mut ranks = vec![0; streams.len()];
    for pair in sorted.windows(2) {
        let differ = compare(&streams[pair[0]], &streams[pair[1]]) != Ordering::Equal;
        ranks[pair[1]] = ranks[pair[0]] + u32::from(differ);
    }
    ranks
}

/// Orders the event classes of two events with the same stamp, from streams with the same rank.
pub(crate) fn compare_classes(left: &EventRecordClass, right: &EventRecordClass) -> Ordering {
    let absent_first = |left: Option<&String>, right: Option<&String>| left.cmp(&right);
    left.id
        .cmp(&right.id)
        .then_with(|| absent_first(left.name.as_ref(), right.name.as_ref()))
        .then_with(|| present_first(left.log_level, right.log_level))
        .then_with(|| absent_first(left.emf_uri.as_ref(), right.emf_uri.as_ref()))
}

fn present_first<T: Ord>(left: Option<T>, right: Option<T>) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => left.cmp(&right),
        (left, right) => right.is_some().cmp(&left.is_some()),
    }
}
