//! Requests of a service as user threads, with the layer for `tower`.

#[path = "../../tracing/tests/recorded/mod.rs"]
mod recorded;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::routing::get;
use recorded::{alone, lines_of, record};
use tokio::runtime::Builder;
use tower_service::Service;
use tracewing_tokio as traced;

async fn handler() -> &'static str {
    traced::yield_now().await;
    "hello"
}

#[test]
fn a_request_is_a_user_thread() {
    let _alone = alone();
    let events = record(
        &["create", "origin", "switch", "exit"]
            .map(|name| format!("user_thread:{name}"))
            .each_ref()
            .map(String::as_str),
        || {
            let name = |request: &Request| format!("{} {}", request.method(), request.uri().path());
            let mut app = Router::new().route("/hello", get(handler)).layer(traced::tower::layer(name));
            let runtime = Builder::new_current_thread().build().unwrap();
            let request = Request::builder().uri("/hello?n=1").body(Body::empty()).unwrap();
            let response = runtime.block_on(app.call(request)).unwrap();
            assert_eq!(response.status(), 200);
        },
    );
    assert_eq!(
        lines_of(&events),
        [
            "create GET /hello - GET /hello ",
            "switch - GET /hello none",
            "switch GET /hello - yielded",
            "switch - GET /hello none",
            "switch GET /hello - ended",
        ]
    );
}
