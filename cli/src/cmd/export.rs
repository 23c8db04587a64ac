//! `hasten export`: metrics of everything accelerated on this host, for Prometheus and for people.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::process::ExitCode;

use clap::Args;
use hasten_export::{Collector, Format, encode, families, serve};

use crate::denied;
use crate::failure::Failure;
use crate::output::print;
use crate::render::say;

const EXAMPLES: &str = "\
Examples:
  hasten export                               serve http://127.0.0.1:9469/metrics, and a live page at /
  hasten export --once                        print the metrics and exit
  hasten export --listen [::1]:9000           on another address
  hasten export --listen 10.0.0.5:9469 --allow-remote
                                              for a Prometheus on another host; there is no password

It reads what accelerated processes count by themselves and changes nothing in them. It sees the processes
that its user may look into: run it as root, or with the capabilities of hasten-export.service, to see all.
";

/// Serve metrics of accelerated processes: Prometheus, OpenMetrics, a live page
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExportArgs {
    /// Where to listen; port 0 is one that the system chooses
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9469", value_parser = parse_address)]
    listen: SocketAddr,

    /// Listen on an address that other hosts can reach
    #[arg(long)]
    allow_remote: bool,

    /// Label what programs in containers do with the container's identifier
    #[arg(long)]
    by_container: bool,

    /// Print the metrics once, as Prometheus reads them, and exit
    #[arg(long, conflicts_with_all = ["listen", "allow_remote"])]
    once: bool,
}

pub(crate) fn run(args: &ExportArgs) -> Result<ExitCode, Failure> {
    match args.once {
        true => print_once(args)?,
        false => listen(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, thiserror::Error)]
enum ExportError {
    #[error("{0} can be reached from other hosts, and whoever reaches it can read the metrics")]
    Remote(SocketAddr),
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: io::Error },
    #[error("the exporter cannot go on: {0}")]
    Serve(io::Error),
    #[error("{}", denied::NO_PROC)]
    NoProc,
    #[error("standard output cannot be written to: {0}")]
    Output(io::Error),
}

impl ExportError {
    fn fix(&self) -> String {
        match self {
            Self::Remote(address) => format!(
                "listen on 127.0.0.1:{}, or say --allow-remote if a firewall or a proxy decides who may come",
                address.port()
            ),
            Self::Listen { address, error } => match error.kind() {
                io::ErrorKind::AddrInUse => format!(
                    "another program has port {0}, perhaps another exporter: `ss -ltnp 'sport = :{0}'` says which; end it \
                     or choose another port with --listen {1}",
                    address.port(),
                    SocketAddr::new(address.ip(), address.port().checked_add(1).unwrap_or(0)),
                ),
                io::ErrorKind::PermissionDenied => {
                    format!("use a port above 1023, such as --listen {}", SocketAddr::new(address.ip(), 9469))
                }
                io::ErrorKind::AddrNotAvailable => {
                    "`ip address` says which addresses this host has; 127.0.0.1 is always there".to_owned()
                }
                _ => "choose another address with --listen, such as 127.0.0.1:9469".to_owned(),
            },
            Self::Serve(_) => "raise the limits of open files and of processes of this user".to_owned(),
            Self::NoProc => denied::MOUNT_PROC.to_owned(),
            Self::Output(_) => "check the file or the device behind it".to_owned(),
        }
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        Self::new(error.to_string(), error.fix())
    }
}

/// A tree of files made by tests, or this host's own.
fn collector(args: &ExportArgs) -> Collector {
    Collector::new(std::env::var_os("HASTEN_SYSFS_ROOT").unwrap_or_else(|| "/".into()))
        .by_container(args.by_container)
}

fn print_once(args: &ExportArgs) -> Result<(), ExportError> {
    if !denied::has_proc() {
        return Err(ExportError::NoProc);
    }
    let look = collector(args).look();
    if look.denied > 0 {
        say(format!("hasten: {} of the processes here may not be inspected by this user", look.denied));
    }
    let text = encode(&families(&look), Format::Prometheus);
    print(&text).map_err(ExportError::Output)
}

/// There may be devices to report, but no programs.
fn warn_without_proc() {
    if !denied::has_proc() {
        say(format!("hasten: warning: {}\n  fix: {}", denied::NO_PROC, denied::MOUNT_PROC));
    }
}

fn listen(args: &ExportArgs) -> Result<(), ExportError> {
    warn_without_proc();
    let address = args.listen;
    if !is_loopback(address.ip()) && !args.allow_remote {
        return Err(ExportError::Remote(address));
    }
    let listener = TcpListener::bind(address).map_err(|error| ExportError::Listen { address, error })?;
    let ready = |address| say(format!("hasten: serving http://{address}/ and http://{address}/metrics"));
    serve(listener, collector(args), args.allow_remote, ready).map_err(ExportError::Serve)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let text =
        text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    text.parse().map_err(|_| match text.parse::<u16>() {
        Ok(port) => format!("an address belongs in front of the port, such as 127.0.0.1:{port}"),
        Err(_) => "must be an address and a port, such as 127.0.0.1:9469 or [::1]:9469".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_and_only_localhost_has_a_name() {
        assert_eq!(parse_address("localhost:9469"), Ok("127.0.0.1:9469".parse().unwrap()));
        assert_eq!(parse_address("[::1]:0"), Ok("[::1]:0".parse().unwrap()));
        assert!(parse_address("9469").unwrap_err().contains("127.0.0.1:9469"));
        for bad in ["", "127.0.0.1", "example.com:9469", "127.0.0.1:65536", ":9469"] {
            assert!(parse_address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_this_host_can_reach_loopback() {
        for (address, expected) in [
            ("127.0.0.1", true),
            ("127.8.8.8", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("192.0.2.1", false),
        ] {
            assert_eq!(is_loopback(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn every_error_says_what_to_do() {
        let listen = |kind: io::ErrorKind| ExportError::Listen {
            address: "127.0.0.1:80".parse().unwrap(),
            error: kind.into(),
        };
        for (error, fix) in [
            (listen(io::ErrorKind::AddrInUse), "sport = :80"),
            (listen(io::ErrorKind::PermissionDenied), "--listen 127.0.0.1:9469"),
            (listen(io::ErrorKind::AddrNotAvailable), "ip address"),
            (ExportError::Remote("0.0.0.0:9469".parse().unwrap()), "--allow-remote"),
        ] {
            assert!(error.fix().contains(fix), "{}", error.fix());
        }
    }
}
