//! Accepts connections on the loopback interface until it is stopped. One thread serves all of them; what
//! takes time is done by a few others.

use crate::answer::{Decision, Desk, LONGEST};
use crate::error::Error;
use crate::notes::Notes;
use crate::recording::Viewed;
use crate::reply::Reply;
use crate::token::Token;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tracewing_index::Cache;
use tracewing_trace::Recording;

/// Most connections at once: a browser opens six, and there may be several pages.
const CONNECTIONS: usize = 64;
/// Most questions that are answered at the same time.
const THREADS: usize = 4;
/// Largest head of a request, in bytes.
const HEAD: usize = 16 << 10;
/// Longest time that a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the caller is asked whether to stop.
const PAUSE: Duration = Duration::from_millis(100);

/// A server of one recording, or of two that are compared.
#[derive(Debug)]
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
    desk: Desk,
}

/// How far the indexes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// They are being made: bytes of the recordings that were read, and all of them.
    Indexing(u64, u64),
    /// All questions can be answered.
    Ready,
    /// One cannot be made further: why. What was read until then is shown.
    Stuck(String),
    /// One cannot be made: why.
    Failed(String),
}

impl Server {
    /// A server at a port of the loopback interface (0: any free one) for a recording, whose index is in
    /// `cache`, or will be. It shows the recording as it is, or follows it while it is made. `name` is the
    /// recording's name for [`Token::of`].
    ///
    /// # Errors
    /// The port is taken.
    pub fn new(
        (recording, is_followed): (Recording, bool),
        cache: Cache,
        token: Token,
        name: &str,
        port: u16,
    ) -> Result<Self, Error> {
        let bind = || {
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) = bind().map_err(|cause| Error::Listen { port, cause })?;
        let mut viewed = Viewed::new(recording, cache, is_followed);
        viewed.notes = Notes::of(name);
        let desk = Desk { viewed, other: None, token, cookie: cookie(name) };
        Ok(Server { listener, address, desk })
    }

    /// The same with another recording, which is compared with the first one. It has its own index and notes;
    /// the token of the first one is that of both.
    #[must_use]
    pub fn beside(mut self, recording: Recording, cache: Cache, name: &str) -> Self {
        let is_same = self.desk.cookie == cookie(name);
        let mut other = if is_same { self.desk.viewed.again() } else { Viewed::new(recording, cache, false) };
        other.notes = Notes::of(name);
        other.is_compared = true;
        self.desk.viewed.is_compared = true;
        self.desk.other = Some(other);
        self
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Where the page is, for this user: it has the token in the part that browsers do not send. `at` is the
    /// part of a link that says what is shown.
    pub fn address(&self, at: &str) -> String {
        let and = if at.is_empty() { "" } else { "&" };
        format!("http://{}/#token={}{and}{at}", self.address, self.desk.token.figures())
    }

    /// Answers until `watch` breaks. It is called several times a second.
    ///
    /// # Errors
    /// The system lacks what a server needs.
    pub fn run(self, mut watch: impl FnMut(State) -> ControlFlow<()>) -> Result<(), Error> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_io().enable_time().max_blocking_threads(THREADS).build();
        let runtime = runtime.map_err(Error::Server)?;
        let desk = Arc::new(self.desk);
        let preparing = std::thread::Builder::new().name("filling".to_owned()).spawn({
            let desk = desk.clone();
            move || prepare(&desk)
        });
        let preparing = preparing.map_err(Error::Server)?;
        let served = runtime.block_on(serve(self.listener, &desk, &mut watch));
        desk.all().for_each(Viewed::stop);
        runtime.shutdown_timeout(PAUSE);
        if preparing.join().is_err() {
            return Err(Error::Server(std::io::Error::other("the index could not be made")));
        }
        served.map_err(Error::Server)
    }
}

/// The name of the cookie of a recording.
fn cookie(name: &str) -> String {
    format!("tracewing-{name}")
}

/// Finds or makes the indexes: each in a thread of its own, so that both fill at the same time.
fn prepare(desk: &Desk) {
    let other = desk.other.as_ref().filter(|other| !other.is_same(&desk.viewed));
    std::thread::scope(|scope| {
        let thread = || std::thread::Builder::new().name("filling B".to_owned());
        let later = other.filter(|other| thread().spawn_scoped(scope, || other.prepare()).is_err());
        desk.viewed.prepare();
        // Without another thread, one after the other.
        later.into_iter().for_each(|other| other.prepare());
    });
}

async fn serve(
    listener: std::net::TcpListener,
    desk: &Arc<Desk>,
    watch: &mut impl FnMut(State) -> ControlFlow<()>,
) -> std::io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    while watch(state(desk)).is_continue() {
        let accepted = match tokio::time::timeout(PAUSE, listener.accept()).await {
            Err(_) => continue,
            Ok(Ok((stream, _))) => stream,
            // Connections that end before they are accepted, and a lack of descriptors, pass.
            Ok(Err(_)) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        // With all places taken, it is closed.
        if let Ok(place) = places.clone().try_acquire_owned() {
            let desk = desk.clone();
            tokio::spawn(async move {
                let _place = place;
                connection(accepted, desk).await;
            });
        }
    }
    Ok(())
}

/// How far the indexes of all recordings are.
fn state(desk: &Desk) -> State {
    let progress = desk.all().map(|viewed| viewed.progress());
    let (done, total) = progress.fold((0, 0), |sum, (done, total)| (sum.0 + done, sum.1 + total));
    let failed = |viewed: &&Viewed| viewed.failure().is_some();
    match desk.all().find(failed) {
        Some(viewed) if matches!(viewed.ready(), Some(Ok(_))) => {
            State::Stuck(viewed.failure().unwrap_or_default().to_owned())
        }
        Some(viewed) => State::Failed(viewed.failure().unwrap_or_default().to_owned()),
        None if desk.all().any(|viewed| viewed.is_being_read()) => State::Indexing(done, total),
        None => State::Ready,
    }
}

async fn connection(stream: tokio::net::TcpStream, desk: Arc<Desk>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(request, desk.clone()));
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(HEAD);
    // What the other side does wrong ends the connection.
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, desk: Arc<Desk>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let decision = desk.decide(&parts);
    if let Decision::Reply(reply) = decision {
        return Ok(reply.response());
    }
    let body = match tokio::time::timeout(PATIENCE, Limited::new(body, LONGEST).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            return Ok(Reply::refusal(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large").response());
        }
        Err(_) => {
            return Ok(Reply::refusal(StatusCode::REQUEST_TIMEOUT, "the request did not come").response());
        }
    };
    let answer = tokio::task::spawn_blocking(move || match decision {
        Decision::Reply(reply) => reply,
        Decision::Enter => desk.enter(&body),
        Decision::Ask(asked) => desk.ask(&asked, &body),
    });
    let failed = |_| Reply::refusal(StatusCode::INTERNAL_SERVER_ERROR, "the answer failed");
    Ok(answer.await.unwrap_or_else(failed).response())
}
