//! Servers whose stack is not what it seems.

use hasten_bench::certificates::KeyKind;
use hasten_telemetry::Event;
use hasten_tests::Side;

use crate::animals::NOTHING;
use crate::cage::{Animal, Cage, PYTHON};

/// In greenlets, frames of several handshakes take turns at one place of the thread's own stack.
const GEVENT: Animal = Animal {
    name: "gevent with an SNI callback that waits",
    program: PYTHON,
    package: "python3-gevent",
    arguments: &["{dir}/server.py", "{port}", "{chain}", "{key}"],
    files: &[("server.py", include_str!("../../zoo/gevent_sni.py"))],
    ..NOTHING
};

/// In fibers, several handshakes are in the middle of their calls on stacks of their own.
const FIBERS: Animal = Animal {
    name: "async of Ruby with an SNI callback that waits",
    program: "ruby",
    package: "ruby-async",
    arguments: &["{dir}/server.rb", "{port}", "{chain}", "{key}"],
    files: &[("server.rb", include_str!("../../zoo/fibers.rb"))],
    ..NOTHING
};

/// As in Debian's own configuration. Where there is no /proc, the C library does not know the stack of the first thread.
const HAPROXY: Animal = Animal {
    name: "haproxy in a change root",
    program: "haproxy",
    package: "haproxy",
    arguments: &["-f", "{dir}/haproxy.cfg"],
    files: &[(
        "haproxy.cfg",
        "global\n  nbthread 1\n  chroot {dir}\ndefaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n\
         \x20 timeout connect 60s\nfrontend zoo\n  bind 127.0.0.1:{port} ssl crt {bundle}\n\
         \x20 http-request return status 200 content-type text/plain string \"hello from the zoo\\n\"\n",
    )],
    ..NOTHING
};

#[test]
#[ignore = "a part of `make zoo`"]
fn greenlets_switch_in_a_callback() {
    for _ in 0..3 {
        let _ = Cage::new(KeyKind::Rsa2048).compare(&GEVENT);
    }
}

/// A thread that has served such handshakes still knows that it is outside of them.
#[test]
#[ignore = "a part of `make zoo`"]
fn fibers_switch_in_a_callback() {
    let cage = Cage::new(KeyKind::Rsa2048);
    let _ = cage.compare(&FIBERS);
    let caged = cage.start(&FIBERS, Side::Accelerated);
    let started = || {
        cage.visit(&FIBERS, &caged);
        caged.counters()[Event::HandshakeStarted]
    };
    let first = started();
    assert!(started() > first, "no handshake is noticed any more");
}

#[test]
fn haproxy_in_a_change_root() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root may change its root");
    }
    let counters = Cage::new(KeyKind::Rsa2048).compare(&HAPROXY);
    assert!(counters[Event::Suspended] > 0, "the first thread's stack was not recognised");
}
