//! Official builds of Envoy, stock and accelerated: the same answers, and none larger.

mod bench;
mod close;
mod gunzip;
mod gzip;
mod life;
mod lock;
mod releases;
mod rude;
mod starts;
mod subject;
mod tls;
mod window;
mod workers;
