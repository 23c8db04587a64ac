//! When a service is ready, and whether its place is free before it starts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::error::ServiceError;
use hasten_probe::listen;

/// The time for one attempt to connect, or one answer.
const PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(5);
/// How much of an answer is read for its status.
const LONGEST_LINE: u64 = 256;

/// How to tell that the service is ready, and where it will listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Where it will accept connections, if that is known beforehand.
    pub address: Option<SocketAddr>,
    pub probe: Probe,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Any process of the service accepts connections, on any address.
    Listening,
    /// The address accepts connections.
    Port,
    /// A request is answered, with anything but a server error.
    Http { host: String, path: String },
    /// A command for the shell succeeds.
    Command(String),
}

impl Readiness {
    /// Ready as soon as it accepts connections anywhere.
    #[must_use]
    pub fn listening() -> Self {
        Self { address: None, probe: Probe::Listening }
    }

    #[must_use]
    pub fn port(address: SocketAddr) -> Self {
        Self { address: Some(address), probe: Probe::Port }
    }

    /// Ready as soon as a URL is answered; for `https` only the port is checked.
    pub fn url(url: &str) -> Result<Self, ServiceError> {
        let problem = |what: &str| ServiceError::Readiness(format!("`{url}` is no URL to wait for: {what}"));
        let (scheme, rest) = url.split_once("://").ok_or_else(|| problem("it has no scheme"))?;
        let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return Err(problem("only http and https are known")),
        };
        let with_port = if has_port(host) { host.to_owned() } else { format!("{host}:{port}") };
        let address = with_port.to_socket_addrs().ok().and_then(|addresses| {
            // A service that listens on one family only nearly always uses IPv4.
            let mut addresses: Vec<_> = addresses.collect();
            addresses.sort_by_key(SocketAddr::is_ipv6);
            addresses.first().copied()
        });
        let address = address.ok_or_else(|| problem("its host has no address"))?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let probe = if scheme == "http" { Probe::Http { host: host.to_owned(), path } } else { Probe::Port };
        Ok(Self { address: Some(address), probe })
    }

    /// Ready as soon as a shell command succeeds.
    #[must_use]
    pub fn command(self, command: &str) -> Self {
        Self { probe: Probe::Command(command.to_owned()), ..self }
    }

    /// Refuses to start beside another process that would get the load instead.
    pub(super) fn check_free(&self) -> Result<(), ServiceError> {
        let Some(address) = self.address.filter(|address| accepts(*address)) else { return Ok(()) };
        let by = listen::owner(address.port()).map(|(pid, name)| format!(" by {name} (process {pid})"));
        Err(ServiceError::PortInUse { address, by: by.unwrap_or_default() })
    }

    /// The service's address, once it is ready; `Ok(None)` if the probe succeeds but no address is known.
    pub(super) fn look(&self, pids: &[u32], deadline: Instant) -> Look {
        match &self.probe {
            Probe::Listening => match listen::addresses(pids.iter().copied()).first() {
                Some(address) => Look::Ready(Some(*address)),
                None => Look::NotYet("none of its processes listens on a TCP port".into()),
            },
            Probe::Port => self.connects(),
            Probe::Http { host, path } => match self.connects() {
                Look::Ready(Some(address)) => answers(address, host, path),
                other => other,
            },
            Probe::Command(command) => match succeeds(command, deadline) {
                Ok(()) => Look::Ready(
                    self.address.or_else(|| listen::addresses(pids.iter().copied()).first().copied()),
                ),
                Err(why) => Look::NotYet(why),
            },
        }
    }

    fn connects(&self) -> Look {
        match self.address {
            Some(address) if accepts(address) => Look::Ready(Some(address)),
            Some(address) => Look::NotYet(format!("{address} accepts no connections")),
            None => Look::NotYet("no address is known".into()),
        }
    }
}

pub(super) enum Look {
    Ready(Option<SocketAddr>),
    NotYet(String),
}

pub(super) fn accepts(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, PATIENCE).is_ok()
}

