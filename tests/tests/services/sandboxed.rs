//! Services stay in the sandbox of their unit, and are accelerated in there.

use std::fs;

use hasten_tests::subject::assert_perfect;
use hasten_tests::tools;

use crate::fixture::{DROP_IN, Host, said};

const UNIT: &str = "nginx.service";

#[test]
fn nginx_of_debian_is_enabled_restarted_seen_and_disabled() {
    let Some(host) = Host::with_nginx() else { return };
    assert_eq!(host.state(UNIT), "off, possible");
    // What a trial has left that was killed.
    let left = "left=/run/hasten-trial-4000000; mkdir $left && mount -t tmpfs tmpfs $left && \
                touch /run/systemd/system/hasten-trial-4000000.service";
    tools::run(host.booted.command("sh").args(["-c", left]));
    let said = host.does(&["enable", "--restart", "--watch", "0", "nginx"]);
    assert!(said.contains("nginx.service is up and accelerated") && said.contains(DROP_IN), "{said}");
    assert!(said.contains("it does the same with hasten as without: TLS 1.3"), "{said}");
    assert!(host.is_without_trial(), "a copy is left");
    host.serve();
    let status = host.status(UNIT);
    assert_eq!(status["state"], "on", "{status}");
    assert!(status["saved"]["handshakes"].as_u64().unwrap() > 0, "{status}");
    assert!(status["saved"]["cpu_used_s"].as_f64().unwrap() > 0.0, "{status}");
    // Again: nothing to do, and the same file.
    let text = fs::read_to_string(host.booted.path(DROP_IN)).unwrap();
    let said = host.does(&["enable", "--restart", "nginx"]);
    assert!(said.contains("accelerated already"), "{said}");
    assert_eq!(fs::read_to_string(host.booted.path(DROP_IN)).unwrap(), text);
    host.does(&["disable", "--no-restart", "nginx"]);
    assert_eq!(host.state(UNIT), "on until its restart");
    host.booted.systemctl(&["restart", "nginx"]);
    host.serve();
    assert_eq!(host.state(UNIT), "off, possible");
    assert!(!host.has("/etc/systemd/system/nginx.service.d"));
}

#[test]
fn without_a_restart_it_waits_for_one() {
    let Some(host) = Host::with_nginx() else { return };
    // No terminal: nobody is asked. The copies of the trial are not noticed.
    let number = || fs::read_to_string(host.booted.path("/run/nginx.pid")).unwrap();
    let (before, traffic) = (number(), host.traffic());
    let said = host.does(&["enable", "nginx"]);
    assert_perfect(&traffic.stop(), &said);
    assert!(said.contains("it does the same") && number() == before && host.is_without_trial(), "{said}");
    assert!(said.contains("`systemctl restart nginx`"), "{said}");
    assert_eq!(host.state(UNIT), "on after its restart");
    let said = host.does(&["enable", "--restart", "--watch", "1", "nginx"]);
    assert!(said.contains("up and accelerated") && said.contains("nothing came"), "{said}");
    host.does(&["disable", "--restart", "--all"]);
    host.booted.systemctl(&["stop", "nginx"]);
    host.does(&["enable", "nginx"]);
    assert_eq!(host.state(UNIT), "on when it starts");
}

/// systemd guesses the main process of such a service, and may not find it.
#[test]
fn a_service_whose_main_process_is_not_known() {
    let Some(host) = Host::new() else { return };
    let unit = "[Service]\nType=forking\nGuessMainPID=no\nExecStart=/usr/sbin/nginx\n";
    host.unit("lost.service", unit);
    host.booted.systemctl(&["start", "lost"]);
    host.serve();
    assert_eq!(host.booted.property("lost", "MainPID"), "0");
    let said = host.does(&["enable", "--restart", "--watch", "0", "lost"]);
    assert!(said.contains("it does the same") && said.contains("up and accelerated"), "{said}");
    host.serve();
    let status = host.status("lost.service");
    assert!(status["saved"]["handshakes"].as_u64().unwrap() > 0, "{status}");
}

