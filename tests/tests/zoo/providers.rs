//! If a provider other than OpenSSL's default does the cryptography, as a FIPS module does, handshakes are left to it.
//! No Debian package contains such a module, so one of another name stands in for it (`tests/zoo/provider.c`).

use hasten_bench::certificates::KeyKind;
use hasten_telemetry::{Counters, Event};
use hasten_tests::lanes;

use crate::animals::MOSQUITTO;
use crate::cage::{Animal, Cage};
use crate::nginx::NGINX;

const PROVIDER: (&str, &str) = ("standin.c", include_str!("../../zoo/provider.c"));

/// A server's counters with this OpenSSL configuration; its clients see the same as with a stock one.
fn counters(animal: &Animal, name: &'static str, configuration: &'static str) -> Counters {
    let files = [animal.files, &[PROVIDER, (name, configuration)]].concat();
    let animal = Animal {
        files: files.leak(),
        prepare: "cc -shared -fPIC -o standin.so standin.c -lcrypto",
        variables: vec![("OPENSSL_CONF", format!("{{dir}}/{name}").leak() as &str)].leak(),
        ..*animal
    };
    Cage::new(KeyKind::Rsa2048).compare(&animal)
}

fn is_left_alone(name: &'static str, configuration: &'static str) {
    for animal in [NGINX, MOSQUITTO] {
        let counters = counters(&animal, name, configuration);
        assert_eq!(counters[Event::Suspended], 0, "{}", animal.name);
        assert_eq!(counters.total().batched, 0, "{}", animal.name);
        assert!(counters.bypassed() > 0, "{}: the library is not there at all", animal.name);
    }
}

#[test]
fn one_that_is_alone_but_for_files() {
    is_left_alone("fips.cnf", include_str!("../../zoo/fips.cnf"));
}

#[test]
fn one_that_the_default_properties_prefer() {
    is_left_alone("preferred.cnf", include_str!("../../zoo/preferred.cnf"));
}

/// The same with OpenSSL's own: it is not the configuration as such that keeps the library away.
#[test]
fn the_default_provider() {
    let counters = counters(&NGINX, "default.cnf", include_str!("../../zoo/default.cnf"));
    assert!(counters[Event::Suspended] > 0 && (counters.total().batched > 0 || !lanes::exist()));
}
