//! actix-web: each request is a task of its own, with its route as name.

use actix_web::dev::Service;
use actix_web::{App, HttpServer, web};

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    #[rustfmt::skip]
    let server = HttpServer::new(|| {
        App::new()
            .wrap_fn(|request, app| { let name = request.match_pattern().unwrap_or("other".into()); tracewing_tokio::Builder::new().name(&name).instrument(app.call(request)) })
            .route("/prices/{item}", web::get().to(recipes::work))
    });
    let server = server.workers(1).bind("127.0.0.1:0")?;
    let port = server.addrs()[0].port();
    let server = server.run();
    let handle = server.handle();
    actix_web::rt::spawn(async move {
        recipes::ask(port).await;
        handle.stop(true).await;
    });
    server.await
}
