//! What cannot work is refused before anything is written.

use std::fs;
use std::process::Command;

use hasten_tests::{product, tools};

use crate::fixture::{DROP_IN, Host, said};

#[test]
fn who_cannot_be_accelerated_hears_why() {
    let Some(host) = Host::new() else { return };
    let file = "/etc/default/preloads";
    host.booted.write(file, "LD_PRELOAD=/a.so\n");
    for (name, settings, why) in [
        ("once", "Type=oneshot\nExecStart=/usr/sbin/nginx", "Type=oneshot"),
        ("file", &format!("EnvironmentFile={file}\nExecStart=/usr/sbin/nginx"), file),
        ("unset", "UnsetEnvironment=LD_PRELOAD\nExecStart=/usr/sbin/nginx", "UnsetEnvironment"),
        ("rooted", "RootDirectory=/srv\nExecStart=/usr/sbin/nginx", "its root is /srv"),
        ("static", "ExecStart=/sbin/ldconfig -p", "statically linked"),
    ] {
        host.unit(&format!("{name}.service"), &format!("[Service]\n{settings}\n"));
        let said = host.refuses(&["enable", "--no-restart", name]);
        assert!(said.contains(why) && said.contains("fix: "), "{name}: {said}");
        assert!(!host.has(&format!("/etc/systemd/system/{name}.service.d")), "{name}");
    }
}

#[test]
fn names_that_are_no_services_are_refused() {
    let Some(host) = Host::new() else { return };
    host.unit("hidden.service", "[Service]\nExecStart=/usr/sbin/nginx\n");
    fs::remove_file(host.booted.path("/etc/systemd/system/hidden.service")).unwrap();
    std::os::unix::fs::symlink("/dev/null", host.booted.path("/etc/systemd/system/hidden.service")).unwrap();
    host.booted.systemctl(&["daemon-reload"]);
    for (name, why) in [
        ("nosuch", "there is no service nosuch.service"),
        ("nginx.socket", "nginx.socket is not a service"),
        ("hidden", "hidden.service is masked"),
        ("systemd-journald", "a part of systemd"),
    ] {
        let said = host.refuses(&["enable", "--no-restart", name]);
        assert!(said.contains(why) && said.contains("fix: "), "{name}: {said}");
    }
    let said = host.refuses(&["disable", "nginx"]);
    assert!(said.contains("was not enabled"), "{said}");
}

#[test]
fn the_drop_in_of_somebody_else_stays() {
    let Some(host) = Host::new() else { return };
    host.unit("nginx.service.d/50-hasten.conf", "[Service]\nNice=1\n");
    for command in [&["enable", "--no-restart", "nginx"][..], &["disable", "nginx"]] {
        host.refuses(command);
        assert_eq!(fs::read_to_string(host.booted.path(DROP_IN)).unwrap(), "[Service]\nNice=1\n");
    }
}

#[test]
fn without_a_systemd_the_other_ways_are_named() {
    let mut unshare = Command::new(tools::tool("unshare", "util-linux"));
    if !rustix::process::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    let script = "mount -t tmpfs tmpfs /run && exec \"$0\" enable nginx";
    let output = unshare.args(["--mount", "sh", "-c", script]).arg(product::hasten()).output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("neither systemd nor OpenRC runs here") && said.contains("hasten run --"),
        "{said}"
    );
}
