//! Clients of the distribution: they shake hands, too, and from the other side.

use std::path::{Path, PathBuf};
use std::process::Command;

use hasten_bench::certificates::KeyKind;
use hasten_tests::program::{preload, without_library};
use hasten_tests::{Side, tools};

use crate::animals::LIGHTTPD;
use crate::cage::{Animal, Cage};
use crate::proxies::{PGBOUNCER, SQUID};

/// A client's output and exit, stock or accelerated.
fn output(program: &Path, arguments: &[String], side: Side) -> String {
    let mut command = Command::new(program);
    command.args(arguments).env("GIT_SSL_NO_VERIFY", "1");
    match side {
        Side::Stock => without_library(&mut command),
        Side::Accelerated => preload(&mut command, &[]),
    }
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    format!(
        "{}{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        output.status
    )
}

/// `{url}` in the arguments is the server's.
fn same_as_stock(program: &str, package: &str, arguments: &[&str], expected: &str) {
    let cage = Cage::new(KeyKind::P256);
    let repository = cage.fill("{dir}/hello.git", ([127, 0, 0, 1], 0).into());
    let git = tools::tool("git", "git");
    tools::run(Command::new(&git).args(["init", "--quiet", "--bare", &repository]));
    tools::run(Command::new(&git).args(["-C", &repository, "update-server-info"]));
    let server = cage.start(&LIGHTTPD, Side::Stock);
    let url = format!("https://localhost:{}", server.address.port());
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.replace("{url}", &url)).collect();
    let program: PathBuf = tools::tool(program, package);
    let stock = output(&program, &arguments, Side::Stock);
    assert!(stock.contains(expected), "{stock}");
    for _ in 0..3 {
        assert_eq!(output(&program, &arguments, Side::Accelerated), stock);
    }
}

/// A scanner's view of a server: each version, cipher and group that it has, with a connection for each.
fn scan(cage: &Cage, animal: &Animal, side: Side, options: &[&str]) -> String {
    let server = cage.start(animal, side);
    let address = server.address.to_string();
    let mut command = Command::new(tools::tool("sslscan", "sslscan"));
    command.args(["--no-colour", "--show-sigs"]).args(options).arg(&address);
    without_library(&mut command);
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    String::from_utf8_lossy(&output.stdout).replace(&server.address.port().to_string(), "PORT")
}

fn same_for_a_scanner(animal: &Animal, options: &[&str]) {
    let cage = Cage::new(KeyKind::Rsa2048);
    let stock = scan(&cage, animal, Side::Stock, options);
    let ciphers = stock.matches("Accepted").count() + stock.matches("Preferred").count();
    assert!(ciphers > 5 && stock.contains("TLSv1.3"), "{}: {stock}", animal.name);
    assert_eq!(scan(&cage, animal, Side::Accelerated, options), stock, "{}", animal.name);
}

#[test]
#[ignore = "a part of `make zoo`"]
fn a_scanner_finds_the_same() {
    for animal in [&LIGHTTPD, &SQUID] {
        same_for_a_scanner(animal, &[]);
    }
    same_for_a_scanner(&PGBOUNCER, &["--starttls-psql"]);
}

#[test]
fn curl() {
    for version in [["--tls-max", "1.2"], ["--tlsv1.3", "--silent"]] {
        let arguments = [&version[..], &["--silent", "--insecure", "{url}/hello.txt"]].concat();
        same_as_stock("curl", "curl", &arguments, "hello from the zoo");
    }
}

#[test]
fn many_at_once_by_one_curl() {
    let arguments = ["--silent", "--insecure", "--no-progress-meter", "--parallel", "{url}/hello.txt?[1-40]"];
    same_as_stock("curl", "curl", &arguments, "hello from the zoo\nhello from the zoo");
}

#[test]
fn git_over_https() {
    same_as_stock("git", "git", &["ls-remote", "{url}/hello.git"], "exit status: 0");
}
