//! Reach (`make reach`): every series of OpenSSL and every system that docs/reach.md names, driven with each kind of key, each
//! group and each protocol, with AVX-512 and without it.

mod case;
mod report;
mod running;
mod system;

use std::env;

use hasten_bench::certificates::KeyKind;
use hasten_tests::pki::Pki;

use self::case::{Case, CpuClass};
use self::report::Report;
use self::system::System;

const KEYS: [KeyKind; 3] = [KeyKind::Rsa2048, KeyKind::P256, KeyKind::P384];

#[test]
#[ignore = "needs an hour of builds once, then a quarter of an hour: `make reach` runs it"]
fn matrix() {
    let pki = Pki::new();
    let certificates = KEYS.map(|kind| pki.certificate(kind));
    let wanted = env::var("REACH").unwrap_or_default();
    let systems = System::all(&pki);
    let names: Vec<_> = systems.iter().map(|system| system.name.clone()).collect();
    let mut report = Report::without(&wanted);
    for system in systems.into_iter().filter(|system| system.name.contains(&wanted)) {
        system.require();
        for server in system.servers() {
            for (kind, certificate) in KEYS.iter().zip(&certificates) {
                for cpu in CpuClass::here() {
                    let case = Case { system: &system, server: *server, kind: *kind, certificate, cpu };
                    report.add(&case, &case.run(&pki));
                }
            }
        }
    }
    let complaints = report.finish(&names);
    assert!(complaints.is_empty(), "{complaints:#?}");
}
