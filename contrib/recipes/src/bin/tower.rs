//! tower: the layer makes each call of a service a task.

use std::convert::Infallible;
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

struct Order;

#[tokio::main]
async fn main() {
    #[rustfmt::skip]
    let builder = ServiceBuilder::new().layer(tracewing_tokio::tower::layer(|_: &Order| "order"));
    let mut service =
        builder.service(service_fn(async |_: Order| Ok::<_, Infallible>(recipes::work().await)));
    for _ in 0..recipes::REQUESTS {
        assert_eq!(service.ready().await.unwrap().call(Order).await.unwrap(), "42");
    }
}
