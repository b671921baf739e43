//! tonic: the layer names each call by its method. The service is the one of the crate tonic-health.

use tokio::net::TcpListener;
use tonic::codegen::tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Endpoint, Server};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

#[tokio::main]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (_reporter, service) = tonic_health::server::health_reporter();
    #[rustfmt::skip]
    let mut server = Server::builder().layer(tracewing_tokio::tower::layer(|request: &http::Request<_>| match request.uri().path() { "/grpc.health.v1.Health/Check" => "Health/Check", _ => "other" }));
    let server = server.add_service(service).serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(server);
    let address = Endpoint::from_shared(format!("http://127.0.0.1:{port}")).unwrap();
    let mut client = HealthClient::new(address.connect().await.unwrap());
    for _ in 0..recipes::REQUESTS {
        recipes::work().await;
        client.check(HealthCheckRequest::default()).await.unwrap();
    }
}
