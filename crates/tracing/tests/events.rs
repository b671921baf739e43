//! Events of `tracing`: their names, fields and types.

mod recorded;

use recorded::{alone, named, only, record, record_with};
use serde_json::json;
use std::fmt;
use std::sync::Once;
use tracewing::rules::{Action, Levels, Predicate, Rule};
use tracewing::{Level, Session};
use tracing::{debug, error, event, field, info, trace, warn};
use tracing_subscriber::prelude::*;

fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing_subscriber::registry().with(tracewing_tracing::layer()).init());
}

#[test]
fn values_of_every_type() {
    let _alone = alone();
    init();
    let events = record(&["types:*"], || {
        let error: &(dyn std::error::Error + 'static) = &fmt::Error;
        event!(
            name: "all",
            target: "types",
            tracing::Level::WARN,
            unsigned = u64::MAX,
            small = 7_u8,
            signed = -5_i32,
            float = 0.1 + 0.2,
            truth = true,
            wide = u128::MAX,
            wide_signed = -1_i128,
            text = "Ada",
            shown = %"Grace",
            debugged = ?Some("x"),
            bytes = &[1_u8, 2, 255][..],
            error,
            r#type = 1_u64,
            http.method = "GET",
            "a message of {} words", 5
        );
    });
    let event = only(&events, "types:all");
    assert_eq!(
        event.payload,
        json!({
            "span": 0,
            "message": "a message of 5 words",
            "unsigned": u64::MAX,
            "small": 7,
            "signed": -5,
            "float": 0.1 + 0.2,
            "truth": 1,
            "wide": {"low": u64::MAX, "high": u64::MAX},
            "wide_signed": {"low": u64::MAX, "high": -1},
            "text": "Ada",
            "shown": "Grace",
            "debugged": "Some(\"x\")",
            "_bytes_length": 3,
            "bytes": [1, 2, 255],
            "error": fmt::Error.to_string(),
            "type": 1,
            "http_method": "GET",
        })
    );
}

#[test]
fn levels_targets_and_places() {
    let _alone = alone();
    init();
    let lines = line!() + 2..line!() + 7;
    let body = || {
        error!(level = 1);
        warn!(level = 2);
        info!(level = 3);
        debug!(level = 4);
        trace!(target: "shop::orders", level = 5);
    };
    let events = record(&["*"], body);
    let expected = lines.clone().map(|line| match line + 1 == lines.end {
        true => format!("shop::orders:events.rs:{line}"),
        false => format!("events:events.rs:{line}"),
    });
    assert!(events.iter().map(|event| event.name.clone()).eq(expected), "{events:#?}");

    let severe = Rule { levels: Levels::between(Level::Error, Level::Warn), ..Rule::enable(["*"]) };
    let events = record_with(Session::builder().rule(severe), body);
    assert!(events.iter().map(|event| event.number("level")).eq([1, 2]), "{events:#?}");
    let events = record(&["shop::*"], body);
    assert!(events.iter().map(|event| event.number("level")).eq([5]), "{events:#?}");
    let odd = Action::Enable(Some(Predicate::parse("level & 1").unwrap()));
    let rule = Rule { action: odd, ..Rule::enable(["*"]) };
    let events = record_with(Session::builder().rule(rule), body);
    assert!(events.iter().map(|event| event.number("level")).eq([1, 3, 5]), "{events:#?}");
}

#[test]
fn a_call_site_with_other_types_has_other_classes() {
    let _alone = alone();
    init();
    fn emit<V: tracing::Value>(value: V, other: Option<u64>) {
        event!(name: "generic", target: "types", tracing::Level::INFO, value, other);
    }
    let events = record(&["types:*"], || {
        emit(1_u64, None);
        emit(-1_i64, Some(2));
        emit("text", None);
        emit(1_u64, Some(3));
        emit(true, Some(4));
        emit(2_u64, None);
    });
    let payloads: Vec<_> =
        named(&events, "types:generic").iter().map(|event| event.payload.clone()).collect();
    assert_eq!(
        payloads,
        [
            json!({"span": 0, "value": 1}),
            json!({"span": 0, "value": -1, "other": 2}),
            json!({"span": 0, "value": "text"}),
            json!({"span": 0, "value": 1, "other": 3}),
            json!({"span": 0, "value": 1, "other": 4}),
            json!({"span": 0, "value": 2}),
        ]
    );
}

#[test]
fn a_call_site_with_very_many_types_ends_as_text() {
    let _alone = alone();
    init();
    let events = record(&["types:*"], || {
        for mask in 0..16_u64 {
            let bit = |bit: u64| (mask >> bit & 1 == 1).then_some(mask);
            event!(
                name: "masks", target: "types", tracing::Level::INFO,
                a = bit(0), b = bit(1), c = bit(2), d = bit(3), mask
            );
        }
    });
    let events = named(&events, "types:masks");
    assert_eq!(events.len(), 16);
    for (mask, event) in events.iter().enumerate() {
        let is_text = event.payload["mask"].is_string();
        assert_eq!(is_text, mask >= 8, "{event:?}");
        for (bit, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
            let expected = match (mask >> bit & 1, is_text) {
                (1, false) => json!(mask),
                (1, true) => json!(mask.to_string()),
                (_, false) => json!(null),
                (_, true) => json!(""),
            };
            assert_eq!(event.payload[name], expected, "{name} of {event:?}");
        }
    }
}

#[test]
fn texts_are_cut_with_a_mark() {
    let _alone = alone();
    init();
    let long = "ä".repeat(10_000);
    let events = record(&["types:*"], || {
        event!(name: "long", target: "types", tracing::Level::INFO, long, then = 7, shown = %long, last = 8);
        event!(name: "nul", target: "types", tracing::Level::INFO, text = "before\0behind", shown = ?"\u{1}", last = 8);
        event!(name: "alone", target: "types", tracing::Level::INFO, long = long.as_bytes());
    });
    let event = only(&events, "types:long");
    for (field, least) in [("long", 4000), ("shown", 1900)] {
        let text = event.payload[field].as_str().unwrap();
        assert!(text.len() > least && text.ends_with("ä…"), "{field}: {} bytes", text.len());
    }
    assert_eq!((&event.payload["then"], &event.payload["last"]), (&json!(7), &json!(8)));
    let event = only(&events, "types:nul");
    assert_eq!(event.payload, json!({"span": 0, "text": "before", "shown": "\"\\u{1}\"", "last": 8}));
    let bytes = only(&events, "types:alone").payload["long"].as_array().unwrap().len();
    assert!(bytes > 8000, "{bytes} bytes");
}

#[test]
fn fields_in_another_order_than_the_call_sites() {
    let _alone = alone();
    init();
    let events = record(&["disorder:*"], || {
        let span = tracing::info_span!(target: "disorder", "s", a = 1, b = 2, c = 3);
        let fields = span.metadata().unwrap().fields();
        let [a, b, c] = ["a", "b", "c"].map(|name| fields.field(name).unwrap());
        let values: [(&field::Field, Option<&dyn field::Value>); 3] =
            [(&c, Some(&6)), (&a, Some(&4)), (&b, Some(&"five"))];
        span.record_all(&fields.value_set(&values));
    });
    let event = only(&events, "disorder:s_record");
    let span = event.number("span");
    assert_eq!(event.payload, json!({"span": span, "a": 4, "b": "five", "c": 6}));
}

#[test]
fn values_that_emit_and_values_that_panic() {
    struct Chatty;
    impl fmt::Debug for Chatty {
        fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            event!(name: "inner", target: "within", tracing::Level::INFO, depth = 2);
            to.write_str("chatty")
        }
    }
    struct Broken;
    impl fmt::Debug for Broken {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("a value's own panic")
        }
    }
    let _alone = alone();
    init();
    let events = record(&["within:*"], || {
        event!(name: "outer", target: "within", tracing::Level::INFO, value = ?Chatty, depth = 1);
        let broken = || event!(name: "broken", target: "within", tracing::Level::INFO, value = ?Broken);
        assert!(std::panic::catch_unwind(broken).is_err());
        event!(name: "after", target: "within", tracing::Level::INFO, depth = 3);
    });
    assert_eq!(only(&events, "within:inner").payload["depth"], 2);
    let outer = only(&events, "within:outer");
    assert_eq!((&outer.payload["value"], &outer.payload["depth"]), (&json!("chatty"), &json!(1)));
    assert!(named(&events, "within:broken").is_empty());
    assert_eq!(only(&events, "within:after").payload["depth"], 3);
}
