//! A browser that a test drives: Chromium by its devtools protocol, over pipes.

use crate::client::{Viewer, stored};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use tracewing_testing::{am_root, installed, signal};

/// Time in which Chromium answers at its start.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many times slower pages are, if the environment says so: no test may assume that a page is fast.
const SLOWER: &str = "SLOWER_PAGES";

/// Keys that are held, as the protocol counts them.
pub const CTRL: u32 = 2;
pub const SHIFT: u32 = 8;

/// A page in a browser, which ends with this value.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    last: u64,
    /// Exceptions and errors of the page.
    pub errors: Vec<String>,
    _folder: tempfile::TempDir,
}

impl Browser {
    /// Starts Chromium with a page of this size.
    pub fn start(width: u32, height: u32) -> Self {
        Self::start_as("chromium", [PATIENCE; 3], (width, height))
    }

    /// Starts a program that is Chromium. On a busy machine, it may hang before it answers: then it is killed
    /// after a while, and another one is started.
    fn start_as(program: &str, patience: [Duration; 3], size: (u32, u32)) -> Self {
        let started = patience.into_iter().find_map(|patience| Self::try_start(program, patience, size));
        started.expect("Chromium does not start")
    }

    fn try_start(program: &str, patience: Duration, size: (u32, u32)) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        // Chromium reads from descriptor 3 and writes to 4. As root it has no sandbox.
        let sandbox = if am_root() { "--no-sandbox" } else { "" };
        let script = format!(
            "exec {program} --headless {sandbox} --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe \
             --user-data-dir=\"$0\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let errors = Vec::new();
        let mut browser = Browser { child, to, from, session: None, last: 0, errors, _folder: folder };
        let (answers, waits) = std::sync::mpsc::channel::<()>();
        let pid = browser.child.id();
        let watch = std::thread::spawn(move || {
            if waits.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                // It is not reaped before this thread ends.
                signal(pid, libc::SIGKILL);
            }
        });
        let is_there = browser.set_up(size).is_ok();
        drop(answers);
        watch.join().unwrap();
        is_there.then_some(browser)
    }

    /// Attaches to the page.
    fn set_up(&mut self, (width, height): (u32, u32)) -> std::io::Result<()> {
        let call = |this: &mut Self, method: &str, parameters: Value| {
            let answer = this.exchange(method, parameters)?;
            Ok::<_, std::io::Error>(answer.unwrap_or_else(|error| panic!("{method}: {error}")))
        };
        let targets = call(self, "Target.getTargets", json!({}))?;
        let page = targets["targetInfos"].as_array().unwrap().iter().find(|target| target["type"] == "page");
        let asked = json!({ "targetId": page.unwrap()["targetId"], "flatten": true });
        let session = call(self, "Target.attachToTarget", asked)?;
        self.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            call(self, &format!("{domain}.enable"), json!({}))?;
        }
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        call(self, "Emulation.setDeviceMetricsOverride", size)?;
        if let Ok(rate) = std::env::var(SLOWER) {
            let rate: f64 = rate.parse().expect("a number");
            call(self, "Emulation.setCPUThrottlingRate", json!({ "rate": rate }))?;
        }
        Ok(())
    }

    /// Calls a method of the protocol.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.try_call(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn try_call(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.exchange(method, parameters).expect("the browser has ended")
    }

    /// Calls a method; fails if the browser ends before it has answered.
    fn exchange(&mut self, method: &str, parameters: Value) -> std::io::Result<Result<Value, Value>> {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.to.write_all(message.to_string().as_bytes()).and_then(|()| self.to.write_all(&[0]))?;
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes)?;
            if bytes.pop() != Some(0) {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let message: Value = serde_json::from_slice(&bytes).unwrap();
            if message["id"] == self.last {
                return Ok(match &message["error"] {
                    Value::Null => Ok(message["result"].clone()),
                    error => Err(error.clone()),
                });
            }
            let is_error = message["method"] == "Runtime.exceptionThrown"
                || (message["method"] == "Log.entryAdded" && message["params"]["entry"]["level"] == "error")
                || message["method"] == "Page.javascriptDialogOpening";
            if is_error {
                self.errors.push(message["params"].to_string());
            }
        }
    }

    /// The value of an expression, or of its promise.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = loop {
            match self.try_call("Runtime.evaluate", asked.clone()) {
                Ok(answer) => break answer,
                // The page gives way to another one: that is asked.
                Err(error) if error["message"] == "Inspected target navigated or closed" => {}
                Err(error) => panic!("{expression}: {error}"),
            }
        };
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true. It must not be true of an earlier table, or of a partial one.
    pub fn wait(&mut self, expression: &str) {
        let begin = Instant::now();
        while self.value(expression) != true {
            assert!(begin.elapsed() < Duration::from_secs(300), "{expression}: {:?}", self.errors);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Opens an address and waits until the picture is there.
    pub fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        self.call("Page.navigate", json!({ "url": address }));
        self.settle();
    }

    /// Waits until nothing of the picture is in flight.
    pub fn settle(&mut self) {
        self.wait("!!window.tracewing && document.querySelector('#cover').hidden && tracewing.isIdle()");
        self.value(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))",
        );
        self.wait("tracewing.isIdle()");
    }

    fn mouse(&mut self, kind: &str, x: f64, y: f64, buttons: u32) {
        self.mouse_with(kind, (x, y), buttons, (0, 1));
    }

    /// The same with keys that are held, and as a part of so many clicks.
    fn mouse_with(&mut self, kind: &str, (x, y): (f64, f64), buttons: u32, (held, clicks): (u32, u32)) {
        let mut event = json!({ "type": kind, "x": x, "y": y, "buttons": buttons, "modifiers": held });
        if kind != "mouseMoved" {
            event["button"] = "left".into();
            event["clickCount"] = clicks.into();
        }
        self.call("Input.dispatchMouseEvent", event);
    }

    pub fn hover(&mut self, x: f64, y: f64) {
        self.mouse("mouseMoved", x, y, 0);
    }

    pub fn click(&mut self, x: f64, y: f64) {
        self.drag((x, y), (x, y));
    }

    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.drag_with(0, from, to);
    }

    /// The same while keys are held, such as [`SHIFT`].
    pub fn drag_with(&mut self, held: u32, from: (f64, f64), to: (f64, f64)) {
        let mut mouse = |kind, at, buttons| self.mouse_with(kind, at, buttons, (held, 1));
        mouse("mouseMoved", from, 0);
        mouse("mousePressed", from, 1);
        if from != to {
            mouse("mouseMoved", (from.0.midpoint(to.0), from.1.midpoint(to.1)), 1);
            mouse("mouseMoved", to, 1);
        }
        mouse("mouseReleased", to, 0);
    }

    pub fn double_click(&mut self, x: f64, y: f64) {
        self.mouse("mouseMoved", x, y, 0);
        for clicks in [1, 2] {
            self.mouse_with("mousePressed", (x, y), 1, (0, clicks));
            self.mouse_with("mouseReleased", (x, y), 0, (0, clicks));
        }
    }

    /// Turns the wheel downwards by so many pixels, while keys are held.
    pub fn wheel(&mut self, held: u32, (x, y): (f64, f64), pixels: f64) {
        self.mouse("mouseMoved", x, y, 0);
        let event =
            json!({ "type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": pixels, "modifiers": held });
        self.call("Input.dispatchMouseEvent", event);
    }

    pub fn key(&mut self, key: &str) {
        let text = if key.len() == 1 { key } else { "" };
        self.call("Input.dispatchKeyEvent", json!({ "type": "keyDown", "key": key, "text": text }));
        self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key }));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its other processes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A viewer of a stored recording, and a browser that shows it; `None` if Chromium is not installed.
