//! What servers speak on top of and behind TLS.

use std::os::unix::net::UnixStream;
use std::process::Command;

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_tests::client::Client;
use hasten_tests::pki::Pki;
use hasten_tests::{Subject, parallel, tools};

/// `http2` in any server of an address applies to all of them.
const NGINX_HTTP2: &str =
    "server { listen {address} ssl http2; server_name h2.test; ssl_reject_handshake on; }";

fn http2(kind: ServerKind, certificate: &Certificate) -> ServerSpec {
    let spec = ServerSpec::new(kind, certificate.clone()).workers(2);
    match kind {
        ServerKind::Nginx => spec.http_lines(NGINX_HTTP2),
        ServerKind::Haproxy => spec.server_lines("alpn h2,http/1.1"),
        ServerKind::Envoy | ServerKind::HaproxyAwsLc => unreachable!("not one of the distribution's"),
    }
}

#[test]
fn http2_connections_and_streams_are_served() {
    let h2load = tools::tool("h2load", "nghttp2-client");
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::Rsa2048);
    for kind in ServerKind::ALL {
        let server = Subject::accelerated(&http2(kind, &certificate));
        server.under_load(|| {
            let url = format!("https://localhost:{}/", server.address().port());
            for _ in 0..3 {
                let mut load = Command::new(&h2load);
                let output = tools::run(load.args(["-n", "1000", "-c", "100", "-m", "5", &url]));
                let report = String::from_utf8_lossy(&output.stdout).into_owned();
                let perfect =
                    "1000 total, 1000 started, 1000 done, 1000 succeeded, 0 failed, 0 errored, 0 timeout";
                assert!(report.contains(perfect), "{kind}: {report}");
                assert!(report.contains("Application protocol: h2"), "{kind}: {report}");
            }
        });
        server.finish();
    }
}

#[test]
fn curl_gets_its_answer_over_http2() {
    let curl = tools::tool("curl", "curl");
    let pki = Pki::new();
    let certificate = pki.certificate(KeyKind::P384);
    for kind in ServerKind::ALL {
        let server = Subject::accelerated(&http2(kind, &certificate));
        let url = format!("https://localhost:{}/", server.address().port());
        let fetch = |_| {
            let mut curl = Command::new(&curl);
            curl.args(["--silent", "--show-error", "--http2", "--write-out", "%{http_version}", "--cacert"]);
            let output = tools::run(curl.arg(&certificate.root).arg(&url));
            assert_eq!(String::from_utf8_lossy(&output.stdout), "hello from the fixture\n2", "{kind}");
        };
        server.under_load(|| parallel::repeat(8, 4, fetch));
        server.finish();
    }
}

/// The server is at the same time a client of others, on the same thread: those handshakes are not ours.
#[test]
fn nginx_goes_on_to_servers_behind_it() {
    let pki = Pki::new();
    let (front, proxy) = (pki.certificate(KeyKind::P256), pki.named(KeyKind::Rsa2048, "proxy.test"));
    let behind = behind(&pki);
    let http = format!(
        "server {{
            listen {{address}} ssl;
            server_name proxy.test;
            ssl_certificate {};
            ssl_certificate_key {};
            location / {{
                proxy_pass https://{};
                proxy_ssl_session_reuse off;
                proxy_ssl_protocols TLSv1.2 TLSv1.3;
                proxy_ssl_verify on;
                proxy_ssl_verify_depth 3;
                proxy_ssl_name behind.test;
                proxy_ssl_server_name on;
                proxy_ssl_trusted_certificate {};
            }}
        }}",
        proxy.chain.display(),
        proxy.key.display(),
        behind.address(),
        front.root.display()
    );
    let nginx = Subject::accelerated(&ServerSpec::new(ServerKind::Nginx, front.clone()).http_lines(&http));
    let client = Client::trusting(&front.root).named("proxy.test").build();
    let get = |_| client.get(nginx.address()).map(|answer| answer.body);
    let answers = nginx.under_load(|| parallel::repeat(8, 12, get));
    answers.into_iter().for_each(|answer| assert_eq!(answer.as_deref(), Ok("from behind")));
    nginx.finish();
    behind.finish();
}

#[test]
fn haproxy_goes_on_to_servers_behind_it() {
    let pki = Pki::new();
    let front = pki.certificate(KeyKind::Rsa2048);
    let behind = behind(&pki);
    let socket = pki.dir().join("proxy");
    let proxy = format!(
        "
frontend proxy
    bind unix@{} ssl crt {}
    default_backend behind

backend behind
    server behind {} ssl verify required ca-file {} sni str(behind.test) no-ssl-reuse
",
        socket.display(),
        front.bundle.display(),
        behind.address(),
        front.root.display()
    );
    let spec = ServerSpec::new(ServerKind::Haproxy, front.clone()).http_lines(&proxy).workers(2);
    let haproxy = Subject::accelerated(&spec);
    let client = Client::trusting(&front.root).build();
    let get = |_| client.get_over(UnixStream::connect(&socket).unwrap()).map(|answer| answer.body);
    let answers = haproxy.under_load(|| parallel::repeat(8, 12, get));
    answers.into_iter().for_each(|answer| assert_eq!(answer.as_deref(), Ok("from behind")));
    haproxy.finish();
    behind.finish();
}

/// Another server, also accelerated.
fn behind(pki: &Pki) -> Subject {
    let certificate = pki.named(KeyKind::P256, "behind.test");
    Subject::accelerated(&ServerSpec::new(ServerKind::Nginx, certificate).body("from behind"))
}
