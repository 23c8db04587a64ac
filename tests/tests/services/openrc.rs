//! Services of OpenRC, which boots this system in namespaces of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use hasten_tests::booted::Booted;
use hasten_tests::{tools, wait};

use crate::fixture::Host;

const DROP_IN: &str = "/etc/rc.conf.d/50-hasten-nginx.conf";

/// As Alpine has it: a check of the settings before the start.
const DAEMON: &str = "#!/sbin/openrc-run
command=/usr/sbin/nginx
pidfile=/run/nginx.pid
start_pre() {
    $command -t -q
}
";
const SUPERVISED: &str = "#!/sbin/openrc-run
command=/usr/sbin/nginx
command_args='-g \"daemon off;\"'
supervisor=supervise-daemon
pidfile=/run/supervise-nginx.pid
";

fn host(script: &str) -> Option<Host> {
    let host = Host::of(Booted::with_openrc()?);
    host.booted.write("/etc/init.d/nginx", script);
    tools::run(Command::new("chmod").arg("755").arg(host.booted.path("/etc/init.d/nginx")));
    run(&host, &["nginx", "start"]);
    host.serve();
    Some(host)
}

fn run(host: &Host, arguments: &[&str]) {
    // Its server keeps what it writes to.
    let mut service = host.booted.command("rc-service");
    service.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(service.status().unwrap().success(), "{arguments:?}");
}

#[test]
fn a_service_is_enabled_after_a_trial_and_disabled_again() {
    for script in [DAEMON, SUPERVISED] {
        let Some(host) = host(script) else { return };
        assert_eq!(host.state("nginx"), "off, possible");
        let dry = host.does(&["enable", "--dry-run", "nginx"]);
        assert!(
            dry.contains(DROP_IN) && dry.contains("export LD_PRELOAD=/usr/lib/hasten/libhasten.so"),
            "{dry}"
        );
        assert!(!host.has(DROP_IN));
        let traffic = host.traffic();
        let enabled = host.does(&["enable", "--no-restart", "nginx"]);
        assert!(enabled.contains("it does the same with hasten as without: TLS 1.3 at port"), "{enabled}");
        assert!(enabled.contains("rc-service nginx restart"), "{enabled}");
        // The copy was none of its clients' business.
        let outcome = traffic.stop();
        assert!(outcome.ops > 0 && outcome.failures.total() == 0, "{}", outcome.failures);
        assert!(host.is_without_trial());
        assert_eq!(host.state("nginx"), "on after its restart");

        let enabled = host.does(&["enable", "--restart", "--watch", "1", "nginx"]);
        assert!(enabled.contains("nginx is up and accelerated"), "{enabled}");
        host.serve();
        assert_eq!(host.state("nginx"), "on");
        let handshakes = || host.status("nginx")["saved"]["handshakes"].as_u64().unwrap_or_default();
        assert!(handshakes() > 0);

        let disabled = host.does(&["disable", "--restart", "nginx"]);
        assert!(disabled.contains("nginx is up, without hasten") && !host.has(DROP_IN), "{disabled}");
        host.serve();
        assert_eq!(host.state("nginx"), "off, possible");
    }
}

/// A library that ends nginx, in the place of ours.
#[test]
fn a_service_whose_copy_fails_with_hasten_is_left_alone() {
    let Some(host) = host(DAEMON) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [source, library] = ["bad.c", "bad.so"].map(|name| folder.path().join(name));
    let code = "#include <string.h>\n#include <unistd.h>\nextern char *program_invocation_short_name;\n\
                __attribute__((constructor)) static void end(void) {\n\
                if (!strcmp(program_invocation_short_name, \"nginx\")) _exit(3); }\n";
    fs::write(&source, code).unwrap();
    tools::run(
        Command::new("cc").args(["-D_GNU_SOURCE", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source),
    );
    host.booted.copy(&library, "/usr/lib/hasten/libhasten.so", 0o644);
    let pid = || fs::read_to_string(host.booted.path("/run/nginx.pid")).unwrap();
    let before = pid();
    let refused = host.refuses(&["enable", "--restart", "--watch", "0", "nginx"]);
    assert!(
        refused.contains("was left as it is") && refused.contains("does not start with hasten"),
        "{refused}"
    );
    assert!(!host.has(DROP_IN) && host.is_without_trial());
    host.serve();
    assert_eq!(pid(), before);
    // Whoever does not want a trial gets the service back as it was.
    let refused = host.refuses(&["enable", "--no-trial", "--restart", "--watch", "0", "nginx"]);
    assert!(refused.contains("did not stay up") && refused.contains("it runs as before"), "{refused}");
    assert!(!host.has(DROP_IN));
    host.serve();
}

#[test]
fn a_service_that_can_no_longer_be_accelerated_starts_as_it_is_and_others_are_refused() {
    let Some(host) = host(DAEMON) else { return };
    assert!(host.refuses(&["enable", "other"]).contains("there is no service other"));
    host.does(&["enable", "--no-restart", "nginx"]);
    host.does(&["enable", "--recheck"]);
    assert!(host.has(DROP_IN), "nothing was upgraded");
    run(&host, &["nginx", "stop"]);
    host.booted.copy(Path::new("/sbin/ldconfig"), "/usr/sbin/nginx", 0o755);
    let line = "nginx is no longer accelerated: nginx is statically linked";
    assert!(host.does(&["enable", "--recheck"]).contains(line));
    assert!(!host.has(DROP_IN));
    wait::until("the service to be off", || {
        host.booted.hasten(&["disable", "nginx"]).status.code() == Some(1)
    });
}
