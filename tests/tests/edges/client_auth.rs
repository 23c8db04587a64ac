//! Servers that require a client certificate.

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_tests::client::Client;
use hasten_tests::pki::Pki;
use hasten_tests::{parallel, same_as_stock};
use rustls::version::{TLS12, TLS13};

/// A private server's reaction to a client, in either protocol.
#[derive(Clone, Debug, PartialEq)]
struct Reception {
    good: Result<String, String>,
    without: Result<String, String>,
    stranger: Result<String, String>,
}

#[test]
fn nginx_tells_its_clients_from_strangers() {
    let pki = Pki::new();
    let (public, private) = (pki.certificate(KeyKind::P256), pki.named(KeyKind::Rsa2048, "private.test"));
    let http = format!(
        "server {{
            listen {{address}} ssl;
            server_name private.test;
            ssl_certificate {};
            ssl_certificate_key {};
            ssl_client_certificate {};
            ssl_verify_client on;
            ssl_verify_depth 3;
            return 200 $ssl_client_s_dn;
        }}",
        private.chain.display(),
        private.key.display(),
        private.root.display()
    );
    let spec = ServerSpec::new(ServerKind::Nginx, public).http_lines(&http);
    for reception in receptions(&pki, &private, &spec) {
        assert_eq!(reception.good.as_deref(), Ok("CN=client"));
        // nginx completes the handshake and says it in HTTP.
        assert!(reception.without.unwrap().contains("No required SSL certificate was sent"));
        assert!(reception.stranger.unwrap().contains("The SSL certificate error"));
    }
}

#[test]
fn haproxy_tells_its_clients_from_strangers() {
    let pki = Pki::new();
    let (public, private) = (pki.certificate(KeyKind::P256), pki.named(KeyKind::Rsa2048, "private.test"));
    let line = format!(
        "{} [verify required ca-file {}] private.test\n",
        private.bundle.display(),
        private.root.display()
    );
    let list = pki.write("list", &line);
    let bind = format!("crt-list {}", list.display());
    let spec = ServerSpec::new(ServerKind::Haproxy, public).server_lines(&bind).workers(2);
    for reception in receptions(&pki, &private, &spec) {
        assert!(reception.good.is_ok(), "{reception:?}");
        assert!(reception.without.is_err() && reception.stranger.is_err(), "{reception:?}");
    }
}

fn receptions(pki: &Pki, private: &Certificate, spec: &ServerSpec) -> Vec<Reception> {
    let friend = pki.named(KeyKind::P256, "client");
    let strange = Pki::new();
    let stranger = strange.named(KeyKind::P256, "client");
    let clients = [&TLS13, &TLS12].map(|version| {
        let client = || Client::trusting(&private.root).named("private.test").only(version);
        [client().showing(&friend).build(), client().build(), client().showing(&stranger).build()]
    });
    same_as_stock(spec, |server| {
        let visit = |number: usize| {
            let [good, without, stranger] = clients[number % 2].each_ref().map(|client| {
                // Which error of a refused connection comes first is a matter of luck.
                let answer = client.get(server.address()).map_err(|_| "refused".to_owned());
                answer.map(|answer| answer.body)
            });
            Reception { good, without, stranger }
        };
        server.under_load(|| parallel::repeat(8, 6, visit))
    })
}
