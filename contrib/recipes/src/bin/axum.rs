//! axum: the layer names each request by its path.

use axum::extract::Request;
use axum::{Router, routing::get};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    #[rustfmt::skip]
    let app = Router::new()
        .route("/prices", get(recipes::work))
        .layer(tracewing_tokio::tower::layer(|request: &Request| request.uri().path().to_owned()));
    tokio::spawn(async { axum::serve(listener, app).await });
    recipes::ask(port).await;
}
