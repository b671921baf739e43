//! A program of tasks and locks that runs before a recorder attaches to it. Standard input gives orders, one
//! per line; standard output answers each with a line once it is carried out:
//!
//! | order | does |
//! |---|---|
//! | `release` | the task `keeper` gives back the mutex that it has had since the start; `waiter` gets it |
//! | `unlock` | the thread `holder` gives back the lock that it has had since the start; `queuer` gets it |
//! | `serve N` | the task of `serve` gets N messages, and answers each |
//! | `born` | a new task `born` takes the mutex, spawns `born-child` that waits for it, and both end |
//! | `abort` | the task `aborted` is cancelled |

use std::io::{BufRead, Write};
use std::sync::{Arc, mpsc as threads};
use std::thread;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tracewing_tokio as traced;

type Shared = Arc<traced::sync::Mutex<u32>>;

fn name(name: &str) -> traced::Builder<'_> {
    traced::Builder::new().name(name)
}

/// Says so once it has the lock, and keeps it until it is asked to give it back.
async fn keep(shared: Shared, has: oneshot::Sender<()>, give: oneshot::Receiver<()>) {
    let _guard = shared.lock().await;
    has.send(()).unwrap();
    give.await.unwrap();
}

async fn take(shared: Shared) {
    *shared.lock().await += 1;
}

async fn serve(mut orders: mpsc::UnboundedReceiver<oneshot::Sender<()>>) {
    while let Some(answer) = orders.recv().await {
        answer.send(()).unwrap();
    }
}

async fn bear(shared: Shared) {
    let child = {
        let _guard = shared.lock().await;
        let child = name("born-child").spawn(take(shared.clone()));
        // The only worker runs the child before this again.
        traced::yield_now().await;
        child
    };
    child.await.unwrap();
}

fn main() {
    let mut builder = Builder::new_multi_thread();
    let runtime = traced::runtime(&mut builder, "resident").worker_threads(1).enable_all().build().unwrap();
    let _within = runtime.enter();

    let shared = Shared::default();
    let ((has, had), (give, given)) = (oneshot::channel(), oneshot::channel());
    let mut keeper = Some((give, name("keeper").spawn(keep(shared.clone(), has, given))));
    runtime.block_on(had).unwrap();
    let mut waiter = Some(name("waiter").spawn(take(shared.clone())));
    let (server, orders) = mpsc::unbounded_channel();
    traced::spawn(serve(orders));
    let mut aborted = Some(name("aborted").spawn(std::future::pending::<()>()));
    let mut kept = Some(Kept::begin());
    let send = |count: u32| {
        for _ in 0..count {
            let (answer, answered) = oneshot::channel();
            server.send(answer).unwrap();
            runtime.block_on(answered).unwrap();
        }
    };
    // The only worker has polled all of them.
    send(1);

    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let (order, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match order {
            "release" => {
                let (give, keeper) = keeper.take().unwrap();
                give.send(()).unwrap();
                runtime.block_on(keeper).unwrap();
                runtime.block_on(waiter.take().unwrap()).unwrap();
            }
            "unlock" => kept.take().unwrap().end(),
            "serve" => send(rest.parse().unwrap()),
            "born" => runtime.block_on(name("born").spawn(bear(shared.clone()))).unwrap(),
            "abort" => {
                let task = aborted.take().unwrap();
                task.abort();
                runtime.block_on(task).unwrap_err();
            }
            other => panic!("no order: {other:?}"),
        }
        println!("done");
        std::io::stdout().flush().unwrap();
    }
}

/// Two threads and a lock.
struct Kept {
    give: threads::Sender<()>,
    holder: thread::JoinHandle<()>,
    queuer: thread::JoinHandle<()>,
}

impl Kept {
    fn begin() -> Self {
        let lock = Arc::new(tracewing::sync::Mutex::new(()));
        let ((has, had), (give, given)) = (threads::channel(), threads::channel());
        let of_holder = lock.clone();
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.to_owned()).spawn(body).unwrap()
        };
        let holder = spawn(
            "holder",
            Box::new(move || {
                let _guard = of_holder.lock().unwrap();
                has.send(()).unwrap();
                given.recv().unwrap();
            }),
        );
        had.recv().unwrap();
        let queuer = spawn("queuer", Box::new(move || drop(lock.lock().unwrap())));
        Self { give, holder, queuer }
    }

    fn end(self) {
        self.give.send(()).unwrap();
        self.holder.join().unwrap();
        self.queuer.join().unwrap();
    }
}
