//! axum: the layer names each request by its route.

use axum::extract::{MatchedPath, Request};
use axum::{Router, routing::get};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    #[rustfmt::skip]
    let app = Router::new()
        .route("/prices/{item}", get(recipes::work))
        .route_layer(tracewing_tokio::tower::layer(|request: &Request| request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned()));
    tokio::spawn(async { axum::serve(listener, app).await });
    recipes::ask(port).await;
}
