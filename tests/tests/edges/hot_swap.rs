//! Certificates replaced while their keys are signing.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use hasten_bench::certificates::{Certificate, KeyKind};
use hasten_bench::server::{ServerKind, ServerSpec};
use hasten_tests::client::Client;
use hasten_tests::pki::Pki;
use hasten_tests::{Subject, parallel, wait};
use rustix::process::Signal;

/// The first certificate is replaced by itself: its clients must not notice, but its key object is a new one. The
/// second is replaced by a new one.
#[test]
fn haproxy_swaps_certificates_over_its_socket() {
    let pki = Pki::new();
    let first = pki.certificate(KeyKind::Rsa2048);
    let second = pki.named(KeyKind::Rsa2048, "second.test");
    let (socket, list) =
        (pki.dir().join("stats"), pki.write("list", &format!("{}\n", second.bundle.display())));
    let global = format!("stats socket {} level admin", socket.display());
    let spec = ServerSpec::new(ServerKind::Haproxy, first.clone()).workers(2).main_lines(&global);
    let haproxy = Subject::accelerated(&spec.server_lines(&format!("crt-list {}", list.display())));
    let client = Client::trusting(&first.root).named("second.test").build();
    let elsewhere = Pki::new();
    haproxy.under_load(|| {
        for round in 0..12 {
            swap(&socket, &first.bundle, &first);
            let kind = [KeyKind::P256, KeyKind::Rsa2048, KeyKind::P384][round % 3];
            let renewed = pki.named(kind, "second.test");
            fs::rename(&renewed.bundle, elsewhere.dir().join("renewed")).unwrap();
            let renewed = Certificate { bundle: elsewhere.dir().join("renewed"), ..renewed };
            swap(&socket, &second.bundle, &renewed);
            for answer in parallel::repeat(4, 2, |_| client.get(haproxy.address())) {
                assert_eq!(answer.unwrap().certificate, Some(renewed.leaf.clone()));
            }
        }
    });
    haproxy.finish();
}

/// `old` is HAProxy's name for the certificate.
fn swap(socket: &Path, old: &Path, new: &Certificate) {
    let (old, pem) = (old.display(), fs::read_to_string(&new.bundle).unwrap());
    let set = ask(socket, &format!("set ssl cert {old} <<\n{}\n\n", pem.trim_end()));
    assert!(set.contains("Transaction created") || set.contains("Transaction updated"), "{set}");
    let committed = ask(socket, &format!("commit ssl cert {old}\n"));
    assert!(committed.contains("Success!"), "{committed}");
}

fn ask(socket: &Path, command: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(command.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// nginx reads the new files when it reloads; suspended handshakes complete with the old key.
#[test]
fn nginx_renews_its_certificates_by_reloading() {
    let pki = Pki::new();
    let first = pki.certificate(KeyKind::Rsa2048);
    let second = pki.named(KeyKind::Rsa2048, "second.test");
    let http = format!(
        "server {{
            listen {{address}} ssl;
            server_name second.test;
            ssl_certificate {};
            ssl_certificate_key {};
        }}",
        second.chain.display(),
        second.key.display()
    );
    let nginx = Subject::accelerated(&ServerSpec::new(ServerKind::Nginx, first.clone()).http_lines(&http));
    let client = Client::trusting(&first.root).named("second.test").build();
    nginx.under_load(|| {
        for _ in 0..4 {
            // The same files with different contents.
            let renewed = pki.named(KeyKind::Rsa2048, "second.test");
            nginx.signal(Signal::HUP).unwrap();
            wait::until("the new certificate", || {
                client.get(nginx.address()).unwrap().certificate.as_ref() == Some(&renewed.leaf)
            });
        }
    });
    nginx.finish();
}
