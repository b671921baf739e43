//! What the program reports about its calls, compared with the events.

use super::*;

/// Events about call chains, which come between the others.
pub const CHAINS: [&str; 3] = ["lock:image", "lock:call_chain", "lock:called_from"];

/// As in `errno`.
pub const EOWNERDEAD: i64 = 130;

/// Largest difference of times, ns, where nothing disturbs. Without optimisation there is more between the
/// program's stamps and ours.
pub const PRECISION: u64 = if cfg!(debug_assertions) { 10_000 } else { 1_000 };

/// A thread's events, in order.
pub struct Reported<'a> {
    pub events: Peekable<Copied<Iter<'a, &'a Event>>>,
    pub tid: i64,
}

impl<'a> Reported<'a> {
    /// The next one, which has to be this one, and within the call.
    pub fn take(&mut self, call: &Call, name: &str) -> &'a Event {
        let event = self.events.next().unwrap_or_else(|| panic!("{}: no {name} for {call:?}", self.tid));
        assert_eq!(event.name, format!("lock:{name}"), "{}: {call:?}, {}", self.tid, event.payload);
        let object = ["lock", "condition", "barrier"].iter().find_map(|field| match *field {
            "lock" if event.payload.get("condition").is_some() => None,
            field => event.payload.get(field)?.as_u64(),
        });
        assert_eq!(object, Some(call.lock), "{name} of {call:?}");
        let within = call.before..=call.after;
        assert!(within.contains(&event.stamp), "{name} at {} of {call:?}", event.stamp);
        event
    }

    /// How the thread came to have the lock, or not. Gives how long it waited, and when it had it.
    pub fn take_acquisition(&mut self, call: &Call) -> Acquisition {
        let kind = call.operation.trim_start_matches("try");
        let is_kind = |event: &Event| {
            assert_eq!(event.payload["kind"]["labels"][0], *kind, "{call:?}: {}", event.payload)
        };
        let is_try = call.operation != kind;
        let requested = self.events.peek().is_some_and(|event| event.name == "lock:requested" && !is_try);
        assert!(is_try || call.waited.is_none_or(|waited| waited == requested), "{call:?}");
        let request = requested.then(|| self.take(call, "requested"));
        if let Some(request) = request {
            is_kind(request);
            assert!(
                call.owner.is_none_or(|owner| owner == request.number("owner")),
                "{call:?}: {}",
                request.payload
            );
        }
        let is_acquired = call.result == 0 || call.result == EOWNERDEAD;
        let end = self.take(call, if is_acquired { "acquired" } else { "refused" });
        is_kind(end);
        match is_acquired {
            true => assert_eq!(end.number("waited") != 0, requested, "{call:?}"),
            false => assert_eq!(end.payload["error"], call.result, "{call:?}"),
        }
        Acquisition {
            wait: request.map(|request| end.stamp - request.stamp),
            at: is_acquired.then_some(end.stamp),
        }
    }
}

pub struct Acquisition {
    pub wait: Option<u64>,
    pub at: Option<u64>,
}

/// How far a time is from the program's own.
#[derive(Debug)]
pub struct Difference {
    pub ns: u64,
    pub tid: i64,
    /// From the end of the call before to the last of the stamps.
    pub within: RangeInclusive<u64>,
    /// Whether the thread has not been there before, so that what it does is in none of the processor's
    /// caches.
    pub is_first: bool,
}

#[derive(Default)]
pub struct Differences {
    pub waits: Vec<Difference>,
    pub holds: Vec<Difference>,
}

/// Compares a thread's events with what it did.
pub fn compare<'a>(tid: i64, calls: &[Call], events: &'a [&'a Event], differences: &mut Differences) {
    let mut reported = Reported { events: events.iter().copied().peekable(), tid };
    // Locks that the thread has: since when, as the program says and as the trace does, and more of that
    // call.
    let mut held: HashMap<u64, (u64, u64, u64, bool)> = HashMap::new();
    let mut lines = HashSet::new();
    let mut end_of_last = 0;
    for call in calls {
        let (before, is_first) = (std::mem::replace(&mut end_of_last, call.after), lines.insert(call.line));
        match call.operation.as_str() {
            "unlock" => {
                let released = reported.take(call, "released").stamp;
                if call.result != 0 {
                    assert_eq!(reported.take(call, "not_released").payload["error"], call.result);
                } else if let Some((since, acquired, before, was_first)) = held.remove(&call.lock) {
                    differences.holds.push(Difference {
                        ns: (call.before - since).abs_diff(released - acquired),
                        tid,
                        within: before..=released,
                        is_first: is_first || was_first,
                    });
                }
            }
            "condition" => {
                reported.take(call, "condition_wait");
                assert_eq!(reported.take(call, "condition_woken").payload["error"], call.result);
            }
            "cancelled" => drop(reported.take(call, "condition_wait")),
            "signal" | "broadcast" => {
                let all = reported.take(call, "condition_signalled").number("all");
                assert_eq!(all != 0, call.operation == "broadcast");
            }
            "post" => drop(reported.take(call, "posted")),
            "barrier" => {
                reported.take(call, "barrier_wait");
                let serial = reported.take(call, "barrier_passed").number("serial");
                assert_eq!(serial != 0, call.result != 0, "PTHREAD_BARRIER_SERIAL_THREAD is -1");
            }
            _ => {
                let Acquisition { wait, at } = reported.take_acquisition(call);
                differences.waits.extend(wait.map(|wait| Difference {
                    ns: (call.after - call.before).abs_diff(wait),
                    tid,
                    within: before..=call.after,
                    is_first,
                }));
                if let Some(at) = at {
                    held.insert(call.lock, (call.after, at, before, is_first));
                }
            }
        }
    }
    let rest: Vec<_> = reported.events.map(|event| (&event.name, &event.payload)).collect();
    assert!(rest.is_empty(), "{tid}: {rest:?}");
}

/// Every wait has a chain, which is described before it and begins where the program called. The file of each
/// caller is named.
pub fn check_chains(events: &[Event]) {
    let mut chains = HashMap::new();
    let mut images = Vec::new();
    let mut callers = Vec::new();
    let mut requests: HashMap<i64, &Event> = HashMap::new();
    let mut count = 0;
    for event in events {
        match event.name.as_str() {
            "lock:image" => {
                let path = event.payload["path"].as_str().unwrap();
                assert!(Path::new(path).is_file(), "{path}");
                images.push(event.number("begin")..event.number("end"));
            }
            "lock:call_chain" => {
                let frames = event.payload["frames"].as_array().unwrap();
                let frames: Vec<u64> = frames.iter().map(|frame| frame.as_u64().unwrap()).collect();
                let is_known = |frame: &u64| images.iter().any(|image| image.contains(frame));
                assert!(frames.len() > 1 && frames.iter().all(is_known), "{}", event.payload);
                chains.insert(event.number("chain"), frames);
            }
            "lock:acquired" => callers.push(event.number("caller")),
            "lock:requested" => drop(requests.insert(event.tid, event)),
            "lock:called_from" => {
                let request = requests.remove(&event.tid).expect("a request in front");
                assert_eq!(event.number("lock"), request.number("lock"));
                assert_eq!(chains[&event.number("chain")][0], request.number("caller"));
                count += 1;
            }
            _ => {}
        }
    }
    assert!(requests.is_empty() && count > 5, "{count}");
    let is_known = |caller: &u64| images.iter().any(|image| image.contains(caller));
    assert!(callers.iter().all(is_known), "{images:x?}");
}
