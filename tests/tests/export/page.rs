//! The live page in a real browser: charts are drawn and advance, warnings are shown, no other host is contacted.
//!
//! `HASTEN_TEST_PICTURES=DIR` keeps pictures there, for eyes.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use hasten_tests::chromium::{Chromium, Size};
use hasten_tests::{product, wait};
use serde_json::Value;

use crate::exporter::Exporter;
use crate::server::Server;

const PROBE: &str = include_str!("probe.js");
const PHONE: Size = (320, 640);
const DESKTOP: Size = (1280, 900);
/// A chart with fewer pixels than this has only its frame.
const DRAWN: u64 = 20;

/// Charts that a server with TLS and compression has, whatever the load.
const CHARTS: [&str; 5] = [
    "Operations by engine and result",
    "CPU saved, estimated",
    "Handshakes",
    "Bytes in and out of streams",
    "Bytes by engine",
];

/// Keeps the server busy during `look`.
fn under_requests<T>(server: &Server, look: impl FnOnce() -> T) -> T {
    struct StopAtTheEnd<'a>(&'a AtomicBool);
    impl Drop for StopAtTheEnd<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                server.request();
                // The machine has other work to do.
                thread::sleep(Duration::from_millis(20));
            }
        });
        // The requests must end even if the look ends in a panic.
        let _stop = StopAtTheEnd(&stop);
        look()
    })
}

/// What the page shows once that is enough.
fn look(chromium: &mut Chromium, what: &str, enough: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    wait::for_some(what, || {
        last = chromium.evaluate(PROBE);
        enough(&last).then(|| last.clone())
    })
}

fn charts_drawn(seen: &Value) -> Vec<&str> {
    let charts = seen["charts"].as_array().unwrap().iter();
    charts
        .filter(|one| one["coloured"].as_u64().unwrap() >= DRAWN)
        .map(|one| one["title"].as_str().unwrap())
        .collect()
}

/// What must hold of the page at all times.
fn assert_sound(chromium: &Chromium, exporter: &Exporter, seen: &Value, scheme: &str) {
    assert_eq!(chromium.complaints(), [""; 0], "{seen:#}");
    let foreign: Vec<_> = chromium
        .requests()
        .into_iter()
        .filter(|url| !url.starts_with(&exporter.url("/")) && url != "data:,")
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert_eq!((&seen["overflow"], &seen["images"]), (&0.into(), &0.into()), "{seen:#}");
    assert_eq!(seen["background"] == "rgb(16, 19, 23)", scheme == "dark", "{seen:#}");
}

fn keep(chromium: &mut Chromium, name: &str) {
    if let Some(directory) = std::env::var_os("HASTEN_TEST_PICTURES") {
        fs::write(PathBuf::from(directory).join(format!("export-{name}.png.base64")), chromium.picture())
            .unwrap();
    }
}

#[test]
fn charts_are_drawn_and_move_on_by_day_and_by_night_on_phones_and_desktops() {
    let server = Server::start();
    let exporter = Exporter::start();
    let mut chromium = Chromium::start();
    under_requests(&server, || {
        for (size, scheme) in [(DESKTOP, "light"), (PHONE, "dark")] {
            chromium.open(&exporter.url("/"), size, scheme);
            let seen = look(&mut chromium, "charts with something in them", |seen| {
                let drawn = charts_drawn(seen);
                CHARTS.iter().all(|title| drawn.contains(title))
            });
            assert_sound(&chromium, &exporter, &seen, scheme);
            let name = server.name.as_str();
            let is_listed = |rows: &Value| {
                rows.as_array().unwrap().iter().any(|row| row[0].as_str().unwrap().starts_with(name))
            };
            assert!(is_listed(&seen["programs"]) && is_listed(&seen["engines"]), "{seen:#}");
            keep(&mut chromium, &format!("{}-{scheme}", size.0));

            let canvas = "document.querySelector('#charts canvas').toDataURL()";
            let before = chromium.evaluate(canvas);
            let is_new = |chromium: &mut Chromium| chromium.evaluate(canvas) != before;
            wait::until("the chart to move on", || is_new(&mut chromium));
        }
    });
    assert_eq!(chromium.complaints(), [""; 0]);
}

#[test]
fn what_people_do_is_done_and_an_exporter_that_ends_is_noticed() {
    let server = Server::start();
    let exporter = Exporter::start();
    let mut chromium = Chromium::start();
    under_requests(&server, || {
        chromium.open(&exporter.url("/"), DESKTOP, "light");
        look(&mut chromium, "charts", |seen| charts_drawn(seen).len() >= CHARTS.len());
        // One program and accelerator only.
        let choose = format!(
            "(() => {{ const list = document.getElementById('program'); list.value = '{} · gzip';
              list.dispatchEvent(new Event('change')); return list.value; }})()",
            server.name
        );
        assert_eq!(chromium.evaluate(&choose), format!("{} · gzip", server.name));
        look(&mut chromium, "the charts of compression alone", |seen| {
            let drawn = charts_drawn(seen);
            drawn.contains(&"Bytes by engine")
                && seen["charts"].as_array().unwrap().len() == drawn.len()
                && !drawn.contains(&"Handshakes")
        });
        // A fixed time window.
        chromium.evaluate("document.querySelector('[data-do=zoom-in]').click()");
        let window = "document.getElementById('window').textContent";
        assert!(chromium.evaluate(window).as_str().unwrap().starts_with("From "));
        chromium.evaluate("document.querySelector('[data-do=all]').click()");
        assert_eq!(chromium.evaluate(window), "");
    });
    assert_eq!(chromium.complaints(), [""; 0]);
    exporter.stop(rustix::process::Signal::TERM);
    look(&mut chromium, "the page to notice", |seen| seen["headline"] == "The exporter does not answer");
}

#[test]
fn warnings_say_what_is_wrong_and_what_to_do() {
    let root = tempfile::tempdir().unwrap();
    let device = root.path().join("sys/bus/pci/devices/0000:6b:00.0");
    fs::create_dir_all(device.join("qat")).unwrap();
    // The contents of a kernel file are not assumed to be harmless.
    let evil = "<img src=x onerror=window.hacked=1>";
    for (file, text) in [("vendor", "0x8086"), ("device", "0x4940"), ("qat/state", evil)] {
        fs::write(device.join(file), text).unwrap();
    }
    let exporter = Exporter::with(Command::new(product::hasten()).env("HASTEN_SYSFS_ROOT", root.path()));
    let mut chromium = Chromium::start();
    chromium.open(&exporter.url("/"), PHONE, "light");
    let seen = look(&mut chromium, "the device", |seen| seen["devices"][0][0] == "0000:6b:00.0");
    assert_eq!(seen["devices"][0][2], "down", "{seen:#}");
    let warnings = seen["warnings"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    let about: Vec<_> = warnings.filter(|text| text.contains("QAT 0000:6b:00.0")).collect();
    assert!(about.len() == 1 && about[0].contains("hasten check"), "{seen:#}");
    assert_eq!(seen["hacked"], "undefined");
    assert!(seen["devices"].to_string().contains("onerror"), "{seen:#}");
    assert_sound(&chromium, &exporter, &seen, "light");
    keep(&mut chromium, "warnings");
}
