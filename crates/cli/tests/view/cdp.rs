//! A browser that a test drives: Chromium by its devtools protocol, over pipes.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tracewing_testing::am_root;

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
        let folder = tempfile::tempdir().unwrap();
        // Chromium reads from descriptor 3 and writes to 4. As root it has no sandbox.
        let sandbox = if am_root() { "--no-sandbox" } else { "" };
        let script = format!(
            "exec chromium --headless {sandbox} --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe \
             --user-data-dir=\"$0\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let errors = Vec::new();
        let mut browser = Browser { child, to, from, session: None, last: 0, errors, _folder: folder };
        let targets = browser.call("Target.getTargets", json!({}));
        let page = targets["targetInfos"].as_array().unwrap().iter().find(|target| target["type"] == "page");
        let asked = json!({ "targetId": page.unwrap()["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", asked);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        browser.call("Emulation.setDeviceMetricsOverride", size);
        browser
    }

    /// Calls a method of the protocol.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.try_call(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn try_call(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.to.write_all(message.to_string().as_bytes()).and_then(|()| self.to.write_all(&[0])).unwrap();
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "the browser has ended");
            let message: Value = serde_json::from_slice(&bytes).unwrap();
            if message["id"] == self.last {
                return match &message["error"] {
                    Value::Null => Ok(message["result"].clone()),
                    error => Err(error.clone()),
                };
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

    /// Waits until an expression is true.
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
        let mut event = json!({ "type": kind, "x": x, "y": y, "buttons": buttons });
        if kind != "mouseMoved" {
            event["button"] = "left".into();
            event["clickCount"] = 1.into();
        }
        self.call("Input.dispatchMouseEvent", event);
    }

    pub fn click(&mut self, x: f64, y: f64) {
        self.drag((x, y), (x, y));
    }

    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.mouse("mouseMoved", from.0, from.1, 0);
        self.mouse("mousePressed", from.0, from.1, 1);
        if from != to {
            self.mouse("mouseMoved", from.0.midpoint(to.0), from.1.midpoint(to.1), 1);
            self.mouse("mouseMoved", to.0, to.1, 1);
        }
        self.mouse("mouseReleased", to.0, to.1, 0);
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
