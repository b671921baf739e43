//! Records of the crate `log`, without `tracing`.

#![cfg(feature = "log")]

mod recorded;

use log::LevelFilter;
use recorded::{only, record};
use serde_json::json;

#[test]
fn records_keep_their_fields() {
    tracewing_tracing::init_logger().unwrap();
    assert!(tracewing_tracing::init_logger().is_err());
    let emit = || {
        log::warn!(target: "shop::orders", "order {} is late", 7);
        let _span = tracewing::span!("log:span");
        log::trace!("within");
    };
    assert_eq!(log::max_level(), LevelFilter::Off);
    let line = line!() - 5;
    let events = record(&["log:*"], || {
        assert_eq!(log::max_level(), LevelFilter::Trace);
        emit();
    });
    assert_eq!(log::max_level(), LevelFilter::Off);
    assert_eq!(
        only(&events, "log:warn").payload,
        json!({
            "span": 0,
            "message": "order 7 is late",
            "target": "shop::orders",
            "module_path": module_path!(),
            "file": file!(),
            "line": line,
        })
    );
    assert_eq!(only(&events, "log:trace").number("span"), only(&events, "log:span_begin").number("span"));
    let events = record(&["log:warn"], || (0..3).for_each(|_| emit()));
    assert!(events.len() == 3 && events.iter().all(|event| event.name == "log:warn"));
}
