//! A page in headless Chromium, driven by its devtools protocol over pipes.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A page in a browser, which ends with this value.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    last: u64,
    _folder: tempfile::TempDir,
}

impl Browser {
    /// Starts Chromium with a page of this size, without a graphics processor.
    pub fn start(width: u32, height: u32) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        // Chromium reads from descriptor 3 and writes to 4. As root it has no sandbox.
        let sandbox = if rustix::process::geteuid().is_root() { "--no-sandbox" } else { "" };
        let script = format!(
            "exec chromium --headless {sandbox} --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe \
             --user-data-dir=\"$0\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start Chromium")?;
        let to = child.stdin.take().context("no pipe")?;
        let from = BufReader::new(child.stdout.take().context("no pipe")?);
        let mut browser = Browser { child, to, from, session: None, last: 0, _folder: folder };
        let targets = browser.call("Target.getTargets", json!({}))?;
        let mut targets = targets["targetInfos"].as_array().into_iter().flatten();
        let page = targets.find(|target| target["type"] == "page").context("the browser has no page")?;
        let asked = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", asked)?;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime"] {
            browser.call(&format!("{domain}.enable"), json!({}))?;
        }
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        browser.call("Emulation.setDeviceMetricsOverride", size)?;
        Ok(browser)
    }

    fn call(&mut self, method: &str, parameters: Value) -> Result<Value> {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.to.write_all(message.to_string().as_bytes())?;
        self.to.write_all(&[0])?;
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes)?;
            ensure!(bytes.pop() == Some(0), "the browser has ended");
            let message: Value = serde_json::from_slice(&bytes)?;
            match &message["error"] {
                _ if message["id"] != self.last => {}
                Value::Null => return Ok(message["result"].clone()),
                error => bail!("{method}: {error}"),
            }
        }
    }

    pub fn navigate(&mut self, address: &str) -> Result<()> {
        self.call("Page.navigate", json!({ "url": "about:blank" }))?;
        self.call("Page.navigate", json!({ "url": address }))?;
        Ok(())
    }

    /// The value of an expression, or of its promise.
    pub fn value(&mut self, expression: &str) -> Result<Value> {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", asked)?;
        ensure!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        Ok(answer["result"]["value"].clone())
    }

    /// The process that runs the page: of all below the browser's, the renderer with the most memory.
    pub fn renderer(&self) -> Result<u32> {
        let renderers = below(self.child.id()).into_iter().filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("--type=renderer")
        });
        let largest = renderers.max_by(|one, other| super::pss(*one).total_cmp(&super::pss(*other)));
        largest.context("the browser has no process for the page")
    }
}

/// All processes below one.
fn below(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while let Some(pid) = all.get(at).copied() {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        at += 1;
    }
    all
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its other processes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
