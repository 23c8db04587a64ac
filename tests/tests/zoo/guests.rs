//! Programs that bring along a second and a third OpenSSL: each is served by its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use hasten_bench::certificates::KeyKind;
use hasten_tests::program::{preload, without_library};
use hasten_tests::{Side, product, tools};

use crate::animals::{LIGHTTPD, POSTGRESQL};
use crate::cage::Cage;

fn wheels() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tree");
    let wheels = root.join(".deps/wheels");
    assert!(wheels.join("pin").is_file(), "{wheels:?} is missing: run `scripts/wheels.sh`");
    wheels
}

/// The program's output, after a change of its command.
fn prints(ports: [u16; 2], change: impl FnOnce(Command) -> Command) -> String {
    let mut python = Command::new(tools::tool("/usr/bin/python3", "python3"));
    python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("zoo/guests.py"));
    python.args(ports.map(|port| port.to_string()));
    without_library(&mut python);
    let mut command = change(python);
    command.env("PYTHONPATH", wheels());
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{stdout}{stderr}{}", output.status)
}

fn same_as_stock(change: impl FnOnce(Command) -> Command) {
    let (web, database) = (Cage::new(KeyKind::Rsa2048), Cage::new(KeyKind::Rsa2048));
    let (lighttpd, postgresql) =
        (web.start(&LIGHTTPD, Side::Stock), database.start(&POSTGRESQL, Side::Stock));
    let ports = [lighttpd.address.port(), postgresql.address.port()];
    let stock = prints(ports, |python| python);
    assert!(stock.matches("(True,) True").count() == 3 && stock.ends_with("exit status: 0"), "{stock}");
    assert_eq!(prints(ports, change), stock);
}

#[test]
fn each_reaches_its_own_openssl() {
    same_as_stock(|mut python| {
        preload(&mut python, &[]);
        python
    });
}

#[test]
fn each_reaches_its_own_openssl_when_hasten_is_disabled() {
    same_as_stock(|mut python| {
        preload(&mut python, &[("HASTEN_DISABLE", "all")]);
        python
    });
}

#[test]
fn each_reaches_its_own_openssl_below_hasten_run() {
    same_as_stock(|python| {
        let mut run = Command::new(product::hasten());
        run.args(["run", "--quiet", "--"]).arg(python.get_program()).args(python.get_args());
        without_library(&mut run);
        run
    });
}
