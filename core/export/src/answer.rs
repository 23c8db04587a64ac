//! Answers to requests.

use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio::time::timeout;

use crate::accept;
use crate::encode::encode;
use crate::families::families;
use crate::host::is_local;
use crate::page;
use crate::status;
use crate::watch::{Seen, Watch};

/// A host where a look takes longer has a problem that a scraper should see as one.
const LOOK_TIME: Duration = Duration::from_secs(5);

pub(crate) type Answer = Response<Full<Bytes>>;

/// Everything that can be requested.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) watch: Watch,
    pub(crate) allow_remote: bool,
}

impl Site {
    pub(crate) async fn answer<B>(&self, request: &Request<B>) -> Answer {
        let mut answer = self.content(request).await;
        let headers = answer.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
        answer
    }

    async fn content<B>(&self, request: &Request<B>) -> Answer {
        if !self.allow_remote && !request.headers().get(header::HOST).is_none_or(is_local) {
            return text(StatusCode::FORBIDDEN, FOREIGN_HOST);
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD are answered here.\n");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        match request.uri().path() {
            "/" => page::answer().unwrap_or_else(|_| text(StatusCode::SERVICE_UNAVAILABLE, NO_RANDOM)),
            "/metrics" => self.metrics(request).await,
            "/api/status" => self.status().await,
            "/api/history" => with_type("application/json", self.watch.history()),
            "/healthz" => text(StatusCode::OK, "ok\n"),
            _ => {
                text(StatusCode::NOT_FOUND, "Here are /, /metrics, /api/status, /api/history and /healthz.\n")
            }
        }
    }

    async fn metrics<B>(&self, request: &Request<B>) -> Answer {
        let Some(seen) = self.look().await else { return too_slow() };
        let accept: Vec<&str> = request
            .headers()
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        let format = accept::format(&accept.join(","));
        let mut answer = with_type(format.content_type(), encode(&families(&seen.look), format));
        answer.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
        answer
    }

    async fn status(&self) -> Answer {
        let Some(seen) = self.look().await else { return too_slow() };
        with_type("application/json", status::json(&seen.look))
    }

    async fn look(&self) -> Option<Seen> {
        timeout(LOOK_TIME, self.watch.clone().look()).await.ok()?
    }
}

const FOREIGN_HOST: &str =
    "The request names this host by something that is neither an address nor localhost.
A web page could do that to read what only this host should see.
If it is a proxy of yours, let it send `Host: localhost`, or start the exporter with --allow-remote.\n";

const NO_RANDOM: &str =
    "The page needs random numbers, and /dev/urandom cannot be read; /metrics works without.\n";

fn too_slow() -> Answer {
    text(
        StatusCode::SERVICE_UNAVAILABLE,
        "Looking at all processes of this host takes more than 5 seconds; the next request may find it done.\n",
    )
}

pub(crate) fn with_type(kind: &'static str, content: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(content.into()));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

fn text(status: StatusCode, content: &'static str) -> Answer {
    let mut answer = with_type("text/plain; charset=utf-8", content);
    *answer.status_mut() = status;
    answer
}
