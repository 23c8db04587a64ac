//! nginx: the configuration of a fixture.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use super::{ServerSpec, with_address};

/// Writes the configuration; returns the arguments.
pub(super) fn prepare(spec: &ServerSpec, dir: &Path, address: SocketAddr) -> io::Result<Vec<OsString>> {
    let config = dir.join("nginx.conf");
    fs::write(&config, configuration(spec, dir, address))?;
    // `-e`: without it nginx opens its compiled-in log first and complains when it may not.
    let arguments: [&std::ffi::OsStr; 6] = [
        "-p".as_ref(),
        dir.as_os_str(),
        "-e".as_ref(),
        "error.log".as_ref(),
        "-c".as_ref(),
        config.as_os_str(),
    ];
    Ok(arguments.map(OsString::from).to_vec())
}

fn configuration(spec: &ServerSpec, dir: &Path, address: SocketAddr) -> String {
    let mut certificates = String::new();
    for certificate in &spec.certificates {
        let (chain, key) = (certificate.chain.display(), certificate.key.display());
        let _ =
            writeln!(certificates, "        ssl_certificate {chain};\n        ssl_certificate_key {key};");
    }
    let ssl = if spec.certificates.is_empty() { "" } else { " ssl" };
    let ServerSpec { workers, connections, main_lines, server_lines, .. } = spec;
    let http_lines = with_address(&spec.http_lines, address);
    let dir = dir.display();
    let body = spec.body.replace('\\', "\\\\").replace('\n', "\\n");
    format!(
        r#"daemon off;
worker_processes {workers};
pid {dir}/nginx.pid;
error_log {dir}/error.log notice;
{main_lines}
events {{
    worker_connections {connections};
}}
http {{
    access_log off;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    ssl_protocols TLSv1.2 TLSv1.3;
    {http_lines}
    server {{
        listen {address}{ssl};
        server_name localhost;
{certificates}        {server_lines}
        location = / {{
            default_type text/plain;
            return 200 "{body}";
        }}
    }}
}}
"#
    )
}
