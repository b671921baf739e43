//! Calls around losses.

use super::*;

/// What calls there are: a line for each that ends, as `name begin..end at depth`, and what is certain of
/// one in which events were lost, as `total/own`. `!` is a loss, `[` the beginning of one, `]` its end, and
/// `.` an event that is not of a function.
fn calls(events: &[&str]) -> (Vec<String>, Unmatched) {
    let (mut calls, mut ended) = (Calls::default(), Vec::new());
    let mut report = |_: ThreadKey, time: Timestamp, call: Call| {
        if let Call::Ends { function, depth, begin, certain, .. } = call {
            let certain = certain.map_or(String::new(), |Certain { total_ns, own_ns }| {
                format!(": {}/{}", total_ns.as_ns(), own_ns.as_ns())
            });
            ended.push((function, format!("{}..{} at {depth}{certain}", begin.as_ns(), time.as_ns())));
        }
    };
    for (at, event) in events.iter().enumerate() {
        let (key, time) = ((Some(Pid(1)), Tid(1)), Timestamp::from_ns(at as i64));
        match event.strip_prefix('-') {
            _ if *event == "." => calls.threads.get_mut(&key).unwrap().last = time,
            _ if *event == "[" => calls.lost(time),
            _ if *event == "]" => calls.loss_over(time),
            _ if *event == "!" => {
                calls.lost(time);
                calls.loss_over(time);
            }
            Some(name) => calls.take(FunctionEvent::Exit(Which::Named(name.into())), key, time, &mut report),
            None => calls.take(FunctionEvent::Entry(Which::Named((*event).into())), key, time, &mut report),
        }
    }
    calls.finish(&mut report);
    let name = |function| match calls.function(function) {
        Function::Named(name) => name,
        other => panic!("{other:?}"),
    };
    (
        ended.into_iter().map(|(function, text)| format!("{} {text}", name(function))).collect(),
        calls.unmatched(),
    )
}

#[test]
fn a_call_that_begins_again_after_a_loss_had_ended_in_it() {
    let (found, unmatched) = calls(&["main", "leaf", "!", "leaf", "-leaf", "-main"]);
    assert_eq!(found, ["leaf 1..2 at 1: 1/1", "leaf 3..4 at 1", "main 0..5 at 0: 2/1"]);
    assert_eq!(unmatched, Unmatched { lost: 2, ..Unmatched::default() });
    let (found, _) = calls(&["main", "a", "leaf", "!", "a", "leaf", "-leaf", "-a", "-main"]);
    let expected =
        ["leaf 2..3 at 2: 1/1", "a 1..3 at 1: 2/1", "leaf 5..6 at 2", "a 4..7 at 1", "main 0..8 at 0: 3/1"];
    assert_eq!(found, expected);
}

#[test]
fn a_function_that_a_jump_leaves_lasted_at_least_to_the_event_before() {
    let (found, unmatched) = calls(&["main", "try", "a", "leaf", "-leaf", "b", "-try", "-main"]);
    let expected =
        ["leaf 3..4 at 3", "b 5..5 at 3: 0/0", "a 2..5 at 2: 3/2", "try 1..6 at 1: 5/1", "main 0..7 at 0"];
    assert_eq!(found, expected);
    assert_eq!(unmatched, Unmatched { left: 2, ..Unmatched::default() });
}

/// A jump back into `main`, which never returns, leaves `try` and `a` again and again.
#[test]
fn of_functions_that_begin_again_without_an_end_only_the_time_until_then_is_certain() {
    let events = ["main", "try", "a", "leaf", "-leaf", "try", "a", "leaf", "-leaf", "try"];
    let (found, unmatched) = calls(&events);
    let expected = [
        "leaf 3..4 at 3",
        "leaf 7..8 at 5",
        "try 9..9 at 5: 0/0",
        "a 6..8 at 4: 2/1",
        "try 5..8 at 3: 3/1",
        "a 2..4 at 2: 2/1",
        "try 1..4 at 1: 3/1",
        "main 0..9 at 0: 9/1",
    ];
    assert_eq!(found, expected);
    assert_eq!(unmatched, Unmatched { last: 6, ..Unmatched::default() });
    // The same where main returns.
    let (found, unmatched) = calls(&[&events[..], &["-main"]].concat());
    let expected = [&expected[..7], &["main 0..10 at 0: 10/1"]].concat();
    assert_eq!(found, expected);
    assert_eq!(unmatched, Unmatched { left: 5, ..Unmatched::default() });
}

/// `main` does something else after a jump back into it.
#[test]
fn events_after_a_threads_last_function_do_not_show_that_it_is_in_one() {
    let (found, unmatched) = calls(&["main", "try", "a", "-a", ".", "."]);
    assert_eq!(found, ["a 2..3 at 2", "try 1..3 at 1: 2/1", "main 0..3 at 0: 3/1"]);
    assert_eq!(unmatched, Unmatched { last: 2, ..Unmatched::default() });
}

#[test]
fn what_a_loss_may_have_ended_ends_there_where_others_around_it_do() {
    let (found, unmatched) = calls(&["main", "a", "leaf", "!", "-a", "-main"]);
    assert_eq!(found, ["leaf 2..3 at 2: 1/1", "a 1..4 at 1: 2/1", "main 0..5 at 0: 3/1"]);
    assert_eq!(unmatched, Unmatched { lost: 3, ..Unmatched::default() });
}

#[test]
fn a_call_that_continues_after_a_loss_is_one_and_certain_up_to_there() {
    let (found, unmatched) = calls(&["main", "a", "!", "leaf", "-leaf", "-a", "-main"]);
    assert_eq!(found, ["leaf 3..4 at 2", "a 1..5 at 1: 1/1", "main 0..6 at 0: 2/1"]);
    assert_eq!(unmatched, Unmatched { lost: 2, ..Unmatched::default() });
    let (found, unmatched) = calls(&["a", "a", "-a", "-a"]);
    assert_eq!(found, ["a 1..2 at 1", "a 0..3 at 0"], "without a loss it calls itself");
    assert_eq!(unmatched, Unmatched::default());
}

#[test]
fn of_a_call_that_begins_while_events_are_lost_only_the_beginning_is_certain() {
    let (found, unmatched) = calls(&["main", "[", "a", "-a", "b", "]", "c", "-c", "-b", "-main"]);
    let expected = ["a 2..3 at 1: 0/0", "c 6..7 at 2", "b 4..8 at 1: 0/0", "main 0..9 at 0: 1/1"];
    assert_eq!(found, expected);
    assert_eq!(unmatched, Unmatched { lost: 3, ..Unmatched::default() });
    let (found, _) = calls(&["main", "leaf", "-leaf", "!", "!", "-main"]);
    assert_eq!(found, ["leaf 1..2 at 1", "main 0..5 at 0: 3/2"], "the first loss counts");
}
