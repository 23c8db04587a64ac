//! How `check` and `run` show the evidence behind a yes; the decision itself is tested with the plans.

mod support;

use serde_json::Value;
use support::{Place, has_ifma};

#[test]
fn a_tested_program_is_proven_and_another_is_expected() {
    if !has_ifma() {
        return;
    }
    let place = Place::new();
    std::fs::copy(place.path("server"), place.path("nginx")).unwrap();
    for (program, proof) in [("nginx", "proven"), ("server", "expected")] {
        let path = format!("./{program}");
        let assert = place.run(&["check", "--json", "--", &path]).success();
        let report: Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
        assert_eq!(report["program"]["accelerators"][0]["proof"], proof);
        let said = place.stderr(&place.run(&["run", "--only", "tls", "--", &path]).success());
        assert!(said.contains(&format!("hasten: tls on for {program} ({proof}): TLS handshakes")), "{said}");
        let said = place.stderr(&place.run(&["run", "--dry-run", "--", &path]).success());
        assert!(said.contains(&format!("tls on ({proof}): TLS handshakes")), "{said}");
    }
}

#[test]
fn a_program_whose_handshakes_cannot_wait_is_off_with_the_reason_and_strict_does_not_start_it() {
    if !has_ifma() {
        return;
    }
    let place = Place::new();
    place.add_caller("waits", &["SSL_accept", "SSL_set_fd", "select"]);
    let assert = place.run(&["run", "--only", "tls", "--", "./waits"]).success();
    assert_eq!(place.stdout(&assert), "ran\n");
    assert!(place.stderr(&assert).contains("hasten: tls off: nothing in waits calls epoll_wait"));
    assert!(place.stderr(&assert).contains("fix: let nginx or HAProxy end TLS in front of it"));
    let assert = place.run(&["run", "--strict", "--only", "tls", "--", "./waits"]).code(1);
    assert_eq!(place.stdout(&assert), "", "it was not started");
}

#[test]
fn another_series_of_openssl_is_left_alone() {
    let place = Place::new();
    place.add_openssl("3.7.1");
    let assert = place.run(&["run", "--only", "tls", "--", "./server"]).success();
    assert_eq!(place.stdout(&assert), "./server loaded=no handshake=79\n");
    assert!(place.stderr(&assert).contains("fix: use a build for OpenSSL 3"));
    let words = ["run", "--strict", "--only", "tls", "--", "./server"];
    assert_eq!(place.stdout(&place.run(&words).code(1)), "", "it was not started");
    let why = "(OpenSSL 3.7.1); only OpenSSL 3.0 to 3.6 or 4.0 are known";
    let plan = place.stderr(&place.run(&["run", "--dry-run", "--", "./server"]).success());
    assert!(plan.contains("tls off: ") && plan.contains(why), "{plan}");
    let answer = place.stdout(&place.run(&["check", "--", "./server"]).success());
    assert!(answer.contains("tls off: ") && answer.contains(why), "{answer}");
}
