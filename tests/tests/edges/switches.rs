//! The user's switches, and the ways in which the library gets into a process.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use hasten_bench::certificates::KeyKind;
use hasten_bench::drive::{self, Group, Load, Protocol};
use hasten_bench::server::{Launcher, ServerKind, ServerSpec};
use hasten_names::Feature;
use hasten_telemetry::{Algorithm, Counters, Event, Reason};
use hasten_tests::pki::Pki;
use hasten_tests::subject::{alarms, assert_perfect, batched, counters_of, crowd};
use hasten_tests::{Subject, footprint, product};

const BRIEFLY: Duration = Duration::from_millis(200);

fn spec(pki: &Pki, kind: ServerKind) -> ServerSpec {
    ServerSpec::new(kind, pki.certificate(KeyKind::Rsa2048))
}

#[test]
fn the_kill_switch_leaves_servers_as_they_are() {
    let pki = Pki::new();
    for kind in ServerKind::ALL {
        for (switch, left) in [("tls", "gzip"), ("all", "")] {
            let server = Subject::accelerated(&spec(&pki, kind).env("HASTEN_DISABLE", switch));
            serve_a_crowd(&server);
            for page in hasten_telemetry::pages_of(server.pid()).unwrap_or_default() {
                let accelerator = page.read().expect("a readable counter page").accelerator;
                assert_eq!(accelerator, left, "{kind} counts although HASTEN_DISABLE={switch}");
            }
            server.finish();
        }
    }
}

/// Like `hasten run` but without it, as units and images may load the library.
#[test]
fn a_bare_preload_is_enough_and_heeds_the_kill_switch() {
    let pki = Pki::new();
    let script = pki.write(
        "preload",
        // The fixture's arguments are those of `hasten run --quiet --`.
        &format!("#!/bin/sh\nshift 3\nLD_PRELOAD={} exec \"$@\"\n", product::library().display()),
    );
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for kind in ServerKind::ALL {
        let spec = spec(&pki, kind).launcher(Launcher::Hasten { exe: script.clone() });
        let server = spec.start().unwrap();
        let outcome = drive::run(server.target(), &Load { duration: BRIEFLY, ..crowd() }).unwrap();
        assert_perfect(&outcome, &server.log());
        assert!(batched(&counters_of(server.pid())) > 0, "{kind}");
        assert!(alarms(&server.log()).is_empty(), "{}", server.log());

        let server = spec.env("HASTEN_DISABLE", "all").start().unwrap();
        assert!(footprint::is_preloaded(server.pid()), "{kind}: loaded, but asleep");
        let outcome = drive::run(server.target(), &Load { duration: BRIEFLY, ..crowd() }).unwrap();
        assert_perfect(&outcome, &server.log());
        assert!(hasten_telemetry::pages_of(server.pid()).is_err(), "{kind}");
    }
}

#[test]
fn without_ifma_operations_are_done_one_at_a_time_and_all_are_served() {
    let pki = Pki::new();
    let cases =
        [(KeyKind::Rsa2048, Group::X25519), (KeyKind::P256, Group::P256), (KeyKind::P384, Group::P384)];
    // HAProxy prefers P-256 in TLS 1.2.
    let derive = [Algorithm::X25519Derive, Algorithm::P256Derive, Algorithm::P384Derive];
    let has_engine = Feature::SINGLE.into_iter().all(Feature::is_usable);
    for kind in ServerKind::ALL {
        for (key, group) in cases {
            for protocol in [Protocol::Tls12, Protocol::Tls13] {
                let spec = ServerSpec::new(kind, pki.certificate(key)).env("HASTEN_CPU_DISABLE_IFMA", "1");
                let server = Subject::accelerated(&spec);
                let load = Load { duration: BRIEFLY, protocol, group, ..crowd() };
                let counters = serve(&server, &load).expect("counters");
                assert_eq!(counters.total().batched + counters[Event::Suspended], 0, "{kind} {key}");
                let of = |algorithm: Algorithm| counters[algorithm].single;
                let signed = of(Algorithm::P256Sign) + of(Algorithm::P384Sign);
                assert_eq!(signed > 0, has_engine && key != KeyKind::Rsa2048, "{kind} {key}");
                let derived = derive.into_iter().map(of).sum::<u64>();
                assert_eq!(derived > 0, has_engine, "{kind} {key}");
                server.finish();
            }
        }
    }
}

