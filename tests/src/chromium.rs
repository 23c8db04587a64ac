//! A headless Chromium, controlled by the DevTools protocol through two pipes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tools;

/// For a single answer, on a machine with much else to do.
const LIMIT: Duration = Duration::from_secs(120);

/// Descriptors 3 and 4 are Chromium's end of the pipes, and a shell can put them there.
const START: &str = "exec 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null; exec \"$0\" \"$@\"";

pub struct Chromium {
    process: Child,
    orders: ChildStdin,
    answers: Receiver<Value>,
    session: String,
    last: u64,
    events: Vec<Value>,
    _profile: TempDir,
}

/// A window: width and height in CSS pixels.
pub type Size = (u32, u32);

impl Chromium {
    pub fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut process = Command::new("/bin/sh")
            .args(["-c", START])
            .arg(tools::tool("chromium", "chromium"))
            .args([
                "--headless",
                "--remote-debugging-pipe",
                "--no-first-run",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            // Containers have neither user namespaces for its sandbox nor a large /dev/shm.
            .args(["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        let orders = process.stdin.take().unwrap();
        let stdout = process.stdout.take().unwrap();
        let (sender, answers) = channel();
        thread::spawn(move || {
            for message in BufReader::new(stdout).split(0) {
                let message = message.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
                if message.is_none_or(|message| sender.send(message).is_err()) {
                    return;
                }
            }
        });
        let (session, last, events) = (String::new(), 0, Vec::new());
        let mut this = Self { process, orders, answers, session, last, events, _profile: profile };
        this.attach();
        this
    }

    fn attach(&mut self) {
        let target = self.ask("Target.createTarget", &json!({"url": "about:blank"}));
        let target = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.ask("Target.attachToTarget", &target);
        attached["sessionId"].as_str().expect("a session").clone_into(&mut self.session);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.ask(&format!("{domain}.enable"), &json!({}));
        }
    }

    /// The answer to a command; an error fails the test.
    pub fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.orders.write_all(&bytes).expect("Chromium listens");
        loop {
            let mut answer = self.receive(method);
            if answer["id"] == json!(self.last) {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    fn receive(&mut self, what: &str) -> Value {
        match self.answers.recv_timeout(LIMIT) {
            Ok(answer) => answer,
            Err(error) => {
                panic!("Chromium does not answer to {what}: {error}; {:?}", self.process.try_wait())
            }
        }
    }

    /// Opens a page and waits until it and its scripts are loaded.
    pub fn open(&mut self, url: &str, (width, height): Size, scheme: &str) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.ask("Emulation.setDeviceMetricsOverride", &metrics);
        self.scheme(scheme);
        self.events.clear();
        self.ask("Page.navigate", &json!({"url": url}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.receive("a page to load");
            self.events.push(event);
        }
    }

    /// The user's preference: `light` or `dark`.
    pub fn scheme(&mut self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.ask("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// The value of an expression, which may be a promise; an exception fails the test.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.ask("Runtime.evaluate", &parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// After two frames, everything that a script requested has been drawn.
    pub fn settle(&mut self) {
        self.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))",
        );
    }

    pub fn key(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let text = if key.len() == 1 { key } else { "" };
            self.ask("Input.dispatchKeyEvent", &json!({"type": kind, "key": key, "text": text}));
        }
    }

    /// Presses the mouse button at one place and releases it at another.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        for (kind, (x, y), buttons) in [
            ("mouseMoved", from, 0),
            ("mousePressed", from, 1),
            ("mouseMoved", to, 1),
            ("mouseReleased", to, 0),
        ] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let mouse =
                json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", &mouse);
        }
    }

    /// Messages on the console, exceptions, refused resources: there should be none.
    pub fn complaints(&self) -> Vec<String> {
        let is_complaint = |event: &&Value| {
            let names = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"];
            names.iter().any(|name| event["method"] == *name)
        };
        self.events.iter().filter(is_complaint).map(|event| event["params"].to_string()).collect()
    }

    /// All requests made since the page was opened.
    pub fn requests(&self) -> Vec<String> {
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.map(|event| event["params"]["request"]["url"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// A picture of the whole page as base64.
    pub fn picture(&mut self) -> String {
        let parameters = json!({"format": "png", "captureBeyondViewport": true});
        let mut answer = self.ask("Page.captureScreenshot", &parameters);
        answer["data"].take().as_str().unwrap_or_default().to_owned()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // It ends with its pipe, and ends its own processes.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
