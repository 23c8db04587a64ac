//! HAProxy: the configuration of a fixture.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use super::{ServerSpec, with_address};

/// Writes the configuration; returns the arguments.
pub(super) fn prepare(spec: &ServerSpec, dir: &Path, address: SocketAddr) -> io::Result<Vec<OsString>> {
    let config = dir.join("haproxy.cfg");
    fs::write(dir.join("body"), &spec.body)?;
    fs::write(&config, configuration(spec, dir, address))?;
    // `-db`: one process in the foreground, no warnings about it.
    Ok(vec!["-db".into(), "-f".into(), config.into()])
}

fn configuration(spec: &ServerSpec, dir: &Path, address: SocketAddr) -> String {
    let mut certificates = String::from(if spec.certificates.is_empty() { "" } else { " ssl" });
    for certificate in &spec.certificates {
        let _ = write!(certificates, " crt {}", certificate.bundle.display());
    }
    let ServerSpec { workers, connections, main_lines, server_lines, .. } = spec;
    let http_lines = with_address(&spec.http_lines, address);
    let dir = dir.display();
    format!(
        "global
    nbthread {workers}
    maxconn {connections}
    ssl-default-bind-options ssl-min-ver TLSv1.2
    {main_lines}

defaults
    mode http
    timeout client 30s
    timeout server 30s
    timeout connect 5s
    {http_lines}

frontend fixture
    bind {address}{certificates} {server_lines}
    http-request return status 200 content-type text/plain file {dir}/body
"
    )
}
