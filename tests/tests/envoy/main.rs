//! Official builds of Envoy, stock and accelerated: the same answers, and none larger.

mod bench;
mod gunzip;
mod gzip;
mod life;
mod lock;
mod releases;
mod subject;
mod tls;
