//! A client for the servers of the recipes: plain HTTP/1.1 over one connection per request.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How many requests each server gets.
pub const REQUESTS: usize = 40;

/// Asks so often, each time for the price of another item, and expects each answer to be a success.
pub async fn ask(port: u16) {
    for item in 0..REQUESTS {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the server listens");
        let request =
            format!("GET /prices/{item} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("the server reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("the server answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// What a request does before it is answered: it waits, as for a database.
pub async fn work() -> &'static str {
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    "42"
}
