//! Official builds of Envoy, stock and accelerated: the same answers, and none larger.

mod gunzip;
mod gzip;
mod lock;
mod releases;
mod subject;
mod tls;