pub fn opened(recording: &str) -> Option<(Viewer, Browser)> {
    opened_with(|| Viewer::start(&stored(recording)))
}

/// The same with any viewer.
pub fn opened_with(start: impl FnOnce() -> Viewer) -> Option<(Viewer, Browser)> {
    if !installed(&["chromium"]) {
        return None;
    }
    let viewer = start();
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    Some((viewer, browser))
}

#[test]
fn one_that_hangs_at_its_start_is_replaced() {
    if !installed(&["chromium"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("hangs-twice");
    let script = "#!/bin/sh\necho $$ >> \"$0.starts\"\n\
                  test $(wc -l < \"$0.starts\") = 3 || exec sleep 1000\nexec chromium \"$@\"\n";
    std::fs::write(&program, script).unwrap();
    let short = Duration::from_millis(300);
    let program = format!("sh {}", program.display());
    let mut browser = Browser::start_as(&program, [short, short, PATIENCE], (640, 480));
    assert_eq!(browser.value("1 + 1"), 2);
    let starts = std::fs::read_to_string(folder.path().join("hangs-twice.starts")).unwrap();
    let pids: Vec<&str> = starts.lines().collect();
    assert_eq!(pids.len(), 3);
    assert!(!pids[..2].iter().any(|pid| std::path::Path::new("/proc").join(pid).exists()), "it still hangs");
}
