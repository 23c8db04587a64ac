//! nginx.

use std::path::{Path, PathBuf};

use super::conf::{self, Directive};
use super::{Finding, option};

const DEFAULT: &str = "/etc/nginx/nginx.conf";
/// From this level, more CPU hardly reduces the size.
const DEAR_LEVEL: u32 = 6;
/// nginx's own since 1.19.10.
const KEEPALIVE_REQUESTS: u64 = 1000;

pub(super) fn suggest(arguments: &[String], cpus: usize) -> Vec<Finding> {
    let prefix = option(arguments, "-p").next().map(PathBuf::from);
    let file = option(arguments, "-c").next().map_or_else(|| PathBuf::from(DEFAULT), PathBuf::from);
    let file = prefix.as_ref().map_or(file.clone(), |prefix| prefix.join(&file));
    // Includes are relative to the folder of the configuration.
    let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
    let mut directives = conf::read(&file, &folder);
    if directives.is_empty() {
        return Vec::new();
    }
    for text in option(arguments, "-g") {
        directives.extend(conf::read_text(text, &file, &folder));
    }
    let server = Nginx { file, directives };
    [
        server.workers(cpus),
        server.tls_sessions(),
        server.compression(),
        server.sendfile(),
        server.access_log(),
        server.keepalive(),
        server.upstream(),
        server.open_files(),
        server.reuseport(cpus),
    ]
    .into_iter()
    .flatten()
    .collect()
}

struct Nginx {
    file: PathBuf,
    directives: Vec<Directive>,
}

impl Nginx {
    fn workers(&self, cpus: usize) -> Option<Finding> {
        let workers = self.last("worker_processes");
        let number = match workers.map(first) {
            Some("auto") => return None,
            Some(number) => number.parse().ok()?,
            None => 1,
        };
        (number < cpus).then(|| {
            let why = format!("{number} of {cpus} CPUs can be used");
            self.at(workers, "", "worker_processes auto;", &why)
        })
    }

    fn tls_sessions(&self) -> Option<Finding> {
        let tls = |listen: &Directive| listen.arguments.iter().any(|word| word == "ssl");
        if !self.all("listen").any(tls) {
            return None;
        }
        let cache = self.last("ssl_session_cache");
        if cache.is_some_and(|cache| cache.arguments.iter().any(|word| word.starts_with("shared:"))) {
            return None;
        }
        let why = "without a cache that workers share, clients that come back without a ticket pay a whole handshake";
        Some(self.at(cache, "http", "ssl_session_cache shared:SSL:10m;", why))
    }

    fn compression(&self) -> Option<Finding> {
        if self.last("gzip").map(first) != Some("on") {
            return None;
        }
        let level = self.last("gzip_comp_level")?;
        (first(level).parse::<u32>().ok()? >= DEAR_LEVEL).then(|| {
            let why = "levels above 4 cost up to twice the CPU for a few per cent of size; `hasten run` makes each cheaper";
            self.at(Some(level), "http", "gzip_comp_level 4;", why)
        })
    }

    fn sendfile(&self) -> Option<Finding> {
        if !self.serves_files() {
            return None;
        }
        let sendfile = self.last("sendfile");
        if sendfile.map(first) != Some("on") {
            let why = "files are copied through the worker's memory";
            return Some(self.at(sendfile, "http", "sendfile on; tcp_nopush on;", why));
        }
        let nopush = self.last("tcp_nopush");
        (nopush.map(first) != Some("on")).then(|| {
            self.at(nopush, "http", "tcp_nopush on;", "the head of an answer goes out in a packet of its own")
        })
    }

    fn access_log(&self) -> Option<Finding> {
        let is_plain = |log: &&Directive| {
            let to_file = !matches!(first(log), "off" | "") && !first(log).starts_with("syslog:");
            to_file
                && !log.arguments.iter().any(|word| word.starts_with("buffer=") || word.starts_with("gzip"))
        };
        let log = self.all("access_log").find(is_plain);
        let logs = log.is_some() || self.last("access_log").is_none();
        logs.then(|| {
            let path = log.map_or("/var/log/nginx/access.log", first);
            let format = log.and_then(|log| log.arguments.get(1)).map_or("combined", String::as_str);
            let text = format!("access_log {path} {format} buffer=64k flush=5s;");
            self.at(log, "http", &text, "every request is a write(2) of its own")
        })
    }

    fn keepalive(&self) -> Option<Finding> {
        let timeout = self.last("keepalive_timeout").filter(|timeout| first(timeout) == "0");
        if timeout.is_some() {
            let why = "each request pays for a connection, with TLS for a handshake";
            return Some(self.at(timeout, "http", "keepalive_timeout 65s;", why));
        }
        let requests = self.last("keepalive_requests")?;
        (first(requests).parse::<u64>().ok()? < KEEPALIVE_REQUESTS).then(|| {
            let why = "connections are closed early, and the next request pays for a new one";
            self.at(Some(requests), "http", "keepalive_requests 1000;", why)
        })
    }

    fn upstream(&self) -> Option<Finding> {
        let has_keepalive = self
            .all("keepalive")
            .any(|keepalive| keepalive.within.last().is_some_and(|block| block == "upstream"));
        let upstream = self.all("upstream").next().filter(|_| !has_keepalive)?;
        let text =
            "keepalive 32;  # and in the location: proxy_http_version 1.1; proxy_set_header Connection \"\";";
        Some(self.at(Some(upstream), "upstream", text, "each proxied request opens a connection of its own"))
    }

    fn open_files(&self) -> Option<Finding> {
        if !self.serves_files() || self.last("open_file_cache").is_some() {
            return None;
        }
        let text = "open_file_cache max=10000 inactive=60s;";
        Some(self.at(None, "http", text, "each request for a file opens, looks at and closes it"))
    }

    fn reuseport(&self, cpus: usize) -> Option<Finding> {
        let one = self.last("worker_processes").map_or("1", first) == "1";
        let shares = |listen: &Directive| listen.arguments.iter().any(|word| word == "reuseport");
        let mut listens = self.all("listen");
        let listen = listens.next()?;
        if cpus < 2 || one || shares(listen) || listens.any(shares) {
            return None;
        }
        let text = format!("listen {} reuseport;", listen.arguments.join(" "));
        Some(self.at(Some(listen), "server", &text, "workers compete for one queue of new connections"))
    }

    fn serves_files(&self) -> bool {
        self.all("root").next().is_some() || self.all("alias").next().is_some()
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Directive> {
        self.directives.iter().filter(move |directive| directive.name == name)
    }

    fn last(&self, name: &str) -> Option<&Directive> {
        self.directives.iter().rev().find(|directive| directive.name == name)
    }

    fn at(&self, present: Option<&Directive>, within: &str, text: &str, why: &str) -> Finding {
        Finding {
            file: present.map_or(&self.file, |directive| &directive.file).clone(),
            number: present.map(|directive| directive.line),
            line: text.to_owned(),
            within: present
                .map_or(within, |directive| directive.within.last().map_or("", String::as_str))
                .to_owned(),
            why: why.to_owned(),
        }
    }
}

fn first(directive: &Directive) -> &str {
    directive.arguments.first().map_or("", String::as_str)
}
