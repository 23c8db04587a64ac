//! The HTTP server: small, and bounded in every direction.
//!
//! A connection carries one request and has ten seconds in all; it waits in the kernel's queue while the maximum
//! number is being served. Nothing is read from disk, and request bodies are ignored.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::answer::Site;
use crate::collector::Collector;
use crate::watch::Watch;

/// A request with a longer head is refused.
const MOST_HEAD: usize = 16 * 1024;
const MOST_HEADERS: usize = 64;

/// The limits for clients.
#[derive(Clone, Copy, Debug)]
struct Limits {
    connections: u32,
    /// For receiving a request.
    head_time: Duration,
    /// For everything: request, look, answer.
    connection_time: Duration,
    /// For finishing answers when the exporter is told to stop.
    parting_time: Duration,
}

const LIMITS: Limits = Limits {
    connections: 64,
    head_time: Duration::from_secs(5),
    connection_time: Duration::from_secs(10),
    parting_time: Duration::from_secs(3),
};

/// Serves until SIGTERM or SIGINT.
///
/// `ready` is called once connections are accepted. Without `allow_remote`, a request must also name this host by an
/// address or as `localhost`: otherwise a web page open in a local user's browser could read the answers through a
/// DNS name of its own that leads here.
pub fn serve(
    listener: std::net::TcpListener,
    collector: Collector,
    allow_remote: bool,
    ready: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = stop_signal()?;
        run(listener, Site { watch: Watch::start(collector)?, allow_remote }, LIMITS, ready, stop).await
    })
}

async fn run(
    listener: std::net::TcpListener,
    site: Site,
    limits: Limits,
    ready: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    ready(listener.local_addr()?);
    accept(&listener, Arc::new(site), limits, stop).await;
    Ok(())
}

/// Registered before anyone learns that the server is there.
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

async fn accept(listener: &TcpListener, site: Arc<Site>, limits: Limits, stop: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(limits.connections as usize));
    let mut stop = std::pin::pin!(stop);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            () = &mut stop => break,
            (place, accepted) = next => match (place, accepted) {
                (Ok(place), Ok((stream, _))) => {
                    let connection = connection(stream, Arc::clone(&site), limits);
                    tokio::spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
                // Out of descriptors, for example: they come back when connections end.
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            },
        }
    }
    let _ = timeout(limits.parting_time, places.acquire_many(limits.connections)).await;
}

async fn connection(stream: TcpStream, site: Arc<Site>, limits: Limits) {
    let service = service_fn(|request| {
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(site.answer(&request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .keep_alive(false)
        .max_buf_size(MOST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    // Whatever went wrong concerns this client only.
    let _ = timeout(limits.connection_time, connection).await;
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