/// `[::1]:80` and `host:80`, not `[::1]` and `host`.
fn has_port(host: &str) -> bool {
    host.rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

fn answers(address: SocketAddr, host: &str, path: &str) -> Look {
    match status(address, host, path) {
        Ok(status) if status < 500 => Look::Ready(Some(address)),
        Ok(status) => Look::NotYet(format!("{path} is answered with status {status}")),
        Err(error) => Look::NotYet(format!("{path} is not answered: {error}")),
    }
}

fn status(address: SocketAddr, host: &str, path: &str) -> std::io::Result<u16> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // In one piece: some servers answer the first fragment.
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: hasten\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut line = Vec::new();
    BufReader::new(stream).take(LONGEST_LINE).read_until(b'\n', &mut line)?;
    let text = String::from_utf8_lossy(&line);
    let status = text.strip_prefix("HTTP/").and_then(|rest| rest.split(' ').nth(1)?.trim().parse().ok());
    status.ok_or_else(|| std::io::Error::other("the answer is not HTTP"))
}

/// Runs a shell command, which is ended with everything it started when the time is up.
fn succeeds(command: &str, deadline: Instant) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = shell.process_group(0).spawn().map_err(|error| format!("`{command}`: {error}"))?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("`{command}` ends with {status}")),
            Ok(None) if Instant::now() < deadline => thread::sleep(POLL),
            Ok(None) => {
                end(&mut child);
                return Err(format!("`{command}` does not end"));
            }
            Err(error) => return Err(format!("`{command}`: {error}")),
        }
    }
}

fn end(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn urls_tell_address_and_path() {
        let read = |url| {
            let readiness = Readiness::url(url).unwrap();
            (readiness.address.unwrap().to_string(), readiness.probe)
        };
        let http = |host: &str, path: &str| Probe::Http { host: host.into(), path: path.into() };
        assert_eq!(
            read("http://127.0.0.1:3000/a?b"),
            ("127.0.0.1:3000".into(), http("127.0.0.1:3000", "/a?b"))
        );
        assert_eq!(read("http://127.0.0.1"), ("127.0.0.1:80".into(), http("127.0.0.1", "/")));
        assert_eq!(read("http://[::1]:81?x"), ("[::1]:81".into(), http("[::1]:81", "/?x")));
        assert_eq!(read("https://127.0.0.1/"), ("127.0.0.1:443".into(), Probe::Port));
        for wrong in ["127.0.0.1:80", "ftp://127.0.0.1/", "http://", "http://no such host/"] {
            assert!(Readiness::url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn errors_of_the_server_are_not_ready_and_other_answers_are() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            for answer in ["HTTP/1.1 503 Soon\r\n\r\n", "HTTP/1.1 404 No\r\n\r\n", "SSH-2.0\r\n"] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 512];
                assert!(stream.read(&mut request).unwrap() > 0);
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let look = || answers(address, "x", "/health");
        assert!(matches!(look(), Look::NotYet(why) if why == "/health is answered with status 503"));
        assert!(matches!(look(), Look::Ready(Some(_))));
        assert!(matches!(look(), Look::NotYet(why) if why.contains("not HTTP")));
        server.join().unwrap();
    }

    #[test]
    fn a_place_that_is_taken_is_named_with_its_owner() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let readiness = Readiness::port(listener.local_addr().unwrap());
        let error = readiness.check_free().unwrap_err().to_string();
        assert!(error.contains(&format!("(process {})", std::process::id())), "{error}");
        drop(listener);
        assert!(readiness.check_free().is_ok());
    }

    #[test]
    fn a_command_that_does_not_end_is_ended() {
        let soon = Instant::now() + Duration::from_millis(50);
        assert_eq!(succeeds("exec sleep 60", soon).unwrap_err(), "`exec sleep 60` does not end");
        let later = Instant::now() + Duration::from_secs(60);
        assert!(succeeds("true", later).is_ok());
        assert!(succeeds("exit 3", later).unwrap_err().contains("exit status: 3"));
    }
}