#[test]
fn haproxy_of_debian_with_its_chroot_and_its_sockets() {
    let Some(host) = Host::new() else { return };
    host.booted.write("/etc/haproxy/haproxy.cfg", &host.haproxy());
    host.booted.systemctl(&["start", "haproxy"]);
    let traffic = host.traffic();
    let said = host.does(&["enable", "--no-restart", "haproxy"]);
    assert!(said.contains("it does the same with hasten as without: TLS 1.3"), "{said}");
    assert_perfect(&traffic.stop(), &said);
    assert!(host.has("/run/haproxy/admin.sock"), "the running one's");
    host.does(&["enable", "--restart", "--watch", "0", "haproxy"]);
    host.serve();
    let status = host.status("haproxy.service");
    assert!(status["saved"]["handshakes"].as_u64().unwrap() > 0, "{status}");
}

#[test]
fn the_units_own_preload_stays_in_front_however_often_it_is_enabled() {
    let Some(host) = Host::with_nginx() else { return };
    let own = "/usr/lib/x86_64-linux-gnu/libz.so.1";
    let text = format!("[Service]\nEnvironment=LD_PRELOAD={own}\n");
    host.unit("nginx.service.d/10-own.conf", &text);
    for _ in 0..2 {
        host.does(&["enable", "--no-restart", "nginx"]);
        let environment = host.booted.property("nginx", "Environment");
        assert_eq!(environment, format!("LD_PRELOAD={own}:/usr/lib/hasten/libhasten.so"));
    }
    host.does(&["disable", "--no-restart", "nginx"]);
    assert_eq!(host.booted.property("nginx", "Environment"), format!("LD_PRELOAD={own}"));
}

/// As much of a sandbox as a server can live in.
const SANDBOX: &str = "\
CapabilityBoundingSet=
LockPersonality=yes
MemoryDenyWriteExecute=yes
NoNewPrivileges=yes
PrivateDevices=yes
PrivateTmp=yes
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
UMask=0077
";

fn in_a_sandbox(user: &str) {
    let Some(host) = Host::new() else { return };
    host.booted.write("/etc/nginx/edge.conf", &host.unprivileged("/var/lib/edge"));
    let unit = format!(
        "[Service]\nExecStart=/usr/sbin/nginx -e stderr -c /etc/nginx/edge.conf\nStateDirectory=edge\n{user}\n{SANDBOX}"
    );
    host.unit("edge.service", &unit);
    host.booted.systemctl(&["start", "edge"]);
    host.serve();
    let said = host.does(&["enable", "--restart", "--watch", "0", "edge"]);
    assert_eq!(said.contains("it does the same"), !user.starts_with("DynamicUser"), "{said}");
    assert!(said.contains("edge.service is up and accelerated"), "{said}");
    host.serve();
    let status = host.status("edge.service");
    assert!(status["saved"]["handshakes"].as_u64().unwrap() > 0, "{status}");
    assert_eq!(host.booted.property("edge", "NRestarts"), "0");
}

#[test]
fn a_sandbox_with_a_user_of_its_own_stays_as_it_is() {
    in_a_sandbox("User=www-data");
}

#[test]
fn a_dynamic_user_is_served_likewise() {
    in_a_sandbox("DynamicUser=yes");
}

#[test]
fn all_that_would_gain_are_shown_and_nothing_is_written() {
    let Some(host) = Host::with_nginx() else { return };
    host.unit("idle.service", "[Service]\nExecStart=/bin/sleep infinity\n");
    host.booted.systemctl(&["start", "idle"]);
    let shown = host.does(&["enable", "--all", "--dry-run"]);
    assert!(shown.contains("LD_PRELOAD=/usr/lib/hasten/libhasten.so"), "{shown}");
    assert!(!shown.contains("idle.service"), "{shown}");
    assert!(!host.has(DROP_IN));
    assert_eq!(host.state("idle.service"), "off");
    // Somebody without rights sees the same, and may change nothing.
    let as_nobody = |arguments: &[&str]| {
        let mut command = host.booted.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/hasten"]).args(arguments);
        command.output().unwrap()
    };
    let refused = as_nobody(&["enable", "nginx"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(said(&refused).contains("sudo"), "{}", said(&refused));
}
