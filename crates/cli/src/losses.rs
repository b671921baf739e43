//! Numbers of lost events and packets as every command shows them: never a number that is not known.

use crate::output::plural;
use crate::table::Cell;
use tracewing_analysis::Ran;
use tracewing_trace::Losses;

/// Numbers of lost events and packets in words: `an unknown number of events and 2 packets`. Packets are
/// named where any are lost.
pub fn text(lost: &Losses) -> String {
    let part = |known: Option<u64>, least: u64, noun: &str| match (known, least) {
        (Some(count), _) => format!("{count} {}", plural(count, noun)),
        (None, 0) => format!("an unknown number of {noun}s"),
        (None, least) => format!("at least {least} {}", plural(least, noun)),
    };
    let events = part(lost.events(), lost.least_events, "event");
    let packets = part(lost.packets(), lost.least_packets, "packet");
    match lost.packets() {
        Some(0) => events,
        _ => format!("{events} and {packets}"),
    }
}

/// The number of lost events in words, without a noun.
pub fn number(lost: &Losses) -> String {
    match (lost.events(), lost.least_events) {
        (Some(count), _) => count.to_string(),
        (None, 0) => "an unknown number".to_owned(),
        (None, least) => format!("at least {least}"),
    }
}

/// What an analysis says in JSON of the events that were lost in its time.
pub fn members(ran: &Ran) -> [(&'static str, Cell); 2] {
    let lost = ran.lost();
    [("lost_events", events(&lost)), ("least_lost_events", Cell::Count(lost.least_events))]
}

/// Says which numbers of a table are lower bounds, if events were lost in its time.
pub fn least(ran: &Ran, numbers: &str) -> Option<String> {
    let text = format!(
        "Events were lost: {numbers} are the least that they can be; instead of 0 they are unknown (-)."
    );
    ran.lossy.any().then_some(text)
}

/// The number of lost events.
pub fn events(lost: &Losses) -> Cell {
    lost.events().map_or(Cell::AtLeast(lost.least_events), Cell::Count)
}

/// The number of lost packets.
pub fn packets(lost: &Losses) -> Cell {
    lost.packets().map_or(Cell::AtLeast(lost.least_packets), Cell::Count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_no_number() {
        let losses = |least_events, has_more_events, least_packets, has_more_packets| {
            text(&Losses { least_events, has_more_events, least_packets, has_more_packets })
        };
        assert_eq!(losses(0, false, 0, false), "0 events");
        assert_eq!(losses(1, false, 0, false), "1 event");
        assert_eq!(losses(0, true, 0, false), "an unknown number of events");
        assert_eq!(losses(1, true, 2, false), "at least 1 event and 2 packets");
        assert_eq!(losses(0, true, 0, true), "an unknown number of events and an unknown number of packets");
    }
}
