//! Facts about the machine and the programs that a report's reader needs.

use std::fs;
use std::process::Command;

use hasten_evidence::report::Host;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::affinity::Placement;
use crate::server::ServerKind;

/// Names and values, the most important first.
#[must_use]
pub fn facts(servers: &[ServerKind], placement: &Placement) -> Host {
    let mut facts = vec![
        ("cpu", field("/proc/cpuinfo", "model name", ':')),
        ("cores", std::thread::available_parallelism().map_or(0, usize::from).to_string()),
        ("machine", machine()),
        ("os", field("/etc/os-release", "PRETTY_NAME", '=')),
        ("kernel", rustix::system::uname().release().to_string_lossy().into_owned()),
    ];
    for &server in servers {
        let output = version_output(server);
        facts.push((server.as_str(), server_version(&output)));
        facts.push((library_name(server), library_version(&output)));
    }
    facts.extend([
        ("hasten", env!("CARGO_PKG_VERSION").to_owned()),
        ("placement", describe(placement)),
        ("date", now()),
    ]);
    Host(facts)
}

fn library_name(server: ServerKind) -> &'static str {
    match server {
        ServerKind::Nginx => "openssl",
        ServerKind::Haproxy => "haproxy_openssl",
        ServerKind::Envoy => "envoy_tls",
        ServerKind::HaproxyAwsLc => "haproxy_aws_lc",
    }
}

/// Whether it is virtual, and how its clock is governed: both matter when comparing numbers.
fn machine() -> String {
    let virtual_machine = field("/proc/cpuinfo", "flags", ':').split(' ').any(|flag| flag == "hypervisor");
    let kind = if virtual_machine { "virtual machine" } else { "bare metal" };
    match fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") {
        Ok(governor) => format!("{kind}, frequency governor {}", governor.trim()),
        Err(_) => kind.to_owned(),
    }
}

fn describe(placement: &Placement) -> String {
    let list = |cpus: &[usize]| cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match placement.server {
        Some(server) => format!("server on CPU {server}, driver on CPU {}", list(&placement.driver)),
        None => "server and driver on the only CPU".to_owned(),
    }
}

fn version_output(server: ServerKind) -> String {
    let argument = match server {
        ServerKind::Nginx => "-V",
        ServerKind::Haproxy | ServerKind::HaproxyAwsLc => "-vv",
        ServerKind::Envoy => "--version",
    };
    let Ok(program) = server.program() else { return String::new() };
    let Ok(output) = Command::new(program).arg(argument).output() else { return String::new() };
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// `nginx version: nginx/1.22.1`, `HAProxy version 2.6.12-1+deb12u4 2026/…`, or, after the commit,
/// `… version: 9e55…/1.40.0/Clean/RELEASE/BoringSSL`.
fn server_version(output: &str) -> String {
    let line = output.lines().find(|line| line.contains("version")).unwrap_or_default();
    let words = || line.split_whitespace();
    let official = words().find_map(|word| match word.split('/').collect::<Vec<_>>()[..] {
        [_, release, _, "RELEASE", _] => Some(release),
        _ => None,
    });
    let version = official.or_else(|| words().find(|word| word.contains(|c: char| c.is_ascii_digit())));
    version.map_or("unknown", |word| word.trim_start_matches("nginx/")).to_owned()
}

/// The running library if the program reports it, else the one that it was built with.
fn library_version(output: &str) -> String {
    let after = |mark: &str| {
        let (_, rest) = output.split_once(mark)?;
        let words: Vec<&str> = rest.trim_start_matches([':', ' ']).split_whitespace().take(2).collect();
        Some(words.join(" "))
    };
    if let Some(line) = output.lines().find(|line| line.ends_with("/BoringSSL")) {
        return line.rsplit('/').next().unwrap_or_default().to_owned();
    }
    let marks = ["running with", "Running on OpenSSL version", "built with", "Built with OpenSSL version"];
    marks.into_iter().find_map(after).unwrap_or_else(|| "unknown".to_owned())
}

/// The value of the first line that begins with `name`.
fn field(path: &str, name: &str, separator: char) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.split_once(separator).filter(|(key, _)| key.trim() == name));
    line.map_or("unknown", |(_, value)| value.trim().trim_matches('"')).to_owned()
}

fn now() -> String {
    let now = OffsetDateTime::now_utc().replace_nanosecond(0);
    now.ok().and_then(|now| now.format(&Rfc3339).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_nginx() {
        let output =
            "nginx version: nginx/1.22.1\nbuilt with OpenSSL 3.0.19 27 Jan 2026\nTLS SNI support enabled\n";
        assert_eq!(server_version(output), "1.22.1");
        assert_eq!(library_version(output), "OpenSSL 3.0.19");
        let updated = "nginx version: nginx/1.22.1\nbuilt with OpenSSL 3.0.9 30 May 2023 (running with OpenSSL 3.0.19 27 Jan 2026)\n";
        assert_eq!(library_version(updated), "OpenSSL 3.0.19");
    }

    #[test]
    fn versions_of_haproxy() {
        let output = "HAProxy version 2.6.12-1+deb12u4 2026/01/01 - https://haproxy.org/\n\
                      Built with OpenSSL version : OpenSSL 3.0.19 27 Jan 2026\n\
                      Running on OpenSSL version : OpenSSL 3.0.22 25 Aug 2026\n";
        assert_eq!(server_version(output), "2.6.12-1+deb12u4");
        assert_eq!(library_version(output), "OpenSSL 3.0.22");
    }

    #[test]
    fn versions_of_envoy() {
        let output = "\n/opt/envoy-1.40/envoy  version: 9e5580933739775e8bce696a57a2e1bc99368f23/1.40.0/Clean/RELEASE/BoringSSL\n\n";
        assert_eq!((server_version(output), library_version(output)), ("1.40.0".into(), "BoringSSL".into()));
    }

    #[test]
    fn a_program_that_says_nothing_is_unknown() {
        assert_eq!(server_version(""), "unknown");
        assert_eq!(library_version(""), "unknown");
    }

    #[test]
    fn every_fact_has_a_value() {
        let Host(facts) = facts(&[ServerKind::Nginx], &Placement::of_this_machine());
        for (name, value) in &facts {
            assert!(!value.is_empty(), "{name} is empty");
        }
        let names: Vec<_> = facts.iter().map(|(name, _)| *name).collect();
        for name in ["cpu", "cores", "kernel", "nginx", "openssl", "hasten", "date"] {
            assert!(names.contains(&name), "{name} is missing from {names:?}");
        }
    }
}
