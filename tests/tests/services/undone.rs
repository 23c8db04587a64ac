//! A service that does not stay up with hasten runs again without it.

use std::fs;
use std::path::Path;
use std::process::Command;

use hasten_tests::{tools, wait};

use crate::fixture::{DROP_IN, Host, said};

/// A server that ends where something is preloaded: at once, or a moment later.
fn allergic(seconds: u32) -> String {
    format!(
        "[Service]\nExecStart=/bin/sh -c 'if [ \"$$LD_PRELOAD\" ]; then sleep {seconds}; exit 3; fi; \
         exec /usr/sbin/nginx -g \"daemon off;\"'\n"
    )
}

#[test]
fn a_service_that_ends_with_hasten_runs_again_without_it() {
    let Some(host) = Host::new() else { return };
    for seconds in [0, 2] {
        host.unit("allergic.service", &allergic(seconds));
        host.booted.systemctl(&["restart", "allergic"]);
        host.serve();
        let said = host.refuses(&["enable", "--restart", "--watch", "0", "allergic"]);
        assert!(said.contains("did not stay up") && said.contains("it runs as before"), "{said}");
        assert!(!host.has("/etc/systemd/system/allergic.service.d"));
        host.serve();
        assert_eq!(host.state("allergic.service"), "off, possible");
    }
}

/// A library that ends nginx, in the place of ours.
#[test]
fn a_service_whose_copy_fails_with_hasten_is_left_alone() {
    let Some(host) = Host::with_nginx() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [source, library] = ["bad.c", "bad.so"].map(|name| folder.path().join(name));
    let code = "#include <unistd.h>\n__attribute__((constructor)) static void end(void) { _exit(3); }\n";
    fs::write(&source, code).unwrap();
    tools::run(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source));
    host.booted.copy(&library, "/usr/lib/hasten/libhasten.so", 0o644);
    let before = host.booted.property("nginx", "MainPID");
    let said = host.refuses(&["enable", "--restart", "--watch", "0", "nginx"]);
    assert!(said.contains("was left as it is") && said.contains("does not start with hasten"), "{said}");
    assert!(!host.has(DROP_IN) && host.is_without_trial());
    host.serve();
    assert_eq!(host.booted.property("nginx", "MainPID"), before);
}

#[test]
fn a_service_that_is_broken_anyway_is_not_blamed_on_hasten() {
    let Some(host) = Host::with_nginx() else { return };
    host.booted.write("/etc/nginx/nginx.conf", "nonsense;\n");
    // It goes on as it was started, and a copy shows that it would not start again.
    let said = host.refuses(&["enable", "--restart", "nginx"]);
    assert!(said.contains("does not start even without hasten") && said.contains("nonsense"), "{said}");
    assert!(!host.has(DROP_IN));
    host.serve();
    let said = host.refuses(&["enable", "--no-trial", "--restart", "--watch", "0", "nginx"]);
    assert!(said.contains("does not stay up either") && said.contains("hasten is not the cause"), "{said}");
}

#[test]
fn the_drop_in_of_a_service_that_is_gone_is_removed() {
    let Some(host) = Host::new() else { return };
    host.unit("gone.service", "[Service]\nExecStart=/usr/sbin/nginx -g 'daemon off;'\n");
    host.does(&["enable", "gone"]);
    fs::remove_file(host.booted.path("/etc/systemd/system/gone.service")).unwrap();
    host.booted.systemctl(&["daemon-reload"]);
    let said = host.does(&["disable", "--all"]);
    assert!(said.contains("no service any more"), "{said}");
    assert!(!host.has("/etc/systemd/system/gone.service.d"));
}

/// Debian's static program in the place of an nginx is what no upgrade brings, but it is refused like what one might.
#[test]
fn after_an_upgrade_a_service_that_cannot_be_accelerated_starts_as_it_is() {
    let Some(host) = Host::with_nginx() else { return };
    host.does(&["enable", "--no-restart", "nginx"]);
    host.does(&["enable", "--recheck"]);
    assert!(host.has(DROP_IN), "nothing was upgraded");
    host.booted.systemctl(&["stop", "nginx"]);
    host.booted.copy(Path::new("/sbin/ldconfig"), "/usr/sbin/nginx", 0o755);
    let line = "nginx.service is no longer accelerated: nginx is statically linked";
    assert!(host.does(&["enable", "--recheck", "--dry-run"]).contains(line));
    assert!(host.has(DROP_IN));
    assert!(host.does(&["enable", "--recheck"]).contains(line));
    assert!(!host.has(DROP_IN));
    let in_the_journal = || {
        let mut journal = host.booted.command("journalctl");
        let output = journal.args(["--unit=nginx", "--output=cat", "--no-pager"]).output().unwrap();
        said(&output).contains(line)
    };
    wait::until("the line in the journal", in_the_journal);
}
