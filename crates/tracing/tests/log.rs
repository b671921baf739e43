//! Records of the crate `log`, through `tracing`.

mod recorded;

use recorded::{only, record};
use serde_json::json;
use tracing::info_span;
use tracing_subscriber::prelude::*;

#[test]
fn records_keep_their_fields() {
    // Also makes `tracing` the logger of `log`.
    tracing_subscriber::registry().with(tracewing_tracing::layer()).init();
    let emit = || {
        log::warn!(target: "shop::orders", "order {} is late", 7);
        log::info!("placed");
        let _span = info_span!(target: "log", "span").entered();
        log::error!("within");
    };
    emit();
    let line = line!() - 6;
    let events = record(&["log:*"], emit);
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
    assert_eq!(only(&events, "log:info").payload["message"], "placed");
    assert_eq!(only(&events, "log:info").payload["target"], module_path!());
    assert_eq!(only(&events, "log:error").number("span"), only(&events, "log:span_new").number("span"));

    let rule = r#"target =~ "shop::*""#;
    let predicate = tracewing::rules::Predicate::parse(rule).unwrap();
    let action = tracewing::rules::Action::Enable(Some(predicate));
    let rule = tracewing::rules::Rule { action, ..tracewing::rules::Rule::enable(["log:*"]) };
    let events = recorded::record_with(tracewing::Session::builder().rule(rule), emit);
    assert_eq!(events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(), ["log:warn"]);
}
