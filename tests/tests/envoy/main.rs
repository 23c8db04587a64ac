//! Official builds of Envoy, stock and accelerated: the same answers, and none larger.

mod gzip;
mod lock;
mod releases;
mod subject;
mod tls;
