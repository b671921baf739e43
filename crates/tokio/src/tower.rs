//! A layer for services of `tower`, as in axum and tonic: each request is a user thread.
//!
//! ```
//! use axum::{Router, extract::Request, routing::get};
//!
//! let app: Router = Router::new()
//!     .route("/", get(|| async { "hello" }))
//!     .layer(tracewing_tokio::tower::layer(|request: &Request| request.method().to_string()));
//! ```

use crate::{Builder, Instrumented};
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Makes the handling of each request a user thread, which `name` names: `tracewing tasks` shows how long it
/// was polled and how long it waited, and for what.
///
/// Give few names (a method, a route), not one for each request: recordings describe each once, and
/// `tracewing tasks --by name` sums them up. The body of a response that is sent after the service has
/// returned is not part of the user thread.
pub fn layer<N>(name: N) -> Requests<N> {
    Requests { name }
}

/// See [`layer`].
#[derive(Debug, Clone, Copy)]
pub struct Requests<N> {
    name: N,
}

impl<S, N: Clone> Layer<S> for Requests<N> {
    type Service = Recorded<S, N>;

    fn layer(&self, service: S) -> Self::Service {
        Recorded { service, name: self.name.clone() }
    }
}

/// A service whose requests are user threads.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<S, N> {
    service: S,
    name: N,
}

impl<S, N, R, T> Service<R> for Recorded<S, N>
where
    S: Service<R>,
    N: Fn(&R) -> T,
    T: AsRef<str>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Instrumented<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let name = (self.name)(&request);
        Builder::new().name(name.as_ref()).instrument(self.service.call(request))
    }
}
