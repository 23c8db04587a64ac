//! The user's switches, and the ways in which the library gets into a process.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use hasten_bench::certificates::KeyKind;
use hasten_bench::drive::{self, Load};
use hasten_bench::server::{Launcher, ServerKind, ServerSpec};
use hasten_telemetry::{Counters, Event, Reason};
use hasten_tests::pki::Pki;
use hasten_tests::subject::{alarms, assert_perfect, batched, counters_of, crowd};
use hasten_tests::{Subject, footprint, product};

const BRIEFLY: Duration = Duration::from_millis(400);

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
fn without_ifma_nothing_is_batched_and_all_are_served() {
    let pki = Pki::new();
    for kind in ServerKind::ALL {
        let server = Subject::accelerated(&spec(&pki, kind).env("HASTEN_CPU_DISABLE_IFMA", "1"));
        let counters = serve_a_crowd(&server);
        assert_eq!(
            counters.map_or(0, |counters| counters.total().batched + counters[Event::Suspended]),
            0,
            "{kind}"
        );
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
    let outcome = drive::run(server.target(), &Load { duration: BRIEFLY, ..crowd() }).unwrap();
    assert_perfect(&outcome, &server.log());
    let pages = hasten_telemetry::pages_of(server.pid()).ok()?;
    let mut total = Counters::default();
    pages.iter().for_each(|page| total += &page.read().unwrap().total());
    Some(total)
}
