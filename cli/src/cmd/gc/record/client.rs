//! The other end of the control channel (plugins/node/src/gc/channel.ts): one JSON object in each line.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::RecordError;
use super::{process, runtime};

/// How soon Ctrl-C is noticed.
const TURN: Duration = Duration::from_millis(100);
/// A server may be busy for a while; one that does not respond for this long cannot be recorded usefully.
const PATIENCE: Duration = Duration::from_secs(10);
/// Hours of recording are not given up that quickly.
const LONG_PATIENCE: Duration = Duration::from_secs(120);
/// V8 walks the heap before it takes samples, which stops the program for seconds if the heap is large.
const PROFILE_PATIENCE: Duration = Duration::from_secs(60);
const LONGEST_ANSWER: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Client {
    pid: u32,
    stream: UnixStream,
    received: Vec<u8>,
}

/// The recorded process.
#[derive(Debug, Deserialize)]
pub(super) struct Info {
    pub(super) pid: u32,
    pub(super) node: String,
    pub(super) script: Option<String>,
    pub(super) recording: bool,
}

/// How far the recording has got.
#[derive(Debug, Default, Deserialize)]
pub(super) struct State {
    pub(super) events: u64,
    pub(super) bytes: u64,
}

/// How the recording ended.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Outcome {
    pub(super) events: u64,
    dropped: u64,
    why: String,
    /// Of the CPU profile.
    pub(super) samples: Option<u64>,
    /// How long it lasted, and how much of that was not observed.
    #[serde(default)]
    lasted_ms: f64,
    #[serde(default)]
    unseen_ms: f64,
}

impl Outcome {
    /// Anything that the reader would not expect.
    pub(super) fn remark(&self) -> Option<String> {
        let early = match self.why.as_str() {
            "size" => {
                Some("The file has reached its limit of 64 MiB, which ended the recording early.".to_owned())
            }
            "disk" => Some("The disk is full, which ended the recording early.".to_owned()),
            "exit" => Some("The process has ended, and the recording with it.".to_owned()),
            _ => None,
        };
        let dropped =
            (self.dropped > 0).then(|| format!("{} collections are known to be missing.", self.dropped));
        let unseen = (self.unseen_ms > 0.0).then(|| {
            format!(
                "{:.0} ms of {:.0} were not observed (budget): the program collects so often that to notice it all would take more \
                 than half a per cent of its CPU time. Rates will be those of the time that was observed.",
                self.unseen_ms, self.lasted_ms
            )
        });
        let remarks: Vec<_> = early.into_iter().chain(dropped).chain(unseen).collect();
        (!remarks.is_empty()).then(|| remarks.join(" "))
    }
}

impl Client {
    /// Finds the socket of a process and makes sure that this very process listens on it.
    pub(super) fn connect(pid: u32) -> Result<Self, RecordError> {
        let stream = runtime::sockets(pid).iter().find_map(|socket| UnixStream::connect(socket).ok());
        Self::new(pid, stream.ok_or_else(|| process::why_not(pid))?)
    }

    pub(super) fn at(pid: u32, socket: &Path) -> Result<Self, RecordError> {
        let stream = UnixStream::connect(socket).map_err(|error| RecordError::Connection { pid, error })?;
        Self::new(pid, stream)
    }

    fn new(pid: u32, stream: UnixStream) -> Result<Self, RecordError> {
        let broken = |error| RecordError::Connection { pid, error };
        let peer = socket_peercred(&stream).map_err(|error| broken(error.into()))?;
        let listener = peer.pid.as_raw_nonzero().get();
        if peer.uid.as_raw() != process::own_user() || i64::from(listener) != i64::from(pid) {
            return Err(RecordError::Foreign { pid, peer: listener, uid: peer.uid.as_raw() });
        }
        stream.set_read_timeout(Some(TURN)).map_err(broken)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(broken)?;
        Ok(Self { pid, stream, received: Vec::new() })
    }

    pub(super) fn info(&mut self) -> Result<Info, RecordError> {
        self.ask(&json!({ "op": "info" }))
    }

    /// Starts a recording, if wanted with a CPU profile of which this is the interval, and returns its file.
    pub(super) fn record(
        &mut self,
        duration: Duration,
        cpu: Option<Duration>,
    ) -> Result<PathBuf, RecordError> {
        #[derive(Deserialize)]
        struct Started {
            file: PathBuf,
            cpu_interval_us: Option<u64>,
        }
        let mut request = json!({ "op": "record", "seconds": duration.as_secs_f64() });
        let Some(interval) = cpu else {
            let started: Started = self.ask(&request)?;
            return Ok(started.file);
        };
        request["cpu_interval_us"] = json!(interval.as_micros() as u64);
        let started: Started = self.ask_within(PROFILE_PATIENCE, &request)?;
        if started.cpu_interval_us.is_none() {
            // An older plugin: it records collections, which nobody will wait for.
            let _ = self.send(&json!({ "op": "stop" }));
            return Err(RecordError::OldPlugin(self.pid));
        }
        Ok(started.file)
    }