#[test]
fn without_either_engine_all_are_served_by_openssl() {
    let pki = Pki::new();
    for kind in ServerKind::ALL {
        let spec = spec(&pki, kind).env("HASTEN_CPU_DISABLE_IFMA", "1").env("HASTEN_CPU_DISABLE_ADX", "1");
        let server = Subject::accelerated(&spec);
        let counters = serve_a_crowd(&server).unwrap_or_default();
        let total = counters.total();
        assert_eq!(total.batched + total.single + counters[Event::Suspended], 0, "{kind}");
        server.finish();
    }
}

#[test]
fn suspension_works_without_the_engine() {
    let pki = Pki::new();
    for kind in ServerKind::ALL {
        let server = Subject::accelerated(&spec(&pki, kind).env("HASTEN_TLS_SUSPEND_ONLY", "1"));
        let counters = serve_a_crowd(&server).expect("counters");
        assert!(counters[Event::Suspended] > 0 && counters[Event::Resumed] > 0, "{kind}");
        assert!(counters[Reason::BelowBreakEven] > 0, "{kind}: several waited, and the original served them");
        server.finish();
    }
}

#[test]
fn the_engine_works_without_shortcuts() {
    let pki = Pki::new();
    for kind in ServerKind::ALL {
        let server = Subject::accelerated(&spec(&pki, kind).env("HASTEN_TLS_NO_SHORTCUTS", "1"));
        let counters = serve_a_crowd(&server).expect("counters");
        assert_eq!(
            counters[Event::HkdfDirect] + counters[Event::MacDirect] + counters[Event::PoolHit],
            0,
            "{kind}"
        );
        server.finish();
    }
}

/// HAProxy's other ways to wait, which are seen differently, or not at all.
#[test]
fn haproxy_works_with_any_way_to_wait() {
    let pki = Pki::new();
    let ways =
        ["noepoll", "noepoll\n    nopoll", "tune.fd.edge-triggered on", "ssl-mode-async", "busy-polling"];
    for line in ways {
        let global = format!("expose-experimental-directives\n    {line}");
        // select() supports 1024 descriptors.
        let spec = spec(&pki, ServerKind::Haproxy).main_lines(&global).workers(2).connections(400);
        let haproxy = Subject::accelerated(&spec);
        let counters = serve_a_crowd(&haproxy).expect("counters");
        // The others sleep elsewhere, not at all, or on OpenSSL's stacks: they are served, but never suspended.
        assert_eq!(counters[Event::Suspended] > 0, line.contains("edge-triggered"), "{line}");
        haproxy.finish();
    }
}

/// nginx's ways to accept and to post events.
#[test]
fn nginx_works_with_any_way_to_accept() {
    let pki = Pki::new();
    for (listen, workers) in [("reuseport", 2), ("deferred", 1), ("fastopen=16", 1), ("so_keepalive=on", 3)] {
        let http = format!(
            "server {{ listen {{address}} ssl {listen}; server_name other.test; ssl_reject_handshake on; }}"
        );
        let nginx = Subject::accelerated(&spec(&pki, ServerKind::Nginx).http_lines(&http).workers(workers));
        let counters = serve_a_crowd(&nginx).expect("counters");
        assert!(counters[Event::Suspended] > 0, "{listen}");
        nginx.finish();
    }
}

/// Every client is served; returns the counters, if there are any.
fn serve_a_crowd(server: &Subject) -> Option<Counters> {
    serve(server, &Load { duration: BRIEFLY, ..crowd() })
}

fn serve(server: &Subject, load: &Load) -> Option<Counters> {
    let outcome = drive::run(server.target(), load).unwrap();
    assert_perfect(&outcome, &server.log());
    let pages = hasten_telemetry::pages_of(server.pid()).ok()?;
    let mut total = Counters::default();
    pages.iter().for_each(|page| total += &page.read().unwrap().total());
    Some(total)
}