    /// Follows a recording to its end, which Ctrl-C can bring forward.
    pub(super) fn follow(
        &mut self,
        file: &Path,
        duration: Duration,
        interrupted: &AtomicBool,
        mut report: impl FnMut(&State),
    ) -> Result<Outcome, RecordError> {
        let mut overdue = Instant::now() + duration + LONG_PATIENCE;
        let mut is_asked = false;
        let mut state = State::default();
        while Instant::now() < overdue {
            if !is_asked && interrupted.load(Ordering::Relaxed) {
                is_asked = true;
                overdue = Instant::now() + LONG_PATIENCE;
                // If the connection is gone, reading will say so.
                let _ = self.send(&json!({ "op": "stop" }));
            }
            match self.receive() {
                Ok(Some(answer)) if answer["done"] == true => return self.understand(answer),
                Ok(Some(answer)) => state = self.understand(answer)?,
                Ok(None) => {}
                // The process has ended; what it wrote is still there.
                Err(RecordError::Connection { .. }) => return self.ended(file, &state),
                Err(error) => return Err(error),
            }
            report(&state);
        }
        Err(RecordError::Silent(self.pid))
    }

    fn ended(&self, file: &Path, state: &State) -> Result<Outcome, RecordError> {
        if !file.exists() {
            return Err(RecordError::Ended(self.pid));
        }
        Ok(Outcome { events: state.events, why: "exit".to_owned(), ..Outcome::default() })
    }

    fn ask<T: for<'de> Deserialize<'de>>(&mut self, request: &Value) -> Result<T, RecordError> {
        self.ask_within(PATIENCE, request)
    }

    fn ask_within<T: for<'de> Deserialize<'de>>(
        &mut self,
        patience: Duration,
        request: &Value,
    ) -> Result<T, RecordError> {
        let pid = self.pid;
        self.send(request).map_err(|error| RecordError::Connection { pid, error })?;
        let overdue = Instant::now() + patience;
        while Instant::now() < overdue {
            if let Some(answer) = self.receive()? {
                if answer["ok"] == false {
                    let reason = answer["error"].as_str().unwrap_or("no reason given").to_owned();
                    // It says so if only the CPU profile is refused.
                    return Err(match answer["cpu"] == false {
                        true => RecordError::NoProfile { pid, reason },
                        false => RecordError::Refused { pid, reason },
                    });
                }
                return self.understand(answer);
            }
        }
        Err(RecordError::Silent(pid))
    }

    fn send(&mut self, request: &Value) -> io::Result<()> {
        self.stream.write_all(format!("{request}\n").as_bytes())
    }

    /// The next line, if one comes within a turn.
    fn receive(&mut self) -> Result<Option<Value>, RecordError> {
        let pid = self.pid;
        if !self.received.contains(&b'\n') {
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    let error = io::Error::new(io::ErrorKind::UnexpectedEof, "it was closed");
                    return Err(RecordError::Connection { pid, error });
                }
                Ok(read) => self.received.extend_from_slice(&buffer[..read]),
                Err(error) if is_transient(&error) => return Ok(None),
                Err(error) => return Err(RecordError::Connection { pid, error }),
            }
        }
        let Some(end) = self.received.iter().position(|&byte| byte == b'\n') else {
            return match self.received.len() {
                ..=LONGEST_ANSWER => Ok(None),
                _ => Err(self.garbage(&self.received)),
            };
        };
        let line: Vec<u8> = self.received.drain(..=end).collect();
        serde_json::from_slice(&line).map(Some).map_err(|_| self.garbage(&line))
    }

    fn understand<T: for<'de> Deserialize<'de>>(&self, answer: Value) -> Result<T, RecordError> {
        let text = answer.to_string();
        serde_json::from_value(answer).map_err(|_| self.garbage(text.as_bytes()))
    }

    fn garbage(&self, bytes: &[u8]) -> RecordError {
        let text = String::from_utf8_lossy(bytes);
        let answer = text.chars().filter(|c| !c.is_control()).take(80).collect();
        RecordError::Garbage { pid: self.pid, answer }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_says_what_the_reader_would_not_expect() {
        let remark = |text: &str| serde_json::from_str::<Outcome>(text).expect("an end").remark();
        let whole = r#"{"done":true,"why":"time","events":3,"dropped":0,"lasted_ms":180000.4,"unseen_ms":0}"#;
        assert_eq!(remark(whole), None);
        // A plugin older than this command.
        assert_eq!(remark(r#"{"done":true,"why":"asked","events":3,"dropped":0}"#), None);
        let gaps =
            r#"{"done":true,"why":"size","events":3,"dropped":2,"lasted_ms":180000.4,"unseen_ms":12345.6}"#;
        let text = remark(gaps).expect("a remark");
        for part in ["limit of 64 MiB", "2 collections", "12346 ms of 180000 were not observed (budget)"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
